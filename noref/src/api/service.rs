//! Something that is served at a socket: a thread that takes connections, and one for each of them, of which there are only so many.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use port::live::{wait_any, wait_readable};

use super::stream::{Listener, Stream};
use crate::stderr::say;

/// Waited before connections are taken again, when one could not be had.
const BREATH: Duration = Duration::from_millis(100);
/// Looked up again after this time at the latest, whether the end has come.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What may be asked of a service.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Clients at the same time.
    pub clients: usize,
    /// One that says nothing for this long is let go.
    pub silence: Duration,
    /// One that does not read what it asked for, for this long, too.
    pub stuck: Duration,
}

/// A service that runs; it ends with this value, and what it is doing for its clients with it.
pub struct Service {
    /// Its other end can be read when this one goes.
    bell: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Has `serve` talk to each client. It is told whether there was still room for that one.
    ///
    /// # Errors
    /// When there are no threads or descriptors left.
    pub fn start<F>(name: &'static str, listener: Listener, bounds: Bounds, serve: F) -> io::Result<Service>
    where
        F: Fn(&Stream, bool) -> io::Result<()> + Send + Sync + 'static,
    {
        let (bell, end) = UnixStream::pair()?;
        let listen = move || listen(name, &listener, bounds, &serve, &end);
        let thread = thread::Builder::new().name(name.into()).spawn(listen)?;
        Ok(Service { bell: Some(bell), thread: Some(thread) })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.bell.take());
        // What went wrong in there has been said, and is no reason not to end.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Takes connections until `end` can be read.
fn listen(name: &str, listener: &Listener, bounds: Bounds, serve: &(impl Fn(&Stream, bool) -> io::Result<()> + Sync), end: &UnixStream) {
    let clients = Clients { most: bounds.clients, streams: Mutex::default() };
    // Said once, until a connection comes in again.
    let said = Cell::new(false);
    let failed = |error: &io::Error| {
        // No descriptors left, most likely. It passes, or it does not; it is no reason to spin.
        if !said.replace(true) {
            say(format_args!("{name} took no connection: {error}"));
        }
        thread::sleep(BREATH);
    };
    thread::scope(|scope| {
        loop {
            let waited = wait_any(&[listener.as_fd(), end.as_fd()], LONGEST_WAIT);
            if wait_readable(end.as_fd(), Duration::ZERO).unwrap_or(true) {
                break;
            }
            match waited.and_then(|_| listener.accept(bounds.silence, bounds.stuck)) {
                Ok(stream) => {
                    let client = clients.enter(&stream);
                    let spawned = thread::Builder::new().name(name.into()).spawn_scoped(scope, move || {
                        // One that is gone, or does not read, is told nothing.
                        let _ = serve(&stream, client.place.is_some());
                        drop(client);
                    });
                    match spawned {
                        Ok(_) => said.set(false),
                        Err(error) => failed(&error),
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => failed(&error),
            }
        }
        clients.send_away();
    });
}

/// Who is connected.
struct Clients {
    most: usize,
    streams: Mutex<Vec<Option<Stream>>>,
}

/// One that is.
struct Client<'c> {
    clients: &'c Clients,
    /// Its place among them; none when there was none left.
    place: Option<usize>,
}

impl Clients {
    fn streams(&self) -> MutexGuard<'_, Vec<Option<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, stream: &Stream) -> Client<'_> {
        let mut streams = self.streams();
        let free = streams.iter().position(Option::is_none).or_else(|| {
            (streams.len() < self.most).then(|| {
                streams.push(None);
                streams.len() - 1
            })
        });
        // Without a handle of our own it could not be sent away: as if there were no room.
        let place = free.filter(|place| {
            let slot = streams.get_mut(*place).zip(stream.try_clone().ok());
            slot.map(|(slot, stream)| *slot = Some(stream)).is_some()
        });
        Client { clients: self, place }
    }

    /// Ends all connections; whoever serves one sees it.
    fn send_away(&self) {
        for stream in self.streams().iter().flatten() {
            // One that is gone already needs no ending.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let stream = self.place.and_then(|place| self.clients.streams().get_mut(place).and_then(Option::take));
        drop(stream);
    }
}
