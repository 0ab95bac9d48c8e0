//! The tables: how they are filled, and changed at random.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use route::{Editor, Family, HopSpec, IfIndex, Network, Prefix, Put, RouteSpec, TableId};
use testkit::rng::Rng;

use crate::full_table::{GATEWAYS, Prefixes, Router, gateway4, gateway6, prefixes};
use crate::model::Model;

/// A prefix of either family.
pub type Net = (IpAddr, u8);
/// Prefixes, with the place of their table, that are changed and asked for more often than others.
pub type Favourites = Vec<(usize, Net)>;

/// A table of one family.
pub struct Place {
    pub id: TableId,
    pub v6: bool,
    /// What it began with.
    pub prefixes: Vec<Net>,
}

impl Place {
    /// One of them.
    pub fn prefix(&self, random: &mut Rng) -> Net {
        *random.choose(&self.prefixes)
    }
}

/// One change of one route: by which gateway before and after, 0 for none.
pub struct Change {
    pub table: TableId,
    pub net: Net,
    pub before: u8,
    pub after: u8,
}

pub struct Writer(Editor);

/// A full table in main, and so many tables more, every other one of IPv6.
pub fn load(all: Prefixes, tables: u32, each: usize) -> (Writer, Vec<Place>, Model) {
    let (usable4, usable6) = (all.usable4(), all.usable6());
    let Router { configuration, prefixes } = Router::new(all).unwrap_or_else(|errors| panic!("{errors}"));
    let (mut writer, mut model) = (Writer(configuration.editor), Model::default());
    let nets4 = |nets: &[(Ipv4Addr, u8)]| nets.iter().map(|(addr, len)| (IpAddr::V4(*addr), *len)).collect::<Vec<Net>>();
    let nets6 = |nets: &[(Ipv6Addr, u8)]| nets.iter().map(|(addr, len)| (IpAddr::V6(*addr), *len)).collect::<Vec<Net>>();
    for (n, net) in nets4(&prefixes.v4).into_iter().enumerate().chain(nets6(&prefixes.v6).into_iter().enumerate()) {
        model.set(TableId::MAIN, net, (n % GATEWAYS) as u8 + 1);
    }
    let (usable4, usable6) = (nets4(&usable4), nets6(&usable6));
    let mut places = vec![
        Place { id: TableId::MAIN, v6: false, prefixes: usable4.clone() },
        Place { id: TableId::MAIN, v6: true, prefixes: usable6.clone() },
    ];
    for n in 0..tables {
        let of = if n % 2 == 0 { &usable4 } else { &usable6 };
        let first = (of.len() / tables as usize) * n as usize;
        let prefixes: Vec<Net> = of.iter().cycle().skip(first).step_by((of.len() / each).max(1)).take(each).copied().collect();
        let place = Place { id: TableId(1000 + n), v6: n % 2 == 1, prefixes };
        // The list may have gone round.
        let fresh = place.prefixes.iter().enumerate().filter(|(_, net)| model.get(place.id, **net) == 0);
        let changes: Vec<_> =
            fresh.map(|(k, net)| Change { table: place.id, net: *net, before: 0, after: (k % GATEWAYS) as u8 + 1 }).collect();
        writer.commit(&changes, &mut model);
        places.push(place);
    }
    (writer, places, model)
}

impl Writer {
    pub fn network(&self) -> &Arc<Network> {
        self.0.network()
    }

    /// Bytes of the tries.
    pub fn memory(&self) -> usize {
        let network = self.network();
        network.domain().reader().burst(|guard| network.v4.memory(guard) + network.v6.memory(guard))
    }

    /// Makes changes, in one commit.
    pub fn commit(&mut self, changes: &[Change], model: &mut Model) {
        for change in changes {
            match change.net.0 {
                IpAddr::V4(addr) => change_one(&mut self.0, change, addr, gateway4),
                IpAddr::V6(addr) => change_one(&mut self.0, change, addr, gateway6),
            }
            model.set(change.table, change.net, change.after);
        }
        self.0.commit();
        self.network().domain().reclaim();
    }

    /// Holds the control plane's own tables against the model.
    pub fn check(&self, places: &[Place], model: &Model, random: &mut Rng) {
        for place in places {
            for addr in (0..10).map(|_| within(place.prefix(random), random)) {
                let entry = match addr {
                    IpAddr::V4(addr) => self.0.longest(place.id, addr).map(|(_, entry)| entry),
                    IpAddr::V6(addr) => self.0.longest(place.id, addr).map(|(_, entry)| entry),
                };
                let answer = entry.and_then(|entry| entry.effect.hops[0].via).map_or(0, number);
                assert_eq!(answer, model.answer(place.id, addr), "{addr} in table {}", place.id);
            }
        }
    }
}

fn change_one<A: Family>(editor: &mut Editor, change: &Change, addr: A, gateway: impl Fn(usize) -> A) {
    let prefix = Prefix::new(addr, change.net.1).expect("a length");
    let done = match (change.before, change.after) {
        (_, 0) => editor.route_del(change.table, prefix, |_| true),
        (before, after) => {
            let hop = HopSpec::new(IfIndex(3), Some(gateway(usize::from(after) - 1).into()));
            let spec = RouteSpec { table: Some(change.table), ..RouteSpec::new(prefix, vec![hop]) };
            editor.route_put(spec, if before == 0 { Put::Add } else { Put::Replace })
        }
    };
    done.unwrap_or_else(|error| panic!("{prefix} in table {}: {error}", change.table));
}

/// Some prefixes of random tables.
pub fn favourites(places: &[Place], random: &mut Rng) -> Favourites {
    let some = |_| {
        let at = random.below(places.len());
        (at, places[at].prefix(random))
    };
    (0..64).map(some).collect()
}

/// At most `most` changes for one commit, each in a table of its own, so that an address's answer changes once.
pub fn draw(places: &[Place], favourites: &Favourites, model: &Model, random: &mut Rng, most: usize) -> Vec<Change> {
    let number = if random.below(8) == 0 { 8 } else { 1 };
    let mut step: Vec<Change> = Vec::new();
    for _ in 0..number.min(most) {
        let (at, net) = if random.below(2) == 0 {
            *random.choose(favourites)
        } else {
            let at = random.below(places.len());
            (at, places[at].prefix(random))
        };
        let table = places[at].id;
        if step.iter().any(|change| change.table == table) {
            continue;
        }
        // The prefix, or one of four that are longer.
        let (bits, more) = (if net.0.is_ipv4() { 32 } else { 128 }, random.below(5) as u8);
        let net = if net.1 + 4 <= bits { (net.0, net.1 + more) } else { net };
        let before = model.get(table, net);
        let after = if before != 0 && random.below(2) == 0 { 0 } else { random.below(GATEWAYS) as u8 + 1 };
        step.push(Change { table, net, before, after });
    }
    step
}

/// A random address inside a prefix.
pub fn within((addr, len): Net, random: &mut Rng) -> IpAddr {
    let mut random = crate::full_table::Random::new(random.bits());
    match addr {
        IpAddr::V4(addr) => prefixes::address4((addr, len), &mut random).into(),
        IpAddr::V6(addr) => prefixes::address6((addr, len), &mut random).into(),
    }
}

/// The number that a gateway has in the model.
pub fn number(gateway: IpAddr) -> u8 {
    match gateway {
        IpAddr::V4(addr) => addr.octets()[3] - 1,
        IpAddr::V6(addr) => (addr.segments()[7] - 0x101) as u8,
    }
}

/// An address that is known to be one of IPv4.
pub fn v4(addr: IpAddr) -> Ipv4Addr {
    match addr {
        IpAddr::V4(addr) => addr,
        IpAddr::V6(addr) => panic!("{addr}"),
    }
}

/// As [`v4`].
pub fn v6(addr: IpAddr) -> Ipv6Addr {
    match addr {
        IpAddr::V6(addr) => addr,
        IpAddr::V4(addr) => panic!("{addr}"),
    }
}
