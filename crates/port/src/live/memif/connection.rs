//! The thread of an interface: finds a peer, hands its rings to the ports, waits until it goes, and begins again.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
        let mut told = String::new();
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
    fn meet(&self, told: &mut String) -> End {
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
                [true, false] => {
                    if let Some(channel) = self.accept(listener) {
                        return Ok(channel);
                    }
                }
                [false, false] => {}
            }
        }
    }

    /// The next client. An abstract name has no permissions, so there only the user's own processes and root's are let in.
    fn accept(&self, listener: &OwnedFd) -> Option<Channel> {
        let socket = sys::accept(listener.as_fd()).ok()?;
        let may = matches!(self.settings.socket, SocketName::Path(_)) || sys::is_trusted(socket.as_fd());
        let channel = Channel::new(socket);
        if may {
            return Some(channel);
        }
        channel.close(&End::refused("another user"));
        None
    }

    /// Waits for the end of the connection, and wakes the peer meanwhile.
    fn keep(&self, channel: &Channel, wakers: &[Event]) -> End {
        loop {
            // Without a listener there is nothing more to wait for than the end.
            let listener = self.listener.as_ref().map_or(self.stop.as_fd(), AsFd::as_fd);
            let ready = match sys::poll([self.stop.as_fd(), channel.as_fd(), self.bell.as_fd(), listener], None) {
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
            if came && let Some(second) = self.listener.as_ref().and_then(|listener| sys::accept(listener.as_fd()).ok()) {
                let busy = Message::Disconnect("already connected".to_owned());
                // One that cannot be told finds out by itself.
                let _ = Channel::new(second).send(&busy, None);
            }
        }
    }

    /// Tells the operator what changed, not again and again that nothing did.
    fn tell_once(&self, told: &mut String, what: &str) {
        if told != what {
            (self.tell)(&format!("{} (memif, {}): {what}", self.name, self.settings.socket));
            what.clone_into(told);
        }
    }
}
