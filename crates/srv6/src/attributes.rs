//! What may be configured on a seg6local route.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use route::{IfIndex, TableId};

use crate::{BuildError, Flavors};

/// An attribute of a seg6local route, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Attr {
    /// `nh4`
    Nh4,
    /// `nh6`
    Nh6,
    /// `oif`
    Oif,
    /// `iif`
    Iif,
    /// `table`
    Table,
    /// `vrftable`
    VrfTable,
    /// `srh segs`
    Srh,
    /// `flavors`
    Flavors,
    /// `lblen`
    Lblen,
    /// `nflen`
    Nflen,
    /// `count`
    Count,
}

impl Attr {
    /// Every attribute.
    pub const ALL: [Attr; 11] = [
        Attr::Nh4,
        Attr::Nh6,
        Attr::Oif,
        Attr::Iif,
        Attr::Table,
        Attr::VrfTable,
        Attr::Srh,
        Attr::Flavors,
        Attr::Lblen,
        Attr::Nflen,
        Attr::Count,
    ];

    /// The keyword in iproute2's language.
    pub const fn word(self) -> &'static str {
        match self {
            Attr::Nh4 => "nh4",
            Attr::Nh6 => "nh6",
            Attr::Oif => "oif",
            Attr::Iif => "iif",
            Attr::Table => "table",
            Attr::VrfTable => "vrftable",
            Attr::Srh => "srh",
            Attr::Flavors => "flavors",
            Attr::Lblen => "lblen",
            Attr::Nflen => "nflen",
            Attr::Count => "count",
        }
    }

    /// How it is written, and what it is.
    pub const fn usage(self) -> &'static str {
        match self {
            Attr::Nh4 => "`nh4 ADDRESS`, the IPv4 neighbour to send to",
            Attr::Nh6 => "`nh6 ADDRESS`, the IPv6 neighbour to send to",
            Attr::Oif => "`oif DEVICE`, the device to send out of",
            Attr::Iif => "`iif DEVICE`",
            Attr::Table => "`table N`, the table to look the destination up in",
            Attr::VrfTable => "`vrftable N`, the table of the VRF that the inner packet enters",
            Attr::Srh => "`srh segs SID[,SID…] [hmac KEYID]`, the segments to put on",
            Attr::Flavors => "`flavors FLAVOR[,FLAVOR…]`",
            Attr::Lblen => "`lblen BITS`, the length of the locator block",
            Attr::Nflen => "`nflen BITS`, the length of a locator node and function",
            Attr::Count => "`count`",
        }
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A set of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttrSet(u16);

impl AttrSet {
    /// No attribute.
    pub const NONE: AttrSet = AttrSet(0);

    /// The set of `attrs`.
    pub const fn of(attrs: &[Attr]) -> AttrSet {
        let mut set = AttrSet::NONE;
        let mut i = 0;
        while i < attrs.len() {
            set = set.with(attrs[i]);
            i += 1;
        }
        set
    }

    /// This set and `attr`.
    #[must_use]
    pub const fn with(self, attr: Attr) -> AttrSet {
        AttrSet(self.0 | 1 << attr as u8)
    }

    /// The attributes in either set.
    #[must_use]
    pub const fn union(self, other: AttrSet) -> AttrSet {
        AttrSet(self.0 | other.0)
    }

    /// The attributes of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: AttrSet) -> AttrSet {
        AttrSet(self.0 & !other.0)
    }

    /// True when `attr` is in the set.
    pub const fn contains(self, attr: Attr) -> bool {
        self.0 & 1 << attr as u8 != 0
    }

    /// The attributes, in the order of [`Attr::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Attr> {
        Attr::ALL.into_iter().filter(move |attr| self.contains(*attr))
    }
}

/// What may be configured on a seg6local route, as the operator wrote it. Nothing is checked before [`crate::Sid::build`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// IPv4 neighbour to send to.
    pub nh4: Option<Ipv4Addr>,
    /// IPv6 neighbour to send to.
    pub nh6: Option<Ipv6Addr>,
    /// Device to send out of.
    pub oif: Option<IfIndex>,
    /// Device a packet must come from; no action uses it.
    pub iif: Option<IfIndex>,
    /// Table to look up in.
    pub table: Option<TableId>,
    /// Table of the VRF to enter.
    pub vrftable: Option<TableId>,
    /// Segments to put on.
    pub srh: Option<SegmentList>,
    /// Flavours.
    pub flavors: Flavors,
    /// Length of the locator block of a compressed SID, bits.
    pub lblen: Option<u8>,
    /// Length of the locator node and function of a compressed SID, bits.
    pub nflen: Option<u8>,
    /// Packets, bytes and errors are counted.
    pub count: bool,
}

impl Attributes {
    /// The attributes that were written.
    pub fn given(&self) -> AttrSet {
        let given = [
            (Attr::Nh4, self.nh4.is_some()),
            (Attr::Nh6, self.nh6.is_some()),
            (Attr::Oif, self.oif.is_some()),
            (Attr::Iif, self.iif.is_some()),
            (Attr::Table, self.table.is_some()),
            (Attr::VrfTable, self.vrftable.is_some()),
            (Attr::Srh, self.srh.is_some()),
            (Attr::Flavors, !self.flavors.is_empty()),
            (Attr::Lblen, self.lblen.is_some()),
            (Attr::Nflen, self.nflen.is_some()),
            (Attr::Count, self.count),
        ];
        given.into_iter().filter(|(_, given)| *given).fold(AttrSet::NONE, |set, (attr, _)| set.with(attr))
    }
}

/// An attribute that a behaviour cannot do without.
pub(crate) fn required<T>(value: Option<T>, action: &'static str, attr: Attr) -> Result<T, BuildError> {
    value.ok_or(BuildError::Missing { action, attr })
}

/// Segments of a policy, and the key that signs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SegmentList {
    /// The segments in the order of travel, the first visited first.
    pub segments: Vec<Ipv6Addr>,
    /// Id of the HMAC key; 0 for no HMAC.
    pub hmac: u32,
}

/// As iproute2 prints it: `segs 2 [ fc00:2::1 fc00:3::1 ] hmac 0x2a`.
impl fmt::Display for SegmentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segs {} [ ", self.segments.len())?;
        self.segments.iter().try_for_each(|segment| write!(f, "{segment} "))?;
        f.write_str("]")?;
        if self.hmac != 0 {
            write!(f, " hmac {:#x}", self.hmac)?;
        }
        Ok(())
    }
}
