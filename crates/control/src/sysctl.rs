//! `sysctl`: kernel settings by name. One row of a table is one setting: its name, the values it takes and what it does.

use std::borrow::Cow;

use route::{Conf4, Conf6, ConfigError, Editor, HashField, Settings};

use crate::error::{Error, Fault};
use crate::span::{Span, Spanned, Word};
use crate::words::{Words, no_value};

/// A setting and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting<'t> {
    /// Which setting.
    pub sysctl: &'static Sysctl,
    /// Whose, if it is one of interfaces.
    pub target: Option<Target<'t>>,
    /// What it is set to.
    pub value: Spanned<i64>,
}

/// Whose setting, of those that each interface has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target<'t> {
    /// `all`.
    All,
    /// `default`: of interfaces yet to come.
    Default,
    /// This one's.
    Device(Cow<'t, str>, Span),
}

/// A setting that noref knows.
#[derive(Debug)]
pub struct Sysctl {
    /// Its name; `*` stands for the interface.
    pub name: &'static str,
    /// Least value.
    pub least: i64,
    /// Greatest value.
    pub most: i64,
    pub(crate) effect: Effect,
}

/// Settings are told apart by their names.
impl PartialEq for Sysctl {
    fn eq(&self, other: &Sysctl) -> bool {
        self.name == other.name
    }
}

/// What setting it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// A setting of the router as a whole.
    Router(fn(&mut Settings, i64)),
    /// Something that touches more than settings, and may be refused.
    Checked(fn(&mut Editor, i64) -> Result<(), ConfigError>),
    /// An IPv4 setting of interfaces.
    Conf4(fn(&mut Conf4, i64)),
    /// An IPv6 setting of interfaces.
    Conf6(fn(&mut Conf6, i64)),
    /// Nothing: noref always behaves as the one value accepted says.
    Always,
}

const fn router(name: &'static str, least: i64, most: i64, set: fn(&mut Settings, i64)) -> Sysctl {
    Sysctl { name, least, most, effect: Effect::Router(set) }
}

const fn checked(name: &'static str, least: i64, most: i64, set: fn(&mut Editor, i64) -> Result<(), ConfigError>) -> Sysctl {
    Sysctl { name, least, most, effect: Effect::Checked(set) }
}

const fn conf4(name: &'static str, least: i64, most: i64, set: fn(&mut Conf4, i64)) -> Sysctl {
    Sysctl { name, least, most, effect: Effect::Conf4(set) }
}

const fn conf6(name: &'static str, least: i64, most: i64, set: fn(&mut Conf6, i64)) -> Sysctl {
    Sysctl { name, least, most, effect: Effect::Conf6(set) }
}

const fn always(name: &'static str, value: i64) -> Sysctl {
    Sysctl { name, least: value, most: value, effect: Effect::Always }
}

const INT: i64 = i32::MAX as i64;

/// Every setting that noref knows. Values are checked against the row before its function is called.
pub const SYSCTLS: &[Sysctl] = &[
    checked("net.ipv4.ip_forward", 0, 1, |editor, value| editor.conf4(None, |conf| conf.forwarding = value != 0)),
    router("net.ipv4.ip_default_ttl", 1, 255, |all, value| all.default_ttl = value as u8),
    router("net.ipv4.icmp_ratelimit", 0, INT, |all, value| all.icmp4_ratelimit = value as u32),
    router("net.ipv4.icmp_ratemask", 0, u32::MAX as i64, |all, value| all.icmp4_ratemask = value as u32),
    router("net.ipv4.icmp_msgs_per_sec", 0, INT, |all, value| all.icmp4_msgs_per_sec = value as u32),
    router("net.ipv4.icmp_msgs_burst", 0, INT, |all, value| all.icmp4_msgs_burst = value as u32),
    router("net.ipv4.icmp_errors_use_inbound_ifaddr", 0, 1, |all, value| all.icmp4_errors_use_inbound = value != 0),
    router("net.ipv4.icmp_echo_ignore_all", 0, 1, |all, value| all.icmp4_echo_ignore_all = value != 0),
    router("net.ipv4.icmp_echo_ignore_broadcasts", 0, 1, |all, value| all.icmp4_echo_ignore_broadcasts = value != 0),
    router("net.ipv4.fib_multipath_hash_policy", 0, 3, |all, value| all.multipath4.policy = value as u8),
    router("net.ipv4.fib_multipath_hash_fields", 1, HashField::ALL as i64, |all, value| all.multipath4.fields = value as u16),
    router("net.ipv4.fib_multipath_hash_seed", 0, u32::MAX as i64, |all, value| all.multipath_seed = value as u32),
    router("net.ipv4.fib_multipath_use_neigh", 0, 1, |all, value| all.multipath_use_neigh = value != 0),
    conf4("net.ipv4.conf.*.forwarding", 0, 1, |conf, value| conf.forwarding = value != 0),
    conf4("net.ipv4.conf.*.rp_filter", 0, 2, |conf, value| conf.rp_filter = value as u8),
    conf4("net.ipv4.conf.*.accept_source_route", 0, 1, |conf, value| conf.accept_source_route = value != 0),
    conf4("net.ipv4.conf.*.send_redirects", 0, 1, |conf, value| conf.send_redirects = value != 0),
    conf4("net.ipv4.conf.*.accept_local", 0, 1, |conf, value| conf.accept_local = value != 0),
    always("net.ipv4.conf.*.accept_redirects", 0),
    router("net.ipv6.icmp.ratelimit", 0, INT, |all, value| all.icmp6_ratelimit = value as u32),
    router("net.ipv6.icmp.echo_ignore_all", 0, 1, |all, value| all.icmp6_echo_ignore_all = value != 0),
    router("net.ipv6.seg6_flowlabel", -1, 1, |all, value| all.seg6_flowlabel = value as i8),
    router("net.ipv6.fib_multipath_hash_policy", 0, 3, |all, value| all.multipath6.policy = value as u8),
    router("net.ipv6.fib_multipath_hash_fields", 1, HashField::ALL as i64, |all, value| all.multipath6.fields = value as u16),
    conf6("net.ipv6.conf.*.forwarding", 0, 1, |conf, value| conf.forwarding = value != 0),
    conf6("net.ipv6.conf.*.seg6_enabled", 0, 1, |conf, value| conf.seg6_enabled = value != 0),
    conf6("net.ipv6.conf.*.seg6_require_hmac", -1, 1, |conf, value| conf.seg6_require_hmac = value as i8),
    conf6("net.ipv6.conf.*.disable_ipv6", 0, 1, |conf, value| conf.disable_ipv6 = value != 0),
    conf6("net.ipv6.conf.*.hop_limit", 1, 255, |conf, value| conf.hop_limit = value as u8),
    conf6("net.ipv6.conf.*.accept_source_route", -1, 1, |conf, value| conf.accept_source_route = value as i8),
    always("net.ipv6.conf.*.accept_ra", 0),
    always("net.ipv6.conf.*.accept_redirects", 0),
    always("net.ipv6.conf.*.autoconf", 0),
    always("net.ipv6.conf.*.accept_dad", 0),
    always("net.ipv6.conf.*.dad_transmits", 0),
    checked("net.vrf.strict_mode", 0, 1, |editor, value| editor.set_vrf_strict_mode(value != 0)),
];

/// Settings of Linux that change what a router does and that noref does not have yet.
const LATER: &[&str] = &[
    "net.ipv4.ip_forward_use_pmtu",
    "net.ipv4.ip_forward_update_priority",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_low_thresh",
    "net.ipv4.ipfrag_time",
    "net.ipv4.ipfrag_max_dist",
    "net.ipv6.ip6frag_high_thresh",
    "net.ipv6.ip6frag_low_thresh",
    "net.ipv6.ip6frag_time",
    "net.ipv6.icmp.ratemask",
    "net.ipv6.icmp.error_anycast_as_unicast",
    "net.ipv6.flowlabel_reflect",
    "net.ipv6.auto_flowlabels",
    "net.ipv4.conf.*.arp_ignore",
    "net.ipv4.conf.*.arp_announce",
    "net.ipv4.conf.*.arp_filter",
    "net.ipv4.conf.*.arp_accept",
    "net.ipv4.conf.*.proxy_arp",
    "net.ipv4.conf.*.route_localnet",
    "net.ipv4.conf.*.src_valid_mark",
    "net.ipv4.conf.*.secure_redirects",
    "net.ipv4.conf.*.shared_media",
    "net.ipv4.conf.*.log_martians",
    "net.ipv4.conf.*.mc_forwarding",
    "net.ipv4.conf.*.ignore_routes_with_linkdown",
    "net.ipv4.conf.*.drop_gratuitous_arp",
    "net.ipv6.conf.*.proxy_ndp",
    "net.ipv6.conf.*.mtu",
    "net.ipv6.conf.*.addr_gen_mode",
    "net.ipv6.conf.*.keep_addr_on_down",
    "net.ipv6.conf.*.mc_forwarding",
    "net.ipv6.conf.*.ignore_routes_with_linkdown",
    "net.ipv6.conf.*.ioam6_enabled",
    "net.ipv6.conf.*.rpl_seg_enabled",
];

/// Reads what follows `sysctl`: `[-w] NAME=VALUE…`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>) -> Result<Vec<Setting<'t>>, Error> {
    while words.take("-w") || words.take("--write") || words.take("-q") {}
    let mut settings = vec![setting(words.value("a setting (NAME=VALUE)")?)?];
    while let Some(word) = words.next() {
        settings.push(setting(word)?);
    }
    Ok(settings)
}

fn setting(word: Word<'_>) -> Result<Setting<'_>, Error> {
    if word.text.starts_with('-') {
        return Err(no_value(word, "an option", "the settings follow the options that are accepted").accepting(vec!["-w".to_owned()]));
    }
    let Some((name, value)) = word.text.split_once('=') else {
        return Err(no_value(word, "a setting", "NAME=VALUE is expected, without spaces"));
    };
    let name = word.part(0, name.len());
    let value = word.part(word.text.len() - value.len(), word.text.len());
    let (sysctl, target) = named(name)?;
    let Sysctl { least, most, .. } = *sysctl;
    let number = number(value.text).ok_or_else(|| no_value(value, "a number", format!("{} takes {least} to {most}", sysctl.name)))?;
    if !(least..=most).contains(&number) {
        return Err(match sysctl.effect {
            Effect::Always => Error::not_implemented(value.span, format!("{} other than {least}", sysctl.name)),
            _ => no_value(value, "a value of this setting", format!("{} takes {least} to {most}", sysctl.name)),
        });
    }
    Ok(Setting { sysctl, target, value: value.with(number) })
}

/// Settings are signed.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => crate::number::fitting::<i64>(digits)?.checked_neg(),
        None => crate::number::fitting(text),
    }
}

/// Finds the setting of a name written with dots or slashes. The first separator decides which: in a name with dots a slash stands for a dot in
/// the name of an interface, in a name with slashes a dot is a dot.
fn named<'t>(name: Word<'t>) -> Result<(&'static Sysctl, Option<Target<'t>>), Error> {
    let dotted = name.text.find(['.', '/']).is_none_or(|at| name.text.as_bytes().get(at) == Some(&b'.'));
    let separator = if dotted { '.' } else { '/' };
    let mut at = 0;
    let mut parts = Vec::with_capacity(6);
    for part in name.text.split(separator) {
        parts.push(name.part(at, at + part.len()));
        at += part.len() + 1;
    }
    let of_interfaces =
        matches!(parts.as_slice(), [net, ip, conf, ..] if net.text == "net" && matches!(ip.text, "ipv4" | "ipv6") && conf.text == "conf");
    let mut target = None;
    let full = match parts.as_slice() {
        [_, ip, _, device, last] if of_interfaces => {
            target = Some(match device.text {
                "all" => Target::All,
                "default" => Target::Default,
                plain if !dotted || !plain.contains('/') => Target::Device(Cow::Borrowed(plain), device.span),
                swapped => Target::Device(Cow::Owned(swapped.replace('/', ".")), device.span),
            });
            format!("net.{}.conf.*.{}", ip.text, last.text)
        }
        _ => parts.iter().map(|part| part.text).collect::<Vec<_>>().join("."),
    };
    if let Some(sysctl) = SYSCTLS.iter().find(|sysctl| sysctl.name == full && (target.is_some() == sysctl.name.contains('*'))) {
        return Ok((sysctl, target));
    }
    if LATER.contains(&full.as_str()) {
        return Err(Error::not_implemented(name.span, full));
    }
    // Those of the same protocol, and of interfaces or not.
    let near = |known: &&Sysctl| known.name.split('.').take(2).eq(full.split('.').take(2)) && known.name.contains('*') == of_interfaces;
    let accepted = SYSCTLS.iter().filter(near).map(|known| known.name.to_owned()).collect();
    let hint = match parts.as_slice() {
        [net, ip, conf, device @ .., last] if of_interfaces && dotted && device.len() > 1 => {
            let device = device.iter().map(|part| part.text).collect::<Vec<_>>().join("/");
            Some(format!(
                "a dot in the name of an interface is written as a slash: {}.{}.{}.{device}.{}",
                net.text, ip.text, conf.text, last.text
            ))
        }
        _ => None,
    };
    let error = Error::new(name.span, Fault::Unknown { what: "setting", word: full }).accepting(accepted);
    Err(match hint {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn only(line: &str) -> (&'static str, Option<String>, i64) {
        match parsed(line) {
            Ok(Command::Sysctl(settings)) => {
                let [Setting { sysctl, target, value }] = settings.as_slice() else { panic!("{line}: {settings:?}") };
                let target = target.as_ref().map(|target| match target {
                    Target::All => "(all)".to_owned(),
                    Target::Default => "(default)".to_owned(),
                    Target::Device(name, _) => name.to_string(),
                });
                (sysctl.name, target, value.value)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_name_is_written_with_dots_or_slashes() {
        assert_eq!(only("sysctl -w net.ipv4.ip_forward=1"), ("net.ipv4.ip_forward", None, 1));
        assert_eq!(only("sysctl net/ipv6/seg6_flowlabel=-1"), ("net.ipv6.seg6_flowlabel", None, -1));
        let rp_filter = |device: &str| ("net.ipv4.conf.*.rp_filter", Some(device.to_owned()), 2);
        assert_eq!(only("sysctl -w net.ipv4.conf.e0.rp_filter=2"), rp_filter("e0"));
        assert_eq!(only("sysctl -w net.ipv4.conf.all.rp_filter=2"), rp_filter("(all)"));
        assert_eq!(only("sysctl -w net/ipv4/conf/default/rp_filter=0x2"), rp_filter("(default)"));
        assert_eq!(only("sysctl -w net/ipv4/conf/e0.100/rp_filter=2"), rp_filter("e0.100"));
        assert_eq!(only("sysctl -w net.ipv4.conf.e0/100.rp_filter=2"), rp_filter("e0.100"));
    }

    #[test]
    fn several_settings_may_stand_in_a_line() {
        let Ok(Command::Sysctl(settings)) = parsed("sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1") else { panic!() };
        assert_eq!(settings.len(), 2);
    }

    #[test]
    fn names_and_values_are_checked() {
        assert_eq!(fault("sysctl -w net.ipv4.ip_forwad=1"), "unknown setting \"net.ipv4.ip_forwad\"");
        assert_eq!(fault("sysctl -w net.ipv4.conf.e0.100.rp_filter=1"), "unknown setting \"net.ipv4.conf.e0.100.rp_filter\"");
        assert_eq!(fault("sysctl -w net.ipv4.conf.*.rp_filter.x=1"), "unknown setting \"net.ipv4.conf.*.rp_filter.x\"");
        assert_eq!(fault("sysctl -w net.ipv4.ipfrag_time=1"), "net.ipv4.ipfrag_time is not implemented yet");
        assert_eq!(only("sysctl -w net.ipv4.fib_multipath_hash_fields=0x37"), ("net.ipv4.fib_multipath_hash_fields", None, 0x37));
        assert_eq!(fault("sysctl -w net.ipv6.conf.e0.accept_ra=1"), "net.ipv6.conf.*.accept_ra other than 0 is not implemented yet");
        assert_eq!(
            fault("sysctl -w net.ipv4.ip_default_ttl=256"),
            "\"256\" is not a value of this setting: net.ipv4.ip_default_ttl takes 1 to 255"
        );
        assert_eq!(fault("sysctl -w net.ipv4.ip_forward=on"), "\"on\" is not a number: net.ipv4.ip_forward takes 0 to 1");
        assert_eq!(
            fault("sysctl -w net.ipv4.ip_forward"),
            "\"net.ipv4.ip_forward\" is not a setting: NAME=VALUE is expected, without spaces"
        );
        assert_eq!(fault("sysctl -p file"), "\"-p\" is not an option: the settings follow the options that are accepted");
        assert_eq!(fault("sysctl"), "\"sysctl\" needs a setting (NAME=VALUE)");
    }

    #[test]
    fn every_name_stands_once_and_its_range_is_one() {
        for (number, sysctl) in SYSCTLS.iter().enumerate() {
            assert!(sysctl.least <= sysctl.most, "{}", sysctl.name);
            assert!(SYSCTLS.iter().skip(number + 1).all(|other| other.name != sysctl.name), "{}", sysctl.name);
            assert!(!LATER.contains(&sysctl.name), "{}", sysctl.name);
        }
    }
}
