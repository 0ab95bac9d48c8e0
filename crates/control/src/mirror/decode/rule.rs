//! `RTM_NEWRULE`: policy rules.

use route::{Prefix, TableId};

use super::{Family, attributes, text, u8_at, u32_at, u32_of};
use crate::mirror::Reason;

/// `struct fib_rule_hdr`.
const HEADER_LEN: usize = 12;
const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_GOTO: u16 = 4;
const FRA_PRIORITY: u16 = 6;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_PAD: u16 = 18;
const FRA_L3MDEV: u16 = 19;
const FRA_PROTOCOL: u16 = 21;
const FIB_RULE_INVERT: u32 = 2;
const FR_ACT_TO_TBL: u8 = 1;
const FR_ACT_NOP: u8 = 3;

/// Where a rule sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleAction {
    /// To a table.
    Lookup(TableId),
    /// To the table of the packet's VRF.
    Vrf,
    /// To the next rule.
    Nop,
    /// Packets that the rule may be for are left to the kernel.
    Unsupported(Reason),
}

/// A rule of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelRule<A: route::Address> {
    /// Preference: lower is asked first.
    pub pref: u32,
    /// Sources it is for.
    pub from: Option<Prefix<A>>,
    /// Destinations it is for.
    pub to: Option<Prefix<A>>,
    /// The device it is for, by name: there need be none.
    pub iif: Option<Box<str>>,
    /// Where it sends.
    pub action: RuleAction,
}

/// Reads a rule of family `A`.
pub fn rule<A: Family>(body: &[u8]) -> Option<KernelRule<A>> {
    if u8_at(body, 0)? != A::NUMBER {
        return None;
    }
    let (to_len, from_len) = (u8_at(body, 1)?, u8_at(body, 2)?);
    let (tos, action, flags) = (u8_at(body, 3)?, u8_at(body, 7)?, u32_at(body, 8)?);
    let mut table = u32::from(u8_at(body, 4)?);
    let mut rule = KernelRule { pref: 0, from: None, to: None, iif: None, action: RuleAction::Nop };
    let mut l3mdev = false;
    let mut unsupported = (tos != 0).then_some(Reason::Selector("tos"));
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            FRA_DST => rule.to = Some(Prefix::new(A::read(value)?, to_len)?),
            FRA_SRC => rule.from = Some(Prefix::new(A::read(value)?, from_len)?),
            FRA_IIFNAME => rule.iif = Some(text(value)?.into()),
            FRA_PRIORITY => rule.pref = u32_of(value)?,
            FRA_TABLE => table = u32_of(value)?,
            FRA_L3MDEV => l3mdev = u8_at(value, 0)? != 0,
            // All ones stand for none.
            FRA_SUPPRESS_PREFIXLEN | FRA_SUPPRESS_IFGROUP if u32_of(value) == Some(u32::MAX) => {}
            FRA_PAD | FRA_PROTOCOL | FRA_GOTO => {}
            other => unsupported = Some(selector(other)),
        }
    }
    if flags & FIB_RULE_INVERT != 0 {
        // It is for every packet that the selectors are not for.
        (rule.from, rule.to, rule.iif) = (None, None, None);
        unsupported = Some(Reason::Selector("not"));
    }
    rule.action = match (unsupported, action) {
        (Some(reason), _) => RuleAction::Unsupported(reason),
        (None, FR_ACT_TO_TBL) if l3mdev => RuleAction::Vrf,
        (None, FR_ACT_TO_TBL) => RuleAction::Lookup(TableId(table)),
        (None, FR_ACT_NOP) => RuleAction::Nop,
        (None, action) => RuleAction::Unsupported(Reason::RuleAction(action)),
    };
    Some(rule)
}

/// What an attribute that noref does not know is called by `ip rule`.
fn selector(kind: u16) -> Reason {
    Reason::Selector(match kind {
        10 | 16 => "fwmark",
        11 => "realms",
        12 => "tun_id",
        FRA_SUPPRESS_IFGROUP => "suppress_ifgroup",
        FRA_SUPPRESS_PREFIXLEN => "suppress_prefixlength",
        17 => "oif",
        20 => "uidrange",
        22 => "ipproto",
        23 | 28 => "sport",
        24 | 29 => "dport",
        25 | 30 => "dscp",
        26 | 27 => "flowlabel",
        other => return Reason::Attribute("a rule", other),
    })
}
