//! Neighbours, as `ip neighbour show` prints them, but by device and address: the kernel's order is that of a hash.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::IpAddr;

use ::route::{Editor, IfIndex, NeighbourState};

use super::line::Options;
use super::selector::NeighbourSelector;
use super::{Source, device, name};
use crate::address::{Family, Prefix};
use crate::error::Error;

/// Which neighbours.
#[derive(Debug)]
pub(super) struct Neighbours {
    family: Option<Family>,
    device: Option<IfIndex>,
    state: Option<NeighbourState>,
    to: Option<Prefix>,
}

impl Neighbours {
    pub(super) fn new(selector: &NeighbourSelector<'_>, options: Options, editor: &Editor) -> Result<Neighbours, Error> {
        Ok(Neighbours {
            family: options.family,
            device: selector.device.map(|word| device(editor, word)).transpose()?,
            state: selector.state,
            to: selector.to.map(|to| to.value),
        })
    }

    pub(super) fn print(&self, source: &impl Source, out: &mut impl Write) -> io::Result<()> {
        let mut all = source.tables().network.neighbours.list();
        all.retain(|neighbour| self.wants(neighbour.dev(), neighbour.addr()));
        all.sort_by_key(|neighbour| (neighbour.addr().is_ipv6(), neighbour.dev(), neighbour.addr()));
        for slice in all.chunks(512) {
            let mut text = String::new();
            source.editor(|editor| {
                for neighbour in slice {
                    let (state, mac) = neighbour.load();
                    if state == NeighbourState::None || self.state.is_some_and(|wanted| state != wanted) {
                        continue;
                    }
                    // Writing to a string does not fail.
                    let _ = write!(text, "{} ", neighbour.addr());
                    if self.device.is_none() {
                        let _ = write!(text, "dev {} ", name(editor, neighbour.dev()));
                    }
                    if state.is_valid() {
                        let _ = write!(text, "lladdr {mac} ");
                    }
                    let _ = writeln!(text, "{} ", word(state));
                }
            });
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn wants(&self, dev: IfIndex, addr: IpAddr) -> bool {
        self.device.is_none_or(|wanted| dev == wanted)
            && self.family.is_none_or(|family| Family::of(addr) == family)
            && self.to.is_none_or(|to| Prefix { addr, len: to.len }.masked() == to)
    }
}

fn word(state: NeighbourState) -> &'static str {
    match state {
        NeighbourState::None => "NONE",
        NeighbourState::Incomplete => "INCOMPLETE",
        NeighbourState::Reachable => "REACHABLE",
        NeighbourState::Stale => "STALE",
        NeighbourState::Delay => "DELAY",
        NeighbourState::Probe => "PROBE",
        NeighbourState::Failed => "FAILED",
        NeighbourState::Permanent => "PERMANENT",
    }
}
