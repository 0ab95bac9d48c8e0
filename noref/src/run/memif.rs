//! A memif port in `noref.toml`.
//!
//! ```toml
//! [port.m0]
//! memif = { socket = "/run/noref/m0.sock", role = "server", queues = 2 }
//! ```

use port::live::memif::{MemifSettings, Role, Secret, SocketName};
use serde::Deserialize;

/// What stands behind `memif =`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileMemif {
    socket: String,
    #[serde(default)]
    role: FileRole,
    id: Option<u32>,
    queues: Option<u16>,
    slots: Option<u16>,
    mac: Option<String>,
    mtu: Option<u32>,
    secret: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum FileRole {
    #[default]
    Client,
    Server,
}

impl FileMemif {
    /// The settings; `place` makes a path in the file one from anywhere.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn settings(self, place: impl Fn(&std::path::Path) -> std::path::PathBuf) -> Result<MemifSettings, String> {
        let FileMemif { socket, role, id, queues, slots, mac, mtu, secret } = self;
        let socket: SocketName = socket.parse().map_err(|error| format!("memif: {error}"))?;
        let mut settings = MemifSettings::new(match socket {
            SocketName::Path(path) => SocketName::Path(place(&path)),
            name => name,
        });
        settings.role = match role {
            FileRole::Client => Role::Client,
            FileRole::Server => Role::Server,
        };
        settings.id = id.unwrap_or(settings.id);
        settings.queues = queues.unwrap_or(settings.queues);
        settings.slots = slots.unwrap_or(settings.slots);
        settings.mtu = mtu.unwrap_or(settings.mtu);
        let address = |mac: String| {
            mac.parse::<wire::Mac>().map(|mac| mac.0).map_err(|_| format!("memif: mac = \"{mac}\": six bytes, as in 02:00:00:00:0e:01"))
        };
        settings.mac = mac.map(address).transpose()?;
        settings.secret = secret.map(|secret| secret.parse::<Secret>().map_err(|error| format!("memif: {error}"))).transpose()?;
        settings.check().map_err(|error| format!("memif: {error}"))?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<MemifSettings, String> {
        let file: FileMemif = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        file.settings(|path| Path::new("/etc/noref").join(path))
    }

    #[test]
    fn a_file_says_what_the_command_line_says() {
        let text = "socket = \"/run/m.sock\"\nrole = \"server\"\nid = 7\nqueues = 4\nslots = 2048\nmac = \"02:00:00:00:0e:01\"\nmtu = 9000\nsecret = \"sesame\"";
        let line = "/run/m.sock,role=server,id=7,queues=4,slots=2048,mac=02:00:00:00:0e:01,mtu=9000,secret=sesame";
        assert_eq!(read(text).unwrap(), line.parse().unwrap());
        assert_eq!(read("socket = \"m.sock\"").unwrap(), "/etc/noref/m.sock".parse().unwrap());
        assert_eq!(read("socket = \"@m\"").unwrap(), "@m".parse().unwrap());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("", "missing field `socket`"),
            ("socket = \"\"", "memif:SOCKET"),
            ("socket = \"m\"\nrole = \"slave\"", "expected `client` or `server`"),
            ("socket = \"m\"\nqueues = 65", "1 to 64"),
            ("socket = \"m\"\nring = 4", "unknown field `ring`"),
            ("socket = \"m\"\nmac = \"x\"", "memif: mac = "),
            ("socket = \"m\"\nsecret = \"\"", "1 to 23 bytes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
