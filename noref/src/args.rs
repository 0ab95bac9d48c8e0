//! The command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use port::live::memif::{MemifSettings, MemifSettingsError};
use route::RouteRefs;
use serde::Deserialize;

use crate::bench::BenchArgs;
use crate::demo::DemoArgs;
use crate::ip::IpArgs;
use crate::route_get::RouteArgs;
use crate::run::MetricsAddress;
use crate::show::ShowArgs;
use crate::trace::TraceArgs;

/// A Linux-compatible router in user space whose packets borrow their routes.
#[derive(Parser, Debug)]
#[command(name = "noref", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Bench(BenchArgs),
    Demo(DemoArgs),
    Run(RunArgs),
    Replay(ReplayArgs),
    Ip(IpArgs),
    Route(RouteArgs),
    Show(ShowArgs),
    Trace(TraceArgs),
}

/// Forward real traffic on real interfaces
///
/// Opens interfaces and routes between them. With --mirror it does so beside the kernel, whose addresses, routes, rules and neighbours it follows, and which
/// keeps what is for the host itself. With --net it is alone on the interfaces: a network file (the lines an operator types: `ip`, `bridge`, `sysctl`) says
/// everything, and noref answers ARP, neighbour discovery and echo requests itself. On SIGINT or SIGTERM it ends and says what it did.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The settings as a file, noref.toml (docs/run.md): all options but --seconds and --json stand in it
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["port", "net", "mirror", "driver", "workers", "busy_poll", "socket", "group", "metrics"])]
    pub config: Option<PathBuf>,

    /// An interface that is to be a port; it must be up. Or NAME=memif:SOCKET[,SETTING…], memory shared with another program (docs/memif.md). Or NAME=tap, a
    /// TAP device that noref makes, the kernel at its other end (docs/ports.md)
    #[arg(long, value_name = "PORT", required_unless_present = "config", num_args = 1..)]
    pub port: Vec<PortArg>,

    /// The network file: addresses, routes, rules, neighbours and SIDs, a line each, as `ip -batch` reads them
    #[arg(long, value_name = "FILE", required_unless_present_any = ["config", "mirror"], conflicts_with = "mirror")]
    pub net: Option<PathBuf>,

    /// Follow the kernel: its addresses, routes, rules and neighbours are noref's
    #[arg(long)]
    pub mirror: bool,

    /// How frames come from interfaces and go to them
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub driver: PortDriver,

    /// Workers, a core each; without it as many as the port with the most queues has, and not more than there are cores
    #[arg(long, value_name = "N", value_parser = crate::run::parse_workers)]
    pub workers: Option<usize>,

    /// End after this time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,

    /// Never sleep: a whole core a worker for the shortest delay
    #[arg(long)]
    pub busy_poll: bool,

    /// The control socket, which noref show, trace and ip talk to
    #[arg(long, value_name = "PATH", default_value = crate::run::DEFAULT_SOCKET)]
    pub socket: PathBuf,

    /// A group that may use the control socket beside its owner
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,

    /// Serve metrics for Prometheus there: 127.0.0.1:PORT, `[::1]:PORT` or unix:/PATH
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<MetricsAddress>,

    /// Print the result as one JSON document (its layout: docs/run.md)
    #[arg(long)]
    pub json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  noref run --config /etc/noref/noref.toml
  noref run --port e0 e1 --mirror
  noref run --port e0 e1 --net network.ip
  noref run --port e0 --port e1 --net network.ip --driver af-packet --seconds 60 --json
  noref run --port e0 m0=memif:/run/noref/m0.sock,role=server --net network.ip

It takes CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF: run it as root.

Exit status:
  0  the router ran until it was told to end
  1  the result could not be printed
  2  arguments, the network file or an interface could not be used";

/// How frames come from interfaces and go to them.
#[derive(ValueEnum, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PortDriver {
    /// AF_XDP where the interface can, else AF_PACKET; which and why is said
    Auto,
    /// From the driver, before the kernel makes packets of frames
    AfXdp,
    /// Beside the kernel, which gets every frame too and must not forward
    AfPacket,
}

/// Send captures through the whole router, offline
///
/// Reads a network file (the lines an operator types: `ip`, `bridge`, `sysctl`) and captures, sends every packet through the router and writes one
/// capture a port. It needs no privileges and no devices, and the same input gives the same output: the time is that of the captures.
#[derive(Args, Debug)]
#[command(after_help = REPLAY_EXAMPLES)]
pub struct ReplayArgs {
    /// The network file: addresses, routes, rules, neighbours and SIDs, a line each, as `ip -batch` reads them
    #[arg(long, value_name = "FILE")]
    pub net: PathBuf,

    /// What arrives at a port: a pcap or pcapng file, or - for standard input; several are merged by time
    #[arg(long, value_name = "PORT=CAPTURE", required = true, num_args = 1..)]
    pub rx: Vec<PortCapture>,

    /// A port without input
    #[arg(long, value_name = "PORT", num_args = 1..)]
    pub port: Vec<PortName>,

    /// Where to write what leaves: DIR/PORT.pcap for each port, also when nothing left by it
    #[arg(long, value_name = "DIR")]
    pub tx: PathBuf,

    /// Print each packet's way through the router, a line a step
    #[arg(long)]
    pub trace: bool,

    /// How packets carry their routes: borrowed, or with a reference counted wherever the unpatched kernel counts one
    #[arg(long, value_name = "HOW", default_value = "noref")]
    pub refs: Refs,

    /// Print the result as one JSON document (its layout: docs/replay.md)
    #[arg(long)]
    pub json: bool,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  noref replay --net network.ip --rx e0=in.pcap --port e1 --tx out
  noref replay --net network.ip --rx e0=a.pcapng e1=b.pcap --port e2 --tx out --trace
  tcpdump -i eth0 -w - | noref replay --net network.ip --rx e0=- --port e1 --tx out --json

Packets are counted in frames, sizes in bytes without the frame check sequence, times in seconds.

Exit status:
  0  the run completed (also when a capture broke off: it is processed up to there, and said)
  1  the output could not be written
  2  arguments, the network file or a capture could not be used; nothing was written";

/// How packets carry their routes.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Refs {
    /// Borrowed: no packet writes to a route
    Noref,
    /// Counted as in a kernel without the patches
    Counted,
}

impl From<Refs> for RouteRefs {
    fn from(refs: Refs) -> RouteRefs {
        match refs {
            Refs::Noref => RouteRefs::Noref,
            Refs::Counted => RouteRefs::Counted,
        }
    }
}

/// Bytes of the longest interface name (`IFNAMSIZ` with its final zero is 16).
const LONGEST_NAME: usize = 15;

/// A port's name: one that Linux allows for a device. It names the output file too, so it can not leave the directory.
#[derive(Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(try_from = "String")]
pub struct PortName(String);

impl PortName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PortName {
    type Err = String;

    fn from_str(name: &str) -> Result<PortName, String> {
        let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '=');
        match name {
            "" => Err("a port needs a name, as in e0=in.pcap".into()),
            "." | ".." | "all" | "default" => Err(format!("no device can be called \"{name}\"")),
            "lo" => Err("lo is the loopback device, which is always there and no port".into()),
            _ if name.len() > LONGEST_NAME => Err(format!("a port's name has at most {LONGEST_NAME} bytes, as a device's in Linux")),
            _ if name.contains(bad) => Err("a port's name has no blanks, \"/\", \":\" or \"=\"".into()),
            _ => Ok(PortName(name.to_owned())),
        }
    }
}

impl TryFrom<String> for PortName {
    type Error = String;

    fn try_from(name: String) -> Result<PortName, String> {
        name.parse()
    }
}

/// What stands behind a port of a running router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// An interface of the kernel.
    Interface,
    /// Memory shared with another program.
    Memif(MemifSettings),
    /// A TAP device: the kernel is at the other end.
    Tap,
}

/// A port of a running router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortArg {
    pub name: PortName,
    pub kind: PortKind,
}

impl FromStr for PortArg {
    type Err = String;

    fn from_str(text: &str) -> Result<PortArg, String> {
        let Some((name, rest)) = text.split_once('=') else {
            return Ok(PortArg { name: text.parse()?, kind: PortKind::Interface });
        };
        let kind = match (rest, rest.strip_prefix("memif:")) {
            ("tap", _) => PortKind::Tap,
            (_, Some(settings)) => PortKind::Memif(settings.parse().map_err(|error: MemifSettingsError| error.to_string())?),
            (_, None) => return Err("write NAME for an interface, NAME=memif:SOCKET[,SETTING…], or NAME=tap".into()),
        };
        Ok(PortArg { name: name.parse()?, kind })
    }
}

/// A port and the capture of what arrives there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortCapture {
    pub port: PortName,
    /// `-` is standard input.
    pub capture: PathBuf,
}

impl FromStr for PortCapture {
    type Err = String;

    fn from_str(text: &str) -> Result<PortCapture, String> {
        let Some((port, capture)) = text.split_once('=') else {
            return Err("write PORT=CAPTURE, as in e0=in.pcap".into());
        };
        if capture.is_empty() {
            return Err(format!("write the capture behind \"{port}=\" (- for standard input)"));
        }
        Ok(PortCapture { port: port.parse()?, capture: capture.into() })
    }
}

impl RunArgs {
    /// Every port once, ordered as [`ReplayArgs::ports`].
    ///
    /// # Errors
    /// When one name is given to two ports.
    pub fn ports(&self) -> Result<Vec<PortArg>, String> {
        let mut ports = self.port.clone();
        sort(&mut ports, |port| &port.name);
        ports.dedup();
        match ports.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(format!("--port: two different ports are called {}", pair[0].name)),
            None => Ok(ports),
        }
    }
}

impl ReplayArgs {
    /// Every port, each once, in the order of their names (`e2` before `e10`): interface numbers, and with them what the router does, then do not
    /// depend on how the command line is ordered.
    pub fn ports(&self) -> Vec<PortName> {
        ordered(self.rx.iter().map(|rx| &rx.port).chain(&self.port))
    }
}

/// Ports in the order of their names, each once.
pub fn ordered<'a>(ports: impl Iterator<Item = &'a PortName>) -> Vec<PortName> {
    let mut ports: Vec<PortName> = ports.cloned().collect();
    sort(&mut ports, |port| port);
    ports.dedup();
    ports
}

/// Sorts by the ports' names, `e2` before `e10`.
pub fn sort<T>(ports: &mut [T], name: impl Fn(&T) -> &PortName) {
    ports.sort_by_cached_key(|port| natural(name(port).as_str()));
}

/// A key that sorts `e2` before `e10`: what stands before a final number, then the number.
fn natural(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].parse().unwrap_or(0);
    (stem.to_owned(), number, name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<ReplayArgs, String> {
        match Cli::try_parse_from(args.split(' ')).map_err(|error| error.to_string())?.command {
            Command::Replay(args) => Ok(args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn ports_are_the_union_of_inputs_and_others_in_the_order_of_their_names() {
        let args = parse("noref replay --net n --rx e10=a e2=b --rx e2=c --port e0 e10 --port e1 --tx out").unwrap();
        let ports: Vec<_> = args.ports().iter().map(ToString::to_string).collect();
        assert_eq!(ports, ["e0", "e1", "e2", "e10"]);
        assert_eq!(args.rx.len(), 3);
        assert_eq!((args.refs, args.trace, args.json), (Refs::Noref, false, false));
    }

    #[test]
    fn what_is_wrong_with_an_argument_is_said() {
        for (args, message) in [
            ("noref replay --rx e0=a --tx out", "--net <FILE>"),
            ("noref replay --net n --tx out", "--rx <PORT=CAPTURE>"),
            ("noref replay --net n --rx e0 --tx out", "write PORT=CAPTURE, as in e0=in.pcap"),
            ("noref replay --net n --rx e0= --tx out", "write the capture behind \"e0=\""),
            ("noref replay --net n --rx =a --tx out", "a port needs a name"),
            ("noref replay --net n --rx ../e0=a --tx out", "a port's name has no blanks, \"/\""),
            ("noref replay --net n --rx e0=a --port .. --tx out", "no device can be called \"..\""),
            ("noref replay --net n --rx e0=a --port lo --tx out", "lo is the loopback device"),
            ("noref replay --net n --rx e0=a --port a-very-long-name --tx out", "at most 15 bytes"),
            ("noref replay --net n --rx e0=a --tx out --refs some", "[possible values: noref, counted]"),
            ("noref run --net n", "--port <PORT>"),
            ("noref run --port e0", "--net <FILE>"),
            ("noref run --port e0 --mirror --net n", "cannot be used with"),
            ("noref run --config c --port e0", "cannot be used with"),
            ("noref run --config c --workers 2", "cannot be used with"),
            ("noref run --port e0 --mirror --workers 0", "0 workers; there are 1 to 256"),
            ("noref run --port e0 --mirror --metrics 192.0.2.1:9101", "can be reached from outside"),
            ("noref run --port e0 --net n --driver dpdk", "[possible values: auto, af-xdp, af-packet]"),
            ("noref run --port e0 --net n --seconds 0", "0 is not in 1.."),
            ("noref run --port e0=tap:x --net n", "NAME=memif:SOCKET[,SETTING…], or NAME=tap"),
            ("noref run --port e0=memif: --net n", "the path of the control socket"),
            ("noref run --port e0=memif:/m,role=slave --net n", "client or server"),
            ("noref route get", "<WORDS>"),
            ("noref route get 10.0.0.1 --port e0", "--net <FILE>"),
            ("noref route get 10.0.0.1 --net n --socket s", "cannot be used with"),
            ("noref fly", "unrecognized subcommand 'fly'"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(message), "{args}: expected {message:?} in {error}");
        }
    }

    #[test]
    fn a_capture_s_name_may_contain_an_equals_sign() {
        let rx: PortCapture = "e0=a=b.pcap".parse().unwrap();
        assert_eq!((rx.port.as_str(), rx.capture), ("e0", PathBuf::from("a=b.pcap")));
    }
}
