//! The socket's place in the file system: made for its owner alone, taken over from a router that is dead, left alone when one lives.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, UnixAddr, socket};

/// A listening socket in the file system. Its file goes with it, unless somebody else has put another there.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Socket {
    /// Listens at `path`, for the owner alone (0600) or for a group too (0660). A directory that is not there is made.
    ///
    /// # Errors
    /// When somebody listens there, something else than a socket is there, the group is not known, or we may not.
    pub fn listen(path: &Path, group: Option<&str>) -> Result<Socket, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let group = group.map(group_number).transpose()?;
        make_directory(path).map_err(failed)?;
        clear(path)?;
        // Made for the owner alone under another name, and moved when its permissions are right, so that nobody else gets in before.
        let mut hidden = path.as_os_str().to_owned();
        hidden.push(format!(".{}", std::process::id()));
        let hidden = PathBuf::from(hidden);
        remove(&hidden).map_err(failed)?;
        let listener = bind(&hidden).map_err(failed)?;
        let ready = || {
            if let Some(group) = group {
                chown(&hidden, None, Some(group))?;
            }
            fs::set_permissions(&hidden, Permissions::from_mode(if group.is_some() { 0o660 } else { 0o600 }))?;
            listener.set_nonblocking(true)?;
            fs::rename(&hidden, path)?;
            path.symlink_metadata()
        };
        match ready() {
            Ok(metadata) => Ok(Socket { listener, path: path.to_owned(), identity: identity(&metadata) }),
            Err(error) => {
                let _ = fs::remove_file(&hidden);
                Err(failed(error))
            }
        }
    }

    /// What is listened with. It does not block.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.path.symlink_metadata().is_ok_and(|metadata| identity(&metadata) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at a path, for its owner alone from the beginning, whatever the umask: the mode becomes the file's when it is made.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let socket = File::from(socket);
    socket.set_permissions(Permissions::from_mode(0o600))?;
    socket::bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    socket::listen(&socket, Backlog::new(128)?)?;
    Ok(OwnedFd::from(socket).into())
}

/// The number of a group that is named or numbered.
fn group_number(group: &str) -> Result<u32, String> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(group) {
        Ok(Some(known)) => Ok(known.gid.as_raw()),
        Ok(None) => Err(format!("there is no group \"{group}\" that could use the control socket")),
        Err(error) => Err(format!("group \"{group}\": {error}")),
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
        Some(parent) => DirBuilder::new().mode(0o755).recursive(true).create(parent),
        None => Ok(()),
    }
}

/// Takes away a socket at which nobody listens.
fn clear(path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(format!("{} is there and no socket; it is left alone: name another place", path.display()));
    }
    match UnixStream::connect(path) {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => remove(path).map_err(failed),
        Err(error) => Err(failed(error)),
        Ok(_) => Err(format!("a process listens at {} already: end it, or name another socket", path.display())),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use testkit::replay::Scratch;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_socket_is_for_its_owner_or_for_a_group_too_and_goes_with_its_router() {
        let scratch = Scratch::new();
        let path = scratch.path().join("run/deep/noref.sock");
        let socket = Socket::listen(&path, None).unwrap();
        assert_eq!(mode(&path), 0o600);
        drop(socket);
        assert!(!path.exists());
        // Our own group, which we may give it to.
        let own = scratch.path().metadata().unwrap().gid();
        let socket = Socket::listen(&path, Some(&own.to_string())).unwrap();
        assert_eq!((mode(&path), path.metadata().unwrap().gid()), (0o660, own));
        drop(socket);
        let why = Socket::listen(&path, Some("no-such-group")).err().unwrap();
        assert!(why.contains("there is no group \"no-such-group\""), "{why}");
    }

    #[test]
    fn at_no_time_may_others_connect() {
        let scratch = Scratch::new();
        let path = scratch.path().join("noref.sock");
        let _listener = bind(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        let why = bind(&scratch.path().join("x".repeat(200))).unwrap_err();
        assert_eq!(why.raw_os_error(), Some(nix::libc::ENAMETOOLONG));
    }

    #[test]
    fn a_dead_router_s_socket_is_taken_over_and_a_living_one_s_is_not() {
        let scratch = Scratch::new();
        let path = scratch.path().join("noref.sock");
        drop(UnixListener::bind(&path).unwrap());
        let socket = Socket::listen(&path, None).unwrap();
        let why = Socket::listen(&path, None).err().unwrap();
        assert!(why.contains("listens at") && why.contains("already"), "{why}");
        // Whoever put another socket there keeps it.
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let scratch = Scratch::new();
        let path = scratch.path().join("noref.sock");
        fs::write(&path, "precious").unwrap();
        let why = Socket::listen(&path, None).err().unwrap();
        assert!(why.contains("no socket"), "{why}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}
