//! NEXT-C-SID: the next compressed SID is shifted into place within the destination address (RFC 9800 §4.1.1).

use std::net::Ipv6Addr;

use route::DropReason;
use wire::ipv6;

use crate::{Attr, Attributes, BuildError, Flavors};

/// ```text
/// | locator block (lblen) | locator node and function (nflen) | argument |      before
/// | locator block         | first nflen bits of the argument  | rest | 0 |      after
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextCsid {
    lblen: u8,
    nflen: u8,
}

impl NextCsid {
    const DEFAULT: NextCsid = NextCsid { lblen: 32, nflen: 16 };

    /// The lengths of a SID with the flavour, none without.
    ///
    /// # Errors
    /// A length that is zero or no multiple of 8, or lengths beyond 128 bits together.
    pub fn build(attributes: &Attributes) -> Result<Option<NextCsid>, BuildError> {
        if !attributes.flavors.contains(Flavors::NEXT_CSID) {
            return Ok(None);
        }
        let lblen = length(Attr::Lblen, attributes.lblen.unwrap_or(NextCsid::DEFAULT.lblen))?;
        let nflen = length(Attr::Nflen, attributes.nflen.unwrap_or(NextCsid::DEFAULT.nflen))?;
        match u16::from(lblen) + u16::from(nflen) > 128 {
            true => Err(BuildError::CsidSum { lblen, nflen }),
            false => Ok(Some(NextCsid { lblen, nflen })),
        }
    }

    /// Bits of the locator block.
    pub fn lblen(self) -> u8 {
        self.lblen
    }

    /// Bits of the locator node and function.
    pub fn nflen(self) -> u8 {
        self.nflen
    }

    /// Shifts the next compressed SID into place. False, and nothing changed, when the argument is zero: the container is used up.
    ///
    /// # Errors
    /// [`DropReason::HeaderTruncated`].
    #[inline]
    pub fn shift(self, packet: &mut [u8]) -> Result<bool, DropReason> {
        let header = ipv6::Header::read_mut(packet).ok_or(DropReason::HeaderTruncated)?;
        let next = self.next(header.dst());
        if let Some(next) = next {
            header.set_dst(next);
        }
        Ok(next.is_some())
    }

    fn next(self, sid: Ipv6Addr) -> Option<Ipv6Addr> {
        let (lblen, nflen) = (u32::from(self.lblen), u32::from(self.nflen));
        let after_block = u128::MAX.checked_shr(lblen).unwrap_or(0);
        let argument = sid.to_bits() & u128::MAX.checked_shr(lblen + nflen).unwrap_or(0);
        (argument != 0).then(|| Ipv6Addr::from_bits(sid.to_bits() & !after_block | argument << nflen))
    }
}

fn length(attr: Attr, bits: u8) -> Result<u8, BuildError> {
    match bits {
        8..=120 if bits.is_multiple_of(8) => Ok(bits),
        _ => Err(BuildError::CsidLength { attr, bits }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(lblen: u8, nflen: u8) -> Result<Option<NextCsid>, BuildError> {
        let (lblen, nflen) = (Some(lblen), Some(nflen));
        NextCsid::build(&Attributes { flavors: Flavors::NEXT_CSID, lblen, nflen, ..Attributes::default() })
    }

    fn next(lblen: u8, nflen: u8, sid: &str) -> Option<String> {
        lengths(lblen, nflen).unwrap().unwrap().next(sid.parse().unwrap()).map(|next| next.to_string())
    }

    #[test]
    fn fault_lengths_of_compressed_sids_not_checked() {
        for (lblen, nflen) in [(32, 16), (16, 32), (48, 8), (8, 48), (8, 120), (120, 8)] {
            assert_eq!(lengths(lblen, nflen), Ok(Some(NextCsid { lblen, nflen })));
        }
        for (lblen, nflen, attr, bits) in
            [(17, 16, Attr::Lblen, 17), (0, 16, Attr::Lblen, 0), (32, 0, Attr::Nflen, 0), (128, 8, Attr::Lblen, 128)]
        {
            assert_eq!(lengths(lblen, nflen), Err(BuildError::CsidLength { attr, bits }));
        }
        assert_eq!(lengths(120, 16), Err(BuildError::CsidSum { lblen: 120, nflen: 16 }));
    }

    #[test]
    fn the_lengths_are_32_and_16_unless_given() {
        let attributes = Attributes { flavors: Flavors::NEXT_CSID, ..Attributes::default() };
        assert_eq!(NextCsid::build(&attributes), Ok(Some(NextCsid { lblen: 32, nflen: 16 })));
        assert_eq!(NextCsid::build(&Attributes::default()), Ok(None));
    }

    #[test]
    fn the_argument_moves_behind_the_block() {
        assert_eq!(next(32, 16, "fcbb:0:100:200:300:400:500:600").as_deref(), Some("fcbb:0:200:300:400:500:600:0"));
        assert_eq!(next(48, 8, "fcbb:0:100:102:304:506:708:90a").as_deref(), Some("fcbb:0:100:203:405:607:809:a00"));
        assert_eq!(next(32, 16, "fcbb:0:100::1").as_deref(), Some("fcbb::1:0"));
    }

    #[test]
    fn an_argument_of_zero_ends_the_container() {
        assert_eq!(next(32, 16, "fcbb:0:100::"), None);
        assert_eq!(next(64, 64, "fcbb:0:100:200:300:400:500:600"), None);
    }
}
