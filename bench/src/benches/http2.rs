//! Copies over a long line from a server that speaks HTTP/2, beside other programs.

use crate::abreast;
use crate::delay::DelayProxy;
use crate::nginx::{Nginx, NginxOptions};
use crate::peers::find_or_install;
use crate::report::Report;
use crate::run::{Usage, log_path, settle, timed};
use crate::same;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::static_site::StaticSite;
use crate::tree::{Profile, Tree, path_of};
use abreast_testkit::tls::Authority;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROUND_TRIP: Duration = Duration::from_millis(50);
/// Seconds that a copy of 2,000 resources may take.
const BY_HTTP_2: f64 = 2.0;
const BY_HTTP_1_1: f64 = 4.0;
/// Requests that the other programs have in flight at a time.
const IN_FLIGHT: &str = "100";

/// Files that all programs use.
struct Place {
    /// `https://127.0.0.1:PORT/`
    url: String,
    authority: PathBuf,
    /// Lists of all resources, in the form of each program.
    lists: PathBuf,
    count: usize,
}

/// A program that makes a copy.
enum Tool {
    Ours { name: &'static str, options: &'static [&'static str], limit: Option<f64> },
    Peer { name: &'static str, program: PathBuf },
}

impl Tool {
    const fn name(&self) -> &'static str {
        match self {
            Self::Ours { name, .. } | Self::Peer { name, .. } => name,
        }
    }
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(2_000, 500);
    let abreast = abreast::binary(settings)?;
    let root = settings.folder.join(format!("site-{count}"));
    let tree = Tree::open(&root.join("data"), count, Profile::Records)?;
    let folder = settings.empty_folder("http2")?;
    let [authority, certificate, key] =
        ["ca", "server", "key"].map(|name| folder.join(format!("{name}.pem")));
    let signer = Authority::default();
    let signed = signer.server(&["127.0.0.1"], false);
    fs::write(&authority, signer.pem())?;
    fs::write(&certificate, signed.pem())?;
    fs::write(&key, signed.key_pem())?;
    let proxy = DelayProxy::start(ROUND_TRIP)?;
    let options = NginxOptions {
        name: "http2",
        root: &root,
        workers: 1,
        count: false,
        tls: Some([&certificate, &key]),
    };
    let nginx = Nginx::start(settings, &find_or_install("nginx")?, &options)?;
    proxy.lead_to(SocketAddr::from(([127, 0, 0, 1], nginx.port)));
    let place =
        Place { url: format!("https://{}/", proxy.address), authority, lists: folder, count };
    StaticSite::new(&root, &place.url, &tree)?;
    let mut tools = vec![
        Tool::Ours { name: "abreast, HTTP/2", options: &[], limit: Some(BY_HTTP_2) },
        Tool::Ours {
            name: "abreast, HTTP/1.1",
            options: &["--no-http2", "--connections", "32"],
            limit: Some(BY_HTTP_1_1),
        },
        Tool::Ours {
            name: "abreast, HTTP/1.1, 8 connections",
            options: &["--no-http2"],
            limit: None,
        },
    ];
    for name in ["wget2", "curl", "aria2c", "rclone"] {
        match find_or_install(name) {
            Ok(program) => tools.push(Tool::Peer { name, program }),
            Err(error) => eprintln!("   left out: {error}"),
        }
    }
    let mut figures = vec![[Samples::default(), Samples::default()]; tools.len()];
    for round in 0..settings.rounds {
        for (tool, [wall, cpu]) in tools.iter().zip(&mut figures) {
            let copy = settings.empty_folder("http2-copy")?;
            settle();
            let usage = match tool {
                Tool::Ours { options, .. } => {
                    let (base, authority) =
                        (format!("{}data/", place.url), place.authority.to_string_lossy());
                    let mut all = vec!["--base", &base, "--ca-file", &authority];
                    all.extend(*options);
                    abreast::sync(settings, &abreast, &place.url, &copy, &all)?
                }
                Tool::Peer { name, program } => copied_by(settings, &place, name, program, &copy)?,
            };
            same::check(&tree.folder, &copy, None).with_context(|| tool.name())?;
            report.raw(&json!({ "round": round, "tool": tool.name(), "resources": count, "usage": usage.json() }));
            wall.push(usage.seconds);
            cpu.push(usage.cpu);
        }
    }
    let mut rows = Vec::new();
    for (tool, [wall, cpu]) in tools.iter().zip(&figures) {
        match tool {
            Tool::Ours { limit: Some(limit), .. } => {
                report.at_most(&format!("{}: seconds", tool.name()), wall, *limit, " s");
            }
            Tool::Ours { .. } => {}
            Tool::Peer { name, .. } => {
                let ratio = figures[0][0].over(wall).map(f64::recip);
                report.at_least(&format!("abreast, HTTP/2: speed of {name}"), &ratio, 1.0, " ×");
            }
        }
        rows.push(vec![
            tool.name().to_owned(),
            wall.text(),
            number(count as f64 / wall.median()),
            number(cpu.median()),
        ]);
    }
    report.text(&format!(
        "{count} resources of 3.1 KB from nginx with TLS, through a proxy that holds all bytes for 25 ms each way and a new connection \
         for 50 ms, from starting the program to its end. abreast finds the resources in the lists of the Source; the other programs get a \
         list of all addresses, except rclone, which reads the pages of the folders. wget2, curl and rclone use HTTP/2, aria2 HTTP/1.1, \
         each with up to {IN_FLIGHT} requests in flight (aria2: 16, its most). Before the first resource, abreast needs 0.8 s for \
         connections, robots.txt, discovery and lists, one round trip after the other; 32 connections of HTTP/1.1 need 3.2 s for the \
         round trips of the resources."
    ));
    report.table(&["", "wall, s", "resources/s", "CPU, s"], &rows);
    Ok(())
}

/// Copies all resources by another program.
fn copied_by(
    settings: &Settings,
    place: &Place,
    name: &str,
    program: &Path,
    copy: &Path,
) -> Result<Usage> {
    let (copy, list) = (copy.to_string_lossy(), place.lists.join(name));
    let data = format!("{}data/", place.url);
    let mut lines = String::new();
    for number in 0..place.count {
        let path = path_of(number);
        match name {
            "curl" => writeln!(lines, "url = \"{data}{path}\"\noutput = \"{copy}/{path}\"")?,
            "aria2c" => writeln!(lines, "{data}{path}\n dir={copy}\n out={path}")?,
            _ => writeln!(lines, "{data}{path}")?,
        }
    }
    fs::write(&list, lines)?;
    let (list, authority) = (list.to_string_lossy(), place.authority.to_string_lossy());
    let arguments = match name {
        "wget2" => format!(
            "-q -i {list} -x -nH --cut-dirs=1 --no-robots --max-threads=2 --http2-request-window=50 --ca-certificate={authority} -P {copy}"
        ),
        "curl" => format!(
            "-sS -Z --parallel-max {IN_FLIGHT} --http2 --create-dirs --cacert {authority} -K {list}"
        ),
        "aria2c" => format!("-q -i {list} -j 16 -x 1 --ca-certificate={authority}"),
        _ => format!(
            "copy -q --transfers {IN_FLIGHT} --checkers {IN_FLIGHT} --ca-cert {authority} --http-url {data} :http: {copy}"
        ),
    };
    let arguments: Vec<&str> = arguments.split(' ').collect();
    Ok(timed(program, &arguments, &place.lists, &log_path(&settings.folder, name)?)?.0)
}
