//! `noref route get`: the way that a packet would take, of a network file or of a running router.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use control::show;
use port::Time;

use crate::args::{PortName, ordered};
use crate::failure::Failure;
use crate::stdout::Stdout;
use crate::{ip, network};

/// Ask for the way that a packet would take
#[derive(Args, Debug)]
pub struct RouteArgs {
    #[command(subcommand)]
    pub command: RouteCommand,
}

#[derive(Subcommand, Debug)]
pub enum RouteCommand {
    Get(GetArgs),
}

/// Ask which way a packet would take, and why
///
/// Answers as `ip route get` does, by the lookup that packets meet: rules, tables, multipath. With --net of the router that a network file describes, without
/// privileges and without devices; without it of the running one.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GetArgs {
    /// The destination, an address, and what else is known of the packet: from ADDRESS, iif DEV, oif DEV, vrf NAME, mark N, tos N, ipproto tcp|udp|icmp, sport
    /// N, dport N, uid N; fibmatch shows the route itself
    #[arg(value_name = "WORDS", required = true, num_args = 1..)]
    pub words: Vec<String>,

    /// The network file: addresses, routes, rules, neighbours and SIDs, a line each, as `ip -batch` reads them
    #[arg(long, value_name = "FILE")]
    pub net: Option<PathBuf>,

    /// A port of that router; without any those are ports that `link` and `address` lines name and no line adds
    #[arg(long, value_name = "PORT", num_args = 1.., requires = "net")]
    pub port: Vec<PortName>,

    /// Say of each rule what came of it, and by which hash one of several ways is taken
    #[arg(long)]
    pub explain: bool,

    /// The control socket of the running router
    #[arg(long, value_name = "PATH", default_value = crate::run::DEFAULT_SOCKET, conflicts_with = "net")]
    pub socket: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  noref route get 10.9.0.1 --net network.ip
  noref route get 10.9.0.1 from 10.0.0.2 iif e0 mark 0x10 --net network.ip --explain
  noref route get fd09::1 ipproto tcp sport 40000 dport 443
  noref route get fibmatch 10.9.0.1

Exit status:
  0  there is a way
  1  the question cannot be read, or the answer not be printed
  2  there is none (the words are those of ip: RTNETLINK answers: …), or the network file could not be used
  3  no router runs at the socket, or it may not be used";

/// Asks.
///
/// # Errors
/// When there is no answer, or nobody to ask.
pub fn run(args: &RouteArgs) -> Result<(), Failure> {
    let RouteCommand::Get(args) = &args.command;
    let words: Vec<_> = args.words.iter().map(|word| ip::quoted(word)).collect::<Result<_, _>>().map_err(Failure::incomplete)?;
    let line = format!("route get {}{}", words.join(" "), if args.explain { " explain" } else { "" });
    let Some(net) = &args.net else { return ip::tell(&args.socket, &line, "ip", false) };
    let text = network::read_text(net)?;
    let ports = match args.port.is_empty() {
        true => control::ports_of(&text).iter().filter_map(|port| port.parse().ok()).collect(),
        false => args.port.clone(),
    };
    let configuration = network::apply(&text, net, &network::without_devices(&ordered(ports.iter())), Time::ZERO)?;
    let refused = |errors: control::Errors| if errors.parsed { Failure::unusable(errors) } else { Failure::incomplete(errors) };
    let Some(listing) = show::listing(&line, "ip", &configuration).map_err(refused)? else { return Ok(()) };
    let mut stdout = Stdout::new();
    stdout.print(|output| listing.print(&configuration, output))?;
    stdout.flush()?;
    listing.refusal().map_or(Ok(()), |why| Err(Failure::no_answer(why)))
}
