//! noref: the program.
#![forbid(unsafe_code)]

mod api;
mod args;
mod bench;
mod demo;
mod failure;
mod ip;
mod lab;
mod network;
mod replay;
mod report;
mod route_get;
mod run;
mod show;
mod stderr;
mod stdout;
mod threads;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let outcome = match command {
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Route(args) => route_get::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Ip(args) => ip::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Trace(args) => trace::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.say();
            failure.status()
        }
    }
}
