//! Connections over a unix socket or TCP, as one kind of thing.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::socket::Socket;

/// Where connections come in. It does not block.
pub enum Listener {
    Unix(Socket),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at a TCP port.
    ///
    /// # Errors
    /// When it cannot be had; the message names it.
    pub fn tcp(address: SocketAddr) -> Result<Listener, String> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(Listener::Tcp(listener))
        };
        listen().map_err(|error: io::Error| match error.kind() {
            ErrorKind::AddrInUse => format!("{address}: something listens there already: name another port"),
            _ => format!("{address}: {error}"),
        })
    }

    /// The next connection, which blocks for so long at most.
    ///
    /// # Errors
    /// When there is none, or it cannot be had.
    pub fn accept(&self, read: Duration, write: Duration) -> io::Result<Stream> {
        match self {
            Listener::Unix(socket) => {
                let (stream, _) = socket.listener().accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(socket) => socket.listener().as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A connection.
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Another handle of the same connection.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
        }
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).read(bytes),
            Stream::Tcp(stream) => (&mut &*stream).read(bytes),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
