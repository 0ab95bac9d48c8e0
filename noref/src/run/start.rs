//! From settings to a router that forwards, in either mode. What takes privileges comes first; workers and other threads start without them.

use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use plane::Tables;
use port::live::Device;
use rcu::Reader;
use route::IfIndex;

use super::clock::Clock;
use super::devices;
use super::found::Found;
use super::mirror::{self, Mirroring, Wanted};
use super::ports::Ports;
use super::router::{Router, Source};
use super::settings::Settings;
use super::slow::Slow;
use super::work::Share;
use super::workers::Workers;
use crate::failure::Failure;
use crate::network;
use crate::stderr::say;

/// A router that forwards.
pub struct Started {
    pub router: Arc<Router>,
    pub ports: Ports,
    /// What is there beside a kernel only.
    pub beside: Option<Beside>,
}

/// The router's part beside a kernel.
pub struct Beside {
    pub mirroring: Arc<Mirroring>,
    slow: Slow,
    wanted: SyncSender<Wanted>,
    reader: Reader,
    thread: JoinHandle<()>,
}

/// Starts a router that is alone on its interfaces, as a network file says.
///
/// # Errors
/// When the file or an interface cannot be used.
pub fn standalone(devices: &[Found], settings: &Settings, workers: usize, net: &Path) -> Result<Started, Failure> {
    let clock = Clock::start();
    let configuration = network::read(net, &devices::as_ports(devices), clock.now())?;
    for warning in &configuration.warnings {
        say(format_args!("warning: {warning}"));
    }
    devices::compare(devices, &configuration);
    let mut ports = Ports::open(devices, settings, workers)?;
    let shares = ports.deal()?.into_iter().map(|queues| Share { queues, kernel: None }).collect();
    give_up_privileges();
    let tables = Arc::clone(&configuration.tables);
    let router = start(&tables, shares, settings, Source::Standalone(Box::new(Mutex::new(configuration)), clock), &ports)?;
    Ok(Started { router, ports, beside: None })
}

/// Starts a router that follows the kernel.
///
/// # Errors
/// When the kernel's tables cannot be read or an interface cannot be used.
pub fn mirror(devices: &[Found], settings: &Settings, workers: usize) -> Result<Started, Failure> {
    let numbers: Vec<Option<u32>> = devices.iter().map(|found| found.interface().map(Device::index)).collect();
    let (mirroring, ends) = Mirroring::begin(&numbers)?;
    let tables = mirroring.read(|mirror| Arc::clone(mirror.tables()));
    let mut slow = Slow::open(&mirroring)?;
    // Frames are the kernel's until here. Those for the host that come up before the filters know its addresses go back by the slow way.
    let mut ports = Ports::open(devices, settings, workers)?;
    ports.tell(&mirroring);
    mirroring.tell_filters();
    let mut reader = tables.network.domain().reader();
    slow.follow(&vrfs(&tables, &mut reader), &mirroring);
    let queues = ports.deal()?;
    give_up_privileges();
    let wanted = mirror::ask_for_neighbours(Arc::clone(&tables)).map_err(Failure::unusable)?;
    let share = |queues| Ok(Share { queues, kernel: Some(slow.ways(wanted.clone())?) });
    let shares = queues.into_iter().map(share).collect::<std::io::Result<_>>().map_err(Failure::unusable)?;
    let thread = mirroring.start(ends)?;
    let router = start(&tables, shares, settings, Source::Mirror(Arc::clone(&mirroring)), &ports)?;
    Ok(Started { router, ports, beside: Some(Beside { mirroring, slow, wanted, reader, thread }) })
}

fn start(tables: &Arc<Tables>, shares: Vec<Share>, settings: &Settings, source: Source, ports: &Ports) -> Result<Arc<Router>, Failure> {
    let states = ports.states();
    states.iter().flat_map(|port| &port.notes).for_each(say);
    let workers = Workers::start(tables, shares, settings.busy_poll)?;
    Ok(Arc::new(Router::new(workers, Arc::clone(tables), source, states)))
}

/// The VRF devices: packets can be in any of them, by their port or by a SID. Read as workers read, so that nobody waits.
fn vrfs(tables: &Tables, reader: &mut Reader) -> Vec<IfIndex> {
    reader.burst(|guard| tables.network.links.load(guard).iter().filter(|link| link.is_vrf()).map(|link| link.index).collect())
}

fn give_up_privileges() {
    if let Err(error) = port::live::drop_privileges() {
        say(format_args!("privileges that are not needed any more could not be given up: {error}"));
    }
}

impl Beside {
    /// Makes ways to the kernel for VRFs that ports came into, and lets others go; lets numbers of SIDs that are gone be given out again.
    pub fn look(&mut self, router: &Router) {
        self.mirroring.let_go(router.tables(), || Some(router.snapshots()).filter(|all| all.len() == router.workers().len()));
        let vrfs = vrfs(router.tables(), &mut self.reader);
        if self.slow.follow(&vrfs, &self.mirroring)
            && let Err(error) = router.workers().set_ways(|| self.slow.ways(self.wanted.clone()))
        {
            say(format_args!("packets of a VRF cannot be left to the kernel: {error}"));
        }
    }

    /// Ends following.
    pub fn end(self) {
        self.mirroring.end();
        // It told of its fault itself.
        let _ = self.thread.join();
    }
}
