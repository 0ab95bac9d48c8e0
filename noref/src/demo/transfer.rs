//! Bytes across the lab by TCP, between the stacks of the kernel in two namespaces, each byte compared.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use port::live::wait_readable;

use crate::lab::namespace::Namespace;
use crate::threads::join;

/// The port that the far host listens at.
const PORT: u16 = 7007;
/// The longest that a transfer may take, and that one of its ends may wait.
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes that are written and read at a time.
const PIECE: usize = 64 * 1024;

/// Sends `bytes` bytes from `west` to the host `to` in `east`, and as many back; how long it took. What is sent depends on `tenant`, so that bytes of
/// another tenant's host are noticed.
///
/// # Errors
/// When there is no connection, it broke or took too long, or other bytes came out.
pub fn across(west: &Namespace, east: &Namespace, to: IpAddr, bytes: usize, tenant: u8) -> Result<Duration, String> {
    let address = SocketAddr::new(to, PORT);
    thread::scope(|scope| {
        let (ready, listens) = channel();
        let server =
            scope.spawn(move || east.inside(|| serve(address, bytes, tenant, &ready).map_err(|error| format!("the far host: {error}"))));
        // Where nobody listens, the far host says why.
        let client = match listens.recv() {
            Ok(()) => west.inside(|| ask(address, bytes, tenant).map_err(|error| error.to_string())),
            Err(_) => Ok(Duration::ZERO),
        };
        let served = join(server);
        client.and_then(|took| served.map(|()| took))
    })
}

fn serve(address: SocketAddr, bytes: usize, tenant: u8, ready: &Sender<()>) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    // Who is not there any more need not know.
    let _ = ready.send(());
    if !wait_readable(listener.as_fd(), LONGEST)? {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "no connection came"));
    }
    let (mut stream, _) = listener.accept()?;
    patient(&stream)?;
    receive(&mut stream, bytes, tenant)?;
    send(&mut stream, bytes, tenant)
}

fn ask(address: SocketAddr, bytes: usize, tenant: u8) -> io::Result<Duration> {
    let begin = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, LONGEST)?;
    patient(&stream)?;
    send(&mut stream, bytes, tenant)?;
    receive(&mut stream, bytes, tenant)?;
    Ok(begin.elapsed())
}

fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(LONGEST))?;
    stream.set_write_timeout(Some(LONGEST))
}

/// Sends all, and that it was all.
fn send(stream: &mut TcpStream, bytes: usize, tenant: u8) -> io::Result<()> {
    let mut clock = Clock::new();
    for at in (0..bytes).step_by(PIECE) {
        let piece: Vec<u8> = (at..bytes.min(at + PIECE)).map(|at| byte(at, tenant)).collect();
        stream.write_all(&piece)?;
        clock.look()?;
    }
    stream.shutdown(Shutdown::Write)
}

/// Receives until the other end has sent all.
fn receive(stream: &mut TcpStream, bytes: usize, tenant: u8) -> io::Result<()> {
    let mut clock = Clock::new();
    let (mut at, mut piece) = (0, vec![0; PIECE]);
    loop {
        let len = stream.read(&mut piece)?;
        if len == 0 {
            break;
        }
        if piece.iter().take(len).zip(at..).any(|(found, at)| *found != byte(at, tenant)) {
            return Err(io::Error::other(format!("other bytes came than were sent, among the {len} behind the first {at}")));
        }
        at += len;
        clock.look()?;
    }
    if at == bytes { Ok(()) } else { Err(io::Error::other(format!("expected {bytes} bytes, {at} came"))) }
}

/// What stands at a place: another byte for each tenant, and no two stretches of a packet's length alike.
fn byte(at: usize, tenant: u8) -> u8 {
    let mixed = (at as u32 ^ u32::from(tenant) << 24).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as u8
}

/// A transfer may not take for ever, however steadily it trickles.
struct Clock(Instant);

impl Clock {
    fn new() -> Clock {
        Clock(Instant::now())
    }

    fn look(&mut self) -> io::Result<()> {
        if self.0.elapsed() <= LONGEST {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took more than {} s", LONGEST.as_secs())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_bytes_of_its_own() {
        let differ = (0..100_000).filter(|&at| byte(at, 0) != byte(at, 1)).count();
        assert!(differ > 90_000, "{differ}");
        let stretch = |from: usize| (from..from + 1448).map(|at| byte(at, 0)).collect::<Vec<_>>();
        assert_ne!(stretch(0), stretch(1448));
    }
}
