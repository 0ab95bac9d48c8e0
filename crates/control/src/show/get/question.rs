//! What is asked, as it was written.

use std::net::IpAddr;

use ::route::{Editor, IfIndex, Upper};
use plane::get::Question;

use crate::address::{self, Family};
use crate::apply::Narrow;
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::show::device;
use crate::span::{Spanned, Word};
use crate::words::{Words, no_value, once, unknown};
use crate::{dsfield, ipproto, number, route};

/// `ip route get …`.
pub(in crate::show) struct Asked<'t> {
    pub(super) destination: Spanned<IpAddr>,
    source: Option<Spanned<IpAddr>>,
    iif: Option<Word<'t>>,
    oif: Option<Word<'t>>,
    vrf: Option<Word<'t>>,
    mark: Option<Spanned<u32>>,
    dsfield: Option<Spanned<u8>>,
    protocol: Option<Spanned<u8>>,
    sport: Option<Spanned<u16>>,
    dport: Option<Spanned<u16>>,
    uid: Option<Spanned<u32>>,
    /// The route itself is shown.
    pub(super) fibmatch: bool,
    /// noref's own: it is shown why.
    pub(super) explain: bool,
}

#[derive(Clone, Copy)]
enum Key {
    DsField,
    From,
    Iif,
    Mark,
    Oif,
    Vrf,
    Uid,
    FibMatch,
    Sport,
    Dport,
    Protocol,
    To,
    Explain,
    /// iproute2 knows it, noref not yet.
    Later,
}

/// In iproute2's order.
const KEYS: &[Keyword<Key>] = &[
    full("tos", Key::DsField),
    short("dsfield", Key::DsField),
    short("from", Key::From),
    short("iif", Key::Iif),
    short("mark", Key::Mark),
    short("oif", Key::Oif),
    full("dev", Key::Oif),
    short("notify", Key::Later),
    short("connected", Key::Later),
    short("vrf", Key::Vrf),
    short("uid", Key::Uid),
    short("fibmatch", Key::FibMatch),
    full("as", Key::Later),
    short("sport", Key::Sport),
    short("dport", Key::Dport),
    short("ipproto", Key::Protocol),
    full("flowlabel", Key::Later),
    full("to", Key::To),
    full("explain", Key::Explain),
];

impl<'t> Asked<'t> {
    /// Reads what follows `ip route get`.
    pub(in crate::show) fn parse(words: &mut Words<'_, 't>, mut family: Option<Family>) -> Result<Asked<'t>, Error> {
        let mut destination = None;
        let mut asked = Asked {
            destination: Spanned::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), crate::span::Span::default()),
            source: None,
            iif: None,
            oif: None,
            vrf: None,
            mark: None,
            dsfield: None,
            protocol: None,
            sport: None,
            dport: None,
            uid: None,
            fibmatch: false,
            explain: false,
        };
        while let Some(word) = words.next() {
            match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
                Some(Key::DsField) => once(&mut asked.dsfield, ds_field(words.value("a DS field")?)?, word)?,
                Some(Key::From) => once(&mut asked.source, host(words.value("an address")?, &mut family)?, word)?,
                Some(Key::Iif) => once(&mut asked.iif, words.value("a device")?, word)?,
                Some(Key::Oif) => once(&mut asked.oif, words.value("a device")?, word)?,
                Some(Key::Vrf) => once(&mut asked.vrf, words.value("a VRF device")?, word)?,
                Some(Key::Mark) => once(&mut asked.mark, number::u32(words.value("a mark")?, "a mark")?, word)?,
                Some(Key::Uid) => once(&mut asked.uid, number::u32(words.value("a user's number")?, "the number of a user")?, word)?,
                Some(Key::FibMatch) => asked.fibmatch = true,
                Some(Key::Explain) => asked.explain = true,
                Some(Key::Sport) => once(&mut asked.sport, port(words.value("a port")?)?, word)?,
                Some(Key::Dport) => once(&mut asked.dport, port(words.value("a port")?)?, word)?,
                Some(Key::Protocol) => once(&mut asked.protocol, ipproto::parse(words.value("a protocol")?)?, word)?,
                Some(Key::Later) => return Err(Error::not_implemented(word.span, format!("\"{}\" of \"route get\"", word.text))),
                Some(Key::To) => once(&mut destination, host(words.value("an address")?, &mut family)?, word)?,
                None if route::looks_like_prefix(word.text) => once(&mut destination, host(word, &mut family)?, word)?,
                None => return Err(unknown(word, "keyword", keyword::words_of(KEYS, |key| !matches!(key, Key::Later)))),
            }
        }
        asked.destination = destination.ok_or_else(|| words.incomplete("\"ip route get\"", "a destination (an address)"))?;
        if let Some(oif) = asked.oif.filter(|_| asked.vrf.is_some()) {
            return Err(Error::refused(oif.span, "a packet leaves by a device or is looked up in a VRF, not both"));
        }
        Ok(asked)
    }

    /// The question, its devices resolved.
    ///
    /// # Errors
    /// A device that does not exist, or is no VRF's; a source of the other family.
    pub(super) fn question<A: Narrow>(&self, dst: A, editor: &Editor) -> Result<Question<A>, Error> {
        let index = |word: Option<Word<'t>>| word.map(|word| device(editor, word)).transpose();
        let vrf = index(self.vrf)?;
        if let (Some(vrf), Some(word)) = (vrf, self.vrf)
            && !editor.links().get(vrf).is_some_and(|link| link.is_vrf())
        {
            return Err(Error::refused(word.span, format!("\"{}\" is not a VRF device", word.text)));
        }
        let other = |span| Error::refused(span, "source and destination are not of one family");
        let src = self.source.map(|source| A::narrow(source.value).ok_or_else(|| other(source.span))).transpose()?;
        let value = |port: Option<Spanned<u16>>| port.map_or(0, |port| port.value);
        Ok(Question {
            dst,
            src,
            iif: index(self.iif)?,
            oif: index(self.oif)?.or(vrf).filter(|oif| *oif != IfIndex(0)),
            mark: self.mark.map_or(0, |mark| mark.value),
            dsfield: self.dsfield.map_or(0, |dsfield| dsfield.value),
            upper: Upper {
                protocol: self.protocol.map_or(0, |protocol| protocol.value),
                sport: value(self.sport),
                dport: value(self.dport),
            },
        })
    }

    /// Whose packet it would be: of one that the router sends, without a word, of who asks.
    pub(super) fn uid(&self, own: bool) -> Option<u32> {
        self.uid.map(|uid| uid.value).or_else(|| own.then(|| nix::unistd::getuid().as_raw()))
    }
}

/// An address, alone or with its whole length.
fn host(word: Word<'_>, family: &mut Option<Family>) -> Result<Spanned<IpAddr>, Error> {
    let prefix = address::prefix(word, *family)?.value;
    let host = prefix.filter(|prefix| prefix.len == if prefix.addr.is_ipv4() { 32 } else { 128 });
    let host = host.ok_or_else(|| no_value(word, "an address", "one address is asked about, not a network"))?;
    *family = Some(host.family());
    Ok(word.with(host.addr))
}

fn ds_field(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    let dsfield = dsfield::parse(word)?;
    if dsfield.value & 3 != 0 {
        return Err(no_value(word, "a DS field to ask for", "its last two bits are ECN and must be 0"));
    }
    Ok(dsfield)
}

fn port(word: Word<'_>) -> Result<Spanned<u16>, Error> {
    number::fitting::<u16>(word.text)
        .map(|port| word.with(port))
        .ok_or_else(|| no_value(word, "a port", "a number from 0 to 65535 is expected"))
}
