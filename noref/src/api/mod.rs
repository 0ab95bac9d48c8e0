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
mod http;
mod language;
mod line;
mod metrics;
pub mod protocol;
pub mod rows;
mod server;
mod service;
mod socket;
mod stream;
mod tables;
#[cfg(test)]
mod testing;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use client::Client;
pub use counts::sid_count;

use self::service::Service;
use self::socket::Socket;
use self::stream::Listener;
use crate::run::{MetricsAddress, Router};

/// The places where a router is going to answer: taken before anything is done to an interface, so that two routers do not get into each other's way.
pub struct Places {
    control: Socket,
    metrics: Option<Listener>,
}

/// What answers there, until it is dropped.
pub struct Services {
    _control: Service,
    _metrics: Option<Service>,
}

impl Places {
    /// Takes the place of the control socket, for the owner and perhaps a group, and that of the metrics.
    ///
    /// # Errors
    /// When a router answers there already, or a place cannot be had.
    pub fn take(control: &Path, group: Option<&str>, metrics: Option<&MetricsAddress>) -> Result<Places, String> {
        let listen = |address: &MetricsAddress| match address {
            MetricsAddress::Tcp(address) => Listener::tcp(*address),
            MetricsAddress::Unix(path) => Socket::listen(path, group).map(Listener::Unix),
        };
        let metrics = metrics.map(listen).transpose().map_err(|why| format!("metrics: {why}"))?;
        Ok(Places { control: Socket::listen(control, group)?, metrics })
    }

    /// Begins to answer.
    ///
    /// # Errors
    /// When there are no threads or descriptors left.
    pub fn serve(self, router: &Arc<Router>) -> io::Result<Services> {
        let metrics = self.metrics.map(|listener| http::start(Arc::clone(router), listener)).transpose()?;
        Ok(Services { _control: server::start(Arc::clone(router), self.control)?, _metrics: metrics })
    }
}
