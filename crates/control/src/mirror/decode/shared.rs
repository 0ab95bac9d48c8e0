//! What all SRv6 routes share: `ip sr tunsrc` and `ip sr hmac`, which are told over generic netlink, family `SEG6`, and only when asked.

use std::net::Ipv6Addr;

use srv6::HmacAlgorithm;

use super::message::{DUMP, REQUEST, build, push_attribute};
use super::{Family, attribute, attributes, text, u8_at, u16_at, u32_of};

/// `GENL_ID_CTRL`: the family that knows the others.
const CONTROL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const SEG6_CMD_DUMPHMAC: u8 = 2;
const SEG6_CMD_GET_TUNSRC: u8 = 4;
const SEG6_ATTR_DST: u16 = 1;
const SEG6_ATTR_HMACKEYID: u16 = 3;
const SEG6_ATTR_SECRET: u16 = 4;
const SEG6_ATTR_SECRETLEN: u16 = 5;
const SEG6_ATTR_ALGID: u16 = 6;
/// `struct genlmsghdr`.
const HEADER_LEN: usize = 4;

/// A key of `ip sr hmac`.
#[derive(Clone, PartialEq, Eq)]
pub struct HmacKey {
    /// Its number.
    pub id: u32,
    /// How it signs.
    pub algorithm: HmacAlgorithm,
    /// The secret.
    pub secret: Vec<u8>,
}

/// The secret stays one.
impl std::fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key {} {}", self.id, self.algorithm.word())
    }
}

/// Asks for the number that family `SEG6` has in this kernel.
pub fn family_request(sequence: u32) -> Vec<u8> {
    let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    push_attribute(&mut body, CTRL_ATTR_FAMILY_NAME, b"SEG6\0");
    build(CONTROL, REQUEST, sequence, &body)
}

/// Reads the answer to [`family_request`].
pub fn family(kind: u16, body: &[u8]) -> Option<u16> {
    let attributes = body.get(HEADER_LEN..).filter(|_| kind == CONTROL)?;
    let name = attribute(attributes, CTRL_ATTR_FAMILY_NAME).and_then(text)?;
    (name == "SEG6").then(|| u16_at(attribute(attributes, CTRL_ATTR_FAMILY_ID)?, 0))?
}

/// Asks for the source of outer headers.
pub fn tunsrc_request(family: u16, sequence: u32) -> Vec<u8> {
    build(family, REQUEST, sequence, &[SEG6_CMD_GET_TUNSRC, 1, 0, 0])
}

/// Reads the answer to [`tunsrc_request`].
pub fn tunsrc(body: &[u8]) -> Option<Ipv6Addr> {
    (u8_at(body, 0)? == SEG6_CMD_GET_TUNSRC).then(|| Ipv6Addr::read(attribute(body.get(HEADER_LEN..)?, SEG6_ATTR_DST)?))?
}

/// Asks for all keys.
pub fn keys_request(family: u16, sequence: u32) -> Vec<u8> {
    build(family, REQUEST | DUMP, sequence, &[SEG6_CMD_DUMPHMAC, 1, 0, 0])
}

/// Reads one key of the answer to [`keys_request`].
pub fn key(body: &[u8]) -> Option<HmacKey> {
    let (mut id, mut algorithm, mut secret, mut length) = (None, None, None, None);
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            SEG6_ATTR_HMACKEYID => id = u32_of(value),
            SEG6_ATTR_ALGID => algorithm = u8_at(value, 0),
            SEG6_ATTR_SECRET => secret = Some(value),
            SEG6_ATTR_SECRETLEN => length = u8_at(value, 0),
            _ => {}
        }
    }
    let algorithm = [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256].into_iter().find(|known| Some(*known as u8) == algorithm)?;
    Some(HmacKey { id: id?, algorithm, secret: secret?.get(..usize::from(length?))?.to_vec() })
}
