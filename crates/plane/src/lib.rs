//! What happens to a packet: input → lookup → behaviour → output, with everything a router answers itself.
//!
//! A [`Worker`] takes bursts of frames through it; [`Tables`] is what workers share and only read. Deciding and doing are apart: `decide` and what it
//! calls return a verdict, `host` performs it.
#![forbid(unsafe_code)]

mod arrivals;
mod context;
mod counters;
mod decide;
mod departures;
mod describe;
mod ethernet;
mod fast;
mod flow_hash;
mod forward4;
mod forward6;
mod fragment4;
mod fragment6;
pub mod get;
mod hop_by_hop;
mod host;
mod ip4_input;
mod ip6_input;
mod multipath;
mod options4;
mod packet;
mod rate;
mod reassembly;
mod seg6;
mod source4;
mod tables;
mod trace;
mod upper;
mod verdict;
mod worker;

pub use arrivals::BURST;
pub use counters::{Counters, LinkCount, PacketCount, SidCount};
pub use departures::{Sent, SentTogether};
pub use host::Up;
pub use tables::Tables;
pub use trace::Step;
pub use worker::Worker;
