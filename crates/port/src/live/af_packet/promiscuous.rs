//! A device that hears what is not for its own address.
//!
//! A card lets in what is for its address and for the multicast groups that the kernel joined. A router that is alone on its devices has addresses, and
//! so groups of neighbour discovery (RFC 4861 §7.2.1), that the kernel knows nothing of, and perhaps a MAC of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::live::sys;

/// The device is in promiscuous mode as long as this value, or another one, is there. The kernel keeps count, and ends it with the process.
#[derive(Debug)]
pub(in crate::live) struct Promiscuous(#[expect(dead_code, reason = "it is kept open")] OwnedFd);

impl Promiscuous {
    /// For the device with this index.
    ///
    /// # Errors
    /// When it is gone, or we may not (CAP_NET_RAW).
    pub(in crate::live) fn new(device: u32) -> io::Result<Promiscuous> {
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let membership =
            libc::packet_mreq { mr_ifindex: device as i32, mr_type: libc::PACKET_MR_PROMISC as u16, mr_alen: 0, mr_address: [0; 8] };
        sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(Promiscuous(socket))
    }
}
