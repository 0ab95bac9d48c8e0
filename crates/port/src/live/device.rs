//! What the kernel says about a device.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::sys::{self, Question, Request};

// Numbers of linux/ethtool.h.
const DRIVER: u32 = 0x03;
const SET_FINISHES_CHECKSUMS: u32 = 0x17;
const FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const MERGES: u32 = 0x2b;
const SET_MERGES: u32 = 0x2c;
const CHANNELS: u32 = 0x3c;
const RX_VLAN: u32 = 1 << 8;
/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;

/// A device of the thread's network namespace, as it was when it was asked for.
#[derive(Debug)]
pub struct Device {
    name: String,
    index: u32,
    mac: [u8; 6],
    mtu: u32,
    socket: OwnedFd,
}

impl Device {
    /// The Ethernet device of this name.
    ///
    /// # Errors
    /// When there is none, or it is of another kind.
    pub fn named(name: &str) -> io::Result<Device> {
        let about = |error: io::Error| io::Error::new(error.kind(), format!("device {name}: {error}"));
        let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let ask = |what| {
            let mut request = Request::about(name)?;
            request.ioctl(socket.as_fd(), what).map_err(about)?;
            Ok::<_, io::Error>(request.data)
        };
        let word = |data: [u8; 24]| u32::from_ne_bytes([data[0], data[1], data[2], data[3]]);
        let index = word(ask(Question::Index)?);
        let mtu = word(ask(Question::Mtu)?);
        let hardware = ask(Question::HardwareAddress)?;
        let [k0, k1, a, b, c, d, e, f, ..] = hardware;
        if u16::from_ne_bytes([k0, k1]) != ETHERNET {
            return Err(io::Error::new(io::ErrorKind::Unsupported, format!("device {name} is no Ethernet device")));
        }
        Ok(Device { name: name.to_owned(), index, mac: [a, b, c, d, e, f], mtu, socket })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, as `ip link` shows it.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Bytes that fit behind an Ethernet header.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// True when it is up and its link has a partner.
    ///
    /// # Errors
    /// When it is gone.
    pub fn is_running(&self) -> io::Result<bool> {
        let mut request = Request::about(&self.name)?;
        request.ioctl(self.socket.as_fd(), Question::Flags)?;
        let flags = i32::from(u16::from_ne_bytes([request.data[0], request.data[1]]));
        Ok(flags & (libc::IFF_UP | libc::IFF_RUNNING) == libc::IFF_UP | libc::IFF_RUNNING)
    }

    /// Its driver; empty when it does not say.
    pub fn driver(&self) -> String {
        let mut info = [0_u32; 49];
        info[0] = DRIVER;
        if self.ethtool(&mut info).is_err() {
            return String::new();
        }
        let bytes: Vec<u8> = info[1..9].iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Queues that it receives on; 1 when it does not say.
    pub fn rx_queues(&self) -> u32 {
        let mut channels = [0_u32; 9];
        channels[0] = CHANNELS;
        let asked = self.ethtool(&mut channels);
        let [.., rx, _tx, _other, combined] = channels;
        if asked.is_ok() { (rx + combined).max(1) } else { 1 }
    }

    /// True when it takes VLAN tags off what it receives. Whoever sees the frame only (XDP) does not see that there was one.
    ///
    /// # Errors
    /// When it does not say.
    pub fn strips_vlan(&self) -> io::Result<bool> {
        self.flags().map(|flags| flags & RX_VLAN != 0)
    }

    /// Has it take VLAN tags off, or leave them.
    ///
    /// # Errors
    /// When it cannot do otherwise, or we may not tell it.
    pub fn set_strips_vlan(&self, strips: bool) -> io::Result<()> {
        let flags = self.flags()? & !RX_VLAN;
        self.ethtool(&mut [SET_FLAGS, if strips { flags | RX_VLAN } else { flags }])
    }

    /// True when it puts received segments of one flow together (GRO).
    ///
    /// # Errors
    /// When it does not say.
    pub fn merges_segments(&self) -> io::Result<bool> {
        let mut value = [MERGES, 0];
        self.ethtool(&mut value)?;
        Ok(value[1] != 0)
    }

    /// Has it put received segments together, or not.
    ///
    /// # Errors
    /// When it cannot do otherwise, or we may not tell it.
    pub fn set_merges_segments(&self, merges: bool) -> io::Result<()> {
        self.ethtool(&mut [SET_MERGES, u32::from(merges)])
    }

    /// Whether it finishes the checksums of what the kernel sends by it, and cuts it into segments. A veth device says so and does neither: both pass on to
    /// the other end as they are.
    ///
    /// # Errors
    /// When it cannot do otherwise, or we may not tell it.
    pub fn set_finishes_checksums(&self, finishes: bool) -> io::Result<()> {
        // Without checksums the kernel gives it no segments put together either.
        self.ethtool(&mut [SET_FINISHES_CHECKSUMS, u32::from(finishes)])
    }

    fn flags(&self) -> io::Result<u32> {
        let mut value = [FLAGS, 0];
        self.ethtool(&mut value)?;
        Ok(value[1])
    }

    fn ethtool<const N: usize>(&self, about: &mut [u32; N]) -> io::Result<()> {
        Request::about(&self.name)?.ethtool(self.socket.as_fd(), about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let error = Device::named("noref-none").unwrap_err();
        assert!(error.to_string().starts_with("device noref-none: "), "{error}");
        assert!(Device::named("lo").is_err(), "not an Ethernet device");
    }
}
