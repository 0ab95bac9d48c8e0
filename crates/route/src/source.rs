//! Choosing a source address for a packet that the router makes.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{Address4, Address6, IfIndex, Link, Links, SCOPE_LINK};

impl Links {
    /// The interfaces whose addresses may be used on `dev`: those of the same VRF.
    fn peers(&self, dev: IfIndex) -> impl Iterator<Item = &Link> {
        let vrf = self.vrf_of(dev).map(|link| link.index);
        self.iter().filter(move |link| link.up && self.vrf_of(link.index).map(|link| link.index) == vrf)
    }

    /// An IPv4 address of `dev` for packets to `dst` (Linux `inet_select_addr`): the primary one of the subnet that holds `dst`, else the first of the
    /// interface, else one of another interface of the same VRF.
    pub fn source4(&self, dev: IfIndex, dst: Ipv4Addr) -> Option<Ipv4Addr> {
        let own = || self.get(dev).into_iter().flat_map(usable4);
        if let Some(address) = own().find(|a| a.subnet_contains(dst)).or_else(|| own().next()) {
            return Some(address.addr);
        }
        let master = self.vrf_of(dev).into_iter();
        master.chain(self.peers(dev)).find_map(|link| usable4(link).find(|a| a.scope < SCOPE_LINK).map(|a| a.addr))
    }

    /// An IPv6 address for packets to `dst` by `dev` (RFC 6724 §5, rules 1, 2, 5, 6 and 8).
    pub fn source6(&self, dev: IfIndex, dst: Ipv6Addr) -> Option<Ipv6Addr> {
        let link_only = dst.is_multicast() || scope(dst) <= 2;
        let mut best: Option<(Rank, Ipv6Addr)> = None;
        for link in self.peers(dev).filter(|link| !link_only || link.index == dev) {
            // Of equal ones the newest, as in Linux.
            for address in link.addrs6.iter().rev() {
                let rank = rank(address, dst, link.index == dev);
                if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                    best = Some((rank, address.addr));
                }
            }
        }
        best.map(|(_, addr)| addr)
    }
}

/// Addresses that packets may be sent from.
fn usable4(link: &Link) -> impl Iterator<Item = &Address4> {
    link.addrs4.iter().filter(|a| !a.secondary && a.scope <= SCOPE_LINK)
}

/// The greater, the better: same address, scope, interface, label, length of the common prefix.
type Rank = (bool, i32, bool, bool, u32);

fn rank(address: &Address6, dst: Ipv6Addr, on_dev: bool) -> Rank {
    let addr = address.addr;
    let (own, wanted) = (i32::from(scope(addr)), i32::from(scope(dst)));
    // Of scopes that reach far enough the smallest, of the others the greatest.
    let fit = if own >= wanted { 100 - own } else { own - 100 };
    // What lies behind the prefix does not count (RFC 6724 §2.2).
    let common = (u128::from(addr) ^ u128::from(dst)).leading_zeros().min(address.len.into());
    (addr == dst, fit, on_dev, label(addr) == label(dst), common)
}

/// Scope of an address (RFC 4007 §5): 2 link, 5 site, 14 global; 0 of none.
fn scope(addr: Ipv6Addr) -> u8 {
    match addr.octets() {
        [0xff, flags_scope, ..] => flags_scope & 15,
        [0xfe, second, ..] if second & 0xc0 == 0x80 => 2,
        [0xfe, second, ..] if second & 0xc0 == 0xc0 => 5,
        _ if addr.is_loopback() => 2,
        _ if addr.is_unspecified() => 0,
        _ => 14,
    }
}

/// The default policy table of RFC 6724 §2.1, labels only.
fn label(addr: Ipv6Addr) -> u8 {
    match addr.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => 0,
        [0, 0, 0, 0, 0, 0xffff, ..] => 4,
        [0, 0, 0, 0, 0, 0, ..] => 3,
        [0x2002, ..] => 2,
        [0x2001, 0, ..] => 5,
        [0x3ffe, ..] => 12,
        [first, ..] if first & 0xfe00 == 0xfc00 => 13,
        [first, ..] if first & 0xffc0 == 0xfec0 => 11,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkKind;

    fn links() -> Links {
        let mut links = Links::default();
        for (place, name) in ["e0", "e1"].into_iter().enumerate() {
            let index = links.add(name, LinkKind::Port(place));
            let link = links.get_mut(index).unwrap();
            link.up = true;
            let n = place as u8;
            link.addrs6 = ["fe80::1", "fd00:0:0:1::1"]
                .iter()
                .map(|text| {
                    let mut octets = text.parse::<Ipv6Addr>().unwrap().octets();
                    octets[14] = n;
                    Address6 { addr: octets.into(), len: 64, no_prefix_route: false }
                })
                .collect();
            let addr = Ipv4Addr::new(10, 0, n, 1);
            link.addrs4.push(Address4 { addr, len: 24, scope: 0, broadcast: None, secondary: false, no_prefix_route: false });
        }
        links
    }

    #[test]
    fn the_way_out_and_the_scope_choose_the_source() {
        let links = links();
        let source = |dev: u32, dst: &str| links.source6(IfIndex(dev), dst.parse().unwrap()).map(|a| a.to_string());
        assert_eq!(source(2, "fd00:9::9").as_deref(), Some("fd00:0:0:1::101"));
        assert_eq!(source(1, "fd00:9::9").as_deref(), Some("fd00:0:0:1::1"));
        assert_eq!(source(2, "fe80::99").as_deref(), Some("fe80::101"));
        assert_eq!(links.source4(IfIndex(2), Ipv4Addr::new(192, 0, 2, 1)), Some(Ipv4Addr::new(10, 0, 1, 1)));
    }
}
