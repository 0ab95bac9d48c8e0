//! The captures that a replay writes, one a port.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use port::Time;
use port::capture::Writer;

use super::inputs::is_standard_input;
use crate::args::{PortCapture, PortName};
use crate::failure::Failure;
use crate::report::Traffic;

struct Output {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    traffic: Traffic,
}

/// A file that is to become an output, its content untouched so far.
struct Opened {
    path: PathBuf,
    file: File,
    /// It was not there before.
    new: bool,
}

/// `DIR/PORT.pcap` for each port.
pub struct Outputs {
    outputs: Vec<Output>,
}

impl Outputs {
    /// Creates the directory and an empty capture for each of `ports`, replacing what stood there. No file is emptied before all could be opened.
    ///
    /// # Errors
    /// When one can not be created, or would replace one of the captures in `rx` that are being read.
    pub fn create(directory: &Path, ports: &[PortName], rx: &[PortCapture]) -> Result<Outputs, Failure> {
        if directory.exists() && !directory.is_dir() {
            return Err(Failure::unusable(format!("{}: --tx names a directory, and this is none", directory.display())));
        }
        fs::create_dir_all(directory).map_err(|error| Failure::unusable(format!("{}: {error}", directory.display())))?;
        let mut opened = Vec::with_capacity(ports.len());
        let outcome = open(directory, ports, rx, &mut opened);
        if let Err(failure) = outcome {
            for opened in opened.iter().filter(|opened| opened.new) {
                // What can not be taken back is an empty file, and the run says already why it failed.
                let _ = fs::remove_file(&opened.path);
            }
            return Err(failure);
        }
        let begin = |Opened { path, file, .. }| match emptied(file).and_then(|file| Writer::new(BufWriter::new(file))) {
            Ok(writer) => Ok(Output { path, writer, traffic: Traffic::default() }),
            Err(error) => Err(output_failed(&path, &error)),
        };
        Ok(Outputs { outputs: opened.into_iter().map(begin).collect::<Result<_, _>>()? })
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

/// Opens the file of each port into `opened`, as far as it gets.
fn open(directory: &Path, ports: &[PortName], rx: &[PortCapture], opened: &mut Vec<Opened>) -> Result<(), Failure> {
    let read: Vec<(u64, u64)> = rx.iter().filter_map(|input| identity_of_input(&input.capture)).collect();
    for port in ports {
        let path = directory.join(format!("{port}.pcap"));
        let failed = |error| Failure::unusable(format!("{}: {error}", path.display()));
        let new = path.symlink_metadata().is_err();
        let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let identity = identity(&file.metadata().map_err(failed)?);
        if read.contains(&identity) {
            return Err(Failure::unusable(format!("{} is read by this run: choose another directory for --tx", path.display())));
        }
        opened.push(Opened { path, file, new });
    }
    Ok(())
}

/// `file` without what it held; a pipe or a device holds nothing.
fn emptied(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Device and inode: what a file is, whatever name it goes by.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The identity of a capture, also of one that standard input is redirected from.
fn identity_of_input(capture: &Path) -> Option<(u64, u64)> {
    let metadata = match is_standard_input(capture) {
        true => File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata().ok()?,
        false => capture.metadata().ok()?,
    };
    Some(identity(&metadata))
}

fn output_failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::incomplete(format!("{}: {error}", path.display()))
}
