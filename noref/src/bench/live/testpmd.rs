//! Between two memif interfaces of dpdk-testpmd: one sends a capture again and again, the other drops what comes.
//!
//! ```text
//! net_pcap (infinite_rx) ──testpmd──► memif ──► noref ──► memif ──testpmd──► net_null (no-rx)
//! ```
//! testpmd has no pace: it sends what the ring takes, and drops the rest before it is anybody's. So noref is at its limit, and what it took must come out.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use port::Time;

use super::Worked;
use super::search::Probe;
use crate::bench::full_table::{PORTS, Prefixes, Way, network_file_without_vrf};
use crate::bench::machine::cores;
use crate::failure::Failure;
use crate::lab::namespace::Namespace;
use crate::lab::{Interrupt, Router};

/// Its program, of Debian's package dpdk.
const PROGRAM: &str = "dpdk-testpmd";
/// How long it may take to start, to answer or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Packets of the capture at most. Each takes a buffer as long as testpmd runs.
const PACKETS: usize = 1024;
/// Slots of the rings, as a power of two.
const LOG2_SLOTS: u32 = 10;
/// testpmd's ports: the capture, to noref, from noref, nowhere.
const TO_NOREF: usize = 1;
const FROM_NOREF: usize = 2;
const LAST: usize = 3;

/// Whether it can be run.
///
/// # Errors
/// What to install.
pub fn possible() -> Result<(), String> {
    let tried = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.map(drop).map_err(|error| format!("{PROGRAM}: {error}; install it (Debian's package dpdk), or use --generator xdp"))
}

/// testpmd and noref; both are killed with this value.
pub struct Testpmd {
    child: Child,
    output: PathBuf,
    router: Router,
}

impl Testpmd {
    /// Starts both for a way's frames, with their sockets and files in `directory`.
    ///
    /// # Errors
    /// Why one did not start.
    pub fn start(namespace: &Namespace, directory: &Path, prefixes: &Prefixes, way: &Way) -> Result<Testpmd, String> {
        let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
        let network = directory.join("network.ip");
        fs::write(&network, network_file_without_vrf(prefixes)).map_err(|error| failed(&network, error))?;
        let ports = PORTS.map(|port| format!("{port}=memif:{},role=server,slots={}", socket(directory, port).display(), 1 << LOG2_SLOTS));
        let network = network.display().to_string();
        let arguments = ["--busy-poll", "--workers", "1", "--net", &network, "--port", &ports[0], &ports[1]];
        let router = Router::start("memif", namespace, &directory.join("noref"), &arguments, None)?;

        let capture = directory.join("frames.pcap");
        write(&capture, way).map_err(|error| failed(&capture, error))?;
        let output = directory.join("testpmd.txt");
        let file = File::create(&output).map_err(|error| failed(&output, error))?;
        let mut command = command(directory, &capture);
        command.stdin(Stdio::piped()).stdout(file.try_clone().map_err(|error| failed(&output, error))?).stderr(file);
        let child = namespace.inside(|| command.spawn().map_err(|error| format!("{PROGRAM}: {error}")))?;
        let mut testpmd = Testpmd { child, output, router };
        testpmd.tell("set fwd io\nstart\n")?;
        let begin = Instant::now();
        // Both ends are connected a while after the start.
        while testpmd.counts()?[FROM_NOREF].0 == 0 {
            if begin.elapsed() > PATIENCE {
                return Err(format!("no packet came through within {} s; {PROGRAM} said:\n{}", PATIENCE.as_secs(), testpmd.said()));
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(testpmd)
    }

    /// What noref takes in this time.
    ///
    /// # Errors
    /// When one of them is gone, or somebody interrupts.
    pub fn offer(&mut self, time: Duration, interrupt: &Interrupt) -> Result<Probe, Failure> {
        interrupt.look()?;
        let worked = Worked::look(Some(&self.router))?;
        let (begin, before) = (Instant::now(), self.counts().map_err(Failure::incomplete)?);
        thread::sleep(time);
        let after = self.counts().map_err(Failure::incomplete)?;
        let (sent, received) = (after[TO_NOREF].1 - before[TO_NOREF].1, after[FROM_NOREF].0 - before[FROM_NOREF].0);
        // What both rings hold is on its way.
        let lost = sent.saturating_sub(received).saturating_sub(2 << LOG2_SLOTS);
        Ok(Probe { sent: received + lost, received, seconds: begin.elapsed().as_secs_f64(), busy_ns: worked.since(Some(&self.router))? })
    }

    /// Packets that each of its ports received and sent so far.
    fn counts(&mut self) -> Result<Vec<(u64, u64)>, String> {
        let known = counts(&self.said()).len();
        self.tell("show port stats all\n")?;
        let begin = Instant::now();
        loop {
            let counts = counts(&self.said());
            if counts.len() > known && counts.len().is_multiple_of(LAST + 1) {
                return Ok(counts[counts.len() - 1 - LAST..].to_vec());
            }
            if begin.elapsed() > PATIENCE || self.child.try_wait().ok().flatten().is_some() {
                return Err(format!("{PROGRAM} does not answer; it said:\n{}", self.said()));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn tell(&mut self, what: &str) -> Result<(), String> {
        let told = self.child.stdin.as_mut().map(|stdin| stdin.write_all(what.as_bytes()));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(format!("{PROGRAM} ended; it said:\n{}", self.said())),
        }
    }

    fn said(&self) -> String {
        fs::read(&self.output).map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default()
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // One that ended already need not be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(directory: &Path, port: &str) -> PathBuf {
    directory.join(format!("{port}.memif"))
}

/// testpmd with its four ports, passing frames on on the last core: noref's worker is on the first.
fn command(directory: &Path, capture: &Path) -> Command {
    let last = cores().saturating_sub(1);
    // Into a file it would write its answers when it ends.
    let mut command = Command::new("stdbuf");
    command.args(["--output=L", PROGRAM]);
    command.arg(format!("--lcores=0@(0-{last}),1@{last}"));
    command.args(["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf"]);
    command.arg(format!("--file-prefix=noref-bench-{}", std::process::id()));
    command.arg(format!("--vdev=net_pcap0,rx_pcap={},infinite_rx=1", capture.display()));
    for (number, port) in PORTS.iter().enumerate() {
        let socket = socket(directory, port);
        command.arg(format!("--vdev=net_memif{number},role=client,socket={},socket-abstract=no,rsize={LOG2_SLOTS}", socket.display()));
    }
    command.arg("--vdev=net_null0,no-rx=1");
    command.args(["--", "-i", "--nb-cores=1", "--total-num-mbufs=16384", "--no-numa", "--no-flush-rx"]);
    command
}

fn write(path: &Path, way: &Way) -> std::io::Result<()> {
    let mut writer = port::capture::Writer::new(File::create(path)?)?;
    (0..way.frames.len().min(PACKETS)).try_for_each(|n| writer.write(Time::ZERO, way.frames.get(n)))?;
    writer.flush()
}

/// Of each `NIC statistics for port N` in the order in which they were printed: packets received and sent.
fn counts(said: &str) -> Vec<(u64, u64)> {
    let number = |line: &str, name: &str| line.trim_start().strip_prefix(name)?.split_whitespace().next()?.parse().ok();
    let received = said.lines().filter_map(|line| number(line, "RX-packets:"));
    let sent = said.lines().filter_map(|line| number(line, "TX-packets:"));
    received.zip(sent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_testpmd_counts_is_read() {
        let said = "testpmd> show port stats all\n\
            \n  ######################## NIC statistics for port 0  ########################\
            \n  RX-packets: 7248896    RX-missed: 0          RX-bytes:  681396224\
            \n  RX-errors: 0\
            \n  RX-nombuf:  0\
            \n  TX-packets: 12         TX-errors: 0          TX-bytes:  0\
            \n\n  Throughput (since last show)\
            \n  Rx-pps:      7248896          Rx-bps:            0\n";
        assert_eq!(counts(said), [(7_248_896, 12)]);
    }
}
