//! What is to become a port: an interface of the kernel, or one that shares memory with another program, of which the kernel knows nothing.

use std::io;

use control::PortDevice;
use port::live::Device;
use port::live::memif::MemifSettings;
use wire::Mac;

use super::settings::PortSettings;

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
}

impl Found {
    /// What the settings of a port mean.
    ///
    /// # Errors
    /// When there is no such interface, or it is no Ethernet device.
    pub fn of(port: &PortSettings) -> io::Result<Found> {
        match &port.memif {
            Some(settings) => Ok(Found::Memif { name: port.name.to_string(), settings: settings.clone() }),
            None => Device::named(port.name.as_str()).map(Found::Interface),
        }
    }

    /// What the router calls it.
    pub fn name(&self) -> &str {
        match self {
            Found::Interface(device) => device.name(),
            Found::Memif { name, .. } => name,
        }
    }

    /// Its address.
    pub fn mac(&self) -> Mac {
        match self {
            Found::Interface(device) => Mac(device.mac()),
            Found::Memif { settings, .. } => Mac(settings.station()),
        }
    }

    /// Bytes that fit behind an Ethernet header.
    pub fn mtu(&self) -> u32 {
        match self {
            Found::Interface(device) => device.mtu(),
            Found::Memif { settings, .. } => settings.mtu,
        }
    }

    /// Queues that it receives on.
    pub fn rx_queues(&self) -> u32 {
        match self {
            Found::Interface(device) => device.rx_queues(),
            Found::Memif { settings, .. } => settings.queues.into(),
        }
    }

    /// The interface of the kernel, if it is one.
    pub fn interface(&self) -> Option<&Device> {
        match self {
            Found::Interface(device) => Some(device),
            Found::Memif { .. } => None,
        }
    }

    /// It as the network file finds it.
    pub fn as_port(&self) -> PortDevice {
        PortDevice { name: self.name().to_owned(), hardware: Some((self.mac(), self.mtu())) }
    }
}
