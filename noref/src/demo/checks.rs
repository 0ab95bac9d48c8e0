//! What is tried in the lab, and what is expected of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::echo::{self, Request};
use super::lab::Lab;
use super::transfer;

/// What became of a check: something to add to it, or what was expected and what was found.
pub type Verdict = Result<String, String>;

/// A tenant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tenant {
    Red,
    Blue,
}

/// Something that a host in the west does.
pub struct Check {
    tenant: Tenant,
    /// To whom.
    pub to: IpAddr,
    what: What,
}

enum What {
    /// Echo requests are answered; the packets take this way.
    Answers(&'static str),
    /// Nobody answers, and why.
    Silence(&'static str),
    /// TCP carries this many bytes there and back, to the tenant's own host.
    Transfers(usize),
}

/// Echo requests of a check.
const REQUESTS: u16 = 5;
/// How long an answer may take, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an answer is waited for that must not come.
const SILENCE: Duration = Duration::from_millis(300);
/// Bytes that go there and back by TCP.
const BYTES: usize = 8_000_000;
/// A packet has at most so many of them.
const LONGEST_SEGMENT: u64 = 1500;

/// What crosses a router at least while [`ALL`] are tried.
pub const FEWEST_PACKETS: u64 = 2 * 2 * BYTES as u64 / LONGEST_SEGMENT;

const EAST: IpAddr = v4(192, 168, 2, 10);
const EAST6: IpAddr = v6(0xfd02, 0x10);
const BLUES_OWN: IpAddr = v4(192, 168, 3, 10);

/// All checks.
pub const ALL: &[Check] = &[
    Check { tenant: Tenant::Red, to: EAST, what: What::Answers("H.Encaps, End, End.DX4") },
    Check { tenant: Tenant::Red, to: EAST6, what: What::Answers("H.Encaps, End, End.DT6") },
    Check { tenant: Tenant::Blue, to: EAST, what: What::Answers("H.Encaps.Red, End.DX4") },
    Check { tenant: Tenant::Blue, to: EAST6, what: What::Answers("H.Encaps.Red, End.DT6") },
    Check { tenant: Tenant::Blue, to: BLUES_OWN, what: What::Answers("H.Encaps.Red, End.DX4") },
    Check { tenant: Tenant::Red, to: BLUES_OWN, what: What::Silence("only blue has it") },
    Check { tenant: Tenant::Red, to: v4(10, 1, 1, 1), what: What::Answers("edge west itself") },
    Check { tenant: Tenant::Red, to: EAST, what: What::Transfers(BYTES) },
    Check { tenant: Tenant::Blue, to: EAST6, what: What::Transfers(BYTES) },
];

/// What is tried when noref is gone.
pub const AFTERWARDS: &[Check] = &[
    Check { tenant: Tenant::Red, to: EAST, what: What::Answers("H.Encaps, End, End.DX4") },
    Check { tenant: Tenant::Blue, to: EAST6, what: What::Answers("H.Encaps.Red, End.DT6") },
];

/// Addresses as they stand in the tables of the lab.
const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6(first: u16, last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last))
}

impl Check {
    /// The site that does it.
    pub fn from(&self) -> &'static str {
        match self.tenant {
            Tenant::Red => "red west",
            Tenant::Blue => "blue west",
        }
    }

    /// What is expected.
    pub fn what(&self) -> String {
        match self.what {
            What::Answers(way) => format!("{REQUESTS} echo requests answered ({way})"),
            What::Silence(why) => format!("no answer ({why})"),
            What::Transfers(bytes) => format!("{} MB by TCP there and back", bytes / 1_000_000),
        }
    }

    /// The namespaces of both ends.
    fn places(&self) -> (&'static str, &'static str) {
        match self.tenant {
            Tenant::Red => ("red-west", "red-east"),
            Tenant::Blue => ("blue-west", "blue-east"),
        }
    }

    /// Tries it.
    pub fn run(&self, lab: &Lab) -> Verdict {
        let (west, east) = self.places();
        match self.what {
            What::Answers(_) => answered(lab.at(west)?.inside(|| requests(self.to, REQUESTS, PATIENCE))?),
            What::Silence(_) => match lab.at(west)?.inside(|| requests(self.to, 1, SILENCE))? {
                0 => Ok(String::new()),
                _ => Err("somebody answered".to_owned()),
            },
            What::Transfers(bytes) => {
                let took = transfer::across(lab.at(west)?, lab.at(east)?, self.to, bytes, self.tenant as u8)?;
                let rate = 2.0 * bytes as f64 / took.as_secs_f64() / 1e6;
                Ok(format!(", {rate:.0} MB/s"))
            }
        }
    }

    /// Tries it again and again from when something happened, until an echo request is answered or `longest` is over; then as [`Check::run`].
    pub fn answers_within(&self, lab: &Lab, happened: Instant, longest: Duration) -> Verdict {
        let west = lab.at(self.places().0)?;
        let first = west.inside(|| {
            while requests(self.to, 1, longest / 50)? == 0 {
                if happened.elapsed() > longest {
                    return Err(format!("nobody answered within {} ms", longest.as_millis()));
                }
            }
            Ok(happened.elapsed())
        })?;
        self.run(lab).map(|_| format!(", the first after {} ms", first.as_millis()))
    }
}

/// How many of `count` echo requests are answered. Where two are not, the others are not waited for.
fn requests(to: IpAddr, count: u16, patience: Duration) -> Result<u16, String> {
    let (mut answered, mut missed) = (0, 0);
    for number in 0..count {
        match echo::answered(&Request { to, number, patience }).map_err(|error| format!("an echo request could not be sent: {error}"))? {
            true => answered += 1,
            false => missed += 1,
        }
        if missed == 2 {
            break;
        }
    }
    Ok(answered)
}

fn answered(answers: u16) -> Verdict {
    if answers == REQUESTS { Ok(String::new()) } else { Err(format!("{answers} were, within {} s each", PATIENCE.as_secs())) }
}
