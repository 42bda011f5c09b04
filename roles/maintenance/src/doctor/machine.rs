//! The clock, limits and port of this machine.

use crate::doctor::diagnosis::Doctor;
use crate::doctor::subject::Listen;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2025-01-01: no clock that is right is behind it.
const CLOCK_MIN: u64 = 1_735_689_600;
/// Bytes of the answer of a probe that are read.
const ANSWER_OF_PROBE_MAX: u64 = 4_096;
const FILES_MIN: u64 = 4_096;
const WATCHES_MIN: u64 = 65_536;

/// Checks the clock, the limits of the system and the port.
pub(super) fn check_machine(doctor: &mut Doctor<'_>, listen: &Listen) {
    doctor.report(
        "version",
        true,
        &format!(
            "abreast {}, SQLite {}",
            env!("CARGO_PKG_VERSION"),
            abreast_store::sqlite_version()
        ),
        "",
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    doctor.report(
        "clock",
        now >= CLOCK_MIN,
        &jiff::Timestamp::from_second(now.cast_signed())
            .map_or_else(|_| format!("{now} seconds since 1970"), |time| time.to_string()),
        "set the clock, for example with NTP",
    );
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    doctor.report(
        "open-files",
        files.is_none_or(|files| files >= FILES_MIN),
        &files.map_or("unlimited".to_owned(), |files| format!("at most {files}")),
        "raise the limit: `ulimit -Hn`, or LimitNOFILE= in a unit of systemd",
    );
    for (name, min) in [("max_user_watches", WATCHES_MIN), ("max_user_instances", 64)] {
        let path = format!("/proc/sys/fs/inotify/{name}");
        let Some(limit) =
            std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u64>().ok())
        else {
            continue;
        };
        doctor.report(
            "inotify",
            limit >= min,
            &format!("{name} is {limit}"),
            &format!("each published folder needs a watch: sysctl fs.inotify.{name}={}", min * 8),
        );
    }
    let (listen, address) = (
        &listen.text,
        match &listen.address {
            Ok(address) => *address,
            Err((what, help)) => return doctor.report("port", false, what, help),
        },
    );
    match std::net::TcpListener::bind(address) {
        Ok(_) => doctor.report("port", true, &format!("{listen} is free"), ""),
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_ours(address) => {
            doctor.report("port", true, &format!("{listen}: abreast listens there"), "");
        }
        Err(error) => {
            let help = match error.kind() {
                ErrorKind::AddrInUse => "stop what listens there, or choose another with --listen",
                ErrorKind::PermissionDenied => {
                    "ports below 1024 are for root: choose another, or AmbientCapabilities=CAP_NET_BIND_SERVICE in a unit of systemd"
                }
                _ => "name an address of this machine",
            };
            doctor.report("port", false, &format!("{listen}: {error}"), help);
        }
    }
}

/// Whether a server of this program listens at an address.
fn is_ours(mut address: SocketAddr) -> bool {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let ask = || -> std::io::Result<String> {
        let wait = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&address, wait)?;
        stream.set_read_timeout(Some(wait))?;
        write!(stream, "GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(ANSWER_OF_PROBE_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.ends_with("alive\n"))
}
