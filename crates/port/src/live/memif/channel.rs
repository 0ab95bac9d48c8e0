//! The control socket: messages with their descriptors, and why a connection ended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use super::message::{BYTES, Message};
use super::ring::Broken;
use super::sys::{self, Event};

/// Why there is no connection any more, or none came about.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// We are to end.
    #[error("closed")]
    Stopped,
    /// There is no server.
    #[error("no server there")]
    Absent,
    /// The peer's process ended, or closed the socket.
    #[error("the peer is gone")]
    Gone,
    /// The peer ended it, for a reason.
    #[error("the peer disconnected: {0}")]
    Said(String),
    /// The peer did not answer.
    #[error("the peer does not answer")]
    Silent,
    /// We end it, for a reason that the peer is told.
    #[error("refused: {0}")]
    Refused(String),
    /// A ring is not what it can be.
    #[error("refused: {0}")]
    Broken(#[from] Broken),
    /// The kernel refuses.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

impl End {
    pub(super) fn refused(why: impl Into<String>) -> End {
        End::Refused(why.into())
    }

    /// For `map_err`.
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> End {
        move |error| End::Io(what, error)
    }
}

/// What a peer sent.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) message: Message,
    descriptors: Vec<OwnedFd>,
}

impl Incoming {
    /// The one descriptor that must be there.
    pub(super) fn descriptor(self) -> Result<OwnedFd, End> {
        let kind = self.message.kind();
        match <[OwnedFd; 1]>::try_from(self.descriptors) {
            Ok([descriptor]) => Ok(descriptor),
            Err(other) => Err(End::refused(format!("{kind} with {} descriptors instead of one", other.len()))),
        }
    }
}

/// The control socket of one connection.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

impl Channel {
    pub(super) fn new(socket: OwnedFd) -> Channel {
        Channel(socket)
    }

    /// Sends a message, with a descriptor or without.
    ///
    /// # Errors
    /// When the peer is gone, or has not read so many that there is no room for another.
    pub(super) fn send(&self, message: &Message, descriptor: Option<BorrowedFd<'_>>) -> Result<(), End> {
        sys::send(self.0.as_fd(), &message.to_bytes(), descriptor).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => End::Gone,
            _ => End::Io("sending to the peer", error),
        })
    }

    /// The next message, which must be there.
    ///
    /// # Errors
    /// When there is none, it is none that there is, or says that the peer ends the connection.
    pub(super) fn receive(&self) -> Result<Incoming, End> {
        let mut bytes = [0; BYTES];
        let (len, descriptors) = sys::receive(self.0.as_fd(), &mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionReset => End::Gone,
            _ => End::Io("receiving from the peer", error),
        })?;
        match (len, Message::from_bytes(&bytes)) {
            (0, _) => Err(End::Gone),
            (BYTES, Some(Message::Disconnect(reason))) => Err(End::Said(reason)),
            (BYTES, Some(message)) => Ok(Incoming { message, descriptors }),
            (BYTES, None) => Err(End::refused("a message of a type that there is not")),
            (_, _) => Err(End::refused(format!("a message of {len} bytes instead of {BYTES}"))),
        }
    }

    /// The next message, waited for until then, or as long as it takes.
    ///
    /// # Errors
    /// As [`Channel::receive`]; when it does not come in time, or `stop` is rung.
    pub(super) fn wait(&self, stop: &Event, until: Option<Instant>) -> Result<Incoming, End> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match sys::poll([self.as_fd(), stop.as_fd()], left).map_err(End::io("waiting for the peer"))? {
                [_, true] => return Err(End::Stopped),
                [true, false] => return self.receive(),
                [false, false] if left.is_some_and(|left| left.is_zero()) => return Err(End::Silent),
                [false, false] => {}
            }
        }
    }

    /// Waits for the acknowledgement of what was sent.
    ///
    /// # Errors
    /// As [`Channel::wait`], or when something else comes.
    pub(super) fn wait_for_ack(&self, stop: &Event, until: Option<Instant>) -> Result<(), End> {
        match self.wait(stop, until)?.message {
            Message::Ack => Ok(()),
            other => Err(End::refused(format!("{} instead of ack", other.kind()))),
        }
    }

    /// Tells the peer why we end the connection, if it is we.
    pub(super) fn close(self, why: &End) {
        if !matches!(why, End::Gone | End::Said(_) | End::Absent) {
            // A peer that cannot be told finds out by itself.
            let _ = self.send(&Message::Disconnect(why.to_string()), None);
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
