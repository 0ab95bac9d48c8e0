//! How flows are shared among the ways of a route: settings.

/// What of a packet decides which way of several it takes: `fib_multipath_hash_policy` and `fib_multipath_hash_fields` of a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipath {
    /// 0 addresses, 1 ports too, 2 addresses of the innermost packet, 3 the fields named.
    pub policy: u8,
    /// Under policy 3: a bit for each [`HashField`].
    pub fields: u16,
}

impl Default for Multipath {
    fn default() -> Multipath {
        use HashField::*;
        Multipath { policy: 0, fields: Source as u16 | Destination as u16 | Protocol as u16 }
    }
}

/// A field that `fib_multipath_hash_fields` may name: its bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names say it; those that begin with Inner are of the packet inside a tunnel")]
pub enum HashField {
    Source = 1,
    Destination = 1 << 1,
    Protocol = 1 << 2,
    FlowLabel = 1 << 3,
    SourcePort = 1 << 4,
    DestinationPort = 1 << 5,
    InnerSource = 1 << 6,
    InnerDestination = 1 << 7,
    InnerProtocol = 1 << 8,
    InnerFlowLabel = 1 << 9,
    InnerSourcePort = 1 << 10,
    InnerDestinationPort = 1 << 11,
}

impl HashField {
    /// All of them.
    pub const ALL: u16 = (1 << 12) - 1;

    /// True when `fields` has its bit.
    pub fn is_in(self, fields: u16) -> bool {
        fields & self as u16 != 0
    }
}
