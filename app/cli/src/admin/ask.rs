//! Asking programs for their status: by a socket in a folder, or by a URL.

use crate::admin::socket::{self, Answer};
use crate::program::errors::ExitCodeError;
use crate::program::exit::NETWORK;
use abreast_core::{Clock as _, SystemClock};
use abreast_destination::STATE_FOLDER;
use abreast_destination::check::CopyPlace;
use abreast_maintenance::StatusReport;
use abreast_net::{Authorization, Client, Options, Request, Shared};
use anyhow::{Context as _, Result, anyhow};
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest answer to a request by URL.
const ANSWER_MAX: u64 = 1 << 20;
/// Most folders in a folder that are searched for sockets.
const FOLDERS_MAX: usize = 1_000;

/// A report without stores and copies, made now.
pub(crate) fn new_report() -> StatusReport {
    StatusReport::new(env!("CARGO_PKG_VERSION"), SystemClock.now().to_string())
}

/// Folders in which programs that use a folder have their sockets.
fn state_folders(dir: &Path) -> Vec<PathBuf> {
    let mut folders = vec![dir.to_owned(), dir.join(STATE_FOLDER)];
    folders.extend(CopyPlace::find(dir).map(|place| place.state));
    folders
}

/// The sockets that programs that use a folder may have.
pub(crate) fn possible_sockets(dir: &Path) -> Vec<SocketPlace> {
    let named =
        |folder: PathBuf| [socket::SERVER, socket::FOLLOWER].map(|name| (folder.clone(), name));
    let mut sockets: Vec<SocketPlace> = state_folders(dir).into_iter().flat_map(named).collect();
    // The process of a copy with `--all-sets` has its socket above.
    let above = std::path::absolute(dir).ok().and_then(|dir| dir.parent().map(Path::to_owned));
    for folder in above.into_iter().flat_map(|above| [above.join(STATE_FOLDER), above]) {
        sockets.push((folder, socket::FOLLOWER));
    }
    let mut known = HashSet::new();
    sockets.retain(|place| known.insert(place.clone()));
    sockets
}

/// A socket of a program, by its folder and name.
pub(crate) type SocketPlace = (PathBuf, &'static str);

/// The sockets of programs that use a folder; otherwise of programs that use a folder inside.
pub(crate) fn sockets_in(dir: &Path) -> Vec<SocketPlace> {
    let of = |dir: &Path| -> Vec<SocketPlace> {
        let folders = state_folders(dir).into_iter();
        let named =
            |folder: PathBuf| [socket::SERVER, socket::FOLLOWER].map(|name| (folder.clone(), name));
        let all = folders.flat_map(named);
        let mut found: Vec<SocketPlace> =
            all.filter(|(folder, name)| folder.join(name).exists()).collect();
        found.sort();
        found.dedup();
        found
    };
    let own = of(dir);
    if !own.is_empty() {
        return own;
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.take(FOLDERS_MAX).flat_map(|entry| of(&entry.path())).collect()
}

/// The URL of a server from any address of its probes.
pub(crate) fn base_of(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    ["/livez", "/readyz", "/metrics", "/status"]
        .into_iter()
        .find_map(|path| url.strip_suffix(path))
        .unwrap_or(url)
}

/// Access to an address that not everyone may ask.
#[derive(Clone, Copy, Default)]
pub(crate) struct Access<'a> {
    pub(crate) token: Option<&'a str>,
    /// Certificates that are trusted in addition.
    pub(crate) ca_file: Option<&'a Path>,
}

/// Asks a server for a path below its URL.
///
/// # Errors
/// The server cannot be reached, or does not answer within the time.
pub(crate) fn ask_url(
    base: &str,
    path: &str,
    Access { token, ca_file }: Access<'_>,
    timeout: Duration,
) -> Result<Answer> {
    let url = format!("{base}{path}");
    let failed = |reason: &dyn std::fmt::Display| {
        let url = abreast_webtypes::without_login(&url);
        let message = format!("cannot ask {url}: {reason}");
        anyhow!(ExitCodeError { message, code: NETWORK })
    };
    if let Some((address, prefix)) = of_this_machine(base) {
        let asked = socket::ask_address(address, &format!("{prefix}{path}"), token, timeout);
        match asked {
            // Not an answer of this program: the client for all servers reads it.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            asked => return asked.map_err(|error| failed(&in_words(&error, timeout))),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let extra_roots = ca_file.map(Path::to_owned);
    let options =
        Options { retries: 0, connect_timeout: timeout, extra_roots, ..Options::default() };
    let client = Client::new(Shared::new(options));
    let authorization = token.map(Authorization::bearer).transpose()?;
    let work = async {
        let request = Request { authorization: authorization.as_ref(), ..Request::new(&url) };
        let mut response = client.send(&request).await?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        response.read_to(&mut body, ANSWER_MAX).await?;
        Ok::<_, abreast_net::Error>((status, String::from_utf8_lossy(&body).into_owned()))
    };
    match runtime.block_on(async { tokio::time::timeout(timeout, work).await }) {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(failed(&in_words(&io::ErrorKind::TimedOut.into(), timeout))),
    }
}

/// The address of an http URL of this machine, with the path of the URL.
fn of_this_machine(base: &str) -> Option<(SocketAddr, String)> {
    let url = url::Url::parse(base).ok().filter(|url| url.scheme() == "http")?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let ip: IpAddr = if host == "localhost" { [127, 0, 0, 1].into() } else { host.parse().ok()? };
    let path = url.path().trim_end_matches('/').to_owned();
    ip.is_loopback().then(|| (SocketAddr::new(ip, url.port().unwrap_or(80)), path))
}

/// The reason why a process was not asked.
pub(crate) fn in_words(error: &io::Error, timeout: Duration) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            // To a tenth of a second: the rest of a limit is not exact.
            let tenths = (timeout.as_millis() as u64).div_ceil(100);
            let shown = humantime::format_duration(Duration::from_millis(tenths * 100));
            format!("no answer within {shown}")
        }
        io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied: ask as the user of the process, or as root".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_this_machine_use_no_proxy() {
        let of = |url| of_this_machine(url).map(|(address, path)| (address.to_string(), path));
        let local = Some(("127.0.0.1:80".to_owned(), String::new()));
        assert_eq!(of("http://localhost"), local);
        assert_eq!(of("http://127.0.0.1:8080/x/").map(|(_, path)| path), Some("/x".to_owned()));
        assert!(of("http://[::1]:8080").is_some());
        assert_eq!(of("https://127.0.0.1"), None);
        assert_eq!(of("http://192.0.2.1"), None);
        assert_eq!(base_of("http://h:1/x/readyz/"), "http://h:1/x");
    }
}
