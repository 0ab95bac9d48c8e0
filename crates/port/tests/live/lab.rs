//! A namespace with two devices that are the ends of one cable.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use port::{Pool, Port, Received};

/// The end that a port under test has.
pub const NEAR: &str = "near";
/// The end that frames are sent from.
pub const FAR: &str = "far";
/// MAC of [`NEAR`].
pub const NEAR_MAC: [u8; 6] = [2, 0, 0, 0, 0x0e, 1];
/// MAC of [`FAR`].
pub const FAR_MAC: [u8; 6] = [2, 0, 0, 0, 0x0f, 9];

/// Moves the thread to a new namespace with nothing in it. It has no name and is gone with the thread and the sockets in it, whatever becomes of
/// the test. None, with a word why, where we may not.
pub fn namespace() -> Option<()> {
    // SAFETY: no memory is involved; only this thread moves.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return skip(format!("a network namespace: {}", io::Error::last_os_error()));
    }
    // Without IPv6 nobody says anything of its own accord.
    let quiet = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    if quiet.is_err() && std::path::Path::new("/proc/sys/net/ipv6").exists() {
        return skip("sysctl may not be written".to_owned());
    }
    Some(())
}

/// Moves the thread to a new namespace, as [`namespace`] does, that has the devices.
pub fn cable(queues: u32) -> Option<()> {
    namespace()?;
    let queues = queues.to_string();
    let near = ["link", "add", NEAR, "address", "02:00:00:00:0e:01", "numrxqueues", &queues, "numtxqueues", &queues];
    let far = ["type", "veth", "peer", FAR, "address", "02:00:00:00:0f:09", "numrxqueues", &queues, "numtxqueues", &queues];
    for arguments in [[near.as_slice(), &far].concat(), vec!["link", "set", NEAR, "up"], vec!["link", "set", FAR, "up"]] {
        if let Err(why) = ip(&arguments) {
            return skip(why);
        }
    }
    Some(())
}

/// Runs `ip` in the thread's namespace.
pub fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr))) }
}

pub fn skip<T>(why: String) -> Option<T> {
    eprintln!("skipped: {} (this needs root, iproute2 and a kernel with veth)", why.trim_end());
    None
}

/// None, with a word why, when the kernel lets us not; a panic for any other failure.
pub fn allowed<T, E: std::fmt::Display>(result: Result<T, E>, io: impl FnOnce(&E) -> Option<i32>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => match io(&error) {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS | libc::EOPNOTSUPP | libc::EAFNOSUPPORT) => skip(error.to_string()),
            _ => panic!("{error}"),
        },
    }
}

/// Receives until `count` packets came or nothing came for `patience`.
pub fn receive(port: &mut impl Port, count: usize, patience: Duration) -> Vec<Received> {
    let (mut pool, mut batch) = (Pool::default(), Vec::new());
    let mut last = Instant::now();
    while batch.len() < count && last.elapsed() < patience {
        if port.rx(&mut pool, &mut batch, 64).unwrap() > 0 {
            last = Instant::now();
        } else {
            let descriptor = port.descriptor().expect("a live port waits");
            assert!(descriptor.as_raw_fd() >= 0);
            port::live::wait_readable(descriptor, Duration::from_millis(5)).unwrap();
        }
    }
    batch
}

/// The value of an event.
pub fn event(port: &mut impl Port, name: &str) -> u64 {
    port.events().into_iter().find(|&(event, _)| event == name).map(|(_, value)| value).expect(name)
}

/// A UDP frame to be forwarded, with a number in it, of `len` bytes.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = [&NEAR_MAC[..], &FAR_MAC, &[0x08, 0x00]].concat();
    frame.extend([0x45, 0]);
    frame.extend(((len - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6]);
    frame.extend([0x12, 0x34, 0x56, 0x78]);
    frame.extend(((len - 34) as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(number.to_be_bytes());
    let fill = [number as u8, (number >> 8) as u8, 0x55, 0xa7].repeat(len / 4);
    frame.extend_from_slice(&fill[..len - frame.len()]);
    frame
}

/// Addresses a frame to where it came from.
pub fn turn_round(frame: &mut [u8]) {
    let (to, from) = frame[..12].split_at_mut(6);
    to.swap_with_slice(from);
}

/// The number in a [`frame`].
pub fn number(frame: &[u8]) -> u32 {
    frame.get(42..46).map_or(u32::MAX, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()))
}

/// A socket at the far end, to send to 10.1.2.9, which is behind the near one. What the kernel sends by it has the checksum left to hardware.
pub fn kernel_socket() -> UdpSocket {
    ip(&["address", "add", "10.1.2.3/24", "dev", FAR]).unwrap();
    ip(&["neigh", "add", "10.1.2.9", "lladdr", "02:00:00:00:0e:01", "dev", FAR]).unwrap();
    UdpSocket::bind("10.1.2.3:4660").unwrap()
}

/// True when the UDP checksum of a frame without IPv4 options is right (RFC 768).
pub fn is_checksum_right(frame: &[u8]) -> bool {
    let summed = [&frame[26..34], &[0, 17], &frame[38..40], &frame[34..]].concat();
    let sum: u64 = summed.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum();
    frame[40..42] != [0, 0] && sum.is_multiple_of(0xffff)
}
