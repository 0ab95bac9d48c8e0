//! noref: the program.
#![forbid(unsafe_code)]

mod args;
mod failure;
mod replay;
mod stderr;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let outcome = match command {
        Command::Replay(args) => replay::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            stderr::say(&failure);
            failure.status()
        }
    }
}
