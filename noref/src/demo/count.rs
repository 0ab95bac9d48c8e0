//! How many packets kernels forwarded.

use std::fs;

use crate::lab::namespace::Namespace;

/// How much more each is than before.
pub fn gained(before: &[u64], after: &[u64]) -> Vec<u64> {
    after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before)).collect()
}

/// What the kernel has forwarded in a namespace, IPv4 and IPv6. A packet that comes in as IPv4 and leaves in IPv6 counts once.
///
/// # Errors
/// When it does not say.
pub fn kernel(namespace: &Namespace) -> Result<u64, String> {
    let read = |file: &str| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    // Its own thread's, which is in the namespace.
    let (v4, v6) = namespace.inside(|| Ok((read("/proc/thread-self/net/snmp")?, read("/proc/thread-self/net/snmp6")?)))?;
    let missing = |what: &str| format!("the kernel does not count {what}");
    let v4 = ip_forwarded(&v4).ok_or_else(|| missing("ForwDatagrams"))?;
    let v6 = ip6_forwarded(&v6).ok_or_else(|| missing("Ip6OutForwDatagrams"))?;
    Ok(v4 + v6)
}

/// `ForwDatagrams` of `/proc/net/snmp`: a line of names, a line of numbers.
fn ip_forwarded(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Ip: "));
    let (names, numbers) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(numbers).find(|(name, _)| *name == "ForwDatagrams").and_then(|(_, number)| number.parse().ok())
}

/// `Ip6OutForwDatagrams` of `/proc/net/snmp6`: a name and its number a line.
fn ip6_forwarded(snmp6: &str) -> Option<u64> {
    let mut words = snmp6.lines().map(str::split_whitespace);
    words.find_map(|mut words| (words.next() == Some("Ip6OutForwDatagrams")).then(|| words.next()?.parse().ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counters_are_found_by_name() {
        let snmp = "Ip: Forwarding DefaultTTL InReceives ForwDatagrams\nIp: 1 64 8 6\nIcmp: InMsgs\nIcmp: 3\n";
        assert_eq!(ip_forwarded(snmp), Some(6));
        assert_eq!(ip6_forwarded("Ip6InReceives \t7\nIp6OutForwDatagrams             \t18\n"), Some(18));
        assert_eq!((ip_forwarded("Icmp: InMsgs\nIcmp: 3\n"), ip6_forwarded("")), (None, None));
    }
}
