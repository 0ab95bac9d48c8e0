//! `RTM_NEWRULE`: policy rules.

use route::{Action, Mark, Ports, Prefix, Selector, TableId};

use super::{Family, attributes, text, u8_at, u16_at, u32_at, u32_of};
use crate::mirror::Reason;

/// `struct fib_rule_hdr`.
const HEADER_LEN: usize = 12;
const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_GOTO: u16 = 4;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_OIFNAME: u16 = 17;
const FRA_PAD: u16 = 18;
const FRA_L3MDEV: u16 = 19;
const FRA_PROTOCOL: u16 = 21;
const FRA_IP_PROTO: u16 = 22;
const FRA_SPORT_RANGE: u16 = 23;
const FRA_DPORT_RANGE: u16 = 24;
const FRA_DSCP: u16 = 25;
const FRA_SPORT_MASK: u16 = 28;
const FRA_DPORT_MASK: u16 = 29;
const FRA_DSCP_MASK: u16 = 30;
const FIB_RULE_INVERT: u32 = 2;
const FR_ACT_TO_TBL: u8 = 1;
const FR_ACT_GOTO: u8 = 2;
const FR_ACT_NOP: u8 = 3;
const FR_ACT_BLACKHOLE: u8 = 6;
const FR_ACT_UNREACHABLE: u8 = 7;
const FR_ACT_PROHIBIT: u8 = 8;

/// A rule of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelRule<A: route::Address> {
    /// Preference: lower is asked first.
    pub pref: u32,
    /// The packets it is for, devices left out. Of a rule that noref does not understand, all that it may be for.
    pub select: Selector<A>,
    /// The device in, by name: there need be none.
    pub iif: Option<Box<str>>,
    /// The device out, by name.
    pub oif: Option<Box<str>>,
    /// What it does; why not, when packets that it may be for are left to the kernel.
    pub action: Result<Action, Reason>,
    /// As [`route::Rule::suppress_len`].
    pub suppress_len: Option<u8>,
    /// As [`route::Rule::suppress_group`].
    pub suppress_group: Option<u32>,
    /// Who set it.
    pub protocol: u8,
}

/// What the attributes of a rule say, those apart that say something together.
#[derive(Default)]
struct Parts {
    table: u32,
    target: Option<u32>,
    mark: u32,
    mask: Option<u32>,
    unsupported: Option<Reason>,
}

/// Reads a rule of family `A`.
pub fn rule<A: Family>(body: &[u8]) -> Option<KernelRule<A>> {
    if u8_at(body, 0)? != A::NUMBER {
        return None;
    }
    let (tos, action, flags) = (u8_at(body, 3)?, u8_at(body, 7)?, u32_at(body, 8)?);
    let mut rule = KernelRule {
        pref: 0,
        select: Selector { tos: (tos != 0).then_some(tos), ..Selector::default() },
        iif: None,
        oif: None,
        action: Ok(Action::Nop),
        suppress_len: None,
        suppress_group: None,
        protocol: 0,
    };
    let mut parts = Parts { table: u8_at(body, 4)?.into(), ..Parts::default() };
    let lens = (u8_at(body, 1)?, u8_at(body, 2)?);
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        read(&mut rule, &mut parts, lens, kind, value)?;
    }
    let Parts { table, target, mark, mask, unsupported } = parts;
    let mask = mask.unwrap_or(if mark == 0 { 0 } else { u32::MAX });
    rule.select.mark = (mask != 0).then_some(Mark { value: mark, mask });
    rule.select.not = flags & FIB_RULE_INVERT != 0;
    let unsupported = unsupported.or(rule.select.mark.is_some().then_some(Reason::Mark));
    rule.action = match (unsupported, action) {
        (Some(reason), _) => Err(reason),
        (None, FR_ACT_TO_TBL) if rule.select.l3mdev => Ok(Action::Vrf),
        (None, FR_ACT_TO_TBL) => Ok(Action::Lookup(TableId(table))),
        (None, FR_ACT_GOTO) => Ok(target.map_or(Action::Nop, Action::Goto)),
        (None, FR_ACT_NOP) => Ok(Action::Nop),
        (None, FR_ACT_BLACKHOLE) => Ok(Action::Blackhole),
        (None, FR_ACT_UNREACHABLE) => Ok(Action::Unreachable),
        (None, FR_ACT_PROHIBIT) => Ok(Action::Prohibit),
        (None, other) => Err(Reason::RuleAction(other)),
    };
    if rule.action.is_err() {
        rule.select.mark = None;
        if rule.select.not {
            // What it is not for cannot be told: it may be for every packet.
            (rule.select, rule.iif, rule.oif) = (Selector::default(), None, None);
        }
    }
    Some(rule)
}

/// Reads one attribute. None of one that is broken.
fn read<A: Family>(rule: &mut KernelRule<A>, parts: &mut Parts, (to_len, from_len): (u8, u8), kind: u16, value: &[u8]) -> Option<()> {
    let select = &mut rule.select;
    match kind {
        FRA_DST => select.to = Some(Prefix::new(A::read(value)?, to_len)?),
        FRA_SRC => select.from = Some(Prefix::new(A::read(value)?, from_len)?),
        FRA_IIFNAME => rule.iif = Some(text(value)?.into()),
        FRA_OIFNAME => rule.oif = Some(text(value)?.into()),
        FRA_GOTO => parts.target = Some(u32_of(value)?),
        FRA_PRIORITY => rule.pref = u32_of(value)?,
        FRA_FWMARK => parts.mark = u32_of(value)?,
        FRA_FWMASK => parts.mask = Some(u32_of(value)?),
        FRA_TABLE => parts.table = u32_of(value)?,
        FRA_L3MDEV => select.l3mdev = u8_at(value, 0)? != 0,
        FRA_PROTOCOL => rule.protocol = u8_at(value, 0)?,
        FRA_IP_PROTO => select.protocol = Some(u8_at(value, 0)?),
        FRA_SPORT_RANGE => select.sport = Some(ports(value)?),
        FRA_DPORT_RANGE => select.dport = Some(ports(value)?),
        FRA_DSCP => select.dscp = Some(u8_at(value, 0)?),
        // All ones stand for none.
        FRA_SUPPRESS_PREFIXLEN => rule.suppress_len = Some(u32_of(value)?).filter(|len| *len != u32::MAX).map(|len| len.min(254) as u8),
        FRA_SUPPRESS_IFGROUP => rule.suppress_group = Some(u32_of(value)?).filter(|group| *group != u32::MAX),
        // Of a single port all bits count; a range has no mask.
        FRA_SPORT_MASK | FRA_DPORT_MASK if u16_at(value, 0) == Some(u16::MAX) => {}
        // All six bits of DSCP.
        FRA_DSCP_MASK if u8_at(value, 0) == Some(63) => {}
        FRA_PAD => {}
        other => parts.unsupported = Some(selector(other)),
    }
    Some(())
}

fn ports(value: &[u8]) -> Option<Ports> {
    Some(Ports { first: u16_at(value, 0)?, last: u16_at(value, 2)? })
}

/// What an attribute that noref does not know is called by `ip rule`.
fn selector(kind: u16) -> Reason {
    Reason::Selector(match kind {
        11 => "realms",
        12 => "tun_id",
        20 => "uidrange",
        26 | 27 => "flowlabel",
        FRA_SPORT_MASK => "a mask of sport",
        FRA_DPORT_MASK => "a mask of dport",
        FRA_DSCP_MASK => "a mask of dscp",
        other => return Reason::Attribute("a rule", other),
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::mirror::decode::message::push_attribute;

    /// A rule of preference 1000 as the kernel tells of it.
    fn told(action: u8, flags: u32, attributes: &[(u16, &[u8])]) -> KernelRule<Ipv4Addr> {
        let mut body = vec![2, 0, 8, 0, 0, 0, 0, action];
        body.extend(flags.to_ne_bytes());
        for (kind, value) in [(FRA_PRIORITY, &1000_u32.to_ne_bytes()[..])].iter().chain(attributes) {
            push_attribute(&mut body, *kind, value);
        }
        rule(&body).expect("a rule")
    }

    #[test]
    fn an_l3mdev_rule_has_table_0_and_means_that_of_the_vrf() {
        let rule = told(FR_ACT_TO_TBL, 0, &[(FRA_TABLE, &0_u32.to_ne_bytes()), (FRA_L3MDEV, &[1])]);
        assert_eq!((rule.pref, rule.action, rule.select.l3mdev), (1000, Ok(Action::Vrf), true));
    }

    #[test]
    fn selectors_and_actions_are_read() {
        let range = |first: u16, last: u16| [first.to_ne_bytes(), last.to_ne_bytes()].concat();
        let rule = told(
            FR_ACT_PROHIBIT,
            FIB_RULE_INVERT,
            &[
                (FRA_SRC, &[10, 0, 0, 0]),
                (FRA_OIFNAME, b"e1\0"),
                (FRA_IP_PROTO, &[17]),
                (FRA_DPORT_RANGE, &range(53, 60)),
                (FRA_SUPPRESS_PREFIXLEN, &u32::MAX.to_ne_bytes()),
            ],
        );
        assert_eq!((rule.select.not, rule.select.protocol, rule.oif.as_deref()), (true, Some(17), Some("e1")));
        assert_eq!((rule.select.dport, rule.select.from.map(Prefix::len)), (Some(Ports { first: 53, last: 60 }), Some(8)));
        assert_eq!((rule.action, rule.suppress_len), (Ok(Action::Prohibit), None));
        assert_eq!(told(FR_ACT_GOTO, 0, &[(FRA_GOTO, &2000_u32.to_ne_bytes())]).action, Ok(Action::Goto(2000)));
    }

    #[test]
    fn what_a_rule_that_is_not_understood_may_be_for_is_all_of_it() {
        let users = [1, 0, 0, 0, 2, 0, 0, 0];
        let rule = told(FR_ACT_TO_TBL, 0, &[(FRA_SRC, &[10, 0, 0, 0]), (20, &users)]);
        assert_eq!((rule.action, rule.select.from.map(Prefix::len)), (Err(Reason::Selector("uidrange")), Some(8)));
        let mark = 7_u32.to_ne_bytes();
        let rule = told(FR_ACT_TO_TBL, FIB_RULE_INVERT, &[(FRA_SRC, &[10, 0, 0, 0]), (FRA_FWMARK, &mark)]);
        assert_eq!((rule.action, rule.select), (Err(Reason::Mark), Selector::default()));
    }
}
