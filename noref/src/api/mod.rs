//! What a running router tells and is told: the control socket (JSON lines, `docs/control.md`) and Prometheus metrics (`docs/metrics.md`).
//!
//! ```text
//! noref show, trace, ip ──► client ══ unix socket ══► server ──► the router: snapshots of workers, slices of tables, traces
//! ```
//! Nothing here stops a worker: it is asked through its mailbox, between bursts, and tables are read a slice at a time.

pub mod protocol;
pub mod rows;
