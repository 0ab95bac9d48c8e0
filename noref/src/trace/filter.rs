//! Which packets a trace is for, in a few words: `port e0 from 10.0.0.0/8 proto tcp drop no_route`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use plane::Step;
use route::{Address, DropReason, Prefix};
use serde::{Deserialize, Serialize};
use wire::proto;

use super::layers::Layer;

/// What a packet must have; a condition that is not there is met by all.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// The port that it came in by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Its source as it came in, or that of a packet inside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Word<Net>>,
    /// As `from`, its destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Word<Net>>,
    /// A protocol of its headers as it came in, those of packets inside it included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proto: Option<Word<Protocol>>,
    /// A SID of the router that processed it: its address, or that of its prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sid: Option<Ipv6Addr>,
    /// Why it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<Word<Dropped>>,
}

/// The conditions by name, each with what stands behind it.
const CONDITIONS: [(&str, &str); 6] =
    [("port", "NAME"), ("from", "PREFIX"), ("to", "PREFIX"), ("proto", "NAME|NUMBER"), ("sid", "ADDRESS"), ("drop", "REASON")];

impl Filter {
    /// Reads a filter from words.
    ///
    /// # Errors
    /// The word that is wrong, and what would be right.
    pub fn parse(words: &[impl AsRef<str>]) -> Result<Filter, String> {
        let mut filter = Filter::default();
        let mut words = words.iter().map(AsRef::as_ref);
        while let Some(name) = words.next() {
            let Some((_, what)) = CONDITIONS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<_> = CONDITIONS.iter().map(|(name, what)| format!("{name} {what}")).collect();
                return Err(format!("{name:?} is no condition of a filter (accepted: {})", known.join(", ")));
            };
            let value = words.next().ok_or_else(|| format!("{name:?} needs {what} behind it"))?;
            let twice = match name {
                "port" => filter.port.replace(value.to_owned()).is_some(),
                "from" => filter.from.replace(value.parse()?).is_some(),
                "to" => filter.to.replace(value.parse()?).is_some(),
                "proto" => filter.proto.replace(value.parse()?).is_some(),
                "sid" => {
                    let sid = value.parse().map_err(|_| format!("sid: {value:?} is no IPv6 address"))?;
                    filter.sid.replace(sid).is_some()
                }
                _ => filter.drop.replace(value.parse()?).is_some(),
            };
            if twice {
                return Err(format!("{name:?} stands there twice; a packet must meet all conditions"));
            }
        }
        Ok(filter)
    }

    /// True when every packet meets it.
    pub fn is_all(&self) -> bool {
        *self == Filter::default()
    }

    /// True when it asks for what only the bytes of a packet, as it came in, say.
    fn asks_for_headers(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.proto.is_some()
    }

    /// True when headers as they came in meet it. `layers` is none of what did not come in: the router made it, or it came before the trace began.
    pub fn takes_headers(&self, layers: Option<&[Layer]>) -> bool {
        let Some(layers) = layers else { return !self.asks_for_headers() };
        self.from.is_none_or(|from| layers.iter().any(|layer| from.0.contains(layer.src)))
            && self.to.is_none_or(|to| layers.iter().any(|layer| to.0.contains(layer.dst)))
            && self.proto.is_none_or(|proto| layers.iter().any(|layer| layer.carries(proto.0.0)))
    }

    /// True when the steps of a packet meet it.
    pub fn takes_steps(&self, steps: &[Step]) -> bool {
        self.sid.is_none_or(|sid| steps.windows(2).any(|pair| is_processed(pair, sid))) && self.drop.is_none_or(|drop| drop.0.is_in(steps))
    }
}

/// True when the first of two steps leads to the SID and the second is what it did.
fn is_processed(pair: &[Step], sid: Ipv6Addr) -> bool {
    let [lookup, done] = pair else { return false };
    let is = |text: &str| text.split('/').next().and_then(|addr| addr.parse().ok()) == Some(sid);
    let mut parts = lookup.text.splitn(3, ": ");
    let (asked, found) = (parts.next(), parts.nth(1).and_then(|route| route.split(' ').next()));
    lookup.stage == "lookup" && done.stage == "seg6" && [asked, found].into_iter().flatten().any(is)
}

/// A value that is written as one word, on the command line and in JSON.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(try_from = "String", into = "String", bound(serialize = "T: fmt::Display + Copy", deserialize = "T: FromStr<Err = String>"))]
pub struct Word<T>(pub T);

impl<T: FromStr<Err = String>> FromStr for Word<T> {
    type Err = String;

    fn from_str(word: &str) -> Result<Word<T>, String> {
        word.parse().map(Word)
    }
}

impl<T: FromStr<Err = String>> TryFrom<String> for Word<T> {
    type Error = String;

    fn try_from(word: String) -> Result<Word<T>, String> {
        word.parse()
    }
}

impl<T: fmt::Display> From<Word<T>> for String {
    fn from(Word(value): Word<T>) -> String {
        value.to_string()
    }
}

/// Addresses of either family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Net {
    V4(Prefix<Ipv4Addr>),
    V6(Prefix<Ipv6Addr>),
}

impl Net {
    fn contains(self, addr: IpAddr) -> bool {
        match (self, addr) {
            (Net::V4(prefix), IpAddr::V4(addr)) => prefix.contains(addr),
            (Net::V6(prefix), IpAddr::V6(addr)) => prefix.contains(addr),
            _ => false,
        }
    }
}

impl FromStr for Net {
    type Err = String;

    fn from_str(word: &str) -> Result<Net, String> {
        let wrong = || format!("{word:?} is no prefix: write an address, and \"/\" and its length for several, as in 10.0.0.0/8");
        let (addr, len) = word.split_once('/').map_or((word, None), |(addr, len)| (addr, Some(len)));
        let addr: IpAddr = addr.parse().map_err(|_| wrong())?;
        let len: Option<u8> = len.map(str::parse).transpose().map_err(|_| wrong())?;
        let net = match addr {
            IpAddr::V4(addr) => Prefix::new(addr, len.unwrap_or(Ipv4Addr::BITS as u8)).map(Net::V4),
            IpAddr::V6(addr) => Prefix::new(addr, len.unwrap_or(Ipv6Addr::BITS as u8)).map(Net::V6),
        };
        net.ok_or_else(wrong)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn write<A: Address>(f: &mut fmt::Formatter<'_>, prefix: Prefix<A>) -> fmt::Result {
            write!(f, "{}/{}", prefix.addr(), prefix.len())
        }
        match *self {
            Net::V4(prefix) => write(f, prefix),
            Net::V6(prefix) => write(f, prefix),
        }
    }
}

/// An Internet protocol by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocol(pub u8);

/// Names of protocols (IANA, `/etc/protocols`); the first of a number is how it is shown.
const PROTOCOLS: [(&str, u8); 18] = [
    ("icmp", proto::ICMP4),
    ("igmp", proto::IGMP),
    ("ipip", proto::IPIP),
    ("ipv4", proto::IPIP),
    ("tcp", proto::TCP),
    ("udp", proto::UDP),
    ("ipv6", proto::IPV6),
    ("srh", proto::ROUTING),
    ("fragment", proto::FRAGMENT),
    ("gre", 47),
    ("esp", proto::ESP),
    ("ah", proto::AH),
    ("icmpv6", proto::ICMP6),
    ("ipv6-icmp", proto::ICMP6),
    ("ospf", 89),
    ("vrrp", 112),
    ("sctp", 132),
    ("ethernet", proto::ETHERNET),
];

impl FromStr for Protocol {
    type Err = String;

    fn from_str(word: &str) -> Result<Protocol, String> {
        let named = PROTOCOLS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
        named.or_else(|| word.parse().ok()).map(Protocol).ok_or_else(|| {
            let names: Vec<_> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
            format!("{word:?} is no protocol (accepted: {}, 0 to 255)", names.join(", "))
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Why a packet was dropped: for one reason, or whatever it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    Any,
    For(DropReason),
}

impl Dropped {
    fn is_in(self, steps: &[Step]) -> bool {
        let reason = |step: &Step| step.text.split(':').next().unwrap_or_default().parse::<Dropped>();
        steps.iter().any(|step| step.stage == "drop" && (self == Dropped::Any || reason(step) == Ok(self)))
    }
}

impl FromStr for Dropped {
    type Err = String;

    fn from_str(word: &str) -> Result<Dropped, String> {
        if word == "any" {
            return Ok(Dropped::Any);
        }
        let reason = DropReason::ALL.iter().find(|reason| reason.word() == word);
        reason.map(|reason| Dropped::For(*reason)).ok_or_else(|| {
            let near: Vec<_> =
                DropReason::ALL.iter().map(|reason| reason.word()).filter(|known| known.contains(word) && word.len() > 2).collect();
            let hint = if near.is_empty() {
                "docs/drop-reasons.md lists them, \"any\" is all".into()
            } else {
                format!("accepted: {}", near.join(", "))
            };
            format!("{word:?} is no reason to drop ({hint})")
        })
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::Any => f.write_str("any"),
            Dropped::For(reason) => f.write_str(reason.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use port::Time;

    use super::*;

    fn filter(words: &str) -> Filter {
        Filter::parse(&words.split_whitespace().collect::<Vec<_>>()).unwrap_or_else(|why| panic!("{words}: {why}"))
    }

    #[test]
    fn a_filter_survives_json() {
        let all = filter("port e0 from 10.1.2.3/8 to fd00::1 proto icmpv6 sid fc00::e drop no_route");
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(
            json,
            "{\"port\":\"e0\",\"from\":\"10.0.0.0/8\",\"to\":\"fd00::1/128\",\"proto\":\"icmpv6\",\"sid\":\"fc00::e\",\"drop\":\"no_route\"}"
        );
        assert_eq!(serde_json::from_str::<Filter>(&json).unwrap(), all);
        assert!(serde_json::from_str::<Filter>("{\"proto\":\"tcq\"}").is_err());
    }

    #[test]
    fn a_wrong_word_is_named_with_what_would_be_right() {
        for (words, message) in [
            ("to", "\"to\" needs PREFIX behind it"),
            ("src 10.0.0.1", "\"src\" is no condition of a filter (accepted: port NAME, from PREFIX, to PREFIX"),
            ("from 10.0.0.0/33", "\"10.0.0.0/33\" is no prefix"),
            ("from ten", "\"ten\" is no prefix"),
            ("proto tcq", "\"tcq\" is no protocol (accepted: icmp, "),
            ("proto 256", "\"256\" is no protocol"),
            ("sid 10.0.0.1", "sid: \"10.0.0.1\" is no IPv6 address"),
            ("drop blackh", "(accepted: route_blackhole, rule_blackhole)"),
            ("drop nothing-like-it", "docs/drop-reasons.md lists them"),
            ("port e0 port e1", "\"port\" stands there twice"),
        ] {
            let said = Filter::parse(&words.split_whitespace().collect::<Vec<_>>()).unwrap_err();
            assert!(said.contains(message), "{words}: expected {message:?} in {said}");
        }
    }

    fn step(stage: &'static str, text: &str) -> Step {
        Step { frame: 0, time: Time::ZERO, stage, text: text.into() }
    }

    #[test]
    fn a_sid_is_known_by_the_lookup_that_led_to_it() {
        let steps = [
            step("in", "e0: 98 bytes"),
            step("lookup", "fc00::e: rule 0, table main: fc00::e unicast seg6local action End dev e1"),
            step("seg6", "End: before → after"),
            step("lookup", "fc00:b:1::: rule 32766, table main: fc00:b::/32 unicast seg6local action End dev e1"),
            step("seg6", "End: before → after"),
            step("lookup", "fd02::2: rule 32766, table main: fd02::/64 unicast dev e1"),
            step("forward", "63 hops left"),
        ];
        for (sid, is) in [("fc00::e", true), ("fc00:b:1::", true), ("fc00:b::", true), ("fd02::2", false), ("fc00::f", false)] {
            assert_eq!(filter(&format!("sid {sid}")).takes_steps(&steps), is, "{sid}");
        }
    }

    #[test]
    fn a_drop_is_known_by_its_reason() {
        let steps = [step("drop", &format!("{}: {}", DropReason::NoRoute.word(), DropReason::NoRoute.meaning()))];
        assert!(filter("drop no_route").takes_steps(&steps) && filter("drop any").takes_steps(&steps));
        assert!(!filter("drop hop_limit").takes_steps(&steps) && !filter("drop any").takes_steps(&[step("out", "e1")]));
    }
}
