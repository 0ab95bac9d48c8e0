//! Devices and their addresses, as `ip link show` and `ip address show` print them, without what only a kernel's devices have (`qdisc`, `mode`, `group`,
//! `qlen`).

use std::fmt::{self, Write};
use std::net::Ipv6Addr;

use ::route::{Editor, IfIndex, Link, LinkKind, VlanTag};

use super::line::Options;
use super::route::shown_scope;
use super::selector::LinkSelector;
use super::{device, name};
use crate::address::Family;
use crate::device_type;
use crate::error::Error;

/// Which devices.
#[derive(Debug)]
pub(super) struct Links {
    options: Options,
    addresses: bool,
    device: Option<IfIndex>,
    up: bool,
    master: Option<IfIndex>,
    kind: Option<device_type::Kind>,
}

impl Links {
    pub(super) fn new(selector: &LinkSelector<'_>, options: Options, editor: &Editor) -> Result<Links, Error> {
        Ok(Links {
            options,
            addresses: selector.addresses,
            device: selector.device.map(|word| device(editor, word)).transpose()?,
            up: selector.up,
            master: selector.master.map(|word| device(editor, word)).transpose()?,
            kind: selector.kind,
        })
    }

    pub(super) fn text(&self, editor: &Editor) -> String {
        let mut text = String::new();
        for link in editor.links().iter().filter(|link| self.wants(link)) {
            // Writing to a string does not fail.
            let _ = match (self.addresses, self.options.oneline) {
                (true, true) => self.addresses(&mut text, link, &format!("{}: {}", link.index.0, link.name)),
                (true, false) => self.link(&mut text, editor, link).and_then(|()| self.addresses(&mut text, link, "")),
                (false, _) => self.link(&mut text, editor, link),
            };
        }
        text
    }

    fn wants(&self, link: &Link) -> bool {
        let family = match self.options.family.filter(|_| self.addresses) {
            None => true,
            Some(Family::V4) => !link.addrs4.is_empty(),
            Some(Family::V6) => !link.addrs6.is_empty(),
        };
        family
            && self.device.is_none_or(|device| link.index == device)
            && (!self.up || link.up)
            && self.master.is_none_or(|master| link.master == Some(master))
            && self.kind.is_none_or(|kind| kind.is_of(link.kind))
    }

    fn link(&self, text: &mut String, editor: &Editor, link: &Link) -> fmt::Result {
        let parent = if let LinkKind::Vlan(tag) = link.kind { Some(tag.parent) } else { None };
        let below_is_down = parent.and_then(|parent| editor.links().get(parent)).is_some_and(|parent| !parent.up);
        let no_carrier = link.up && below_is_down;
        let said = [
            (no_carrier, "NO-CARRIER"),
            (true, flags(link)),
            (link.up, "UP"),
            (link.up && !no_carrier, "LOWER_UP"),
            (below_is_down, "M-DOWN"),
        ];
        let flags: Vec<&str> = said.iter().filter(|(said, flags)| *said && !flags.is_empty()).map(|(_, flags)| *flags).collect();
        let below = parent.map_or_else(String::new, |parent| format!("@{}", name(editor, parent)));
        write!(text, "{}: {}{below}: <{}> mtu {} ", link.index.0, link.name, flags.join(","), link.mtu)?;
        if let Some(master) = link.master {
            write!(text, "master {} ", name(editor, master))?;
        }
        let state = match link.up {
            false => "DOWN",
            true if no_carrier => "LOWERLAYERDOWN",
            true if link.is_loopback() || link.kind == LinkKind::Dummy => "UNKNOWN",
            true => "UP",
        };
        write!(text, "state {state}")?;
        // Of one family's addresses iproute2 shows them alone.
        if !self.addresses || self.options.family.is_none() {
            let (kind, broadcast) = if link.is_loopback() { ("loopback", "00:00:00:00:00:00") } else { ("ether", "ff:ff:ff:ff:ff:ff") };
            write!(text, "{}    link/{kind} {} brd {broadcast}", self.line_end(), link.mac)?;
        }
        if self.options.details {
            self.details(text, link)?;
        }
        text.push('\n');
        Ok(())
    }

    /// What a device is that was added.
    fn details(&self, text: &mut String, link: &Link) -> fmt::Result {
        let end = self.line_end();
        match link.kind {
            LinkKind::Vrf(table) => write!(text, "{end}    vrf table {table} "),
            LinkKind::Vlan(tag) => self.vlan(text, tag, link),
            LinkKind::Dummy => write!(text, "{end}    dummy "),
            LinkKind::Port(_) | LinkKind::Loopback | LinkKind::Elsewhere => Ok(()),
        }
    }

    fn vlan(&self, text: &mut String, tag: VlanTag, link: &Link) -> fmt::Result {
        let (end, vlan) = (self.line_end(), &link.vlan);
        let protocol = device_type::PROTOCOLS.iter().find(|(_, number)| *number == tag.protocol).map_or("?", |(name, _)| name);
        let flags = [(vlan.reorder_hdr, "REORDER_HDR"), (vlan.loose_binding, "LOOSE_BINDING")];
        let flags: Vec<&str> = flags.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        write!(text, "{end}    vlan protocol {protocol} id {} <{}> ", tag.id, flags.join(","))?;
        let ingress = (0..).zip(vlan.ingress).filter(|(_, priority)| *priority != 0).collect::<Vec<(u32, u32)>>();
        let egress = vlan.egress.iter().map(|(priority, code_point)| (*priority, u32::from(*code_point))).collect::<Vec<_>>();
        for (name, map) in [("ingress", ingress), ("egress", egress)].iter().filter(|(_, map)| !map.is_empty()) {
            write!(text, "{end}      {name}-qos-map {{ ")?;
            map.iter().try_for_each(|(from, to)| write!(text, "{from}:{to} "))?;
            text.push_str("} ");
        }
        Ok(())
    }

    /// The addresses, each behind `head`.
    fn addresses(&self, text: &mut String, link: &Link, head: &str) -> fmt::Result {
        let lifetime = "       valid_lft forever preferred_lft forever";
        if self.options.family != Some(Family::V6) {
            for address in &link.addrs4 {
                write!(text, "{head}    inet {}/{} ", address.addr, address.len)?;
                if let Some(broadcast) = address.broadcast {
                    write!(text, "brd {broadcast} ")?;
                }
                write!(text, "scope {} ", shown_scope(address.scope))?;
                text.push_str(if address.secondary { "secondary " } else { "" });
                text.push_str(if address.no_prefix_route { "noprefixroute " } else { "" });
                writeln!(text, "{}{}{lifetime}", link.name, self.line_end())?;
            }
        }
        if self.options.family != Some(Family::V4) {
            for address in &link.addrs6 {
                write!(text, "{head}    inet6 {}/{} scope {} ", address.addr, address.len, scope6(address.addr))?;
                text.push_str(if address.no_prefix_route { "noprefixroute " } else { "" });
                writeln!(text, "{}{lifetime}", self.line_end())?;
            }
        }
        Ok(())
    }

    fn line_end(&self) -> &'static str {
        if self.options.oneline { "\\" } else { "\n" }
    }
}

/// The flags of a device that it has always.
fn flags(link: &Link) -> &'static str {
    match link.kind {
        LinkKind::Port(_) | LinkKind::Vlan(_) => "BROADCAST,MULTICAST",
        LinkKind::Dummy => "BROADCAST,NOARP",
        LinkKind::Loopback => "LOOPBACK",
        LinkKind::Vrf(_) => "NOARP,MASTER",
        LinkKind::Elsewhere => "",
    }
}

/// The scope that an IPv6 address has by itself.
fn scope6(addr: Ipv6Addr) -> &'static str {
    match addr.segments()[0] {
        _ if addr.is_loopback() => "host",
        first if first & 0xffc0 == 0xfe80 => "link",
        first if first & 0xffc0 == 0xfec0 => "site",
        _ => "global",
    }
}
