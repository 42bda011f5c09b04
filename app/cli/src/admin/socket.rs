//! Sockets on which programs report their status: `status.sock` of a server or hub, and `follow.sock` of
//! a copy that follows, since both may have the same folder.
//!
//! The path of a socket has at most 107 bytes. A longer path is reached through the folder's file
//! descriptor, `/proc/self/fd/N/status.sock`, so that the socket is always in the folder.

use abreast_core::start_thread;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the socket of a server or hub, in the folder of its store.
pub(crate) const SERVER: &str = "status.sock";
/// Name of the socket of a copy that follows, in the folder of its database.
pub(crate) const FOLLOWER: &str = "follow.sock";
/// Longest path that an address of a socket contains.
const PATH_MAX: usize = 107;
/// Longest answer, with its headers.
const ANSWER_MAX: u64 = 1_040 << 10;

/// A socket that this process listens on, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    path: PathBuf,
    /// Device and inode: another process may have replaced the socket.
    id: (u64, u64),
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|about| (about.dev(), about.ino()))
}

/// Does something with a path of the socket that fits into an address.
fn with_path<T>(
    folder: &Path,
    name: &str,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= PATH_MAX {
        return work(&path);
    }
    let folder = File::open(folder)?;
    work(Path::new(&format!("/proc/self/fd/{}/{name}", folder.as_raw_fd())))
}

/// Listens on the socket in a folder. The caller holds the lock of the folder, so that
/// a socket that is there was left by a process that was killed, and is replaced.
///
/// # Errors
/// Another process answers on the socket, or the folder cannot be written.
pub(crate) fn listen(folder: &Path, name: &str) -> io::Result<(UnixListener, OwnSocket)> {
    let path = folder.join(name);
    if let Ok(about) = std::fs::symlink_metadata(&path) {
        if !about.file_type().is_socket() {
            return Err(io::Error::other(format!("{} is not a socket", path.display())));
        }
        match with_path(folder, name, |path| UnixStream::connect(path)) {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(&path)?;
            }
            Err(error) => return Err(error),
        }
    }
    let listener = with_path(folder, name, |path| UnixListener::bind(path))?;
    let socket = OwnSocket { id: id_of(&path)?, path };
    // Until then, the listener refuses other users by their credentials.
    std::fs::set_permissions(&socket.path, std::fs::Permissions::from_mode(0o600))?;
    Ok((listener, socket))
}

/// The status and the body of an answer.
pub(crate) type Answer = (u16, String);

/// Asks the process that listens on the socket in a folder. `None` if no process listens.
///
/// # Errors
/// The process does not answer within the time, or this user may not ask it.
pub(crate) fn ask(
    (folder, name): (&Path, &str),
    path: &str,
    timeout: Duration,
) -> io::Result<Option<Answer>> {
    let end = Instant::now() + timeout;
    let connected = with_path(folder, name, |path| connect_until(path, end));
    let mut stream = match connected {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        connected => connected?,
    };
    stream.set_write_timeout(Some(timeout))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    read_answer(stream, end, |stream, left| stream.set_read_timeout(Some(left))).map(Some)
}

/// Asks a server on this machine, without TLS and without a proxy.
///
/// # Errors
/// It cannot be reached, or does not answer within the time.
pub(crate) fn ask_address(
    address: std::net::SocketAddr,
    path: &str,
    token: Option<&str>,
    timeout: Duration,
) -> io::Result<Answer> {
    let end = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_write_timeout(Some(timeout))?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{}\r\n",
        token.unwrap_or_default()
    );
    stream.write_all(head.as_bytes())?;
    read_answer(stream, end, |stream, left| stream.set_read_timeout(Some(left)))
}

fn read_answer<S: io::Read>(
    mut stream: S,
    end: Instant,
    limit: impl Fn(&S, Duration) -> io::Result<()>,
) -> io::Result<Answer> {
    let mut text = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        limit(&stream, left)?;
        let mut buffer = [0; 16 << 10];
        let length = stream.read(&mut buffer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })?;
        if length == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..length]);
        if text.len() as u64 > ANSWER_MAX {
            return Err(io::Error::other("the answer is longer than 1 MiB"));
        }
    }
    answer_of(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not complete"))
}

/// Connects; if the process does not accept connections and its queue is full, waits until `end`.
fn connect_until(path: &Path, end: Instant) -> io::Result<UnixStream> {
    // `connect` blocks while the queue of a process that hangs is full, without a time limit.
    let path = path.to_owned();
    let (sender, receiver) = std::sync::mpsc::channel();
    let open = match path.strip_prefix("/proc/self/fd") {
        // The descriptor is open while the caller waits, and no longer.
        Ok(_) => return UnixStream::connect(&path),
        Err(_) => path,
    };
    start_thread("connect", move || drop(sender.send(UnixStream::connect(open))))?;
    let left = end.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Status and body of an answer with a `Content-Length`.
fn answer_of(text: &[u8]) -> Option<Answer> {
    let split = text.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&text[..split]).ok()?;
    let body = std::str::from_utf8(&text[split + 4..]).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    (body.len() == length).then(|| (status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_private_and_removed_at_the_end() {
        let place = tempfile::tempdir().unwrap();
        let long = place.path().join("x".repeat(120));
        std::fs::create_dir(&long).unwrap();
        for folder in [place.path(), &long] {
            let path = folder.join(SERVER);
            assert!(ask((folder, SERVER), "/livez", Duration::from_secs(1)).unwrap().is_none());
            let (listener, socket) = listen(folder, SERVER).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            assert_eq!(listen(folder, SERVER).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            // It accepts, and never answers.
            let error = ask((folder, SERVER), "/livez", Duration::from_millis(100)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            drop(listener);
            // As a process leaves it that was killed.
            std::mem::forget(socket);
            assert!(path.exists());
            // A child of another test has the listener until it executes its program.
            let (_listener, socket) = (0..200)
                .find_map(|_| {
                    std::thread::sleep(Duration::from_millis(10));
                    listen(folder, SERVER).ok()
                })
                .unwrap();
            drop(socket);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_file_in_the_place_of_the_socket_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(SERVER), "mine").unwrap();
        assert!(listen(place.path(), SERVER).is_err());
        assert_eq!(std::fs::read_to_string(place.path().join(SERVER)).unwrap(), "mine");
    }

    #[test]
    fn an_answer_is_complete_or_none() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(answer_of(whole), Some((200, "ok".to_owned())));
        for length in 0..whole.len() {
            assert_eq!(answer_of(&whole[..length]), None, "{length}");
        }
    }
}
