//! A router that is stopped, continued and killed under load.

use std::thread::sleep;
use std::time::{Duration, Instant};

use testkit::golden::PORTS;

use crate::bed::Bed;
use crate::router::Router;

/// How long the kernel may take until it forwards when noref is dead.
const TAKEN_OVER: Duration = Duration::from_millis(100);
/// How much longer than it was stopped nothing may come out.
const AWAKE: Duration = Duration::from_secs(2);
/// Times that it is stopped or killed: on a machine that is busy with other things so is whoever is waited for, and the best counts.
const ATTEMPTS: usize = 3;

#[test]
fn stopped_under_load_and_continued_it_forwards_again() {
    let Some(bed) = Bed::alone() else { return };
    stop_and_continue(&bed);
    assert!(bed.router.stop().status.success());
}

#[test]
fn beside_the_kernel_stopped_under_load_and_continued_it_forwards_again() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    stop_and_continue(&bed);
    bed.assert_it_forwards("continued");
    assert!(bed.router.stop().status.success());
}

fn stop_and_continue(bed: &Bed) {
    let stopped = if testkit::is_long() { Duration::from_secs(10) } else { Duration::from_secs(2) };
    let mut told = Vec::new();
    while !told.iter().any(|(gap, lost)| *gap < stopped + AWAKE && *lost == 0) {
        assert!(told.len() < ATTEMPTS, "stopped for {stopped:?}; the gaps, and packets lost afterwards: {told:?}");
        told.push(stop_and_continue_once(bed, stopped));
    }
}

/// The longest time in which nothing came out, and what was lost of one second afterwards. Without end when it did not forward again while it was looked at.
fn stop_and_continue_once(bed: &Bed, stopped: Duration) -> (Duration, u64) {
    let traffic = bed.begin_traffic();
    sleep(Duration::from_millis(300));
    bed.router.signal("STOP");
    sleep(stopped);
    bed.router.signal("CONT");
    sleep(Duration::from_secs(1));
    let meanwhile = traffic.stop();
    println!("{meanwhile:?}");
    assert!(meanwhile.received < meanwhile.sent, "it was not stopped: {meanwhile:?}");
    let afterwards = bed.traffic(Duration::from_secs(1));
    assert_eq!(afterwards.twice, 0, "{afterwards:?}");
    let gap = if meanwhile.gap < stopped - Duration::from_millis(100) { Duration::MAX } else { meanwhile.gap };
    (gap, afterwards.lost())
}

#[test]
fn when_it_is_killed_the_kernel_forwards_and_when_it_is_started_again_it_does() {
    let Some(mut bed) = Bed::beside_the_kernel() else { return };
    let mut gaps = Vec::new();
    for _ in 0..ATTEMPTS {
        bed.assert_it_forwards("running");
        let traffic = bed.begin_traffic();
        sleep(Duration::from_millis(300));
        let Bed { router, lab, alone } = bed;
        router.kill();
        sleep(Duration::from_millis(500));
        let told = traffic.stop();
        println!("killed: {told:?}");
        assert!(told.received > told.sent / 2, "nobody forwards: {told:?}");
        gaps.push(told.gap);

        let begin = Instant::now();
        let router = Router::mirror(&lab.router, PORTS, &["--driver", "af-xdp"]).expect("it ran before");
        println!("started again in {:?}", begin.elapsed());
        bed = Bed { router, lab, alone };
    }
    bed.assert_it_forwards("started again");
    assert!(bed.router.stop().status.success());
    assert!(gaps.iter().any(|gap| *gap < TAKEN_OVER), "{gaps:?}");
}
