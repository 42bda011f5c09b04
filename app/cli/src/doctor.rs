//! `abreast doctor`: finds problems of the machine, a folder or the network path to an address.

use crate::access::AccessArgs;
use crate::config::File;
use crate::terminal::line;
use abreast_net::{Client, Options, Request, Shared};
use abreast_validator::Share;
use abreast_webtypes::{without_login, without_logins};
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HELP: &str = "\
Examples:
  abreast doctor
  abreast doctor ./papers
  abreast doctor --config /etc/abreast.toml
  abreast doctor https://papers.example.org/

With a folder: space, inodes, whether it can be written, how its file system treats names and times. With a configuration
file: its errors, the port that it names, and its folders. With an address: DNS, proxies, TLS, the server's clock, and whether
the address leads to documents that `abreast sync` reads. Each line is `ok`, or `bad` with help.

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
/// Bytes of the answer of a probe that are read.
const ANSWER_OF_PROBE_MAX: u64 = 4_096;
/// Documents of an address that are read.
const DOCUMENTS_MAX: usize = 20;
/// Longest time to read them.
const SOURCE_TIME: Duration = Duration::from_secs(10);
/// Where a server listens if nothing is set.
const LISTEN: &str = "127.0.0.1:8080";
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
    /// Check the folders and the port of this configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "what")]
    config: Option<PathBuf>,
    /// Address on which a server would listen [default: that of --config, else 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", env = "ABREAST_LISTEN")]
    listen: Option<String>,
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
        let [what, help] = [what, help].map(without_logins);
        if self.json {
            let help = if good { None } else { Some(help) };
            line(
                &json!({"type": "check", "code": code, "ok": good, "message": what, "help": help})
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
    let file = match args.config.as_deref().map(File::read_with_faults).transpose() {
        Ok(file) => file,
        Err(error) => {
            let code = crate::exit::code(&error);
            crate::logging::failure(&error, code);
            return ExitCode::from(code);
        }
    };
    let named = file.as_ref().and_then(|file| file.listen.as_deref());
    machine(&mut doctor, args.listen.as_deref().or(named).unwrap_or(LISTEN));
    if let (Some(file), Some(path)) = (file, &args.config) {
        configuration(&mut doctor, file, path);
        return ExitCode::from(u8::from(doctor.bad > 0));
    }
    match args.what.as_deref() {
        Some(url) if crate::address::is_url(url) => address(&mut doctor, url, &args.access),
        Some(place) => {
            let folder = crate::target::folder_of(place);
            match (crate::there::found(folder), crate::address::with_scheme(place)) {
                (Ok(None), Some(meant)) => {
                    doctor.code = Some(crate::exit::USAGE);
                    let help = format!("for a server, did you mean `{meant}`?");
                    doctor.report("folder", false, &format!("there is no folder {place}"), &help);
                }
                _ => check_folder(&mut doctor, folder),
            }
        }
        None => check_folder(&mut doctor, Path::new(".")),
    }
    ExitCode::from(doctor.code.unwrap_or(u8::from(doctor.bad > 0)))
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
    let address = match crate::config::address_of(listen) {
        Ok(address) => address,
        Err(error) => {
            let (what, help) = error.split_once(" (help: ").unwrap_or((&error, ""));
            return doctor.report("port", false, what, help.trim_end_matches(')'));
        }
    };
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

/// Reports errors in the configuration file, and checks each configured folder.
fn configuration(doctor: &mut Doctor, file: File, path: &Path) {
    let shown = path.display();
    let store = file.store_folder().filter(|folder| !folder.as_os_str().is_empty());
    let mut published: Vec<PathBuf> = file.set.iter().map(|set| set.folder.clone()).collect();
    // Sets of records and of endpoints do not have a folder.
    published.retain(|folder| !folder.as_os_str().is_empty());
    let faults = match crate::config_command::faults_of(file) {
        Ok(faults) => faults,
        Err(error) => vec![error.to_string()],
    };
    if faults.is_empty() {
        doctor.report("config", true, &format!("{shown} has no errors"), "");
    }
    for fault in faults {
        let (what, help) = fault.split_once(" (help: ").unwrap_or((&fault, "correct it"));
        doctor.report("config", false, what, help.trim_end_matches(')'));
    }
    // Published folders are only read.
    for folder in published.into_iter().collect::<BTreeSet<_>>() {
        let (what, good) = match std::fs::read_dir(&folder) {
            Ok(_) => (folder.display().to_string(), true),
            Err(error) => (format!("{}: {error}", folder.display()), false),
        };
        doctor.report("readable", good, &what, "make the folder, or let this user read it");
    }
    if let Some(store) = &store {
        check_store(doctor, store);
    }
    // A store that is not there yet is made in the nearest folder that is.
    if let Some(store) = store
        && let Some(there) = nearest(&store)
    {
        check_folder(doctor, &there);
    }
}

/// Reports whether the configured store exists.
fn check_store(doctor: &mut Doctor, store: &Path) {
    // The report shows the absolute path, so that a mistyped path is visible.
    let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
    let shown = store.display();
    let has = |name: &str| crate::there::is_file(&store.join(name));
    match has("source.db").and_then(|found| Ok(found || has("hub.db")?)) {
        Ok(true) => doctor.report("store", true, &format!("{shown} has a store"), ""),
        Ok(false) => {
            let what = format!(
                "{shown} has no store yet: the first start of the server makes one there; if there is one elsewhere, correct `data`"
            );
            doctor.report("store", true, &what, "");
        }
        Err(error) => {
            doctor.report("store", false, &format!("{error:#}"), "let this user read it");
        }
    }
}

/// A folder, or the nearest one above it that is there.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(folder).ok()?;
    whole.ancestors().find(|above| above.exists()).map(Path::to_owned)
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
        let (code, what, help) = match crate::there::found(folder) {
            Err(error) => (Some(crate::exit::DISK), format!("{error:#}"), "let this user read it"),
            Ok(None) => {
                (Some(crate::exit::USAGE), format!("there is no folder {shown}"), "make it")
            }
            Ok(Some(_)) => (None, format!("{shown} cannot be read"), "let this user read it"),
        };
        doctor.code = code;
        doctor.report("folder", false, &what, help);
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
    let for_source = options.clone();
    let asked = || -> anyhow::Result<(u16, Option<i64>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::new(Shared::new(options));
        runtime.block_on(async {
            let mut response = client.send(&Request::new(text)).await?;
            // Compare clocks here: reading the rest of the answer takes time.
            let apart = response.header("date").and_then(seconds_apart);
            let status = response.status().as_u16();
            response.read_to(&mut Vec::new(), ANSWER_MAX).await?;
            Ok((status, apart))
        })
    };
    match asked() {
        Ok((status, apart)) => {
            let (good, help) = match status {
                500.. => (false, "read the server's log"),
                401 | 403 | 407 => (false, "give a login: --user, --token-file or --netrc"),
                400.. => (false, "check the address"),
                _ => (true, ""),
            };
            doctor.report("answer", good, &format!("{text} answers with {status}"), help);
            if let Some(apart) = apart {
                let what = format!("the server's clock is {apart} s from this one");
                doctor.report(
                    "clocks",
                    apart.abs() <= CLOCK_APART,
                    &what,
                    "set both clocks, for example with NTP",
                );
            }
            if good {
                source(doctor, text, for_source);
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
            // The Source's documents may have other addresses, which can work in spite of this error.
            if net.is_some_and(|error| error.kind() == abreast_net::ErrorKind::Header) {
                source(doctor, text, for_source);
            }
        }
    }
}

/// Whether documents that `abreast sync` reads are found from an address.
fn source(doctor: &mut Doctor, url: &str, net: Options) {
    let mut options = abreast_validator::Options::new(vec![url.to_owned()]);
    options.net = net;
    // A set that asks for a pause does not delay the report on the others.
    (options.net.max_retry_after, options.net.idle_timeout) = (Duration::ZERO, SOURCE_TIME);
    (options.sample, options.packages) = (Share::Some(0), Share::Some(0));
    (options.max_documents, options.max_time) = (DOCUMENTS_MAX, SOURCE_TIME);
    (options.depth, options.connections) = (1, 1);
    let report = abreast_validator::validate(&options, &crate::signals::cancel_on_signal());
    let first = report.documents.iter().find(|document| document.problem.is_none());
    match first.filter(|_| report.found_source()) {
        Some(document) => {
            doctor.report("source", true, &format!("{} can be read", document.url), "");
        }
        None if report.limit == Some("--max-time") => doctor.report(
            "source",
            false,
            &format!("no document was found from {url} within {} s", SOURCE_TIME.as_secs()),
            "find out why the server is slow; `abreast explore URL` has no such limit",
        ),
        None => doctor.report(
            "source",
            false,
            &format!("{url} leads to no document of ResourceSync, SDShare or a change feed"),
            "give the URL of a Capability List, Resource List, Change List or Sitemap, of a feed of SDShare, or of an Entry Point",
        ),
    }
}

/// How far another clock is ahead of ours.
fn seconds_apart(date: &str) -> Option<i64> {
    let there = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_second();
    Some(there - jiff::Timestamp::now().as_second())
}
