//! `abreast doctor`: finds problems of the machine, a folder or the network path to an address.

use crate::access::AccessArgs;
use crate::terminal::line;
use abreast_net::{Client, Options, Request, Shared};
use abreast_webtypes::without_login;
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HELP: &str = "\
Examples:
  abreast doctor
  abreast doctor ./papers
  abreast doctor https://papers.example.org/

With a folder: space, inodes, whether it can be written, how its file system treats names and times. With an address:
DNS, proxies, TLS, the server's clock. Each line is `ok`, or `bad` with help.

Exit codes: 0 no problems, 1 problems found, 2 usage or no such folder, 5 the address cannot be reached now,
6 no secure connection.";

/// 2025-01-01: no clock that is right is behind it.
const CLOCK_MIN: u64 = 1_735_689_600;
/// Clocks further apart make times of changes misleading.
const CLOCK_APART: i64 = 60;
/// Bytes of an answer that are read.
const ANSWER_MAX: u64 = 64 << 20;
/// Addresses of a host that are printed.
const ADDRESSES_SHOWN: usize = 4;
const SPACE_MIN: u64 = 1 << 30;
const INODES_MIN: u64 = 100_000;
const FILES_MIN: u64 = 4_096;
const WATCHES_MIN: u64 = 65_536;

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    /// A folder, or the address of a Source
    what: Option<String>,
    /// Address on which a server would listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

struct Doctor {
    json: bool,
    bad: u64,
    /// The exit code, if it is not the general one for problems.
    code: Option<u8>,
}

impl Doctor {
    fn report(&mut self, code: &str, good: bool, what: &str, help: &str) {
        self.bad += u64::from(!good);
        if self.json {
            let help = if good { None } else { Some(help) };
            line(
                &json!({"type": "check", "code": code, "ok": good, "what": what, "help": help})
                    .to_string(),
            );
            return;
        }
        line(&format!("{}  {code}: {what}", if good { "ok " } else { "bad" }));
        if !good {
            line(&format!("     help: {help}"));
        }
    }
}

/// Runs `doctor`.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let mut doctor = Doctor { json: args.json, bad: 0, code: None };
    machine(&mut doctor, &args.listen);
    match args.what.as_deref() {
        Some(url) if crate::address::is_url(url) => address(&mut doctor, url, &args.access),
        Some(place) if is_host(place) => {
            doctor.code = Some(crate::exit::USAGE);
            let help = format!(
                "for a server, write its address with http:// or https://, such as https://{place}/"
            );
            doctor.report("folder", false, &format!("there is no folder {place}"), &help);
        }
        Some(folder) => {
            check_folder(&mut doctor, crate::target::folder_of(folder));
        }
        None => check_folder(&mut doctor, Path::new(".")),
    }
    ExitCode::from(doctor.code.unwrap_or(u8::from(doctor.bad > 0)))
}

/// Whether this is meant as the address of a server: a host with a port or a domain, and no folder
/// of that name.
fn is_host(place: &str) -> bool {
    let place_of_host = place.split('/').next().unwrap_or_default();
    let is_path = place.starts_with(['.', '/', '~']) || Path::new(place).exists();
    !is_path && place_of_host.contains(['.', ':']) && crate::address::host(place_of_host).is_ok()
}

fn machine(doctor: &mut Doctor, listen: &str) {
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
        &format!("{now} seconds since 1970"),
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
    let free = std::net::TcpListener::bind(listen);
    let what = free
        .as_ref()
        .map_or_else(|error| format!("{listen}: {error}"), |_| format!("{listen} is free"));
    doctor.report(
        "port",
        free.is_ok(),
        &what,
        "stop what listens there, or choose another with --listen",
    );
}

fn check_folder(doctor: &mut Doctor, folder: &Path) {
    let shown = folder.display().to_string();
    if folder.exists() && !folder.is_dir() {
        doctor.code = Some(crate::exit::USAGE);
        doctor.report(
            "folder",
            false,
            &format!("{shown} is a file, not a folder"),
            "name the folder that it is in",
        );
        return;
    }
    let Ok(stat) = rustix::fs::statvfs(folder) else {
        doctor.code = (!folder.exists()).then_some(crate::exit::USAGE);
        doctor.report(
            "folder",
            false,
            &format!("{shown} cannot be read"),
            "make it, or let this user read it",
        );
        return;
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    doctor.report(
        "space",
        free >= SPACE_MIN,
        &format!("{shown}: {} MiB free", free >> 20),
        "free space, or use another disk",
    );
    // Some file systems create inodes on demand, and report 0.
    let inodes = stat.f_files == 0 || stat.f_favail >= INODES_MIN;
    doctor.report(
        "inodes",
        inodes,
        &format!("{shown}: {} free", stat.f_favail),
        "remove small files, or keep a packed copy: `abreast sync URL warc:DIR`",
    );
    match abreast_destination::check::file_system(folder) {
        Ok(found) => {
            doctor.report("writable", true, &shown, "");
            doctor.report("names", true, &found.names, "");
            doctor.report("times", true, &found.times, "");
        }
        Err(error) => doctor.report(
            "writable",
            false,
            &format!("{shown}: {error}"),
            "let this user write there",
        ),
    }
    let links = tempfile::Builder::new().prefix(".%~").tempdir_in(folder).and_then(|place| {
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        std::fs::write(&one, "")?;
        std::fs::hard_link(&one, &two)
    });
    doctor.report(
        "links",
        true,
        if links.is_ok() {
            "hard links can be made"
        } else {
            "no hard links: files are copied where others would be linked"
        },
        "",
    );
}

fn address(doctor: &mut Doctor, text: &str, access: &AccessArgs) {
    let (Ok(_), Ok(url)) = (crate::address::http_url(text), url::Url::parse(text)) else {
        doctor.code = Some(crate::exit::USAGE);
        let what = format!("{} is not an http or https URL", without_login(text));
        doctor.report("url", false, &what, "give an address such as https://papers.example.org/");
        return;
    };
    let mut options =
        Options { connect_timeout: Duration::from_secs(10), retries: 0, ..Options::default() };
    let proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"];
    let mut proxies: Vec<&str> = proxies
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if access.proxy.is_some() {
        proxies = vec!["--proxy or ABREAST_PROXY"];
    }
    let what = if proxies.is_empty() {
        "none set".to_owned()
    } else {
        format!("set by {}", proxies.join(", "))
    };
    let text = match access.apply(text, &mut options) {
        Ok(text) => text,
        Err(error) => {
            doctor.code = Some(crate::exit::USAGE);
            doctor.report("access", false, &error.to_string(), "correct the option or variable");
            return;
        }
    };
    let text = text.as_str();
    doctor.report("proxy", true, &what, "");
    if proxies.is_empty()
        && let Some(host) = url.host_str()
    {
        use std::net::ToSocketAddrs as _;
        let found = (host.trim_matches(['[', ']']), url.port_or_known_default().unwrap_or(80))
            .to_socket_addrs();
        let found =
            found.map(|found| found.take(ADDRESSES_SHOWN).map(|address| address.ip().to_string()));
        let is_found = found.is_ok();
        let what = match found {
            Ok(addresses) => {
                format!("{host} resolves to {}", addresses.collect::<Vec<_>>().join(", "))
            }
            Err(error) => format!("{host}: {error}"),
        };
        doctor.report("dns", is_found, &what, "check the name and the resolver (/etc/resolv.conf)");
    }
    let asked = || -> anyhow::Result<(u16, Option<String>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::new(Shared::new(options));
        runtime.block_on(async {
            let mut response = client.send(&Request::new(text)).await?;
            let (status, date) =
                (response.status().as_u16(), response.header("date").map(str::to_owned));
            response.read_to(&mut Vec::new(), ANSWER_MAX).await?;
            Ok((status, date))
        })
    };
    match asked() {
        Ok((status, date)) => {
            let good = status < 500;
            doctor.report(
                "answer",
                good,
                &format!("{text} answers with {status}"),
                "read the server's log",
            );
            if let Some(apart) = date.as_deref().and_then(seconds_apart) {
                let what = format!("the server's clock is {apart} s from this one");
                doctor.report(
                    "clocks",
                    apart.abs() <= CLOCK_APART,
                    &what,
                    "set both clocks, for example with NTP",
                );
            }
        }
        Err(error) => {
            doctor.code = Some(crate::exit::code(&error));
            let net = error.downcast_ref::<abreast_net::Error>();
            let help = net.and_then(abreast_net::Error::help).unwrap_or(
                "names, proxies, certificates and firewalls stand in between; `abreast sync --help` has the options",
            );
            let causes = error
                .chain()
                .map(|cause| cause.to_string().lines().next().unwrap_or_default().to_owned());
            doctor.report("answer", false, &causes.collect::<Vec<_>>().join(": "), help);
        }
    }
}

/// How far another clock is ahead of ours.
fn seconds_apart(date: &str) -> Option<i64> {
    let there = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_second();
    Some(there - jiff::Timestamp::now().as_second())
}
