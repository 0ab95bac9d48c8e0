//! Small numbers that name things, as types: they cannot be mixed up.

use std::fmt;

/// A routing table's number, as in `ip route … table N`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// Table `default`, the last one asked.
    pub const DEFAULT: TableId = TableId(253);
    /// Table `main`, where routes go that name none.
    pub const MAIN: TableId = TableId(254);
    /// Table `local`, the router's own addresses.
    pub const LOCAL: TableId = TableId(255);
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TableId::DEFAULT => f.write_str("default"),
            TableId::MAIN => f.write_str("main"),
            TableId::LOCAL => f.write_str("local"),
            TableId(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An interface's number: Linux's ifindex. 1 is `lo`; 0 names none and is never given out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IfIndex(pub u32);

impl IfIndex {
    /// The loopback interface.
    pub const LO: IfIndex = IfIndex(1);
    /// The number that names none: a route that leads there leaves its packets to the kernel.
    pub const KERNEL: IfIndex = IfIndex(0);
}

/// A seg6local route's behaviour: index of its entry in `srv6`'s table of SIDs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SidId(pub u32);

/// A seg6 route's policy: index of its entry in `srv6`'s table of policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PolicyId(pub u32);
