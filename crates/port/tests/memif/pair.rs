//! Two interfaces with a socket between them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use port::live::memif::{MemifDevice, MemifSettings};
use port::{Pool, Port, Received, Time};

/// What a test waits at most for what must come.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A directory that is gone with the value.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(test: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("noref-memif-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("memif.sock")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An interface with its ports, which go before it does, and what the operator was told.
pub struct End {
    pub ports: Vec<Box<dyn Port + Send>>,
    pub device: MemifDevice,
    told: Receiver<String>,
}

impl End {
    /// Opens one; `words` are settings behind the socket.
    pub fn open(socket: &Path, words: &str) -> End {
        let settings: MemifSettings = format!("{}{words}", socket.display()).parse().unwrap();
        let (tell, told) = mpsc::channel();
        let mut device = MemifDevice::open("m0", settings, move |what| tell.send(what.to_owned()).unwrap_or(())).unwrap();
        let ports = device.take_ports();
        End { ports, device, told }
    }

    /// Waits until it was told something with `part` in it.
    pub fn hears(&self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        while let Ok(what) = self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if what.contains(part) {
                return what;
            }
            all.push(what);
        }
        panic!("nobody said {part:?}, only {all:?}");
    }

    pub fn send(&mut self, queue: usize, packets: &[Vec<u8>]) {
        for packet in packets {
            self.ports[queue].tx(packet, Time::ZERO);
        }
        self.ports[queue].flush().unwrap();
    }

    /// Receives at a queue until `count` packets came, waiting for them.
    pub fn receive(&mut self, queue: usize, count: usize) -> Vec<Vec<u8>> {
        receive(&mut *self.ports[queue], count).into_iter().map(|packet| packet.buf.to_vec()).collect()
    }

    pub fn event(&mut self, queue: usize, name: &str) -> u64 {
        self.ports[queue].events().into_iter().find(|&(event, _)| event == name).map(|(_, count)| count).expect(name)
    }
}

/// Receives until `count` packets came; sleeps when there are none.
pub fn receive(port: &mut dyn Port, count: usize) -> Vec<Received> {
    let (mut pool, mut batch) = (Pool::default(), Vec::new());
    let until = Instant::now() + PATIENCE;
    while batch.len() < count && Instant::now() < until {
        if port.rx(&mut pool, &mut batch, 64).unwrap() == 0 {
            port::live::wait_readable(port.descriptor().unwrap(), Duration::from_secs(1)).unwrap();
        }
    }
    batch
}

/// A server and a client that are connected, seen by all ports of both.
pub fn pair(socket: &Path, server: &str, client: &str) -> (End, End) {
    let mut server = End::open(socket, &format!(",role=server{server}"));
    let mut client = End::open(socket, client);
    server.hears("connected to");
    client.hears("connected to");
    look(&mut server);
    look(&mut client);
    (server, client)
}

/// Has the ports take what is new.
pub fn look(end: &mut End) {
    for port in &mut end.ports {
        port.rx(&mut Pool::default(), &mut Vec::new(), 0).unwrap();
    }
}

/// A frame with a number in it.
pub fn frame(number: usize, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|place| (number * 31 + place) as u8).collect();
    frame[..8].copy_from_slice(&number.to_le_bytes());
    frame
}
