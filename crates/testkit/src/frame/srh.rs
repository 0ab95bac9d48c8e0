//! The segment routing header, with TLVs and HMAC (RFC 8754 §2).

use super::Context;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;
use std::net::Ipv6Addr;

/// Bytes of an HMAC TLV: type, length, two reserved, key id, digest.
const HMAC_LEN: usize = 40;

/// Pads with PadN (Pad1 for one byte) to a multiple of 8 bytes. The type numbers are those of IPv6 options (1) or of SRH TLVs (4).
pub(super) fn pad(bytes: &mut Vec<u8>, padn: u8) {
    match bytes.len().next_multiple_of(8) - bytes.len() {
        0 => {}
        1 => bytes.push(0),
        n => {
            bytes.extend_from_slice(&[padn, n as u8 - 2]);
            bytes.resize(bytes.len() + n - 2, 0);
        }
    }
}

/// A keyed hash that signs an SRH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// HMAC-SHA-1, 20 bytes, filled up with zeros in the TLV.
    Sha1,
    /// HMAC-SHA-256, 32 bytes.
    Sha256,
}

/// A segment routing header: segments left points to the first segment, flags and tag are 0.
#[derive(Clone, Debug)]
pub struct Srh {
    path: Vec<Ipv6Addr>,
    segments_left: u8,
    last_entry: u8,
    flags: u8,
    tag: u16,
    tlvs: Vec<u8>,
    hmac: Option<(u32, Hash, Vec<u8>)>,
    routing_type: u8,
    next_header: Option<u8>,
    hdr_ext_len: Option<u8>,
}

impl Srh {
    /// A header that visits `path` in its order (on the wire the list is reversed).
    pub fn through(path: &[Ipv6Addr]) -> Srh {
        let last = path.len().saturating_sub(1) as u8;
        Srh {
            path: path.to_vec(),
            segments_left: last,
            last_entry: last,
            flags: 0,
            tag: 0,
            tlvs: Vec::new(),
            hmac: None,
            routing_type: wire::srh::TYPE,
            next_header: None,
            hdr_ext_len: None,
        }
    }

    /// Index of the active segment, counted from the end of the path.
    pub fn segments_left(mut self, left: u8) -> Srh {
        self.segments_left = left;
        self
    }

    /// Another last entry than the true one.
    pub fn last_entry(mut self, last: u8) -> Srh {
        self.last_entry = last;
        self
    }

    /// Flags octet.
    pub fn flags(mut self, flags: u8) -> Srh {
        self.flags = flags;
        self
    }

    /// Tag.
    pub fn tag(mut self, tag: u16) -> Srh {
        self.tag = tag;
        self
    }

    /// Adds the bytes of one TLV: type, length, value. Padding to a multiple of 8 bytes follows the last by itself.
    pub fn tlv(mut self, tlv: &[u8]) -> Srh {
        self.tlvs.extend_from_slice(tlv);
        self
    }

    /// Signs the header with key `id`; the TLV stands behind the others.
    pub fn hmac(mut self, id: u32, hash: Hash, secret: &[u8]) -> Srh {
        self.hmac = Some((id, hash, secret.to_vec()));
        self
    }

    /// Another routing type than 4.
    pub fn routing_type(mut self, number: u8) -> Srh {
        self.routing_type = number;
        self
    }

    /// Another next header than that of what is inside.
    pub fn next_header(mut self, number: u8) -> Srh {
        self.next_header = Some(number);
        self
    }

    /// Another length field (units of 8 bytes, less one) than the true one.
    pub fn hdr_ext_len(mut self, units: u8) -> Srh {
        self.hdr_ext_len = Some(units);
        self
    }

    /// Where the packet goes in the end, if it is not there yet.
    pub(super) fn last_segment(&self) -> Option<Ipv6Addr> {
        self.path.last().copied().filter(|_| self.segments_left > 0)
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![self.next_header.unwrap_or(context.next_header()), 0, self.routing_type, self.segments_left];
        bytes.extend_from_slice(&[self.last_entry, self.flags]);
        bytes.extend_from_slice(&self.tag.to_be_bytes());
        for segment in self.path.iter().rev() {
            bytes.extend_from_slice(&segment.octets());
        }
        bytes.extend_from_slice(&self.tlvs);
        pad(&mut bytes, wire::srh::TLV_PADN);
        if let Some((id, hash, secret)) = &self.hmac {
            bytes.extend_from_slice(&[wire::srh::TLV_HMAC, HMAC_LEN as u8 - 2, 0, 0]);
            bytes.extend_from_slice(&id.to_be_bytes());
            bytes.extend_from_slice(&self.digest(context, *id, *hash, secret));
        }
        bytes[1] = self.hdr_ext_len.unwrap_or((bytes.len() / 8 - 1) as u8);
        bytes.extend_from_slice(payload);
        bytes
    }

    /// The digest over source address, last entry, flags, key id and segment list (RFC 8754 §2.1.2.1).
    fn digest(&self, context: &Context<'_>, id: u32, hash: Hash, secret: &[u8]) -> [u8; 32] {
        let mut text = context.ipv6_source().unwrap_or(Ipv6Addr::UNSPECIFIED).octets().to_vec();
        text.extend_from_slice(&[self.last_entry, self.flags]);
        text.extend_from_slice(&id.to_be_bytes());
        for segment in self.path.iter().rev() {
            text.extend_from_slice(&segment.octets());
        }
        let mut digest = [0; 32];
        match hash {
            Hash::Sha1 => {
                let mut mac = Hmac::<Sha1>::new_from_slice(secret).expect("HMAC takes a key of any length");
                mac.update(&text);
                digest[..20].copy_from_slice(&mac.finalize().into_bytes());
            }
            Hash::Sha256 => {
                let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
                mac.update(&text);
                digest.copy_from_slice(&mac.finalize().into_bytes());
            }
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;
    use crate::frame::{Ipv6, Udp};

    #[test]
    fn the_segment_list_is_the_path_reversed() {
        let path = [addr::sid(1), addr::sid(2), addr::sid(3)];
        let packet = (Ipv6::new(addr::v6(1), path[0]) / Srh::through(&path) / Udp::new(1, 2)).bytes();
        assert_eq!(&packet[40..48], [17, 6, 4, 2, 2, 0, 0, 0]);
        assert_eq!(packet[48..64], path[2].octets());
        assert_eq!(packet[80..96], path[0].octets());
    }

    #[test]
    fn tlvs_are_padded_to_eight_bytes_and_counted() {
        let packet = (Ipv6::test() / Srh::through(&[addr::sid(1)]).tlv(&[124, 3, 1, 2, 3]) / Udp::new(1, 2)).bytes();
        assert_eq!(packet[41], 3);
        assert_eq!(&packet[64..72], [124, 3, 1, 2, 3, 4, 1, 0]);
    }

    #[test]
    fn an_hmac_covers_the_source_and_not_the_destination() {
        let digest = |src, dst| {
            let srh = Srh::through(&[addr::sid(1), addr::sid(2)]).hmac(7, Hash::Sha256, b"secret");
            (Ipv6::new(src, dst) / srh / Udp::new(1, 2)).bytes()[80..120].to_vec()
        };
        assert_eq!(digest(addr::v6(1), addr::v6(2)), digest(addr::v6(1), addr::v6(3)));
        assert_ne!(digest(addr::v6(1), addr::v6(2)), digest(addr::v6(4), addr::v6(2)));
        assert_eq!(&digest(addr::v6(1), addr::v6(2))[..8], [5, 38, 0, 0, 0, 0, 0, 7]);
    }
}
