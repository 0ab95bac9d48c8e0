//! Traces of a running router: which packets ([`Filter`]), the worker's part ([`Probes`]), and `noref trace`.
//!
//! ```text
//! noref trace ──► server ──► Wanted ──► each worker's Probes, which looks at every packet until the trace is over
//!      ▲            ▲ Watch ◄────────── Told: the steps of those that the filter is for
//!      └────────────┘
//! ```
//! A worker that nobody asks for a trace looks at no packet and writes down no step.

mod filter;
mod layers;
mod probe;

pub use filter::Filter;
pub use probe::{Probes, Told, Wanted, Watch, watch};
