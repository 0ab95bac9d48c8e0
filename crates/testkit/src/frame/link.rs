//! Ethernet and VLAN tags.

use super::Context;
use crate::addr;
use wire::{EtherType, Mac};

/// An Ethernet header. The type is that of what is inside.
#[derive(Clone, Debug)]
pub struct Ether {
    dst: Mac,
    src: Mac,
    ethertype: Option<EtherType>,
}

impl Ether {
    /// A header from `src` to `dst`.
    pub fn new(dst: Mac, src: Mac) -> Ether {
        Ether { dst, src, ethertype: None }
    }

    /// A header between two stations, where it does not matter which.
    pub fn test() -> Ether {
        Ether::new(addr::mac(1), addr::mac(2))
    }

    /// Another type than that of what is inside.
    pub fn ethertype(mut self, ethertype: EtherType) -> Ether {
        self.ethertype = Some(ethertype);
        self
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let ethertype = self.ethertype.unwrap_or(context.ethertype());
        [&self.dst.0, &self.src.0, &ethertype.0.to_be_bytes()[..], payload].concat()
    }
}

/// An IEEE 802.1Q tag.
#[derive(Clone, Debug)]
pub struct Vlan {
    tci: u16,
}

impl Vlan {
    /// VLAN `vid` (12 bits) with priority 0.
    pub fn new(vid: u16) -> Vlan {
        Vlan { tci: vid & 0xfff }
    }

    /// Priority code point, 0 to 7.
    pub fn priority(mut self, pcp: u8) -> Vlan {
        self.tci = self.tci & 0xfff | u16::from(pcp) << 13;
        self
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        [&self.tci.to_be_bytes(), &context.ethertype().0.to_be_bytes()[..], payload].concat()
    }
}
