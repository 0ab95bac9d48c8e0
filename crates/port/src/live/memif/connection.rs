//! The thread of an interface: finds a peer, hands its rings to the ports, waits until it goes, and begins again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::channel::{Channel, End};
use super::mailbox::{Lines, Mailbox};
use super::message::Message;
use super::settings::{MemifSettings, Role, SocketName};
use super::sys::{self, Event};
use super::{client, server};
use crate::live::drop_privileges;

/// What noref calls itself.
pub(super) const NAME: &str = "noref";
/// How long agreeing with a peer may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client waits before it looks for its server again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long nobody is let in after a connection failed.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How long the listener is left alone when no client can be let in, for want of descriptors: it stays readable.
const NO_ROOM: Duration = Duration::from_millis(100);
/// Sentences that the operator is told of an interface in `TELL_IN`: a peer that comes and goes without end does not fill the log.
const TELL: u32 = 20;
const TELL_IN: Duration = Duration::from_secs(60);

/// A peer with its rings.
#[derive(Debug)]
pub(super) struct Connection {
    /// What it calls itself, and the interface.
    pub(super) peer: String,
    /// The rings of each queue.
    pub(super) lines: Vec<Lines>,
    /// What is rung for each queue when the peer is to be woken for it. The peer has them too.
    pub(super) wakers: Vec<Event>,
}

/// What the thread works with.
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) settings: MemifSettings,
    /// Of a server.
    pub(super) listener: Option<OwnedFd>,
    pub(super) mailboxes: Vec<Arc<Mailbox>>,
    /// Rung by ports.
    pub(super) bell: Arc<Event>,
    /// Rung when all is to end; stays so.
    pub(super) stop: Arc<Event>,
    /// The peer that is connected.
    pub(super) peer: Arc<Mutex<Option<String>>>,
    /// Tells the operator.
    pub(super) tell: Box<dyn Fn(&str) + Send>,
}

impl Interface {
    /// Goes on until it is stopped.
    pub(super) fn run(self) {
        // What a peer says is read here: with no more rights than workers have, also where it is started before they are.
        if let Err(error) = drop_privileges() {
            (self.tell)(&format!("{} (memif, {}): privileges could not be given up: {error}", self.name, self.settings.socket));
        }
        let mut told = Told::new(Instant::now());
        loop {
            let end = self.meet(&mut told);
            let pause = match &end {
                End::Stopped => break,
                End::Absent => LOOK_AGAIN,
                End::Gone | End::Said(_) if self.settings.role == Role::Server => Duration::ZERO,
                _ => AFTER_FAILURE,
            };
            self.tell_once(&mut told, &end.to_string());
            if matches!(sys::poll([self.stop.as_fd()], Some(pause)), Ok([true])) {
                break;
            }
        }
        if let (Some(_), SocketName::Path(path)) = (&self.listener, &self.settings.socket) {
            // It may have been taken away already.
            let _ = std::fs::remove_file(path);
        }
    }

    /// One peer, from its coming to its going.
    fn meet(&self, told: &mut Told) -> End {
        let channel = match self.find() {
            Ok(channel) => channel,
            Err(end) => return end,
        };
        let agree = match self.settings.role {
            Role::Client => client::connect,
            Role::Server => server::connect,
        };
        let end = match agree(&channel, &self.name, &self.settings, &self.stop) {
            Ok(Connection { peer, lines, wakers }) => {
                for (mailbox, lines) in self.mailboxes.iter().zip(lines) {
                    mailbox.put(Some(lines));
                }
                self.tell_once(told, &format!("connected to {peer}"));
                *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
                let end = self.keep(&channel, &wakers);
                for mailbox in &self.mailboxes {
                    mailbox.put(None);
                }
                *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = None;
                end
            }
            Err(end) => end,
        };
        channel.close(&end);
        end
    }

    /// A peer to agree with.
    fn find(&self) -> Result<Channel, End> {
        let Some(listener) = &self.listener else {
            return match sys::connect(&self.settings.socket) {
                Ok(socket) => Ok(Channel::new(socket)),
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ECONNREFUSED | libc::EAGAIN)) => Err(End::Absent),
                Err(error) => Err(End::Io("connecting", error)),
            };
        };
        loop {
            match sys::poll([listener.as_fd(), self.stop.as_fd()], None).map_err(End::io("waiting for a client"))? {
                [_, true] => return Err(End::Stopped),
                [true, false] => match self.accept(listener) {
                    Ok(Some(channel)) => return Ok(channel),
                    Ok(None) => {}
                    Err(_) => {
                        let _ = sys::poll([self.stop.as_fd()], Some(NO_ROOM));
                    }
                },
                [false, false] => {}
            }
        }
    }

    /// The next client, unless it is not let in. An abstract name has no permissions, so there only the user's own processes and root's are let in.
    fn accept(&self, listener: &OwnedFd) -> io::Result<Option<Channel>> {
        let Some(socket) = sys::accept(listener.as_fd())? else { return Ok(None) };
        let may = matches!(self.settings.socket, SocketName::Path(_)) || sys::is_trusted(socket.as_fd());
        let channel = Channel::new(socket);
        if may {
            return Ok(Some(channel));
        }
        channel.close(&End::refused("another user"));
        Ok(None)
    }

    /// Waits for the end of the connection, and wakes the peer meanwhile.
    fn keep(&self, channel: &Channel, wakers: &[Event]) -> End {
        let mut no_room_until: Option<Instant> = None;
        loop {
            let pause = no_room_until.map(|until| until.saturating_duration_since(Instant::now())).filter(|pause| !pause.is_zero());
            // Without a listener there is nothing more to wait for than the end.
            let listener = self.listener.as_ref().filter(|_| pause.is_none()).map_or(self.stop.as_fd(), AsFd::as_fd);
            let ready = match sys::poll([self.stop.as_fd(), channel.as_fd(), self.bell.as_fd(), listener], pause) {
                Ok(ready) => ready,
                Err(error) => return End::Io("waiting", error),
            };
            let [stopped, spoke, rung, came] = ready;
            if stopped {
                return End::Stopped;
            }
            if rung {
                self.bell.clear();
                if let Some(broken) = self.mailboxes.iter().find_map(|mailbox| mailbox.take_broken()) {
                    return End::Broken(broken);
                }
                for (mailbox, waker) in self.mailboxes.iter().zip(wakers) {
                    if mailbox.take_waking() {
                        waker.ring_shared();
                    }
                }
            }
            if spoke {
                return match channel.receive() {
                    Ok(incoming) => End::refused(format!("{} where nothing is due", incoming.message.kind())),
                    Err(end) => end,
                };
            }
            if came && let Some(listener) = &self.listener {
                match sys::accept(listener.as_fd()) {
                    Ok(Some(second)) => {
                        let busy = Message::Disconnect("already connected".to_owned());
                        // One that cannot be told finds out by itself.
                        let _ = Channel::new(second).send(&busy, None);
                    }
                    Ok(None) => {}
                    Err(_) => no_room_until = Some(Instant::now() + NO_ROOM),
                }
            }
        }
    }

    /// Tells the operator what changed, not again and again that nothing did.
    fn tell_once(&self, told: &mut Told, what: &str) {
        let Some(left_out) = told.admit(what, Instant::now()) else { return };
        let Interface { name, settings: MemifSettings { socket, .. }, tell, .. } = self;
        if left_out > 0 {
            tell(&format!("{name} (memif, {socket}): it came and went too often, {left_out} more changes were not told"));
        }
        tell(&format!("{name} (memif, {socket}): {what}"));
    }
}

/// What the operator was told.
struct Told {
    last: String,
    /// Sentences since.
    count: u32,
    since: Instant,
    left_out: u64,
}

impl Told {
    fn new(now: Instant) -> Told {
        Told { last: String::new(), count: 0, since: now, left_out: 0 }
    }

    /// May this be told? If so, how many others were not before it.
    fn admit(&mut self, what: &str, now: Instant) -> Option<u64> {
        if self.last == what {
            return None;
        }
        what.clone_into(&mut self.last);
        if now.saturating_duration_since(self.since) >= TELL_IN {
            (self.count, self.since) = (0, now);
        }
        if self.count >= TELL {
            self.left_out += 1;
            return None;
        }
        self.count += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_comes_and_goes_without_end_is_told_of_so_often_in_a_minute() {
        let start = Instant::now();
        let mut told = Told::new(start);
        let changes = (0..100).map(|n| if n % 2 == 0 { "connected" } else { "gone" });
        assert_eq!(changes.filter_map(|what| told.admit(what, start)).count(), TELL as usize);
        assert_eq!(told.admit("connected", start + TELL_IN), Some(100 - u64::from(TELL)));
        assert_eq!(told.admit("connected", start + TELL_IN), None);
        assert_eq!(told.admit("gone", start + TELL_IN), Some(0));
    }
}
