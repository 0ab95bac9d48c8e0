//! As many packets as the devices take, for a long time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use port::live::Device;
use port::live::xdp::{Sink, Source};
use testkit::route_changes::Change;

use crate::bed::{Bed, EAST};
use crate::churn::{By, ROOM, Round, assert_equal_to_the_kernel, median};
use crate::traffic::frame;

/// Frames that are made at once: some milliseconds of them.
const AT_ONCE: u32 = 8192;

#[test]
fn at_top_rate_while_routes_change_nothing_stalls_and_memory_stays_flat() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    let (count, time) = if testkit::is_long() { (10_000, Duration::from_secs(600)) } else { (1_000, Duration::from_secs(3)) };
    let rounds = [
        Round::new(&bed.lab, Change::Add, 0..count, 1),
        Round::new(&bed.lab, Change::Replace, 0..count, 2),
        Round::new(&bed.lab, Change::Del, 0..count, 2),
    ];
    let frame = frame(EAST, 0);
    let index = |port: &str| Device::named(port).expect("it is there").index();
    let sink = bed.lab.far.inside(|| Sink::new(index("e1"), frame.len())).expect("whoever made the lab may count");
    bed.lab.far.ip("link add parked type veth peer name parked-peer").expect("whoever made the lab may make devices");
    let source =
        bed.lab.far.inside(|| Source::new(&frame, index("e0"), Some(index("parked")), None)).expect("whoever made the lab may send");
    let over = AtomicBool::new(false);
    let send = || {
        while !over.load(Ordering::Relaxed) {
            source.send(AT_ONCE).expect("the device stays");
        }
    };
    let (mut changes, mut memory, mut came) = (0, Vec::new(), Vec::new());
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| bed.lab.far.inside(send));
        while begin.elapsed() < time {
            let second = Instant::now();
            while second.elapsed() < Duration::from_secs(1) {
                for round in &rounds {
                    round.make(&bed.lab, By::Messages);
                    changes += round.len();
                }
            }
            memory.push(bed.router.memory());
            came.push(sink.count().expect("it counts"));
        }
        over.store(true, Ordering::Relaxed);
    });
    let seconds = begin.elapsed().as_secs_f64();
    let all = came.last().copied().unwrap_or_default();
    let least = came.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default();
    let (early, late) = memory.split_at(memory.len() / 2);
    let (early, late) = (median(early), median(late));
    println!(
        "{all} packets in {seconds:.0} s, {:.0} a second, at least {least} between two looks; {:.0} changes a second; memory {early} then {late}",
        all as f64 / seconds,
        changes as f64 / seconds
    );
    drop(sink);
    assert_equal_to_the_kernel(&bed);
    assert!(least > 0, "packets that came out so far, from second to second: {came:?}");
    assert!(late < early + ROOM, "memory grows: {memory:?}");
    bed.assert_it_forwards("afterwards");
    assert!(bed.router.stop().status.success());
}
