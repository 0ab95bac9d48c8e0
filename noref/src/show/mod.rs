//! `noref show`: what a running router has and what it counted.

pub mod columns;
mod render;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use self::render::Renderer;
use crate::api::Client;
use crate::api::protocol::{Request, Show, What};
use crate::failure::Failure;
use crate::stdout::Stdout;

/// Show what a running router has, and what it counted
///
/// Asks the router at the control socket. Packets are counted in frames and bytes with the Ethernet header, from the router's start.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// What
    #[arg(value_name = "WHAT")]
    pub what: What,

    /// Print the reply as it comes, JSON lines (docs/control.md)
    #[arg(long)]
    pub json: bool,

    /// Show it again each second, until Ctrl-C
    #[arg(long)]
    pub watch: bool,

    /// The router's control socket
    #[arg(long, value_name = "PATH", default_value = crate::run::DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  noref show ports --watch
  noref show sids
  noref show routes --json | head

Exit status:
  0  it was shown
  1  it could not be printed
  2  arguments could not be used
  3  no router runs at the socket, or it may not be used";

/// Between two looks of `--watch`.
const EACH: Duration = Duration::from_secs(1);
/// Clears a terminal and goes to its top.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows what `args` name.
///
/// # Errors
/// When no router runs there, or what it says cannot be printed.
pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    let mut client = Client::connect(&args.socket)?;
    let request = Request::Show(Show { what: args.what });
    let mut stdout = Stdout::new();
    let clears = args.watch && !args.json && std::io::stdout().is_terminal();
    loop {
        let begin = Instant::now();
        client.ask(&request)?;
        if clears {
            stdout.print(|output| output.write_all(CLEAR.as_bytes()))?;
        }
        show(&mut client, args.json, &mut stdout)?;
        stdout.flush()?;
        if !args.watch || stdout.is_closed() {
            return Ok(());
        }
        std::thread::sleep(EACH.saturating_sub(begin.elapsed()));
        if !clears && !args.json {
            stdout.line("")?;
        }
    }
}

/// Prints a whole reply.
fn show(client: &mut Client, json: bool, stdout: &mut Stdout) -> Result<(), Failure> {
    let mut renderer = Renderer::default();
    loop {
        let (line, reply) = client.next()?;
        match json {
            true => stdout.line(line)?,
            false => stdout.print(|output| renderer.print(&reply.body, !reply.more, output))?,
        }
        if !reply.more || stdout.is_closed() {
            return Ok(());
        }
    }
}
