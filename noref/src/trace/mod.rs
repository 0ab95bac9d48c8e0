//! Traces of a running router: which packets ([`Filter`]), the worker's part ([`Probes`]), and `noref trace`.
//!
//! ```text
//! noref trace ──► server ──► Wanted ──► each worker's Probes, which looks at every packet until the trace is over
//!      ▲            ▲ Watch ◄────────── Told: the steps of those that the filter is for
//!      └────────────┘
//! ```
//! A worker that nobody asks for a trace looks at no packet and writes down no step.

mod filter;
mod layers;
mod probe;
mod save;
mod text;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use port::live::{Signals, wait_any};

pub use self::filter::Filter;
pub use self::probe::{Probes, Told, Wanted, watch};
pub use self::text::heading;

use self::save::Save;
use self::text::Text;
use crate::api::Client;
use crate::api::protocol::{Body, Request, Trace};
use crate::api::rows::{Traced, TracedFrame};
use crate::failure::Failure;
use crate::stderr::say;
use crate::stdout::Stdout;

/// Tell the way of packets through a running router
///
/// Prints what happens to the next packets that meet the filter, as `noref replay --trace` does, or saves them with it as comments, until there were enough or
/// Ctrl-C. A router that nobody traces spends nothing on it; one that is traced takes packets one at a time that may meet the filter, and is slower with them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TraceArgs {
    /// Which packets: port NAME, from PREFIX, to PREFIX, proto NAME|NUMBER, sid ADDRESS, drop REASON|any; all conditions that stand there
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,

    /// End after so many packets
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Save the packets as they came in, with their way as a comment (pcapng), instead of printing it
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,

    /// Print the reply as it comes, JSON lines (docs/control.md)
    #[arg(long, conflicts_with = "pcap")]
    pub json: bool,

    /// The router's control socket
    #[arg(long, value_name = "PATH", default_value = crate::run::DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  noref trace
  noref trace port e0 from 10.1.0.0/16 proto tcp -n 10
  noref trace drop any
  noref trace sid fc00:2::e --pcap sid.pcapng

A condition on addresses or protocol is met by a packet's own headers as it came in, or by those of a packet inside it.

Exit status:
  0  it ended as it was told to
  1  what was told could not be printed or saved
  2  arguments could not be used
  3  no router runs at the socket, or it may not be used, or it ended";

/// Looked up again after this time at the latest, whether Ctrl-C came.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long the router may take to say how the trace went.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where packets' ways go.
enum Sink {
    Text(Text, Stdout),
    Json(Stdout),
    Save(Save),
}

/// Tells the way of packets as `args` say.
///
/// # Errors
/// When arguments cannot be used, no router runs there, or what it tells cannot be printed or saved.
pub fn run(args: &TraceArgs) -> Result<(), Failure> {
    let filter = Filter::parse(&args.filter).map_err(Failure::unusable)?;
    let mut client = Client::connect(&args.socket)?;
    let signals = Signals::new().map_err(Failure::unusable)?;
    let mut sink = match (&args.pcap, args.json) {
        (Some(file), _) => Sink::Save(Save::create(file)?),
        (None, true) => Sink::Json(Stdout::new()),
        (None, false) => Sink::Text(Text::default(), Stdout::new()),
    };
    client.ask(&Request::Trace(Trace { filter, count: args.count, bytes: args.pcap.is_some() }))?;
    client.wait_for(None)?;
    let mut ending = false;
    loop {
        if !ending {
            // While lines are here nothing is waited for, but Ctrl-C is looked at all the same.
            let wait = if client.has_some() { Duration::ZERO } else { LONGEST_WAIT };
            let waited = wait_any(&[client.as_fd(), signals.as_fd()], wait);
            ending = sink.is_closed() || wait_any(&[signals.as_fd()], Duration::ZERO).unwrap_or(true);
            if ending {
                // What was told until then still comes, and how it went.
                client.end();
                client.wait_for(Some(LAST_WORDS))?;
            } else if matches!(waited, Ok(false)) && !client.has_some() {
                continue;
            }
        }
        let (line, reply) = client.next()?;
        sink.take(line, &reply.body)?;
        if !reply.more {
            return sink.finish();
        }
    }
}

impl Sink {
    fn is_closed(&self) -> bool {
        match self {
            Sink::Text(_, stdout) | Sink::Json(stdout) => stdout.is_closed(),
            Sink::Save(_) => false,
        }
    }

    /// Takes a line of the reply, which is on its way to whoever looks on when this returns.
    fn take(&mut self, line: &str, body: &Body) -> Result<(), Failure> {
        match (self, body) {
            (Sink::Text(text, stdout), Body::Frame(frame)) => {
                stdout.print(|output| text.print(frame, output))?;
                stdout.flush()
            }
            (Sink::Json(stdout), _) => {
                stdout.line(line)?;
                stdout.flush()
            }
            (Sink::Save(save), Body::Frame(frame)) => save.take(frame),
            (Sink::Text(..) | Sink::Save(_), Body::Traced(traced)) => {
                sum_up(traced);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Sink::Save(save) => save.finish(),
            Sink::Text(_, mut stdout) | Sink::Json(mut stdout) => stdout.flush(),
        }
    }
}

/// Says what a trace was, when that is not to be seen.
fn sum_up(traced: &Traced) {
    let Traced { packets, missed } = traced;
    match (packets, missed) {
        (0, 0) => say("no packet met the filter"),
        (_, 0) => {}
        (_, missed) => say(format_args!("{missed} more came faster than they could be told of")),
    }
}

/// When something happened to a packet, as it was before it was written.
fn time(frame: &TracedFrame) -> Option<port::Time> {
    let (seconds, nanos) = frame.time.split_once('.')?;
    Some(port::Time::from_parts(seconds.parse().ok()?, nanos.parse().ok()?))
}
