//! The captures that a replay writes, one a port.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use port::Time;
use port::capture::Writer;

use super::inputs::is_standard_input;
use super::report::Traffic;
use crate::args::{PortCapture, PortName};
use crate::failure::Failure;

struct Output {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    traffic: Traffic,
}

/// `DIR/PORT.pcap` for each port.
pub struct Outputs {
    outputs: Vec<Output>,
}

impl Outputs {
    /// Creates the directory and an empty capture for each of `ports`, replacing what stood there.
    ///
    /// # Errors
    /// When one can not be created, or would replace one of the captures in `rx` that are being read.
    pub fn create(directory: &Path, ports: &[PortName], rx: &[PortCapture]) -> Result<Outputs, Failure> {
        let path = |port: &PortName| directory.join(format!("{port}.pcap"));
        let read: Vec<PathBuf> =
            rx.iter().filter(|input| !is_standard_input(&input.capture)).filter_map(|input| input.capture.canonicalize().ok()).collect();
        for path in ports.iter().map(path) {
            if path.canonicalize().is_ok_and(|path| read.contains(&path)) {
                return Err(Failure::unusable(format!("{} is read by this run: choose another directory for --tx", path.display())));
            }
        }
        fs::create_dir_all(directory).map_err(|error| Failure::unusable(format!("{}: {error}", directory.display())))?;
        let create = |port| {
            let path = path(port);
            match File::create(&path).and_then(|file| Writer::new(BufWriter::new(file))) {
                Ok(writer) => Ok(Output { path, writer, traffic: Traffic::default() }),
                Err(error) => Err(Failure::unusable(format!("{}: {error}", path.display()))),
            }
        };
        Ok(Outputs { outputs: ports.iter().map(create).collect::<Result<_, _>>()? })
    }

    /// Writes a frame that leaves by port number `port`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&mut self, port: usize, time: Time, frame: &[u8]) -> Result<(), Failure> {
        let Some(output) = self.outputs.get_mut(port) else { return Ok(()) };
        output.writer.write(time, frame).map_err(|error| output_failed(&output.path, &error))?;
        output.traffic.count(frame.len());
        Ok(())
    }

    /// Writes out what is buffered, and says what was written to each port.
    ///
    /// # Errors
    /// Those of the files.
    pub fn finish(self) -> Result<Vec<Traffic>, Failure> {
        let finish = |mut output: Output| match output.writer.flush() {
            Ok(()) => Ok(output.traffic),
            Err(error) => Err(output_failed(&output.path, &error)),
        };
        self.outputs.into_iter().map(finish).collect()
    }
}

fn output_failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::incomplete(format!("{}: {error}", path.display()))
}
