//! A router that is stopped, continued and killed under load.

use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::Duration;

use crate::lab::{self, Lab};
use crate::router::{Failed, Router};
use crate::traffic::Traffic;
use testkit::golden::PORTS;
use testkit::network;

/// Packets a second: far from what it can, as it is about what comes after.
const RATE: u64 = 10_000;
/// Behind e1.
const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

#[test]
fn stopped_under_load_and_continued_it_forwards_again() {
    let lab = match Lab::new().and_then(|lab| lab.silence_kernel().map(|()| lab)) {
        Ok(lab) => lab,
        Err(why) => return lab::skip(&why).unwrap_or_default(),
    };
    let router = match Router::standalone(&lab.router, PORTS, &network::plain(), &["--driver", "af-xdp"]) {
        Ok(router) => router,
        Err(Failed::NotHere(why)) => return lab::skip(&why).unwrap_or_default(),
        Err(Failed::Refused(why)) => panic!("{why}"),
    };
    let stopped = if lab::is_long() { Duration::from_secs(10) } else { Duration::from_secs(2) };
    let traffic = Traffic::start(&lab, TO, RATE).expect("the far ends stay");
    sleep(Duration::from_millis(300));
    router.signal("STOP");
    sleep(stopped);
    router.signal("CONT");
    sleep(Duration::from_millis(100));
    let meanwhile = traffic.stop();
    println!("{meanwhile:?}");
    assert!(meanwhile.gap >= stopped - Duration::from_millis(100), "it was not stopped: {meanwhile:?}");
    assert!(meanwhile.gap < stopped + Duration::from_millis(500), "{meanwhile:?}");

    let traffic = Traffic::start(&lab, TO, RATE).expect("the far ends stay");
    sleep(Duration::from_secs(1));
    let afterwards = traffic.stop();
    println!("{afterwards:?}");
    assert_eq!((afterwards.lost(), afterwards.twice), (0, 0), "{afterwards:?}");
    assert!(router.stop().status.success());
}
