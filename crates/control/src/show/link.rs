//! Devices and their addresses, as `ip link show` and `ip address show` print them, without what only a kernel's devices have (`qdisc`, `mode`, `group`,
//! `qlen`).

use std::fmt::{self, Write};
use std::net::Ipv6Addr;

use ::route::{Editor, IfIndex, Link, LinkKind};

use super::line::Options;
use super::route::shown_scope;
use super::selector::LinkSelector;
use super::{device, name};
use crate::address::Family;
use crate::error::Error;

/// Which devices.
#[derive(Debug)]
pub(super) struct Links {
    options: Options,
    addresses: bool,
    device: Option<IfIndex>,
    up: bool,
    master: Option<IfIndex>,
    vrf: bool,
}

impl Links {
    pub(super) fn new(selector: &LinkSelector<'_>, options: Options, editor: &Editor) -> Result<Links, Error> {
        Ok(Links {
            options,
            addresses: selector.addresses,
            device: selector.device.map(|word| device(editor, word)).transpose()?,
            up: selector.up,
            master: selector.master.map(|word| device(editor, word)).transpose()?,
            vrf: selector.vrf,
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
            && (!self.vrf || link.is_vrf())
    }

    fn link(&self, text: &mut String, editor: &Editor, link: &Link) -> fmt::Result {
        let kind = match link.kind {
            LinkKind::Port(_) | LinkKind::Vlan(_) => "BROADCAST,MULTICAST",
            LinkKind::Dummy => "BROADCAST,NOARP",
            LinkKind::Loopback => "LOOPBACK",
            LinkKind::Vrf(_) => "NOARP,MASTER",
            LinkKind::Elsewhere => "",
        };
        let up = if link.up { "UP,LOWER_UP" } else { "" };
        let comma = if kind.is_empty() || up.is_empty() { "" } else { "," };
        let below = if let LinkKind::Vlan(tag) = link.kind { format!("@{}", name(editor, tag.parent)) } else { String::new() };
        write!(text, "{}: {}{below}: <{kind}{comma}{up}> mtu {} ", link.index.0, link.name, link.mtu)?;
        if let Some(master) = link.master {
            write!(text, "master {} ", name(editor, master))?;
        }
        let state = match (link.up, link.is_loopback()) {
            (true, true) => "UNKNOWN",
            (true, false) => "UP",
            (false, _) => "DOWN",
        };
        write!(text, "state {state}")?;
        // Of one family's addresses iproute2 shows them alone.
        if !self.addresses || self.options.family.is_none() {
            let (kind, broadcast) = if link.is_loopback() { ("loopback", "00:00:00:00:00:00") } else { ("ether", "ff:ff:ff:ff:ff:ff") };
            write!(text, "{}    link/{kind} {} brd {broadcast}", self.line_end(), link.mac)?;
        }
        text.push('\n');
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

/// The scope that an IPv6 address has by itself.
fn scope6(addr: Ipv6Addr) -> &'static str {
    match addr.segments()[0] {
        _ if addr.is_loopback() => "host",
        first if first & 0xffc0 == 0xfe80 => "link",
        first if first & 0xffc0 == 0xfec0 => "site",
        _ => "global",
    }
}
