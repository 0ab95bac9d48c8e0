//! A directory of a lab's own.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory, gone with this value unless it was left.
pub struct Directory {
    path: PathBuf,
    left: bool,
}

impl Directory {
    /// Makes it, with the permissions of `mode` that the process's mask leaves.
    ///
    /// # Errors
    /// When there is something of that name, or we may not.
    pub fn new(path: PathBuf, mode: u32) -> io::Result<Directory> {
        DirBuilder::new().mode(mode).create(&path)?;
        Ok(Directory { path, left: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there.
    pub fn leave(mut self) {
        self.left = true;
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.left {
            // Somebody else may have taken it away already, and what cannot be removed the system's own tidying finds.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
