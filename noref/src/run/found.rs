//! What is to become a port: an interface of the kernel, one that shares memory with another program, of which the kernel knows nothing, or a TAP device.

use std::io;

use control::PortDevice;
use port::live::memif::MemifSettings;
use port::live::{Device, TapPort};
use wire::Mac;

use super::settings::PortSettings;
use crate::args::PortKind;

/// Bytes that fit behind an Ethernet header on a TAP device, unless the network file says otherwise: as the kernel makes it.
const TAP_MTU: u32 = 1500;

/// It, before anything is done to it.
pub enum Found {
    /// An interface of the kernel.
    Interface(Device),
    /// A memif interface.
    Memif {
        /// What the router calls it.
        name: String,
        /// How it finds its peer.
        settings: MemifSettings,
    },
    /// A TAP device of this name that noref is to make.
    Tap(String),
}

impl Found {
    /// What the settings of a port mean.
    ///
    /// # Errors
    /// When there is no such interface, or it is no Ethernet device.
    pub fn of(port: &PortSettings) -> io::Result<Found> {
        match &port.kind {
            PortKind::Memif(settings) => Ok(Found::Memif { name: port.name.to_string(), settings: settings.clone() }),
            PortKind::Tap => Ok(Found::Tap(port.name.to_string())),
            PortKind::Interface => Device::named(port.name.as_str()).map(Found::Interface),
        }
    }

    /// What the router calls it.
    pub fn name(&self) -> &str {
        match self {
            Found::Interface(device) => device.name(),
            Found::Memif { name, .. } | Found::Tap(name) => name,
        }
    }

    /// Its address.
    pub fn mac(&self) -> Mac {
        match self {
            Found::Interface(device) => Mac(device.mac()),
            Found::Memif { settings, .. } => Mac(settings.station()),
            Found::Tap(name) => Mac(TapPort::station(name)),
        }
    }

    /// Bytes that fit behind an Ethernet header.
    pub fn mtu(&self) -> u32 {
        match self {
            Found::Interface(device) => device.mtu(),
            Found::Memif { settings, .. } => settings.mtu,
            Found::Tap(_) => TAP_MTU,
        }
    }

    /// Queues that it receives on.
    pub fn rx_queues(&self) -> u32 {
        match self {
            Found::Interface(device) => device.rx_queues(),
            Found::Memif { settings, .. } => settings.queues.into(),
            Found::Tap(_) => 1,
        }
    }

    /// How many workers can send there; none: any number.
    pub fn most_workers(&self) -> Option<usize> {
        match self {
            Found::Interface(_) | Found::Tap(_) => None,
            Found::Memif { settings, .. } => Some(settings.queues.into()),
        }
    }

    /// The interface of the kernel, if it is one.
    pub fn interface(&self) -> Option<&Device> {
        match self {
            Found::Interface(device) => Some(device),
            Found::Memif { .. } | Found::Tap(_) => None,
        }
    }

    /// It as the network file finds it.
    pub fn as_port(&self) -> PortDevice {
        PortDevice { name: self.name().to_owned(), hardware: Some((self.mac(), self.mtu())) }
    }
}
