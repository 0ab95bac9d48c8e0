//! What a running router tells and is told: the control socket (JSON lines, `docs/control.md`) and Prometheus metrics (`docs/metrics.md`).
//!
//! ```text
//! noref show, trace, ip ──► client ══ unix socket ══► server ──► the router: snapshots of workers, slices of tables, traces
//! ```
//! Nothing here stops a worker: it is asked through its mailbox, between bursts, and tables are read a slice at a time.

mod answer;
mod client;
mod counts;
pub mod hex;
mod line;
pub mod protocol;
pub mod rows;
mod server;
mod socket;
mod tables;
#[cfg(test)]
mod testing;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use client::Client;

use self::server::Server;
use self::socket::Socket;
use crate::run::Router;

/// The places where a router is going to answer: taken before anything is done to an interface, so that two routers do not get into each other's way.
pub struct Places {
    control: Socket,
}

/// What answers there, until it is dropped.
pub struct Services {
    _control: Server,
}

impl Places {
    /// Takes the control socket's place, for the owner and perhaps a group.
    ///
    /// # Errors
    /// When a router answers there already, or the place cannot be had.
    pub fn take(control: &Path, group: Option<&str>) -> Result<Places, String> {
        Ok(Places { control: Socket::listen(control, group)? })
    }

    /// Begins to answer.
    ///
    /// # Errors
    /// When there are no threads or descriptors left.
    pub fn serve(self, router: &Arc<Router>) -> io::Result<Services> {
        Ok(Services { _control: Server::start(Arc::clone(router), self.control)? })
    }
}
