//! memif, the shared-memory interface of DPDK and VPP: packets are copied into memory that two processes share, and the kernel has no part in it
//! (protocol version 2.0, Ethernet).
//!
//! ```text
//!  worker ─► MemifPort ◄── mailbox ──► thread of the interface ◄── control socket ──► peer
//!               └──────────────── rings and buffers in shared memory ────────────────┘
//! ```
//! A [`MemifDevice`] is one interface. Each of its queues is a [`MemifPort`] for the worker that owns it: rings in both directions, that come and go with
//! the peer. Whatever may wait, the peer's own descriptors above all, is left to the interface's thread.
//!
//! The peer is not trusted: `shared` says how its memory is touched, `ring` what is checked there, `server` what is checked of what it says.

mod channel;
mod client;
mod connection;
mod layout;
mod mailbox;
mod message;
mod port;
mod ring;
mod server;
mod settings;
#[allow(unsafe_code, reason = "memory shared with a peer; its head says what keeps it sound")]
mod shared;
#[allow(unsafe_code, reason = "system calls")]
mod sys;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use port::MemifPort;
pub use settings::{MemifSettings, MemifSettingsError, Role, Secret, SocketName};

use self::connection::Interface;
use self::mailbox::Mailbox;
use self::sys::Event;
use crate::Port;

/// How long an interface that is dropped waits for its thread.
const GOODBYE: Duration = Duration::from_millis(500);

/// A memif interface, with or without a peer: it looks for one until it is dropped.
pub struct MemifDevice {
    name: String,
    settings: MemifSettings,
    ports: Vec<MemifPort>,
    peer: Arc<Mutex<Option<String>>>,
    stop: Arc<Event>,
    thread: Option<JoinHandle<()>>,
}

impl MemifDevice {
    /// Opens an interface that the router calls `name`. A server's socket is there when this returns; a peer comes when it comes, which `tell` is told of,
    /// as of everything else that the operator should know, a sentence each.
    ///
    /// # Errors
    /// When the settings are out of range, or the server's socket cannot be made: somebody has it, or we may not.
    pub fn open(name: &str, settings: MemifSettings, tell: impl Fn(&str) + Send + 'static) -> io::Result<MemifDevice> {
        let about = |error: io::Error| io::Error::new(error.kind(), format!("{name} (memif, {}): {error}", settings.socket));
        settings.check().map_err(|error| about(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let listener = match settings.role {
            Role::Client => None,
            Role::Server => Some(listen(&settings.socket).map_err(about)?),
        };
        let (bell, stop) = (Arc::new(Event::new()?), Arc::new(Event::new()?));
        let peer = Arc::new(Mutex::new(None));
        let mut mailboxes = Vec::new();
        let mut ports = Vec::new();
        for _ in 0..settings.queues {
            let mailbox = Arc::new(Mailbox::new(Event::new()?, Arc::clone(&bell)));
            ports.push(MemifPort::new(Arc::clone(&mailbox))?);
            mailboxes.push(mailbox);
        }
        let interface = Interface {
            name: name.to_owned(),
            settings: settings.clone(),
            listener,
            mailboxes,
            bell,
            stop: Arc::clone(&stop),
            peer: Arc::clone(&peer),
            tell: Box::new(tell),
        };
        let thread = thread::Builder::new().name(format!("memif-{name}")).spawn(move || interface.run())?;
        Ok(MemifDevice { name: name.to_owned(), settings, ports, peer, stop, thread: Some(thread) })
    }

    /// What the router calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub fn mac(&self) -> [u8; 6] {
        self.settings.station()
    }

    /// Bytes that fit behind an Ethernet header.
    pub fn mtu(&self) -> u32 {
        self.settings.mtu
    }

    /// The peer that is connected: what it calls itself, and the interface. None when there is none.
    pub fn peer(&self) -> Option<String> {
        self.peer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The ports, one a queue, each for the worker that is to own it; none the second time. This value must be kept as long as they are used: without
    /// it they have no peer.
    pub fn take_ports(&mut self) -> Vec<Box<dyn Port + Send>> {
        std::mem::take(&mut self.ports).into_iter().map(|port| Box::new(port) as Box<dyn Port + Send>).collect()
    }
}

/// Makes a server's socket. A file that nobody listens at any more, left by one that was killed, is taken away first.
fn listen(socket: &SocketName) -> io::Result<OwnedFd> {
    let (error, path) = match (sys::listen(socket), socket) {
        (Err(error), SocketName::Path(path)) if error.kind() == io::ErrorKind::AddrInUse => (error, path),
        (outcome, _) => return outcome,
    };
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(error.kind(), "there is a file of that name, and it is no socket"));
    }
    if sys::connect(socket).map_err(|error| error.kind()).err() != Some(io::ErrorKind::ConnectionRefused) {
        return Err(io::Error::new(error.kind(), "somebody is server there already: each server port needs a socket of its own"));
    }
    std::fs::remove_file(path)?;
    sys::listen(socket)
}

impl Drop for MemifDevice {
    /// Tells the peer, and waits for the thread; not for one that its peer keeps from ending.
    fn drop(&mut self) {
        self.stop.ring();
        let until = Instant::now() + GOODBYE;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for MemifDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemifDevice { name, settings, ports, peer, .. } = self;
        f.debug_struct("MemifDevice")
            .field("name", name)
            .field("settings", settings)
            .field("ports", &ports.len())
            .field("peer", peer)
            .finish()
    }
}
