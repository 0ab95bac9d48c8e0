//! Policy rules: which packets they are for, and where they send them.

use crate::{Address, Flow, IfIndex, Prefix, TableId};

/// A policy rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule<A: Address> {
    /// Preference: lower is asked first.
    pub pref: u32,
    /// Packets it is for.
    pub select: Selector<A>,
    /// What it does.
    pub action: Action,
    /// `suppress_prefixlength`: a route of a prefix of this length or shorter counts as none.
    pub suppress_len: Option<u8>,
    /// `suppress_ifgroup`: a route whose first way leaves by an interface of this group counts as none.
    pub suppress_group: Option<u32>,
    /// `proto`: who set it, a note; 0 for nobody in particular.
    pub protocol: u8,
}

/// What a rule does with the packets that it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `lookup`: asks a table; without a route there, the next rule is asked.
    Lookup(TableId),
    /// `l3mdev`: asks the table of the packet's VRF.
    Vrf,
    /// `goto`: goes on at the first rule of this preference, or at the next one while there is none.
    Goto(u32),
    /// `nop`: nothing.
    Nop,
    /// `blackhole`: the packet is dropped.
    Blackhole,
    /// `unreachable`: refused, network unreachable.
    Unreachable,
    /// `prohibit`: refused, administratively prohibited.
    Prohibit,
}

/// Which packets a rule is for: those that have everything that is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector<A: Address> {
    /// It is for the packets that the rest does not describe.
    pub not: bool,
    /// Source addresses.
    pub from: Option<Prefix<A>>,
    /// Destination addresses.
    pub to: Option<Prefix<A>>,
    /// Interface they came in by, or its VRF device; `lo` for the router's own.
    pub iif: Option<IfIndex>,
    /// Interface that the router's own are bound to, or its VRF device.
    pub oif: Option<IfIndex>,
    /// Mark.
    pub mark: Option<Mark>,
    /// `tos`: see [`Selector::matches`].
    pub tos: Option<u8>,
    /// `dscp`: all six bits of it, 0 to 63.
    pub dscp: Option<u8>,
    /// Protocol of the upper layer.
    pub protocol: Option<u8>,
    /// Source ports.
    pub sport: Option<Ports>,
    /// Destination ports.
    pub dport: Option<Ports>,
    /// Packets in a VRF.
    pub l3mdev: bool,
}

/// A mark of which only the bits of the mask count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mark {
    /// The mark.
    pub value: u32,
    /// The bits that count.
    pub mask: u32,
}

/// A range of ports, both ends in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Ports {
    fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// The bits of `tos` that count in IPv4 (RFC 1349 without its last bit; Linux `IPTOS_RT_MASK`).
const TOS4: u8 = 0x1c;
/// Those that count in IPv6: all of DSCP.
const TOS6: u8 = 0xfc;

impl<A: Address> Default for Selector<A> {
    fn default() -> Selector<A> {
        Selector {
            not: false,
            from: None,
            to: None,
            iif: None,
            oif: None,
            mark: None,
            tos: None,
            dscp: None,
            protocol: None,
            sport: None,
            dport: None,
            l3mdev: false,
        }
    }
}

impl<A: Address> Selector<A> {
    /// True when packets of this flow are among those selected, as Linux has it: `tos` compares three bits of an IPv4 packet's, so that a rule for 0x10 is
    /// for 0xb0 too, and all of DSCP in IPv6. An IPv6 packet whose source is not chosen or not looked at is from nowhere.
    #[inline]
    pub fn matches(&self, flow: &Flow<A>) -> bool {
        self.describes(flow) != self.not
    }

    fn describes(&self, flow: &Flow<A>) -> bool {
        let v6 = A::BITS == 128;
        // What the router sends is in a VRF by its way out, everything else by its way in.
        let own = flow.iif == IfIndex::LO;
        let is_on = |wanted: IfIndex, is: IfIndex, by_vrf: bool| wanted == is || by_vrf && wanted == flow.vrf;
        let tos_mask = if v6 { TOS6 } else { TOS4 };
        self.iif.is_none_or(|iif| is_on(iif, flow.iif, !own))
            && self.oif.is_none_or(|oif| is_on(oif, flow.oif, own))
            && self.from.is_none_or(|from| from.contains(flow.src) && flow.from_known && !(v6 && flow.src == A::UNSPECIFIED))
            && self.to.is_none_or(|to| to.contains(flow.dst))
            && self.mark.is_none_or(|mark| (mark.value ^ flow.mark) & mark.mask == 0)
            && (!self.l3mdev || flow.vrf_table.is_some())
            && self.tos.is_none_or(|tos| tos == flow.dsfield & tos_mask)
            && self.dscp.is_none_or(|dscp| dscp == flow.dsfield >> 2)
            && self.protocol.is_none_or(|protocol| protocol == flow.upper.protocol)
            && self.sport.is_none_or(|ports| ports.contains(flow.upper.sport))
            && self.dport.is_none_or(|ports| ports.contains(flow.upper.dport))
    }

    /// What of it does not describe packets of this flow, in the words of `ip rule`; none when all does.
    pub fn unlike(&self, flow: &Flow<A>) -> Option<&'static str> {
        let none = Selector::default;
        let parts = [
            ("iif", Selector { iif: self.iif, ..none() }),
            ("oif", Selector { oif: self.oif, ..none() }),
            ("from", Selector { from: self.from, ..none() }),
            ("to", Selector { to: self.to, ..none() }),
            ("fwmark", Selector { mark: self.mark, ..none() }),
            ("l3mdev", Selector { l3mdev: self.l3mdev, ..none() }),
            ("tos", Selector { tos: self.tos, ..none() }),
            ("dscp", Selector { dscp: self.dscp, ..none() }),
            ("ipproto", Selector { protocol: self.protocol, ..none() }),
            ("sport", Selector { sport: self.sport, ..none() }),
            ("dport", Selector { dport: self.dport, ..none() }),
        ];
        parts.iter().find(|(_, part)| !part.describes(flow)).map(|(word, _)| *word)
    }

    /// True when it looks at protocol or ports, which a packet must be searched for.
    pub fn asks_upper(&self) -> bool {
        self.protocol.is_some() || self.sport.is_some() || self.dport.is_some()
    }
}

impl<A: Address> Rule<A> {
    /// A rule for every packet; with [`Action::Vrf`] for every packet in a VRF.
    pub fn all(pref: u32, action: Action) -> Rule<A> {
        let select = Selector { l3mdev: action == Action::Vrf, ..Selector::default() };
        Rule { pref, select, action, suppress_len: None, suppress_group: None, protocol: 0 }
    }

    /// True when a kernel that has one of them refuses the other: `not` and the target of a `goto` do not tell rules apart (Linux `rule_exists`).
    pub(crate) fn is_same(&self, other: &Rule<A>) -> bool {
        let kind = |action| if let Action::Goto(_) = action { Action::Goto(0) } else { action };
        let select = |rule: &Rule<A>| Selector { not: false, ..rule.select.clone() };
        let rest = |rule: &Rule<A>| (rule.pref, rule.suppress_len, rule.suppress_group, rule.protocol);
        kind(self.action) == kind(other.action) && rest(self) == rest(other) && select(self) == select(other)
    }

    /// True when the tables it asks depend on nothing but the VRF.
    pub(crate) fn is_plain(&self) -> bool {
        let all = Rule { protocol: self.protocol, ..Rule::all(self.pref, self.action) };
        matches!(self.action, Action::Lookup(_) | Action::Vrf) && *self == all
    }
}
