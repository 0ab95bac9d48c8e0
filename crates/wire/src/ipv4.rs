//! Internet Protocol version 4 (RFC 791).

use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

use crate::checksum::{self, Sum};

/// Bytes of a header without options.
pub const LEN: usize = 20;
/// Do not fragment, in `Header::flags_offset`.
pub const DF: u16 = 0x4000;
/// More fragments, in `Header::flags_offset`.
pub const MF: u16 = 0x2000;
/// The fragment offset in units of 8 bytes, in `Header::flags_offset`.
pub const OFFSET: u16 = 0x1fff;

/// ```text
/// | version, length | TOS | total length | identification | flags, offset |
/// | TTL | protocol | checksum | source | destination |
/// ```
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    version_ihl: u8,
    /// Type of service: DSCP in the six high bits, ECN in the two low ones.
    pub tos: u8,
    total_len: U16,
    id: U16,
    flags_offset: U16,
    /// Time to live, hops.
    pub ttl: u8,
    /// Protocol number of the payload.
    pub proto: u8,
    checksum: U16,
    src: [u8; 4],
    dst: [u8; 4],
}

impl Header {
    /// A header without options, checksum not yet set; `len` is the total length in bytes.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr, proto: u8, ttl: u8, len: u16) -> Header {
        Header {
            version_ihl: 0x45,
            tos: 0,
            total_len: U16::new(len),
            id: U16::ZERO,
            flags_offset: U16::ZERO,
            ttl,
            proto,
            checksum: U16::ZERO,
            src: src.octets(),
            dst: dst.octets(),
        }
    }

    /// The header at the front of `bytes`; none when there are fewer than 20. Version and lengths are not checked here.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// As [`Header::read`], to be changed in place.
    #[inline]
    pub fn read_mut(bytes: &mut [u8]) -> Option<&mut Header> {
        Header::mut_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// The version nibble, 4 in a good packet.
    #[inline]
    pub fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Header length with options, bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 15) * 4
    }

    /// Sets the header length, bytes, a multiple of 4 up to 60.
    pub fn set_header_len(&mut self, len: usize) {
        self.version_ihl = 0x40 | (len / 4) as u8 & 15;
    }

    /// Total length of the packet, bytes.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(self.total_len.get())
    }

    /// Sets the total length, bytes.
    pub fn set_total_len(&mut self, len: u16) {
        self.total_len = U16::new(len);
    }

    /// Identification, for reassembly.
    pub fn id(&self) -> u16 {
        self.id.get()
    }

    /// Sets the identification.
    pub fn set_id(&mut self, id: u16) {
        self.id = U16::new(id);
    }

    /// Flags and offset as they stand: mask with [`DF`], [`MF`], [`OFFSET`].
    #[inline]
    pub fn flags_offset(&self) -> u16 {
        self.flags_offset.get()
    }

    /// Sets flags and offset.
    pub fn set_flags_offset(&mut self, value: u16) {
        self.flags_offset = U16::new(value);
    }

    /// Part of a bigger packet: more fragments follow or the offset is not zero.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.flags_offset.get() & (MF | OFFSET) != 0
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.src)
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.dst)
    }

    /// Sets the source address.
    pub fn set_src(&mut self, src: Ipv4Addr) {
        self.src = src.octets();
    }

    /// Sets the destination address.
    pub fn set_dst(&mut self, dst: Ipv4Addr) {
        self.dst = dst.octets();
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, value: u16) {
        self.checksum = U16::new(value);
    }

    /// One hop less, the checksum updated with it (RFC 1624). The caller has checked that TTL is at least 1.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        let old = u16::from_be_bytes([self.ttl, self.proto]);
        self.ttl = self.ttl.wrapping_sub(1);
        let new = u16::from_be_bytes([self.ttl, self.proto]);
        self.checksum = U16::new(checksum::update(self.checksum.get(), old, new));
    }
}

/// Computes and sets the checksum of the header, options included, at the front of `bytes`. Does nothing to bytes that hold no header.
pub fn fill_checksum(bytes: &mut [u8]) {
    let Some(header) = Header::read_mut(bytes) else { return };
    header.set_checksum(0);
    let len = header.header_len();
    let Some(sum) = bytes.get(..len).map(|header| Sum::default().bytes(header).finish()) else { return };
    if let Some(header) = Header::read_mut(bytes) {
        header.set_checksum(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_stays_right_through_every_ttl() {
        let mut header = Header::new(Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(172, 29, 40, 5), 17, 255, 100);
        fill_checksum(header.as_mut_bytes());
        while header.ttl > 0 {
            header.decrement_ttl();
            assert!(Sum::default().bytes(header.as_bytes()).is_valid(), "TTL {}", header.ttl);
        }
    }

    #[test]
    fn header_checksum_corner_cases_survive_a_decrement() {
        // known fault: headers whose checksum is 0x0000, 0xffff or 0xfeff before the decrement came out wrong elsewhere.
        for id in 0..=u16::MAX {
            let mut header = Header::new(Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(172, 29, 40, 5), 17, 64, 100);
            header.set_id(id);
            fill_checksum(header.as_mut_bytes());
            header.decrement_ttl();
            let mut fresh = header;
            fill_checksum(fresh.as_mut_bytes());
            assert_eq!(header.checksum(), fresh.checksum(), "identification {id}");
        }
    }
}
