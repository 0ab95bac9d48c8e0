//! The other end of the control socket: what `noref show`, `noref trace` and `noref ip` use.

use std::io::{self, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::line::{self, NoLine};
use super::protocol::{Body, Reply, Request, VERSION};
use crate::failure::Failure;

/// Bytes of the longest line of a reply that is read.
const MAX_REPLY: usize = 16 * 1024 * 1024;
/// How long the router may take to answer. It asks its workers, who answer between two bursts.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a running router.
pub struct Client {
    reader: BufReader<UnixStream>,
    path: PathBuf,
    line: Vec<u8>,
    /// How long a line may take to come.
    patience: Duration,
}

impl Client {
    /// Connects to the router whose control socket is at `path`.
    ///
    /// # Errors
    /// When no router runs there, or we may not use its socket.
    pub fn connect(path: &Path) -> Result<Client, Failure> {
        let shown = path.display();
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                Failure::absent(format!("no router runs at {shown}: start one with `noref run`, or name the socket of one with --socket"))
            }
            ErrorKind::PermissionDenied => {
                Failure::absent(format!("{shown}: {error}: the socket is for the user that runs the router, and a group if one is set"))
            }
            _ => Failure::absent(format!("{shown}: {error}")),
        })?;
        let ready = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        ready.map_err(|error| Failure::absent(format!("{shown}: {error}")))?;
        Ok(Client { reader: BufReader::new(stream), path: path.to_owned(), line: Vec::new(), patience: PATIENCE })
    }

    /// Asks. The reply is to be read whole before something else is asked for.
    ///
    /// # Errors
    /// When the router is gone.
    pub fn ask(&mut self, request: &Request) -> Result<(), Failure> {
        let sent = self.reader.get_mut().write_all(request.line().as_bytes());
        sent.map_err(|error| self.gone(&error))
    }

    /// The next line of the reply, as it came and what it says. [`Reply::more`] says whether another follows.
    ///
    /// # Errors
    /// When the router is gone or silent, speaks another version, or did not do what was asked for.
    pub fn next(&mut self) -> Result<(&str, Reply), Failure> {
        if let Err(error) = line::read(&mut self.reader, &mut self.line, MAX_REPLY) {
            return Err(match error {
                NoLine::Io(error) => self.gone(&error),
                NoLine::Ended => Failure::absent(format!("the router at {} ended", self.path.display())),
                NoLine::TooLong(_) => Failure::incomplete(format!("{}: {error}", self.path.display())),
            });
        }
        let reply: Reply = serde_json::from_slice(&self.line).map_err(|error| self.stranger(&error.to_string()))?;
        if reply.v != VERSION {
            return Err(self.stranger(&format!("it speaks version {} of the protocol, this noref {VERSION}", reply.v)));
        }
        if let Body::Error(refusal) = reply.body {
            return Err(Failure::unusable(refusal));
        }
        // It was read as JSON, which is text.
        Ok((str::from_utf8(&self.line).unwrap_or_default(), reply))
    }

    /// From now on the next line may take so long to come, or any time.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn wait_for(&mut self, patience: Option<Duration>) -> Result<(), Failure> {
        self.patience = patience.unwrap_or_default();
        self.reader.get_ref().set_read_timeout(patience).map_err(|error| self.gone(&error))
    }

    /// True when a line, or part of one, is here already.
    pub fn has_some(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Says that nothing more will be asked for, which ends a trace.
    pub fn end(&self) {
        // A router that is gone will be noticed by who reads on.
        let _ = self.reader.get_ref().shutdown(Shutdown::Write);
    }

    fn gone(&self, error: &io::Error) -> Failure {
        let why = match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("it said nothing for {} s", self.patience.as_secs()),
            _ => error.to_string(),
        };
        Failure::absent(format!("the router at {} does not answer: {why}", self.path.display()))
    }

    fn stranger(&self, why: &str) -> Failure {
        Failure::incomplete(format!("what answers at {} cannot be understood: {why}", self.path.display()))
    }
}

/// Can be read when a line, or part of one, has come.
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.get_ref().as_fd()
    }
}
