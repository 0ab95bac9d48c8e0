//! noref in the lab, with the configuration of [`network::plain`]: a neighbour at each far end, and routes.

use std::net::Ipv4Addr;
use std::sync::MutexGuard;
use std::thread::sleep;
use std::time::{Duration, Instant};

use testkit::golden::PORTS;
use testkit::network;

use crate::lab::{self, Lab};
use crate::router::{Failed, Router};
use crate::traffic::{Told, Traffic};

/// Behind e1.
pub const EAST: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
/// Packets a second that any machine forwards, also a busy one and a build for debugging.
pub const RATE: u64 = 2_000;
/// Times that traffic may be tried until none of it is lost: on a machine that is busy with other things a ring may run full.
const ATTEMPTS: usize = 3;

/// The lab and the router in it.
pub struct Bed {
    pub router: Router,
    pub lab: Lab,
    pub alone: MutexGuard<'static, ()>,
}

impl Bed {
    /// Alone on its devices. None, with a word why, where it cannot be made.
    pub fn alone() -> Option<Bed> {
        let prepare = |lab: Lab| lab.silence_kernel().map(|()| lab);
        Bed::new(prepare, |lab| Router::standalone(&lab.router, PORTS, &network::plain(), &["--driver", "af-xdp"]))
    }

    /// Beside a kernel with the same configuration. None, with a word why, where it cannot be made.
    pub fn beside_the_kernel() -> Option<Bed> {
        Bed::beside_a_kernel_that(|_| Ok(()))
    }

    /// Beside a kernel that has more, which `configure` gives it.
    pub fn beside_a_kernel_that(configure: impl FnOnce(&Lab) -> Result<(), String>) -> Option<Bed> {
        let prepare = |lab: Lab| lab.configure_kernel(&network::plain()).and_then(|()| configure(&lab)).map(|()| lab);
        Bed::new(prepare, |lab| Router::mirror(&lab.router, PORTS, &["--driver", "af-xdp"]))
    }

    fn new(prepare: impl FnOnce(Lab) -> Result<Lab, String>, start: impl FnOnce(&Lab) -> Result<Router, Failed>) -> Option<Bed> {
        let alone = lab::alone();
        let lab = Lab::new().and_then(prepare).map_err(Failed::NotHere);
        let made = lab.and_then(|lab| start(&lab).map(|router| Bed { router, lab, alone }));
        match made {
            Ok(bed) => Some(bed),
            Err(Failed::NotHere(why)) => lab::skip(&why),
            Err(Failed::Refused(why)) => panic!("{why}"),
        }
    }

    /// Traffic to [`EAST`] for this time, and what became of it.
    pub fn traffic(&self, time: Duration) -> Told {
        self.traffic_to(EAST, time)
    }

    /// Traffic to an address for this time, and what became of it.
    pub fn traffic_to(&self, to: Ipv4Addr, time: Duration) -> Told {
        let traffic = Traffic::start(&self.lab, to, RATE).expect("there are far ends");
        sleep(time);
        traffic.stop()
    }

    /// Traffic to [`EAST`].
    pub fn begin_traffic(&self) -> Traffic {
        Traffic::start(&self.lab, EAST, RATE).expect("there are far ends")
    }

    /// Fails unless noref, and nobody else, forwards everything now.
    pub fn assert_it_forwards(&self, when: &str) {
        let mut attempts = 1..=ATTEMPTS;
        let (told, by_noref) = loop {
            let last = attempts.next().is_none_or(|attempt| attempt == ATTEMPTS);
            let before = self.router.packets("e1", "sent");
            let told = self.traffic(Duration::from_secs(1));
            if told.lost() == 0 || last {
                break (told, self.router.packets("e1", "sent") - before);
            }
        };
        assert_eq!((told.lost(), told.twice), (0, 0), "{when}: {told:?}, of them {by_noref} by noref");
        assert!(by_noref >= told.sent, "{when}: {by_noref} of {} packets were forwarded by noref", told.sent);
    }

    /// Waits until the router is in a state; a failure when that takes too long.
    pub fn wait_until(&self, what: &str, patience: Duration, is: impl Fn(&Bed) -> bool) {
        let begin = Instant::now();
        while !is(self) {
            assert!(begin.elapsed() < patience, "{what}: not within {patience:?}");
            sleep(Duration::from_millis(20));
        }
    }
}
