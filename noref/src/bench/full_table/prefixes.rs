//! The prefixes of the Internet, and destinations inside them.

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use super::Random;

/// The list that comes with the source.
const LIST: &str = "benches/data/internet-prefixes.txt.gz";
/// First bytes of what is compressed with gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The prefixes of a table: addresses and lengths, in the order of the list.
#[derive(Clone, Default)]
pub struct Prefixes {
    pub v4: Vec<(Ipv4Addr, u8)>,
    pub v6: Vec<(Ipv6Addr, u8)>,
}

impl Prefixes {
    /// The full Internet table that comes with the source: looked for below the current directory, then where this was built.
    ///
    /// # Errors
    /// Where it was looked for, when it is in neither place, or what is wrong with it.
    pub fn full() -> Result<Prefixes, String> {
        let here = Path::new(LIST).to_owned();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(LIST);
        match [&here, &source].into_iter().find(|path| path.exists()) {
            Some(path) => Prefixes::read(path),
            None => Err(format!(
                "the full Internet table is neither at {} nor at {}: run noref in its repository, or give a list of prefixes with --routes",
                here.display(),
                source.display()
            )),
        }
    }

    /// Reads a list: one prefix a line, `ADDRESS/LENGTH` of either family, compressed with gzip or not. Empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// What is wrong with the file, and where.
    pub fn read(path: &Path) -> Result<Prefixes, String> {
        let name = path.display();
        let bytes = fs::read(path).map_err(|error| format!("{name}: {error}"))?;
        let mut text = String::new();
        let read = match bytes.starts_with(&GZIP) {
            true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text),
            false => (&bytes[..]).read_to_string(&mut text),
        };
        read.map_err(|error| format!("{name}: {error}"))?;
        Prefixes::parse(&text).map_err(|(line, why)| format!("{name}:{line}: {why}"))
    }

    /// The prefixes of a text, or the number of a line and what is wrong with it.
    fn parse(text: &str) -> Result<Prefixes, (usize, String)> {
        let mut prefixes = Prefixes::default();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || (n + 1, format!("{line:?} is no prefix: write ADDRESS/LENGTH, as in 192.0.2.0/24 or 2001:db8::/32"));
            let (addr, len) = line.split_once('/').ok_or_else(wrong)?;
            let len: u8 = len.parse().map_err(|_| wrong())?;
            match addr.parse().map_err(|_| wrong())? {
                IpAddr::V4(addr) if len <= 32 => prefixes.v4.push((addr, len)),
                IpAddr::V6(addr) if len <= 128 => prefixes.v6.push((addr, len)),
                _ => return Err(wrong()),
            }
        }
        Ok(prefixes)
    }

    /// Every `step`th of them.
    pub fn thinned(&self, step: usize) -> Prefixes {
        Prefixes { v4: self.v4.iter().copied().step_by(step).collect(), v6: self.v6.iter().copied().step_by(step).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// The IPv4 prefixes that packets may go to: global unicast, and not the router's own.
    pub fn usable4(&self) -> Vec<(Ipv4Addr, u8)> {
        self.v4.iter().copied().filter(|(addr, len)| *len >= 8 && !matches!(addr.octets()[0], 0 | 10 | 127 | 224..)).collect()
    }

    /// As [`Prefixes::usable4`].
    pub fn usable6(&self) -> Vec<(Ipv6Addr, u8)> {
        self.v6.iter().copied().filter(|(addr, len)| *len >= 3 && addr.octets()[0] >> 5 == 1).collect()
    }

    /// `n` random addresses inside the prefixes that packets may go to, all prefixes equally likely. None without such a prefix.
    pub fn destinations4(&self, n: usize) -> Vec<Ipv4Addr> {
        within(&self.usable4(), n, address4)
    }

    /// As [`Prefixes::destinations4`].
    pub fn destinations6(&self, n: usize) -> Vec<Ipv6Addr> {
        within(&self.usable6(), n, address6)
    }
}

fn within<A: Copy>(prefixes: &[(A, u8)], n: usize, address: impl Fn((A, u8), &mut Random) -> A) -> Vec<A> {
    let mut random = Random::new(0x6e6f_7265_6600);
    (0..n)
        .filter_map(|_| prefixes.get(random.below(prefixes.len())).map(|&prefix| (prefix, random.word())))
        .map(|(prefix, seed)| address(prefix, &mut Random::new(seed)))
        .collect()
}

/// A random address inside a prefix.
pub fn address4((addr, len): (Ipv4Addr, u8), random: &mut Random) -> Ipv4Addr {
    (u32::from(addr) | random.word() as u32 & u32::MAX.checked_shr(len.into()).unwrap_or(0)).into()
}

/// As [`address4`].
pub fn address6((addr, len): (Ipv6Addr, u8), random: &mut Random) -> Ipv6Addr {
    let host = u128::from(random.word()) << 64 | u128::from(random.word());
    (u128::from(addr) | host & u128::MAX.checked_shr(len.into()).unwrap_or(0)).into()
}
