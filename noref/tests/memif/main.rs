//! `noref run` between two memif ports of a `dpdk-testpmd`, which is source and sink: everything must come through, in order, at a share of the top rate.
//!
//! ```text
//! this test ──memif──► testpmd ──memif──► noref (End) ──memif──► testpmd ──memif──► this test
//! ```
//! testpmd passes frames on between its ports and has no pace of its own, so the numbered frames and their pace come from here. Without testpmd a test
//! says so and passes, except where CI is set. The share is a quarter, for three seconds, and one of three attempts must hold it: three programs share the
//! processors with whatever else runs. NOREF_MEMIF_SECONDS says for how long half the top rate is to be held instead.
#![cfg(target_os = "linux")]

mod peers;
mod traffic;

use std::time::Duration;

use peers::{Router, TestPmd};
use port::live::memif::Role;
use testkit::program::alone;
use testkit::replay::Scratch;
use traffic::{Outcome, Stream};

/// One SID that passes packets on, and where they go then.
const NETWORK: &str = "\
sysctl -w net.ipv6.conf.all.forwarding=1
sysctl -w net.ipv6.conf.all.seg6_enabled=1
sysctl -w net.ipv6.conf.m0.seg6_enabled=1
ip link set m0 up
ip link set m1 up
ip -6 addr add fd01::1/64 dev m0 nodad
ip -6 addr add fd02::1/64 dev m1 nodad
ip -6 neigh add fd02::2 lladdr 02:00:00:00:0f:09 dev m1
ip -6 route add fcbb:0:1::1/128 encap seg6local action End dev m1
ip -6 route add fcbb:0:2::/48 via fd02::2 dev m1
";

/// How long the top rate is measured.
const TOP: Duration = Duration::from_secs(2);
/// Attempts to hold a share of it.
const ATTEMPTS: usize = 3;

#[test]
fn a_share_of_the_top_rate_passes_without_loss_through_clients_of_dpdk() {
    a_share_of_the_top_rate_passes(Role::Server);
}

#[test]
fn a_share_of_the_top_rate_passes_without_loss_through_servers_of_dpdk() {
    a_share_of_the_top_rate_passes(Role::Client);
}

#[test]
fn a_testpmd_that_is_killed_and_started_again_is_connected_again() {
    // Each takes all processors.
    let _alone = alone();
    if !TestPmd::is_there() {
        return;
    }
    for role in [Role::Server, Role::Client] {
        let scratch = Scratch::new();
        let router = Router::start(scratch.path(), NETWORK, role);
        let mut stream = Stream::open(scratch.path(), role);
        for _ in 0..2 {
            let testpmd = TestPmd::start(scratch.path(), role);
            stream.settle(|| testpmd.said());
            let Outcome { sent, received, .. } = stream.run(Duration::from_millis(200), Some(1000.0));
            assert_eq!(received, sent, "{role:?}; testpmd: {}", testpmd.said());
            testpmd.kill();
        }
        let report = router.stop();
        assert!(report.contains("\"connections\""), "{report}");
    }
}

/// With noref in this role, testpmd in the other.
fn a_share_of_the_top_rate_passes(role: Role) {
    // Each takes all processors.
    let _alone = alone();
    let scratch = Scratch::new();
    if !TestPmd::is_there() {
        return;
    }
    let asked: Option<u64> = std::env::var("NOREF_MEMIF_SECONDS").ok().map(|text| text.parse().expect("NOREF_MEMIF_SECONDS: a number"));
    let (seconds, share) = asked.map_or((3, 0.25), |seconds| (seconds, 0.5));

    let router = Router::start(scratch.path(), NETWORK, role);
    let mut stream = Stream::open(scratch.path(), role);
    let testpmd = TestPmd::start(scratch.path(), role);
    stream.settle(|| testpmd.said());

    let mut attempts = Vec::new();
    while attempts.last().is_none_or(|(_, held): &(f64, Outcome)| held.received != held.sent) && attempts.len() < ATTEMPTS {
        let all = stream.run(TOP, None);
        assert!(all.received > 0, "nothing came through; testpmd: {}", testpmd.said());
        let pace = all.received as f64 / TOP.as_secs_f64() * share;
        let held = stream.run(Duration::from_secs(seconds), Some(pace));
        let lost = held.sent - held.received;
        eprintln!("noref {role:?}: {pace:.0} packets/s are {share} of the top rate, then {} in {seconds} s, {lost} lost", held.sent);
        assert_eq!(held.changed, 0, "testpmd: {}", testpmd.said());
        attempts.push((pace, held));
    }

    let said = testpmd.quit();
    let report = router.stop();
    let (pace, Outcome { sent, received, disordered, .. }) = attempts.pop().unwrap();
    assert_eq!((received, disordered), (sent, 0), "in the last of {ATTEMPTS} attempts; testpmd: {said}\nnoref: {report}");
    // What a busy machine does not let the sender send is no fault of noref's, but then nothing was measured.
    assert!(asked.is_none() || sent as f64 >= pace * seconds as f64 * 0.8, "{sent} packets sent are not {share} of the top rate");
}
