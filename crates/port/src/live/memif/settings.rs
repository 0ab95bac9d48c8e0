//! What the operator says about a memif port.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::message::SECRET;
use super::shared::MOST_LOG2_SLOTS;

/// The most queues of a port.
const MOST_QUEUES: u16 = 64;
/// Slots of the smallest and of the largest ring, as powers of two: below 64 a burst does not fit.
const LOG2_SLOTS: std::ops::RangeInclusive<u32> = 6..=MOST_LOG2_SLOTS as u32;
/// The smallest and the largest MTU: what IPv4 requires, and what an IPv4 packet can have.
const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;

/// Which side of the connection noref is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// Connects, and brings the memory. (Older texts: slave.)
    #[default]
    Client,
    /// Waits for a client, and uses its memory. (Older texts: master.)
    Server,
}

/// Where the control socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocketName {
    /// A file.
    Path(PathBuf),
    /// A name of the network namespace's, without a file; written with `@` in front.
    Abstract(String),
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketName::Path(path) => write!(f, "{}", path.display()),
            SocketName::Abstract(name) => write!(f, "@{name}"),
        }
    }
}

/// What a client must know to be let in. It is shown to nobody.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; SECRET]);

impl Secret {
    /// The secret as it is sent: zeros behind.
    pub(super) fn bytes(&self) -> [u8; SECRET] {
        self.0
    }

    /// True when `other` is the same. Takes as long when it is not.
    pub(super) fn is(&self, other: &[u8; SECRET]) -> bool {
        self.0.iter().zip(other).fold(0, |differs, (own, theirs)| differs | (own ^ theirs)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl FromStr for Secret {
    type Err = MemifSettingsError;

    fn from_str(text: &str) -> Result<Secret, MemifSettingsError> {
        let mut secret = [0; SECRET];
        // Peers end it at a zero, so that one byte is theirs.
        if text.is_empty() || text.len() >= SECRET || text.contains('\0') {
            return Err(MemifSettingsError(format!("a secret has 1 to {} bytes, none of them zero", SECRET - 1)));
        }
        secret[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Secret(secret))
    }
}

/// A memif port. Both sides must agree on `id` and `secret`; the client's side says how many queues and slots there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemifSettings {
    /// The control socket.
    pub socket: SocketName,
    /// Which side noref is.
    pub role: Role,
    /// Which of the interfaces behind the socket.
    pub id: u32,
    /// Rings in each direction: queues, each for one worker; 1 to 64.
    pub queues: u16,
    /// Slots of each ring, where noref is client: a power of two from 64 to 16384.
    pub slots: u16,
    /// The port's address. Without one it has an address that follows from socket, id and role.
    pub mac: Option<[u8; 6]>,
    /// Bytes that fit behind an Ethernet header: what longer packets are fragmented to. The protocol has no such limit.
    pub mtu: u32,
    /// What the client must know.
    pub secret: Option<Secret>,
}

impl MemifSettings {
    /// Client for interface 0, one queue of 1024 slots, an MTU of 1500, no secret.
    pub fn new(socket: SocketName) -> MemifSettings {
        MemifSettings { socket, role: Role::Client, id: 0, queues: 1, slots: 1024, mac: None, mtu: 1500, secret: None }
    }

    /// Checks what the types do not say.
    ///
    /// # Errors
    /// What is out of range, and what the range is.
    pub fn check(&self) -> Result<(), MemifSettingsError> {
        let refused = |what: String| Err(MemifSettingsError(what));
        if !(1..=MOST_QUEUES).contains(&self.queues) {
            return refused(format!("queues={}: 1 to {MOST_QUEUES}", self.queues));
        }
        if !self.slots.is_power_of_two() || !LOG2_SLOTS.contains(&self.slots.trailing_zeros()) {
            return refused(format!("slots={}: a power of two from {} to {}", self.slots, 1 << LOG2_SLOTS.start(), 1 << LOG2_SLOTS.end()));
        }
        if !MTU.contains(&self.mtu) {
            return refused(format!("mtu={}: {} to {}", self.mtu, MTU.start(), MTU.end()));
        }
        if self.mac.is_some_and(|mac| mac[0] & 1 != 0 || mac == [0; 6]) {
            return refused("mac: an address of one station, not of a group and not all zeros".to_owned());
        }
        Ok(())
    }

    /// The port's address: what was set, else a locally administered one that stays the same from start to start and differs between the two sides.
    pub fn station(&self) -> [u8; 6] {
        self.mac.unwrap_or_else(|| {
            let text = format!("{} {} {:?}", self.socket, self.id, self.role);
            // FNV-1a.
            let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            let [a, b, c, d, e, ..] = hash.to_be_bytes();
            [0x02, a, b, c, d, e]
        })
    }
}

impl FromStr for MemifSettings {
    type Err = MemifSettingsError;

    /// Reads `SOCKET[,role=server|client][,id=N][,queues=N][,slots=N][,mac=…][,mtu=N][,secret=…]`.
    fn from_str(text: &str) -> Result<MemifSettings, MemifSettingsError> {
        let mut words = text.split(',');
        let socket: SocketName = words.next().unwrap_or_default().parse()?;
        let mut settings = MemifSettings::new(socket);
        for word in words {
            let known = "role, id, queues, slots, mac, mtu, secret";
            let (key, value) =
                word.split_once('=').ok_or_else(|| MemifSettingsError(format!("{word:?}: NAME=VALUE, with NAME one of {known}")))?;
            match key {
                "role" => settings.role = value.parse()?,
                "id" => settings.id = number(key, value)?,
                "queues" => settings.queues = number(key, value)?,
                "slots" => settings.slots = number(key, value)?,
                "mac" => settings.mac = Some(mac(value)?),
                "mtu" => settings.mtu = number(key, value)?,
                "secret" => settings.secret = Some(value.parse()?),
                _ => return Err(MemifSettingsError(format!("{key:?} is no setting of a memif port: {known}"))),
            }
        }
        settings.check()?;
        Ok(settings)
    }
}

impl FromStr for SocketName {
    type Err = MemifSettingsError;

    fn from_str(text: &str) -> Result<SocketName, MemifSettingsError> {
        match text.strip_prefix('@') {
            _ if text.trim_start_matches('@').is_empty() => {
                Err(MemifSettingsError("memif:SOCKET, the path of the control socket".to_owned()))
            }
            Some(name) => Ok(SocketName::Abstract(name.to_owned())),
            None => Ok(SocketName::Path(text.into())),
        }
    }
}

impl FromStr for Role {
    type Err = MemifSettingsError;

    fn from_str(text: &str) -> Result<Role, MemifSettingsError> {
        match text {
            "client" => Ok(Role::Client),
            "server" => Ok(Role::Server),
            _ => Err(MemifSettingsError(format!("role={text}: client or server"))),
        }
    }
}

fn number<N: FromStr>(key: &str, value: &str) -> Result<N, MemifSettingsError> {
    value.parse().map_err(|_| MemifSettingsError(format!("{key}={value}: a number is due, of {} bits at most", 8 * size_of::<N>())))
}

fn mac(text: &str) -> Result<[u8; 6], MemifSettingsError> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|byte| (byte.len() == 2).then(|| u8::from_str_radix(byte, 16).ok()).flatten()).collect();
    let mac = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    mac.ok_or_else(|| MemifSettingsError(format!("mac={text}: six bytes, as in 02:00:00:00:0e:01")))
}

/// What is wrong with the settings of a memif port, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct MemifSettingsError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_a_line() {
        let settings: MemifSettings =
            "/run/m.sock,role=server,id=7,queues=4,slots=2048,mac=02:00:00:00:0e:01,mtu=9000,secret=open sesame".parse().unwrap();
        assert_eq!(settings.socket, SocketName::Path("/run/m.sock".into()));
        assert_eq!((settings.role, settings.id, settings.queues, settings.slots, settings.mtu), (Role::Server, 7, 4, 2048, 9000));
        assert_eq!(settings.station(), [2, 0, 0, 0, 0x0e, 1]);
        assert!(settings.secret.unwrap().is(b"open sesame\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        assert!(!settings.secret.unwrap().is(b"open sesam\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        assert_eq!("@name".parse::<MemifSettings>().unwrap(), MemifSettings::new(SocketName::Abstract("name".into())));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, part) in [
            ("", "memif:SOCKET"),
            ("@", "memif:SOCKET"),
            ("/m,role=slave", "client or server"),
            ("/m,queues=0", "1 to 64"),
            ("/m,queues=x", "a number"),
            ("/m,slots=1000", "a power of two from 64 to 16384"),
            ("/m,mtu=20", "68 to 65535"),
            ("/m,mac=1:2:3", "02:00:00:00:0e:01"),
            ("/m,mac=01:00:5e:00:00:01", "not of a group"),
            ("/m,secret=", "1 to 23 bytes"),
            ("/m,zero", "NAME=VALUE"),
            ("/m,zero-copy=yes", "no setting of a memif port"),
        ] {
            let error = text.parse::<MemifSettings>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let settings: MemifSettings = "/m,secret=hush".parse().unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
    }

    #[test]
    fn both_sides_of_a_connection_have_addresses_of_their_own() {
        let client: MemifSettings = "/m".parse().unwrap();
        let server: MemifSettings = "/m,role=server".parse().unwrap();
        let other: MemifSettings = "/m,id=1".parse().unwrap();
        assert!(client.station() != server.station() && client.station() != other.station());
        assert_eq!(client.station()[0], 0x02);
    }
}
