//! The running kernel as the router of a case: a namespace with the ports of the golden cases, each the end of a veth pair.
//!
//! Needs root, iproute2, and ethtool where the kernel leaves checksums to the ports. Frames are sent at the far end of a pair and seen as
//! they leave the router's end, so that neither the far end's stack nor its untagging stands between. What Linux says of its own accord
//! (multicast listener reports, router solicitations, duplicate address detection) is left out.

use crate::golden::PORTS;
use crate::tags;
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvfrom, send, socket};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use wire::{EtherType, eth, ipv6, proto};

/// `sll_pkttype` of a frame that the namespace itself sends.
const PACKET_OUTGOING: u8 = 4;
/// How long after a frame what leaves is taken for its answer: the spacing of the frames of a case.
const ANSWERED_WITHIN: Duration = Duration::from_nanos(crate::golden::SPACING);
/// How long a new router gets until its links are ready.
const SETTLE: Duration = Duration::from_millis(300);

/// Settings of the router's namespace before its network file, so that a port has the addresses that the file gives it and no others.
const QUIET: &str = "sysctl -qw net.ipv6.conf.default.addr_gen_mode=1 net.ipv6.conf.default.router_solicitations=0 \
                     net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.dad_transmits=0\n";

/// A router made of the running kernel. It goes away with this value.
#[derive(Debug)]
pub struct Kernel {
    namespace: String,
    ports: Vec<Port>,
}

/// One port: where frames go in, and where those that leave are seen.
#[derive(Debug)]
struct Port {
    far_end: OwnedFd,
    router_end: OwnedFd,
}

impl Kernel {
    /// A router configured by a network file, line by line, as an operator would type it. The calling thread moves to a network namespace
    /// of its own, where the far ends are.
    ///
    /// # Errors
    /// What a command or a system call complained about; without root that is the first of them.
    pub fn new(network: &Path) -> Result<Kernel, String> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("a network namespace: {e} (this needs root)"))?;
        let namespace = format!("noref-lab-{}", std::process::id());
        run("ip", &["netns", "add", &namespace])?;
        let mut kernel = Kernel { namespace, ports: Vec::new() };
        kernel.inside("sh", &["-ec", QUIET])?;
        run("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"])?;
        for port in PORTS {
            let far = far_end(port);
            run("ip", &["link", "add", port, "netns", &kernel.namespace, "type", "veth", "peer", "name", &far])?;
            run("ip", &["link", "set", &far, "mtu", "65535", "up"])?;
            // Checksums are part of what is compared, and tags; without ethtool those of TCP may be missing.
            let _ = kernel.inside("ethtool", &["-K", port, "tx", "off", "txvlan", "off", "tx-vlan-stag-hw-insert", "off"]);
        }
        let text = std::fs::read_to_string(network).map_err(|e| format!("{}: {e}", network.display()))?;
        kernel.inside("sh", &["-ec", &text.lines().map(as_shell).collect::<String>()])?;
        kernel.ports = kernel.open_ports()?;
        sleep(SETTLE);
        Ok(kernel)
    }

    /// Sends a frame to the port at this place of [`PORTS`]; what the router sends in the time that follows, each with its port's place. A frame
    /// that the pair refuses (the port is down, or its MTU too small) is lost, as on any wire.
    pub fn answers(&self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let mut out = Vec::new();
        self.collect(&mut out);
        out.clear();
        let begin = Instant::now();
        let fd = self.ports[port].far_end.as_raw_fd();
        let _ = send(fd, frame, MsgFlags::empty());
        while begin.elapsed() < ANSWERED_WITHIN {
            sleep(Duration::from_micros(500));
            self.collect(&mut out);
        }
        out
    }

    fn collect(&self, out: &mut Vec<(usize, Vec<u8>)>) {
        let mut bytes = vec![0; 1 << 16];
        for (place, port) in self.ports.iter().enumerate() {
            while let Ok((len, from)) = recvfrom::<LinkAddr>(port.router_end.as_raw_fd(), &mut bytes) {
                let leaves = from.is_some_and(|from| from.pkttype() == PACKET_OUTGOING);
                if leaves && !is_own_accord(&bytes[..len]) {
                    out.push((place, bytes[..len].to_vec()));
                }
            }
        }
    }

    fn open_ports(&self) -> Result<Vec<Port>, String> {
        let text = |e: std::io::Error| e.to_string();
        let here = File::open("/proc/thread-self/ns/net").map_err(text)?;
        let router = File::open(format!("/run/netns/{}", self.namespace)).map_err(text)?;
        let far: Vec<_> = PORTS.iter().map(|port| packet_socket(&far_end(port))).collect::<Result<_, _>>()?;
        setns(router, CloneFlags::CLONE_NEWNET).map_err(|e| e.to_string())?;
        let own: Result<Vec<_>, _> = PORTS.iter().map(|port| packet_socket(port)).collect();
        setns(here, CloneFlags::CLONE_NEWNET).map_err(|e| e.to_string())?;
        Ok(far.into_iter().zip(own?).map(|(far_end, router_end)| Port { far_end, router_end }).collect())
    }

    /// Runs a program in the router's namespace.
    fn inside(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        run("ip", &[&["netns", "exec", &self.namespace, program], arguments].concat())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = run("ip", &["netns", "del", &self.namespace]);
    }
}

/// A line of a network file as a shell takes it: iproute2 asks for the secret of a key, and reads the answer from its input.
pub fn as_shell(line: &str) -> String {
    match line.strip_prefix("ip sr hmac set ").and_then(|rest| rest.rsplit_once(' ')) {
        Some((key, secret)) => format!("echo {secret} | ip sr hmac set {key}\n"),
        None => format!("{line}\n"),
    }
}

fn far_end(port: &str) -> String {
    format!("{port}-far")
}

/// A socket for every frame of one device of the thread's namespace.
fn packet_socket(device: &str) -> Result<OwnedFd, String> {
    let failed = |e: nix::Error| format!("a packet socket on {device}: {e}");
    let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::EthAll).map_err(failed)?;
    let mut addresses = getifaddrs().map_err(failed)?.filter(|entry| entry.interface_name == device);
    let link = addresses.find_map(|entry| entry.address?.as_link_addr().copied()).ok_or_else(|| format!("no device {device}"))?;
    bind(fd.as_raw_fd(), &link).map_err(failed)?;
    Ok(fd)
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let out = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&out.stderr).trim())),
    }
}

/// True for what Linux sends without having received anything.
pub fn is_own_accord(frame: &[u8]) -> bool {
    let frame = &frame[tags::len(frame)..];
    let Some(header) = eth::Header::read(frame) else { return true };
    let packet = &frame[eth::LEN..];
    if header.ethertype() == EtherType::IPV4 {
        return packet.get(9) == Some(&proto::IGMP);
    }
    let Some(ip) = ipv6::Header::read(packet).filter(|_| header.ethertype() == EtherType::IPV6) else { return false };
    let upper = ipv6::LEN + if ip.next_header == proto::HOP_BY_HOP { 8 } else { 0 };
    let is_icmp = proto::ICMP6 == if upper == ipv6::LEN { ip.next_header } else { packet.get(ipv6::LEN).copied().unwrap_or_default() };
    match packet.get(upper) {
        // Listener reports (RFC 2710, RFC 3810) and router solicitations.
        Some(131 | 132 | 133 | 143) => is_icmp,
        // A neighbour solicitation from nowhere is duplicate address detection.
        Some(135) => is_icmp && ip.src().is_unspecified(),
        _ => false,
    }
}
