//! Frames of any bytes through routers with every behaviour: nothing panics, nothing is lost without a name, and the short way that plain packets
//! take in a burst ends as the general way that traced packets take one by one.

use std::sync::LazyLock;
use std::time::Duration;

use plane::{Counters, LinkCount, Worker};
use port::Time;
use proptest::collection::vec;
use proptest::prelude::*;
use route::{DropReason, RouteRefs};
use testkit::golden::{Case, PORTS};
use testkit::mutate::mutate;
use testkit::network::{self, BEHAVIOURS, Destinations, addressed_to_e0};
use testkit::rng::Rng;

/// Frames for the router of the golden cases.
static GOOD: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let cases = Case::all(&testkit::root().join("tests/golden"));
    cases
        .iter()
        .filter(|case| ["srv6", "ip", "vlan"].iter().any(|begin| case.group().starts_with(begin)))
        .flat_map(Case::records)
        .map(|(_, record)| record.bytes)
        .collect()
});

/// Where they go.
static DESTINATIONS: LazyLock<Destinations> = LazyLock::new(|| {
    let mut destinations = Destinations::default();
    GOOD.iter().for_each(|frame| destinations.collect(frame));
    destinations
});

/// How frames are given to the router.
#[derive(Clone, Copy)]
struct Way {
    burst: usize,
    traced: bool,
    refs: RouteRefs,
}

/// What came of them: port, number of the frame that caused it, and bytes of all that was sent, and the counters.
#[derive(PartialEq, Debug)]
struct Outcome {
    sent: Vec<(usize, u64, Vec<u8>)>,
    counters: Counters,
    ports: Vec<LinkCount>,
}

/// Sends frames, each to a port by its place, and lets time pass until nothing waits.
fn send_through(net: &str, frames: &[(usize, Vec<u8>)], way: Way) -> Outcome {
    let configuration = control::network_file(net, "network.ip", PORTS).unwrap_or_else(|errors| panic!("{errors}"));
    let mut worker = Worker::new(configuration.tables.clone(), way.refs);
    worker.trace(way.traced);
    let mut sent = Vec::new();
    let mut now = Time::from_micros(1_767_225_600_000_000);
    let mut drain = |worker: &mut Worker| worker.drain(|frame| sent.push((frame.port, frame.frame, frame.buf.to_vec())));
    for burst in frames.chunks(way.burst) {
        for (port, frame) in burst {
            let mut buf = worker.pool().take(frame.len());
            buf.append(frame);
            worker.receive(*port, buf, now);
        }
        worker.run();
        drain(&mut worker);
    }
    for _ in 0..3 {
        now = now.after(Duration::from_secs(600));
        worker.advance(now);
        drain(&mut worker);
    }
    assert!(worker.is_idle(), "{} packets wait for ever", worker.waiting());
    let counters = worker.counters().clone();
    let ports = (0..PORTS.len()).map(|place| counters.of_port(configuration.editor.links(), place)).collect();
    Outcome { sent, counters, ports }
}

/// Any bytes, a golden frame, or a damaged one; addressed to a port or left as it is.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let golden = any::<prop::sample::Index>().prop_map(|index| GOOD[index.index(GOOD.len())].clone());
    let damaged = (any::<prop::sample::Index>(), any::<u64>()).prop_map(|(index, seed)| {
        let mut rng = Rng::new(seed);
        let other = rng.choose(&GOOD);
        mutate(&mut rng, &GOOD[index.index(GOOD.len())], other)
    });
    (prop_oneof![1 => vec(any::<u8>(), 0..120), 3 => golden, 4 => damaged], any::<bool>())
        .prop_map(|(frame, to_us)| if to_us { addressed_to_e0(frame) } else { frame })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frames_are_accounted_for_and_end_alike_in_bursts_and_one_by_one(
        frames in vec((prop_oneof![3 => Just(0), 1 => 0..PORTS.len()], frame()), 1..80),
        shift in 0..2 * BEHAVIOURS.len(),
        burst in 2_usize..100,
    ) {
        let net = network::with_every_behaviour(&DESTINATIONS, shift);
        let single = send_through(&net, &frames, Way { burst: 1, traced: true, refs: RouteRefs::Noref });
        let bursts = send_through(&net, &frames, Way { burst, traced: false, refs: RouteRefs::Noref });
        let counted = send_through(&net, &frames, Way { burst, traced: false, refs: RouteRefs::Counted });
        prop_assert_eq!(&bursts, &single, "in bursts, and one by one by the general way");
        prop_assert_eq!(&counted, &bursts, "with counted references, and without");

        let counters = &bursts.counters;
        let sum = |count: fn(&LinkCount) -> u64| bursts.ports.iter().map(count).sum::<u64>();
        let (received, sent) = (sum(|link| link.received.packets), sum(|link| link.sent.packets));
        let (delivered, waiting) = (sum(|link| link.delivered), sum(|link| link.waiting));
        prop_assert_eq!(received, frames.len() as u64);
        let dropped = counters.dropped() - counters.drops(DropReason::RateLimited);
        prop_assert_eq!(received + counters.originated, sent + delivered + waiting + counters.reassembled + dropped, "{:?}", counters);
        prop_assert!(counters.forwarded <= sent.min(received), "{:?}", counters);
    }
}
