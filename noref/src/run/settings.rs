//! What a running router is to be: the daemon's settings, from `noref.toml` or from the command line.
//!
//! ```toml
//! mode = "mirror"                  # or: network = "network.ip"
//! workers = 2
//! metrics = "127.0.0.1:9101"
//!
//! [control]
//! group = "netops"
//!
//! [port.e0]
//! [port.e1]
//! driver = "af-xdp"
//! ```
//! What routers do with packets is not in here: that is iproute2's language, in the network file or in the kernel.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::memif::FileMemif;
use crate::args::{self, PortArg, PortDriver, PortKind, PortName, RunArgs};
use crate::failure::Failure;

/// Where the control socket is, unless the settings say otherwise.
pub const DEFAULT_SOCKET: &str = "/run/noref/noref.sock";
/// Workers that there may be.
const MOST_WORKERS: usize = 256;

/// Everything that `noref run` needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The ports, each once, in the order of their names.
    pub ports: Vec<PortSettings>,
    /// Whose tables are followed.
    pub mode: Mode,
    /// How many workers; none: as many as the port with the most queues has, and not more than there are cores.
    pub workers: Option<usize>,
    /// Workers never sleep.
    pub busy_poll: bool,
    /// The control socket.
    pub control: ControlSettings,
    /// Where metrics are served, if anywhere.
    pub metrics: Option<MetricsAddress>,
    /// Ends after this time, seconds.
    pub seconds: Option<u64>,
    /// The result is printed as JSON.
    pub json: bool,
}

/// Where routes, addresses and neighbours come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// From the running kernel, which is followed.
    Mirror,
    /// From a network file. The kernel is not read.
    Standalone(PathBuf),
}

/// The control socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlSettings {
    /// Its path.
    pub socket: PathBuf,
    /// The group that may use it beside the owner: its name or number.
    pub group: Option<String>,
}

/// A port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortSettings {
    /// The interface.
    pub name: PortName,
    /// How its frames come and go.
    pub driver: PortDriver,
    /// Queues to be used; none: all.
    pub queues: Option<u32>,
    /// Whether the kernel may copy frames (AF_XDP).
    pub copies: PortCopies,
    /// What stands behind it.
    pub kind: PortKind,
}

/// Whether the kernel may copy frames between AF_XDP and the device.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "kebab-case")]
pub enum PortCopies {
    /// Only where the driver cannot do without.
    #[default]
    Auto,
    /// Never: without zero-copy the port is refused.
    Zero,
    /// Always.
    Copy,
}

/// Where metrics are served: `127.0.0.1:9101`, `[::1]:9101`, `unix:/run/noref/metrics.sock`, or, for everyone, `public:192.0.2.1:9101`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricsAddress {
    /// A TCP port: of the loopback interface, unless another was expressly said.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl Settings {
    /// The settings that the command line says or names.
    ///
    /// # Errors
    /// When the file cannot be read or something in it is wrong, with its place.
    pub fn of(args: &RunArgs) -> Result<Settings, Failure> {
        let mut settings = match &args.config {
            Some(file) => Settings::read(file)?,
            None => Settings::of_options(args)?,
        };
        (settings.seconds, settings.json) = (args.seconds, args.json);
        Ok(settings)
    }

    /// The settings in a file.
    ///
    /// # Errors
    /// When it cannot be read or something in it is wrong, with its place.
    pub fn read(file: &Path) -> Result<Settings, Failure> {
        let name = file.display();
        let text = fs::read_to_string(file).map_err(|error| Failure::unusable(format!("{name}: {error}")))?;
        Settings::parse(&text, file).map_err(Failure::unusable)
    }

    fn of_options(args: &RunArgs) -> Result<Settings, Failure> {
        let mode = match (&args.net, args.mirror) {
            (Some(file), _) => Mode::Standalone(file.clone()),
            (None, true) => Mode::Mirror,
            (None, false) => {
                return Err(Failure::unusable("say where routes come from: --mirror (the kernel) or --net FILE (a network file)"));
            }
        };
        let port = |PortArg { name, kind }| PortSettings { name, driver: args.driver, queues: None, copies: PortCopies::Auto, kind };
        Ok(Settings {
            ports: args.ports().map_err(Failure::unusable)?.into_iter().map(port).collect(),
            mode,
            workers: args.workers,
            busy_poll: args.busy_poll,
            control: ControlSettings { socket: args.socket.clone(), group: args.group.clone() },
            metrics: args.metrics.clone(),
            seconds: None,
            json: false,
        })
    }

    /// Reads the text of `file`; paths in it are relative to the file's directory. The error says file, line and column.
    fn parse(text: &str, file: &Path) -> Result<Settings, String> {
        let name = file.display();
        let settings: File = toml::from_str(text).map_err(|error| {
            let (line, column) = place(text, error.span().map_or(0, |span| span.start));
            format!("{name}:{line}:{column}: {}", error.message().trim_end())
        })?;
        let File { mode, network, workers, busy_poll, metrics, control, port } = settings;
        let mode = match (mode, network) {
            (Some(FileMode::Mirror), Some(_)) => {
                return Err(format!(
                    "{name}: mode = \"mirror\" follows the kernel, so there is no network file: leave out mode or network"
                ));
            }
            (Some(FileMode::Mirror), None) => Mode::Mirror,
            (Some(FileMode::Standalone) | None, Some(network)) => Mode::Standalone(beside(file, &network)),
            (Some(FileMode::Standalone), None) => return Err(format!("{name}: mode = \"standalone\" needs network = \"FILE\"")),
            (None, None) => {
                return Err(format!("{name}: it does not say where routes come from: mode = \"mirror\" or network = \"FILE\""));
            }
        };
        if port.is_empty() {
            return Err(format!("{name}: there is no port: add [port.NAME] for each interface, as in [port.e0]"));
        }
        let mut ports: Vec<_> = port
            .into_iter()
            .map(|(port, settings)| settings.of(port, file))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{name}: {error}"))?;
        args::sort(&mut ports, |port| &port.name);
        Ok(Settings {
            ports,
            mode,
            workers: workers.map(|Workers(n)| n),
            busy_poll,
            control: ControlSettings { socket: beside(file, &control.socket), group: control.group },
            metrics,
            seconds: None,
            json: false,
        })
    }
}

/// `noref.toml`, as it stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mode: Option<FileMode>,
    network: Option<PathBuf>,
    workers: Option<Workers>,
    #[serde(default)]
    busy_poll: bool,
    metrics: Option<MetricsAddress>,
    #[serde(default)]
    control: FileControl,
    #[serde(default)]
    port: BTreeMap<PortName, FilePort>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum FileMode {
    Mirror,
    Standalone,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileControl {
    socket: PathBuf,
    group: Option<String>,
}

impl Default for FileControl {
    fn default() -> FileControl {
        FileControl { socket: DEFAULT_SOCKET.into(), group: None }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FilePort {
    driver: PortDriver,
    queues: Option<Queues>,
    copies: PortCopies,
    memif: Option<FileMemif>,
    tap: bool,
}

impl Default for FilePort {
    fn default() -> FilePort {
        FilePort { driver: PortDriver::Auto, queues: None, copies: PortCopies::Auto, memif: None, tap: false }
    }
}

impl FilePort {
    /// The settings of the port of this name, which stand in `file`.
    fn of(self, name: PortName, file: &Path) -> Result<PortSettings, String> {
        let FilePort { driver, queues, copies, memif, tap } = self;
        if (memif.is_some() || tap) && (driver, queues.is_some(), copies) != (PortDriver::Auto, false, PortCopies::Auto) {
            return Err(format!("port.{name}: driver, queues and copies are of interfaces; a memif port has memif = {{ queues = N }}"));
        }
        let memif = memif.map(|memif| memif.settings(|path| beside(file, path))).transpose();
        let kind = match (memif.map_err(|error| format!("port.{name}: {error}"))?, tap) {
            (None, false) => PortKind::Interface,
            (Some(memif), false) => PortKind::Memif(memif),
            (None, true) => PortKind::Tap,
            (Some(_), true) => return Err(format!("port.{name}: either memif or tap")),
        };
        Ok(PortSettings { name, driver, queues: queues.map(|Queues(n)| n), copies, kind })
    }
}

/// A number of workers.
#[derive(Deserialize)]
#[serde(try_from = "usize")]
struct Workers(usize);

impl TryFrom<usize> for Workers {
    type Error = String;

    fn try_from(number: usize) -> Result<Workers, String> {
        workers(number).map(Workers)
    }
}

/// A number of workers that there can be.
fn workers(number: usize) -> Result<usize, String> {
    match number {
        1..=MOST_WORKERS => Ok(number),
        _ => Err(format!("{number} workers; there are 1 to {MOST_WORKERS}")),
    }
}

/// A number of workers on the command line.
///
/// # Errors
/// What is wrong with it.
pub fn parse_workers(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a number")).and_then(workers)
}

/// A number of queues.
#[derive(Deserialize)]
#[serde(try_from = "u32")]
struct Queues(u32);

impl TryFrom<u32> for Queues {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Queues, &'static str> {
        if number == 0 { Err("a port has 1 queue at least") } else { Ok(Queues(number)) }
    }
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') { Ok(MetricsAddress::Unix(path.into())) } else { Err("write unix:/PATH".into()) };
        }
        let (public, address) = text.strip_prefix("public:").map_or((false, text), |address| (true, address));
        let address: SocketAddr =
            address.parse().map_err(|_| format!("\"{text}\" is neither ADDRESS:PORT, as in 127.0.0.1:9101, nor unix:/PATH"))?;
        if !public && !address.ip().is_loopback() {
            return Err(format!(
                "{} can be reached from outside, by whoever wants to read the metrics: write public:{address} if that is meant, or 127.0.0.1",
                address.ip()
            ));
        }
        Ok(MetricsAddress::Tcp(address))
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricsAddress::Tcp(address) if address.ip().is_loopback() => address.fmt(f),
            MetricsAddress::Tcp(address) => write!(f, "public:{address}"),
            MetricsAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl<'de> Deserialize<'de> for MetricsAddress {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<MetricsAddress, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A path that stands in `file`.
fn beside(file: &Path, path: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

/// Line and column of a byte, both from 1; columns are characters.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (1 + before.matches('\n').count(), 1 + line.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(text, Path::new("/etc/noref/noref.toml"))
    }

    #[test]
    fn a_file_says_everything_and_most_of_it_need_not_be_said() {
        let settings = parse("mode = \"mirror\"\n[port.e10]\n[port.e2]\n").unwrap();
        let names: Vec<_> = settings.ports.iter().map(|port| port.name.as_str()).collect();
        assert_eq!(names, ["e2", "e10"]);
        assert_eq!((settings.mode, settings.workers, settings.busy_poll, settings.metrics), (Mode::Mirror, None, false, None));
        assert_eq!(settings.control, ControlSettings { socket: DEFAULT_SOCKET.into(), group: None });

        let all = "network = \"network.ip\"\nworkers = 3\nbusy_poll = true\nmetrics = \"[::1]:9101\"\n\
                   [control]\nsocket = \"/run/a.sock\"\ngroup = \"netops\"\n\
                   [port.\"eth0.7\"]\ndriver = \"af-xdp\"\nqueues = 2\ncopies = \"zero\"\n";
        let settings = parse(all).unwrap();
        assert_eq!(settings.mode, Mode::Standalone("/etc/noref/network.ip".into()));
        assert_eq!((settings.workers, settings.busy_poll), (Some(3), true));
        assert_eq!(settings.metrics, Some(MetricsAddress::Tcp("[::1]:9101".parse().unwrap())));
        assert_eq!(settings.control, ControlSettings { socket: "/run/a.sock".into(), group: Some("netops".into()) });
        let port = PortSettings {
            name: "eth0.7".parse().unwrap(),
            driver: PortDriver::AfXdp,
            queues: Some(2),
            copies: PortCopies::Zero,
            kind: PortKind::Interface,
        };
        assert_eq!(settings.ports, [port]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, at, message) in [
            ("mode = \"mirror\"\nworker = 2\n[port.e0]\n", ":2:1: ", "unknown field `worker`"),
            ("mode = \"mirrors\"\n[port.e0]\n", ":1:8: ", "expected `mirror` or `standalone`"),
            ("mode = \"mirror\"\nworkers = 0\n[port.e0]\n", ":2:11: ", "0 workers; there are 1 to 256"),
            ("mode = \"mirror\"\n\n[port.e0]\ndriver = \"dpdk\"\n", ":4:10: ", "unknown variant `dpdk`"),
            ("mode = \"mirror\"\n[port.e0]\nqueues = 0\n", ":3:10: ", "1 queue at least"),
            ("network = \"n\"\n[port.m0]\nqueues = 2\nmemif = { socket = \"m\" }\n", ": ", "port.m0: driver, queues and copies"),
            ("network = \"n\"\n[port.m0]\nmemif = { socket = \"m\", mtu = 1 }\n", ": ", "port.m0: memif: mtu=1: 68 to 65535"),
            ("network = \"n\"\n[port.t0]\ntap = true\ndriver = \"af-xdp\"\n", ": ", "port.t0: driver, queues and copies"),
            ("network = \"n\"\n[port.t0]\ntap = true\nmemif = { socket = \"m\" }\n", ": ", "port.t0: either memif or tap"),
            ("mode = \"mirror\"\n[port.e0]\nqueue = 1\n", ":3:1: ", "unknown field `queue`"),
            ("mode = \"mirror\"\n[port.lo]\n", ":2:7: ", "lo is the loopback device"),
            ("mode = \"mirror\"\nmetrics = \"0.0.0.0:9101\"\n[port.e0]\n", ":2:11: ", "can be reached from outside"),
            ("mode = \"mirror\"\nmetrics = \"unix:m\"\n[port.e0]\n", ":2:11: ", "write unix:/PATH"),
            ("mode = mirror\n", ":1:8: ", ""),
            ("mode = \"mirror\"\n[port.e0]\n[port.e0]\n", ":3:7: ", "duplicate key"),
            ("mode = \"mirror\"\n", ": ", "there is no port"),
            ("[port.e0]\n", ": ", "where routes come from"),
            ("mode = \"standalone\"\n[port.e0]\n", ": ", "needs network = \"FILE\""),
            ("mode = \"mirror\"\nnetwork = \"n\"\n[port.e0]\n", ": ", "leave out mode or network"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(&format!("/etc/noref/noref.toml{at}")) && error.contains(message), "{text:?}: {error}");
        }
    }
}
