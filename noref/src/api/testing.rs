//! A router without workers, and its control socket, for tests.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::replay::Scratch;

use super::Places;
use super::Services;
use crate::run::{Clock, PortState, Router, Source, Workers};

/// A router of these ports as a network file describes it. It has tables and forwards nothing.
pub fn router(network: &str, ports: &[&str]) -> Arc<Router> {
    let configuration = control::network_file(network, "network.ip", ports).unwrap_or_else(|errors| panic!("{errors}"));
    let tables = Arc::clone(&configuration.tables);
    let workers = Workers::start(&tables, Vec::new(), false).unwrap();
    let state = |(place, name): (usize, &&str)| PortState {
        place,
        name: (*name).to_owned(),
        driver: "memory",
        queues: 1,
        index: place as u32 + 2,
        notes: Vec::new(),
    };
    let states = ports.iter().enumerate().map(state).collect();
    Arc::new(Router::new(workers, tables, Source::Standalone(Box::new(Mutex::new(configuration)), Clock::start()), states))
}

/// A control socket that is served.
pub struct Served {
    pub path: PathBuf,
    _services: Services,
    _scratch: Scratch,
}

impl Served {
    pub fn new(router: &Arc<Router>) -> Served {
        let scratch = Scratch::new();
        let path = scratch.path().join("noref.sock");
        Served { _services: Places::take(&path, None, None).unwrap().serve(router).unwrap(), path, _scratch: scratch }
    }

    /// Somebody who connects and sends what he likes.
    pub fn connect(&self) -> Peer {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Peer(BufReader::new(stream))
    }
}

pub struct Peer(BufReader<UnixStream>);

impl Peer {
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The next line; empty when the connection is closed.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        // A connection that is reset is closed too.
        let _ = self.0.read_line(&mut line);
        line
    }

    /// The answer to a request; empty when the connection is closed.
    pub fn ask(&mut self, request: &str) -> String {
        // One who is refused may be sent away before he asks; what he was told is still there.
        let _ = self.0.get_mut().write_all(format!("{request}\n").as_bytes());
        self.line()
    }
}
