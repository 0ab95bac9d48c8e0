//! Readers that stop at random.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plane::{Tables, Worker};
use port::Time;
use rcu::Ref;
use route::{Dst, DstRef, Encap, Flow, IfIndex, Kind, RouteRefs};
use testkit::frame::{Ether, Ipv4, Ipv6, Udp};
use testkit::rng::Rng;
use wire::Mac;

use crate::writer::NETS;

const E0: IfIndex = IfIndex(2);

/// Does nothing for a while: mostly none at all, now and then milliseconds.
fn pause(random: &mut Rng) {
    match random.below(64) {
        0 => thread::sleep(Duration::from_micros(random.below(4000) as u64)),
        1..8 => thread::yield_now(),
        _ => (0..random.below(2000)).for_each(|_| std::hint::spin_loop()),
    }
}

fn to4(net: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, net as u8, 9)
}

fn to6(net: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd0e, net as u16, 0, 0, 0, 0, 0, 9)
}

/// Borrows routes and policies, stops, and looks at all of them again; how many. Some are held until the next burst's end.
pub fn borrow(tables: &Tables, seed: u64, done: &AtomicBool) -> u64 {
    let (mut reader, mut random) = (tables.network.domain().reader(), Rng::new(seed));
    let (mut looked, mut held) = (0, Vec::<DstRef<'static>>::new());
    while !done.load(Ordering::Relaxed) {
        if random.below(4) == 0 {
            reader.offline()
        } else {
            reader.online()
        }
        pause(&mut random);
        let nets: [usize; 8] = std::array::from_fn(|_| random.below(NETS));
        let kept = reader.burst(|guard| {
            let routes4 = nets.map(|net| tables.network.v4.lookup(guard, &Flow::new(to4(net), E0), RouteRefs::Noref).dst);
            let routes6 = nets.map(|net| tables.network.v6.lookup(guard, &Flow::new(to6(net), E0), RouteRefs::Noref).dst);
            let policies = std::array::from_fn::<_, 8, _>(|n| match routes6[n].nexthop.as_ref().map(|hop| hop.encap) {
                Some(Encap::Seg6(id)) => tables.policies.get(guard, id.0),
                _ => None,
            });
            for _ in 0..2 {
                routes4.iter().for_each(|dst| check4(dst));
                for (net, (dst, policy)) in nets.iter().zip(routes6.iter().zip(&policies)) {
                    check6(*net, dst, policy);
                }
                pause(&mut random);
            }
            looked += 16;
            (random.below(8) == 0).then(|| routes4.map(|dst| dst.hold()))
        });
        held.iter().for_each(|dst| check4(dst));
        if let Some(kept) = kept {
            held = kept.into();
        }
    }
    looked
}

/// A route whose MTU tells its gateway, or none.
fn check4(dst: &Dst) {
    match dst.kind {
        Kind::NoRoute => assert!(dst.nexthop.is_none()),
        Kind::Unicast => {
            let gateway = dst.nexthop.as_ref().and_then(|hop| hop.gateway.as_ref()).expect("a gateway");
            let told = (dst.mtu - 1280) as usize % NETS + 2;
            assert_eq!(gateway.addr(), Ipv4Addr::new(10, 0, 1, told as u8), "of MTU {}", dst.mtu);
            assert_eq!((dst.dev(), dst.more.len()), (IfIndex(3), 0));
        }
        kind => panic!("a route of kind {}", kind.word()),
    }
}

/// A route into the policy of its prefix; one that was found is there as long as the route is.
fn check6(net: usize, dst: &Dst, policy: &Option<Ref<'_, srv6::Policy>>) {
    assert!(matches!(dst.kind, Kind::NoRoute | Kind::Unicast), "a route of kind {}", dst.kind.word());
    assert_eq!(dst.kind == Kind::Unicast, policy.is_some());
    if let Some(policy) = policy {
        assert_eq!(policy.first_segment(), Ipv6Addr::new(0xfc00, 2, net as u16, 0, 0, 0, 0, 1));
    }
}

/// Forwards, and stops between bursts, online or not; how many packets left.
pub fn forward(tables: Arc<Tables>, seed: u64, done: &AtomicBool) -> u64 {
    let (mut worker, mut random) = (Worker::new(tables, RouteRefs::Noref), Rng::new(seed));
    let now = Time::from_micros(1_767_225_600_000_000);
    let ether = || Ether::new(Mac([2, 0, 0, 0, 0x0e, 0]), Mac([2, 0, 0, 0, 0x0f, 0]));
    let host4 = Ipv4Addr::new(10, 0, 0, 2);
    let host6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    let mut left = 0;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..32 {
            let net = random.below(NETS);
            let frame = match random.below(2) {
                0 => ether() / Ipv4::new(host4, to4(net)) / Udp::new(1, 2) / b"four",
                _ => ether() / Ipv6::new(host6, to6(net)) / Udp::new(1, 2) / b"six",
            };
            let frame = frame.bytes();
            let mut buf = worker.pool().take(frame.len());
            buf.append(&frame);
            worker.receive(0, buf, now);
        }
        worker.run();
        worker.drain(|sent| left += u64::from(check_sent(sent.port, sent.buf)));
        if random.below(2) == 0 {
            worker.online()
        } else {
            worker.offline()
        }
        pause(&mut random);
    }
    left
}

/// True of a packet that was forwarded, by a gateway that there is or into the policy of its destination's prefix; false of an answer to the host.
fn check_sent(port: usize, frame: &[u8]) -> bool {
    match port {
        0 => return false,
        1 => assert!(frame[..5] == [2, 0, 0, 0, 0x1f] && usize::from(frame[5]) < NETS && frame[30..32] == [198, 51], "{frame:02x?}"),
        // Ethernet, outer destination from 38 on, SRH of two segments, inner destination.
        _ => assert!(port == 2 && frame[42..44] == frame[54 + 40 + 26..][..2], "by port {port}: {frame:02x?}"),
    }
    true
}
