//! `noref replay`: captures in, the whole router, captures out.

mod engine;
mod inputs;
mod outputs;
mod progress;
mod trace;

use std::io::IsTerminal;

use port::Pool;

use self::engine::Engine;
use self::inputs::Inputs;
use self::outputs::Outputs;
use self::progress::Progress;
use self::trace::Trace;
use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::report::{BrokenReport, PortReport, Report, Traffic};
use crate::stderr::say;
use crate::stdout::Stdout;

/// Replays captures as `args` say. Everything that can be wrong beforehand is looked at before the first file is written.
///
/// # Errors
/// When arguments, the network file or a capture can not be used, or the output can not be written.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let ports = args.ports();
    let mut inputs = Inputs::open(&args.rx, &ports, &mut Pool::default())?;
    let mut engine = Engine::new(&args.net, &ports, inputs.begin(), args.refs, args.trace)?;
    let outputs = Outputs::create(&args.tx, &ports, &args.rx)?;
    for warning in engine.warnings() {
        say(format_args!("warning: {warning}"));
    }

    let mut sink = Sink { outputs, trace: Trace::new(args.trace, args.json), stdout: Stdout::new() };
    let mut progress = Progress::new(inputs.total(), args.trace && std::io::stdout().is_terminal());
    let mut received = vec![Traffic::default(); ports.len()];
    while let Some((port, packet)) = inputs.next(engine.pool()) {
        let time = packet.time;
        if engine.must_run_before(time) {
            engine.run();
            sink.take(&mut engine)?;
            engine.advance(time);
            sink.take(&mut engine)?;
        }
        if let Some(received) = received.get_mut(port) {
            received.count(packet.buf.len());
        }
        if !engine.receive(port, packet) {
            engine.run();
            sink.take(&mut engine)?;
        }
        progress.packet(|| inputs.offset());
    }
    engine.run();
    sink.take(&mut engine)?;
    engine.settle();
    sink.take(&mut engine)?;
    progress.finish();
    let Sink { outputs, trace, mut stdout } = sink;
    let sent = outputs.finish()?;

    let mut report = Report::new(args.refs);
    report.trace = trace.finish(&mut stdout)?;
    report.packets = received.iter().map(|traffic| traffic.packets).sum();
    for ((port, received), sent) in ports.iter().zip(received).zip(sent) {
        report.ports.push(PortReport { port: port.to_string(), received, sent, delivered: 0 });
    }
    engine.report(&mut report);
    for error in inputs.broken() {
        report.broken.push(BrokenReport::of(error));
        say(format_args!("warning: {error}"));
    }
    stdout.finish(args.json, &report)
}

/// Where everything that leaves the router goes.
struct Sink {
    outputs: Outputs,
    trace: Trace,
    stdout: Stdout,
}

impl Sink {
    /// Takes what the router has to send and to tell.
    fn take(&mut self, engine: &mut Engine) -> Result<(), Failure> {
        let mut outcome = Ok(());
        engine.drain(|sent| {
            if outcome.is_ok() {
                outcome = self.outputs.write(sent.port, sent.time, sent.buf);
            }
        });
        if self.trace.is_on() {
            self.trace.take(engine.steps(), &mut self.stdout)?;
        }
        outcome
    }
}
