//! The way up: what noref leaves to the kernel goes there as packets that come in by a TUN device.
//!
//! ```text
//! worker ──► TunSender, its own ──► noref0 ──► the kernel's stack: delivered there, or forwarded
//!                    (one more, noref-vN, for each VRF)
//! ```
//! To the kernel it is another interface than the one the packet came in by: rules and packet filters that look at the input interface see `noref0`. Whether
//! the source address may come in there is looked at by noref before, for the real interface, so the kernel's own filter is off on the device.

use std::fs;
use std::io;
use std::sync::mpsc::SyncSender;

use nix::net::if_::if_nametoindex;
use plane::{Up, Worker};
use port::live::{TapKind, TapPort, TunSender};
use route::IfIndex;

use super::complaint::Complaint;
use super::mirror::{Mirroring, Wanted};
use super::snapshot::KernelCount;
use crate::failure::Failure;
use crate::stderr::say;

/// The device of the default VRF.
const DEVICE: &str = "noref0";
/// VRFs that have a device.
const VRFS: usize = 256;

/// The devices by which packets go up.
pub struct Slow {
    default: TapPort,
    vrfs: Vec<(IfIndex, TapPort)>,
    complaint: Complaint,
    /// It was told that there are more VRFs than devices.
    told_of_more: bool,
}

impl Slow {
    /// Makes the device of the default VRF and sets it up.
    ///
    /// # Errors
    /// When another router has it, or the kernel refuses.
    pub fn open(mirroring: &Mirroring) -> Result<Slow, Failure> {
        let default = device(DEVICE, None, mirroring).map_err(|error| {
            Failure::unusable(format!(
                "{error}: noref needs that device to leave packets to the kernel; does another noref run with --mirror here?"
            ))
        })?;
        if fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").is_ok_and(|all| all.trim() == "1") {
            say(format_args!(
                "warning: net.ipv4.conf.all.rp_filter=1 holds for {DEVICE} too, where packets come in that noref leaves to the kernel: it will drop those of IPv4; set it for single interfaces instead"
            ));
        }
        Ok(Slow { default, vrfs: Vec::new(), complaint: Complaint::default(), told_of_more: false })
    }

    /// A worker's ways up.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn ways(&self, wanted: SyncSender<Wanted>) -> io::Result<Ways> {
        let vrfs = self.vrfs.iter().map(|(vrf, device)| Ok((*vrf, device.sender()?))).collect::<io::Result<_>>()?;
        Ok(Ways { default: self.default.sender()?, vrfs, count: KernelCount::default(), wanted })
    }

    /// Makes devices for VRFs that have none, and lets those of others go. True when there are others than before: then workers need new ways.
    pub fn follow(&mut self, vrfs: &[IfIndex], mirroring: &Mirroring) -> bool {
        let before = self.vrfs.len();
        self.vrfs.retain(|(vrf, _)| vrfs.contains(vrf));
        let mut changed = self.vrfs.len() != before;
        let more = vrfs.len() > VRFS;
        if more && !self.told_of_more {
            let beyond = "what is the kernel's of the others is lost, and counted as kernel_failed";
            say(format_args!("there are {} VRFs and only {VRFS} get a device to leave packets to the kernel: {beyond}", vrfs.len()));
        }
        self.told_of_more = more;
        for &vrf in vrfs {
            if self.vrfs.len() >= VRFS {
                break;
            }
            if self.vrfs.iter().any(|(known, _)| *known == vrf) {
                continue;
            }
            match device(&format!("noref-v{}", vrf.0), Some(vrf), mirroring) {
                Ok(device) => {
                    self.vrfs.push((vrf, device));
                    changed = true;
                }
                Err(error) => self.complaint.tell(format_args!("packets of a VRF cannot be left to the kernel: {error}")),
            }
        }
        changed
    }
}

/// Makes a device in the VRF of `master` and sets it up: it takes packets from anywhere and sends none of its own.
fn device(name: &str, master: Option<IfIndex>, mirroring: &Mirroring) -> io::Result<TapPort> {
    let device = TapPort::open(name, TapKind::Tun)?;
    let about = |what: String| move |error: io::Error| io::Error::new(error.kind(), format!("device {name}: {what}: {error}"));
    for (setting, value) in [
        ("ipv4/conf", [("rp_filter", "0"), ("accept_local", "1"), ("forwarding", "1"), ("send_redirects", "0")]),
        // Without IPv6 in the kernel there are none of these.
        ("ipv6/conf", [("disable_ipv6", "0"), ("addr_gen_mode", "1"), ("accept_ra", "0"), ("router_solicitations", "0")]),
    ] {
        for (key, value) in value {
            let path = format!("/proc/sys/net/{setting}/{name}/{key}");
            match fs::write(&path, value) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(about(path)(error)),
                _ => {}
            }
        }
    }
    let index = if_nametoindex(name).map_err(|error| about("its number".into())(error.into()))?;
    mirroring.set_up(IfIndex(index), master).map_err(about("setting it up".into()))?;
    Ok(device)
}

/// A worker's part in it.
pub struct Ways {
    default: TunSender,
    vrfs: Vec<(IfIndex, TunSender)>,
    count: KernelCount,
    wanted: SyncSender<Wanted>,
}

impl Ways {
    /// Takes over what was counted on other ways.
    pub fn go_on_from(&mut self, before: &Ways) {
        self.count = before.count;
    }

    /// What was counted.
    pub fn count(&self) -> KernelCount {
        self.count
    }

    /// Passes on what a worker has for the kernel.
    pub fn pass(&mut self, worker: &mut Worker) {
        let Ways { default, vrfs, count, wanted } = self;
        worker.drain_up(|Up { vrf, buf, .. }| {
            let way = match vrf {
                None => Some(&mut *default),
                Some(vrf) => vrfs.iter_mut().find(|(known, _)| known == vrf).map(|(_, way)| way),
            };
            let passed = way.is_some_and(|way| way.send(buf));
            count.passed += u64::from(passed);
            count.failed += u64::from(!passed);
        });
        // When there are too many, it is wanted again by a later packet.
        worker.drain_wanted(|neighbour| _ = wanted.try_send(neighbour));
    }
}
