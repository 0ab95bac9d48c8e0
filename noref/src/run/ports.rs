//! The ports of a running router: opened, watched, and opened again when their interfaces come back.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::net::if_::if_indextoname;
use port::live::xdp::{BpfError, Filter};
use route::LinkKind;

use super::complaint::Complaint;
use super::devices::{self, Opened};
use super::found::Found;
use super::mirror::Mirroring;
use super::queue::Queue;
use super::router::{PortState, Router};
use super::settings::{PortSettings, Settings};
use super::shares::Round;
use crate::failure::Failure;
use crate::stderr::say;

/// How long a port that is opened again may take until the kernel has its routes meanwhile as those of any other interface.
const OPENED_AGAIN: Duration = Duration::from_secs(2);
/// What came up before filters were paused is forwarded by then.
const FORWARDED: Duration = Duration::from_millis(10);

/// All ports, in their places: a port keeps its place as long as the router runs.
pub struct Ports {
    settings: Settings,
    ports: Vec<Port>,
    round: Round,
}

struct Port {
    settings: PortSettings,
    opened: Option<Opened>,
    /// Its interface is to be opened when it is there.
    wanted: bool,
    /// It was closed to be opened again, since then: the kernel forwards everything meanwhile, and the mirror has it as a port.
    again: Option<Instant>,
    /// The interface's name at the moment, which may have changed since it was opened.
    name: String,
    /// Why it could not be opened.
    complaint: Complaint,
}

impl Ports {
    /// Opens all interfaces for so many workers.
    ///
    /// # Errors
    /// When one cannot be.
    pub fn open(devices: &[Found], settings: &Settings, workers: usize) -> Result<Ports, Failure> {
        let opened = devices::open(devices, settings, workers)?;
        let port = |(settings, opened): (&PortSettings, Opened)| Port {
            settings: settings.clone(),
            name: opened.name.clone(),
            opened: Some(opened),
            wanted: true,
            again: None,
            complaint: Complaint::default(),
        };
        let ports = settings.ports.iter().zip(opened).map(port).collect();
        Ok(Ports { settings: settings.clone(), ports, round: Round::new(workers) })
    }

    /// What the workers are to have of the ports at the start.
    ///
    /// # Errors
    /// When a socket to send by cannot be opened.
    pub fn deal(&mut self) -> Result<Vec<Vec<Queue>>, Failure> {
        let mut shares: Vec<Vec<Queue>> = (0..self.round.workers()).map(|_| Vec::new()).collect();
        for opened in self.ports.iter_mut().filter_map(|port| port.opened.as_mut()) {
            for (share, queues) in shares.iter_mut().zip(self.round.deal(opened)?) {
                share.extend(queues);
            }
        }
        Ok(shares)
    }

    /// The ports as they are.
    pub fn states(&self) -> Vec<PortState> {
        self.ports.iter().filter_map(|port| port.opened.as_ref()).map(Opened::state).collect()
    }

    /// Tells the mirror which devices the ports are.
    pub fn tell(&self, mirroring: &Mirroring) {
        for opened in self.ports.iter().filter_map(|port| port.opened.as_ref()) {
            mirroring.set_port(opened.place, opened.interface().map(|index| (index, opened.filter())));
        }
    }

    /// Lets ports go whose interfaces are gone, and opens those that are there.
    pub fn look(&mut self, router: &Router, mirroring: Option<&Arc<Mirroring>>) {
        for place in 0..self.ports.len() {
            let port = &mut self.ports[place];
            match &port.opened {
                // Nobody but noref names one that is no interface.
                Some(opened) => match opened.interface().map(name_of) {
                    None => {}
                    Some(Some(name)) if name == port.name => {}
                    Some(Some(name)) => {
                        say(format_args!("{} is called {name} now, and is still a port", port.name));
                        port.name = name;
                    }
                    Some(None) => self.close(place, "its interface is gone; it is a port again when it comes back", router, mirroring),
                },
                None if port.wanted => self.try_open(place, router, mirroring),
                None => {}
            }
            self.give_up_late(place, mirroring);
        }
    }

    /// A port that is not open in time is as one that is not there.
    fn give_up_late(&mut self, place: usize, mirroring: Option<&Arc<Mirroring>>) {
        if self.ports[place].again.is_some_and(|since| since.elapsed() > OPENED_AGAIN) {
            if let Some(mirroring) = mirroring {
                mirroring.set_port(place, None);
            }
            self.is_as_it_stays(place);
        }
    }

    /// A port is not opened again any more; once none is, noref forwards.
    fn is_as_it_stays(&mut self, place: usize) {
        let was = self.ports[place].again.take().is_some();
        if was && self.ports.iter().all(|port| port.again.is_none()) {
            self.filters("noref does not forward what comes by it", Filter::go_on);
        }
    }

    /// Does something to the filters of all ports.
    fn filters(&self, or_else: &str, what: impl Fn(&Filter) -> Result<(), BpfError>) {
        for opened in self.ports.iter().filter_map(|port| port.opened.as_ref()) {
            if let Some(Err(error)) = opened.filter().map(|filter| what(filter)) {
                say(format_args!("{}: {or_else}: {error}", opened.name));
            }
        }
    }

    /// Does what other settings ask for, and says what of it takes a restart.
    pub fn reload(&mut self, settings: Settings, router: &Router, mirroring: Option<&Arc<Mirroring>>) {
        let before = &self.settings;
        for (what, differs) in [
            ("mode, network", settings.mode != before.mode),
            ("workers", settings.workers != before.workers),
            ("busy_poll", settings.busy_poll != before.busy_poll),
            ("control", settings.control != before.control),
            ("metrics", settings.metrics != before.metrics),
        ] {
            if differs {
                say(format_args!("reload: {what} changed, which takes a restart; it stays as it is"));
            }
        }
        for place in 0..self.ports.len() {
            let port = &mut self.ports[place];
            let wanted = settings.ports.iter().find(|wanted| wanted.name == port.settings.name);
            port.wanted = wanted.is_some();
            let changed = wanted.is_some_and(|wanted| *wanted != port.settings);
            port.settings = wanted.unwrap_or(&port.settings).clone();
            port.complaint.forget();
            if port.opened.is_some() && !port.wanted {
                self.close(place, "it is in the settings no longer", router, mirroring);
                router.forget_port(place);
            } else if port.opened.is_some() && changed {
                self.close_for_now(place, router, mirroring);
            }
        }
        for new in settings.ports {
            if self.ports.iter().all(|port| port.settings.name != new.name) {
                let name = new.name.to_string();
                let place = self.ports.len();
                // A router that is alone on its interfaces has nobody else who tells it of them.
                let known = router
                    .configuration(|configuration| configuration.editor.port_add(&name, place).map(|_| configuration.editor.commit()));
                if let Some(Err(error)) = known {
                    say(format_args!("reload: {name}: {error}"));
                    continue;
                }
                self.ports.push(Port { settings: new, opened: None, wanted: true, again: None, name, complaint: Complaint::default() });
            }
        }
        self.look(router, mirroring);
    }

    fn close(&mut self, place: usize, why: &str, router: &Router, mirroring: Option<&Arc<Mirroring>>) {
        self.let_go(place, why, router);
        if let Some(mirroring) = mirroring {
            mirroring.set_port(place, None);
        }
    }

    /// Closes a port that is opened again at once. Beside the kernel all frames are the kernel's meanwhile: a packet that came up could not leave by it.
    fn close_for_now(&mut self, place: usize, router: &Router, mirroring: Option<&Arc<Mirroring>>) {
        if mirroring.is_some() {
            if self.ports.iter().all(|port| port.again.is_none()) {
                self.filters("packets may be lost while ports are opened again", Filter::pause);
                thread::sleep(FORWARDED);
            }
            self.ports[place].again = Some(Instant::now());
        }
        self.let_go(place, "its settings changed, it is opened again", router);
    }

    fn let_go(&mut self, place: usize, why: &str, router: &Router) {
        let port = &mut self.ports[place];
        let Some(opened) = port.opened.take() else { return };
        say(format_args!("{}: {why}", port.name));
        if !router.workers().remove_queues(place) {
            say(format_args!("{}: a worker has not let it go yet", port.name));
        }
        port.name = port.settings.name.to_string();
        router.set_port(PortState { driver: "", queues: 0, index: 0, notes: vec![why.to_owned()], ..opened.state() });
    }

    fn try_open(&mut self, place: usize, router: &Router, mirroring: Option<&Arc<Mirroring>>) {
        let port = &mut self.ports[place];
        // Not there: nothing new.
        let Ok(device) = Found::of(&port.settings) else { return };
        let opened = devices::open_one(place, &device, &port.settings, &self.settings, self.round.workers());
        let dealt = opened.and_then(|mut opened| Ok((self.round.deal(&mut opened)?, opened)));
        match dealt {
            Ok((shares, opened)) => {
                let state = opened.state();
                say(format_args!("{}: it is a port again: {}", device.name(), devices::describe(std::slice::from_ref(&state))));
                match mirroring {
                    Some(mirroring) => mirroring.set_port(place, opened.interface().map(|index| (index, opened.filter()))),
                    None => as_it_is_now(router, place, &device),
                }
                port.opened = Some(opened);
                port.complaint.forget();
                router.workers().add_queues(shares);
                router.set_port(state);
                self.is_as_it_stays(place);
            }
            Err(failure) => port.complaint.tell(format_args!("{failure}; it is tried on")),
        }
    }
}

/// The name of the device of this number.
fn name_of(index: u32) -> Option<String> {
    // That there is none is told as an empty name, or as an error.
    let name = if_indextoname(index).ok()?.to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

/// A device that was made anew has another address; the router has that too, unless its configuration says otherwise.
fn as_it_is_now(router: &Router, place: usize, device: &Found) {
    router.configuration(|configuration| {
        let editor = &mut configuration.editor;
        let Some(index) = editor.links().iter().find(|link| link.kind == LinkKind::Port(place)).map(|link| link.index) else { return };
        editor.port_replaced(index, device.mac());
        editor.commit();
    });
}
