//! Telling the service manager how far we are: sd_notify(3), a datagram each to the socket that it names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager; nobody where it did not start us.
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// The one that started us, as it says in the environment.
    pub fn from_environment() -> Notify {
        let socket = std::env::var("NOTIFY_SOCKET").ok();
        let timeout = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        let for_us = std::env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        Notify::new(socket.as_deref(), timeout.filter(|_| for_us).map(Duration::from_micros))
    }

    fn new(socket: Option<&str>, timeout: Option<Duration>) -> Notify {
        let address = socket.and_then(|name| match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(name).ok(),
        });
        // A second sign of life comes before the first one is too old.
        Notify {
            to: address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address))),
            watchdog: timeout.map(|timeout| timeout / 2),
        }
    }

    /// How often it wants to hear that we are alive.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.to.is_some())
    }

    /// We forward.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// We read our settings again; [`Notify::ready`] follows.
    pub fn reloading(&self) {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    /// We end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// We are alive.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, message: &str) {
        if let Some((socket, address)) = &self.to {
            // One who does not listen is not waited for.
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(listener: &UnixDatagram) -> String {
        listener.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut bytes = [0; 256];
        let len = listener.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }

    #[test]
    fn the_service_manager_is_told_at_its_abstract_or_named_socket() {
        let name = format!("noref-notify-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let notify = Notify::new(Some(&format!("@{name}")), Some(Duration::from_secs(10)));
        notify.ready("running: e0");
        assert_eq!(heard(&listener), "READY=1\nSTATUS=running: e0");
        notify.reloading();
        let reloading = heard(&listener);
        let since_boot = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|text| text.parse::<u64>().ok());
        assert!(since_boot.is_some_and(|time| time > 0), "{reloading}");
        notify.alive();
        assert_eq!((heard(&listener).as_str(), notify.watchdog()), ("WATCHDOG=1", Some(Duration::from_secs(5))));
        let directory = testkit::replay::Scratch::new();
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        Notify::new(path.to_str(), None).stopping();
        assert_eq!(heard(&listener), "STOPPING=1");
    }

    #[test]
    fn without_a_service_manager_nothing_is_told() {
        let notify = Notify::new(None, Some(Duration::from_secs(10)));
        notify.ready("");
        assert_eq!(notify.watchdog(), None);
    }
}
