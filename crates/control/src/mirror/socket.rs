//! The sockets: one for events, one for requests. Everything that is decided is decided in [`Follow`].

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use route::{IfIndex, SidId, Tick};

use super::Mirror;
use super::decode::message::{DONE, ERROR, Message, messages};
use super::decode::{link, neighbour, shared};
use super::dump::{Dump, Progress};
use super::follow::Follow;
use super::object::Object;
use super::settings;
use super::snapshot::Snapshot;

/// The groups that events are told to: links, neighbours, addresses, routes and rules of both families, settings of interfaces, nexthop objects.
const GROUPS: [u32; 11] = [1, 3, 5, 7, 8, 9, 11, 19, 24, 25, 32];
/// Events that wait, bytes: a third of a second of 100,000 routes that change a second.
const EVENT_BUFFER: usize = 32 << 20;
/// A datagram of the kernel is at most 32 KiB; one device with very many addresses may need more.
const DATAGRAM: usize = 64 << 10;
/// Datagrams that are read before tables are brought up to date.
const BURST: usize = 1024;
/// How long an answer of the kernel may take.
const ANSWER: Duration = Duration::from_secs(5);
/// An event; longer ones are noticed as cut off.
const EVENT: usize = 16 << 10;
/// Bytes of events that are kept while something is read; beyond, the kernel keeps them.
const WAITING: usize = 64 << 20;
/// `ENOBUFS`.
const ENOBUFS: i32 = 105;
/// `MSG_TRUNC`: the length of a datagram is asked for, whatever there is room for.
const MSG_TRUNC: i32 = 0x20;

/// Events that came while something was read.
#[derive(Default)]
struct Waiting {
    datagrams: Vec<(bool, Vec<u8>)>,
    bytes: usize,
    lost: bool,
}

/// Asks the kernel for something beside a [`Follower`], which may have much to read.
pub struct Asker {
    socket: Socket,
    sequence: u32,
}

impl Asker {
    /// One for the network namespace of the calling thread.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn new() -> io::Result<Asker> {
        Ok(Asker { socket: socket(NETLINK_ROUTE)?, sequence: 0 })
    }

    /// Asks the kernel to find out, or check, the Ethernet address of a neighbour whose packets it does not see. What becomes of it the [`Follower`] is told.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn keep_alive(&mut self, dev: IfIndex, addr: IpAddr) -> io::Result<()> {
        // What the kernel complained about before is of no interest: events tell what became of it.
        let mut complaint = Vec::with_capacity(EVENT);
        while receive(&self.socket, &mut complaint).is_ok() {}
        self.socket.send(&neighbour::keep_alive(dev, addr), 0).map(|_| ())
    }

    /// Sets a device up, in the VRF of `master` if there is one.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_up(&mut self, dev: IfIndex, master: Option<IfIndex>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.socket.send(&link::set_up(self.sequence, dev, master), 0)?;
        let mut told = Vec::with_capacity(EVENT);
        loop {
            answer(&self.socket, &mut told)?;
            for message in messages(&told).map_while(Result::ok) {
                if message.sequence == self.sequence && message.kind == ERROR {
                    return message.refusal().map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)));
                }
            }
        }
    }
}

/// Follows the kernel of the network namespace of the thread that made it, and keeps a [`Mirror`] like it.
pub struct Follower {
    follow: Follow,
    mirror: Mirror,
    events: Socket,
    requests: Socket,
    generic: Socket,
    /// The number of family `SEG6`, 0 when the kernel has none.
    seg6: Option<u16>,
    sequence: u32,
    began: Instant,
    buffer: Vec<u8>,
}

impl Follower {
    /// Subscribes to events. Nothing is read yet: that is the first [`Follower::step`].
    ///
    /// # Errors
    /// What the system says of the sockets. No privileges are needed, but those to read secrets of HMAC keys (CAP_NET_ADMIN).
    pub fn new(mirror: Mirror) -> io::Result<Follower> {
        let events = socket(NETLINK_ROUTE)?;
        if setsockopt(&events.as_fd(), RcvBufForce, &EVENT_BUFFER).is_err() {
            // Without CAP_NET_ADMIN the kernel cuts the size to what is allowed (`net.core.rmem_max`).
            setsockopt(&events.as_fd(), RcvBuf, &EVENT_BUFFER)?;
        }
        for group in GROUPS {
            // Older kernels have fewer.
            if let Err(error) = events.add_membership(group) {
                tracing::warn!(group, %error, "no events of this group");
            }
        }
        Ok(Follower {
            follow: Follow::new(),
            mirror,
            events,
            requests: request_socket()?,
            generic: socket(NETLINK_GENERIC)?,
            seg6: None,
            sequence: 0,
            began: Instant::now(),
            buffer: Vec::with_capacity(DATAGRAM),
        })
    }

    /// The tables.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// What is known of the kernel, and how sure that is.
    pub fn follow(&self) -> &Follow {
        &self.follow
    }

    /// The port in place `place` is the device of this number, whatever its name is or will be; none: it is not there. The tables say so after the next step.
    pub fn set_port(&mut self, place: usize, index: Option<IfIndex>) {
        self.mirror.set_port(place, index);
        self.follow.dirty.devices = true;
    }

    /// As [`Mirror::take_gone`].
    pub fn take_gone(&mut self) -> Vec<SidId> {
        self.mirror.take_gone()
    }

    /// How long may be waited for events (see [`Follower::as_fd`]) before the next step has something to do all the same.
    pub fn patience(&mut self) -> Duration {
        let now = self.began.elapsed();
        let idle = self.follow.due(now).is_none() && self.follow.dirty.is_clean();
        if idle { self.follow.patience(now) } else { Duration::ZERO }
    }

    /// Since an event was last read.
    pub fn since_last_event(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.follow.last_event())
    }

    /// Waits for events, at most this long; reads those that there are, makes the dumps that are due, and brings the tables up to date.
    ///
    /// # Errors
    /// What the system says of the sockets; the next step goes on.
    pub fn step(&mut self, wait: Duration) -> io::Result<()> {
        let now = self.began.elapsed();
        let wait = if self.follow.due(now).is_some() { Duration::ZERO } else { wait.min(self.follow.patience(now)) };
        readable(&self.events, wait)?;
        self.read_events()?;
        // What is known is put into the tables before dumps, which may take a while.
        self.mirror.reconcile(&mut self.follow.snapshot, &mut self.follow.dirty);
        let mut failed = Ok(());
        while let Some(object) = self.follow.due(self.began.elapsed()) {
            failed = self.dump(object);
            if failed.is_err() {
                // An answer may be under way that nobody waits for any more.
                self.requests = request_socket()?;
                self.generic = socket(NETLINK_GENERIC)?;
                break;
            }
            self.read_events()?;
        }
        self.mirror.reconcile(&mut self.follow.snapshot, &mut self.follow.dirty);
        failed
    }

    /// Says what time it is to the tables: see [`route::Editor::set_time`].
    pub fn set_time(&mut self, now: Tick) {
        self.mirror.set_time(now);
    }

    /// Steps until everything was read once, at least. The kernel may go on to change: what it tells is followed.
    ///
    /// # Errors
    /// As [`Follower::step`]; [`io::ErrorKind::TimedOut`] when it takes longer than `patience`.
    pub fn read_all(&mut self, patience: Duration) -> io::Result<()> {
        let end = Instant::now() + patience;
        while !self.follow.has_read_all() {
            self.step(Duration::ZERO)?;
            if Instant::now() > end {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long"));
            }
        }
        Ok(())
    }

    /// Steps until everything that is known is what the kernel last told.
    ///
    /// # Errors
    /// As [`Follower::step`]; [`io::ErrorKind::TimedOut`] when the kernel does not stop to change within `patience`.
    pub fn settle(&mut self, patience: Duration) -> io::Result<()> {
        let end = Instant::now() + patience;
        loop {
            self.step(Duration::from_millis(20))?;
            if self.follow.is_settled() && !readable(&self.events, Duration::ZERO)? {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel's tables do not stop to change"));
            }
        }
    }

    /// Compares everything with the kernel at the next step; differences are counted, and mended.
    pub fn check(&mut self) {
        self.follow.check();
    }

    fn read_events(&mut self) -> io::Result<()> {
        for _ in 0..BURST {
            match receive(&self.events, &mut self.buffer) {
                Ok(truncated) => self.follow.datagram(self.began.elapsed(), &self.buffer, truncated),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.follow.drained();
                    break;
                }
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => self.follow.lost(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn dump(&mut self, object: Object) -> io::Result<()> {
        if object == Object::Settings {
            let told = self.settings()?;
            self.follow.dumped(self.began.elapsed(), object, told, Progress::Done);
            return Ok(());
        }
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let (mut dump, request) = Dump::begin(object, self.sequence);
        self.requests.send(&request, 0)?;
        let mut waiting = Waiting::default();
        let outcome = loop {
            let truncated = match answer(&self.requests, &mut self.buffer) {
                Ok(truncated) => truncated,
                Err(error) => break Err(error),
            };
            let progress = dump.datagram(&self.buffer, truncated);
            if progress != Progress::More {
                self.follow.dumped(self.began.elapsed(), object, dump.told, progress);
                break Ok(());
            }
            // A dump may take seconds. Events meanwhile may be about what it tells, so they come after it, but for neighbours, which packets wait for.
            if object != Object::Neighbours {
                self.read_aside(&mut waiting);
            }
        };
        for (truncated, datagram) in waiting.datagrams {
            self.follow.datagram(self.began.elapsed(), &datagram, truncated);
        }
        if waiting.lost {
            self.follow.lost();
        }
        outcome
    }

    /// Reads events that are to be taken in later, and neighbours among them at once.
    fn read_aside(&mut self, waiting: &mut Waiting) {
        let before = waiting.datagrams.len();
        while waiting.bytes < WAITING {
            let mut datagram = Vec::with_capacity(EVENT);
            match receive(&self.events, &mut datagram) {
                Ok(truncated) => {
                    waiting.bytes += datagram.len();
                    self.follow.urgent(&datagram);
                    datagram.shrink_to_fit();
                    waiting.datagrams.push((truncated, datagram));
                }
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => waiting.lost = true,
                // What else is wrong is seen when they are read next.
                Err(_) => break,
            }
        }
        if waiting.datagrams.len() > before {
            self.mirror.reconcile_neighbours(&self.follow.snapshot, &mut self.follow.dirty);
        }
    }

    /// Reads settings, from files and over generic netlink.
    fn settings(&mut self) -> io::Result<Snapshot> {
        let mut told = Snapshot { settings: settings::read(Path::new("/proc/sys")), ..Snapshot::default() };
        let family = match self.seg6 {
            Some(family) => family,
            None => {
                let mut found = None;
                self.ask(shared::family_request, |message| found = found.or(shared::family(message.kind, message.body)))?;
                *self.seg6.insert(found.unwrap_or(0))
            }
        };
        if family != 0 {
            let settings = &mut told.settings;
            self.ask(
                |sequence| shared::tunsrc_request(family, sequence),
                |message| settings.seg6_tunsrc = shared::tunsrc(message.body).unwrap_or(settings.seg6_tunsrc),
            )?;
            let keys = &mut told.hmac_keys;
            self.ask(|sequence| shared::keys_request(family, sequence), |message| keys.extend(shared::key(message.body)))?;
            keys.sort_by_key(|key| key.id);
        }
        Ok(told)
    }

    /// Sends a request over generic netlink and hands over the messages of the answer. An error of the kernel is an empty answer.
    fn ask(&mut self, request: impl FnOnce(u32) -> Vec<u8>, mut told: impl FnMut(&Message<'_>)) -> io::Result<()> {
        const MULTIPART: u16 = 2;
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.generic.send(&request(self.sequence), 0)?;
        loop {
            answer(&self.generic, &mut self.buffer)?;
            for message in messages(&self.buffer).map_while(Result::ok).filter(|message| message.sequence == self.sequence) {
                if matches!(message.kind, DONE | ERROR) {
                    return Ok(());
                }
                told(&message);
                if message.flags & MULTIPART == 0 {
                    return Ok(());
                }
            }
        }
    }
}

/// Can be read when there are events.
impl AsFd for Follower {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

fn socket(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.set_non_blocking(true)?;
    Ok(socket)
}

fn request_socket() -> io::Result<Socket> {
    let socket = socket(NETLINK_ROUTE)?;
    // Without it old filters of dumps are not looked at, which ours do not need.
    let _ = socket.set_netlink_get_strict_chk(true);
    Ok(socket)
}

/// Reads one datagram; true when it was longer than what there is room for.
fn receive(socket: &Socket, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    let length = socket.recv(buffer, MSG_TRUNC)?;
    Ok(length > buffer.len())
}

/// Waits for the next datagram of an answer.
fn answer(socket: &Socket, buffer: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        if !readable(socket, ANSWER)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer"));
        }
        match receive(socket, buffer) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            other => return other,
        }
    }
}

fn readable(socket: &Socket, wait: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    // Rounded up, so that what is due is not missed by less than a millisecond.
    let wait = PollTimeout::try_from(wait.as_millis().saturating_add(u128::from(!wait.is_zero())).min(60_000)).unwrap_or(PollTimeout::ZERO);
    match poll(&mut fds, wait) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
