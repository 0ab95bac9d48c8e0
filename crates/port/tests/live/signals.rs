//! A process that has a port, stopped and killed from outside.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use port::live::{PacketPort, PacketSettings, XdpDevice, XdpSettings};
use port::{Pool, Port, Time};

use crate::lab::{self, FAR, NEAR};

const PATIENCE: Duration = Duration::from_secs(2);

/// The process: sends back what comes, until it is killed. Not a test by itself.
#[test]
#[ignore = "another test starts it, in a namespace"]
fn a_process_that_sends_everything_back() {
    if std::env::var_os("NOREF_ECHO").is_none() {
        return;
    }
    let near = XdpDevice::open(NEAR, XdpSettings { slots: 64, ..XdpSettings::default() }).unwrap();
    let mut port = near.port(0).unwrap();
    let (mut pool, mut batch) = (Pool::default(), Vec::new());
    println!("ready");
    // Should nobody kill it.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if port.rx(&mut pool, &mut batch, 64).unwrap() == 0 {
            port::live::wait_readable(port.descriptor().unwrap(), Duration::from_millis(100)).unwrap();
        }
        for mut packet in batch.drain(..) {
            lab::turn_round(&mut packet.buf);
            port.tx(&packet.buf, packet.time);
            pool.give(packet.buf);
        }
        port.flush().unwrap();
    }
}

/// A child that is killed when the test ends, whatever becomes of it.
struct Echo(Child);

impl Echo {
    /// Starts the process, in the thread's namespace, and waits until it has its port.
    fn start() -> Echo {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "signals::a_process_that_sends_everything_back", "--ignored", "--nocapture"]);
        let mut echo = Echo(command.env("NOREF_ECHO", "1").stdout(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(echo.0.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("ready")), "the process did not start");
        echo
    }

    fn signal(&self, signal: i32) {
        // SAFETY: no memory is involved; the child was not waited for, so that its number is still its own.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends some frames; how many come back.
fn echoes(far: &mut PacketPort) -> usize {
    for n in 0..32 {
        far.tx(&lab::frame(n, 100), Time::ZERO);
    }
    far.flush().unwrap();
    lab::receive(far, 32, PATIENCE).len()
}

/// True when a program hangs at the near device.
fn has_program() -> bool {
    let shown = Command::new("ip").args(["link", "show", NEAR]).output().unwrap();
    String::from_utf8_lossy(&shown.stdout).contains("xdp")
}

#[test]
fn a_stopped_process_goes_on_and_a_killed_one_leaves_everything_to_the_kernel() {
    let Some(()) = lab::cable(1) else { return };
    // Whether we may is found out here, where it can be said.
    let Some(near) = lab::allowed(XdpDevice::open(NEAR, XdpSettings::default()), |error| error.io().raw_os_error()) else { return };
    if lab::allowed(near.port(0), |error| error.io().raw_os_error()).is_none() {
        return;
    }
    drop(near);
    let Some(mut far) = lab::allowed(PacketPort::open(FAR, PacketSettings::default()), std::io::Error::raw_os_error) else { return };
    let mut echo = Echo::start();
    // The frame of its port's self-test.
    lab::receive(&mut far, 1, PATIENCE);
    assert_eq!(echoes(&mut far), 32);

    echo.signal(libc::SIGSTOP);
    for n in 0..20_000 {
        far.tx(&lab::frame(n, 100), Time::ZERO);
    }
    far.flush().unwrap();
    echo.signal(libc::SIGCONT);
    let held = lab::receive(&mut far, usize::MAX, Duration::from_millis(300)).len();
    assert!((64..20_000).contains(&held), "the rings held {held}");
    assert_eq!(echoes(&mut far), 32, "after it was stopped");

    assert!(has_program());
    echo.0.kill().unwrap();
    echo.0.wait().unwrap();
    let killed = Instant::now();
    while has_program() {
        assert!(killed.elapsed() < PATIENCE, "the program outlives its process");
    }
    println!("the program was gone {:?} after the process", killed.elapsed());
}
