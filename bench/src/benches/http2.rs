//! Copies over long lines from a server that speaks HTTP/2 and HTTP/1.1, beside other programs.

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

/// Seconds that a copy of 2,000 resources may take over a line without losses.
const BY_HTTP_2: f64 = 2.0;
const BY_HTTP_1_1: f64 = 4.0;

/// A line: its round trip, and the part of packets that is lost.
struct Line {
    round_trip: Duration,
    lost: f64,
}

const LINES: [Line; 2] = [
    Line { round_trip: Duration::from_millis(50), lost: 0.0 },
    Line { round_trip: Duration::from_millis(200), lost: 0.01 },
];
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
    let options = NginxOptions {
        name: "http2",
        root: &root,
        workers: 1,
        count: false,
        tls: Some([&certificate, &key]),
    };
    let nginx = Nginx::start(settings, &find_or_install("nginx")?, &options)?;
    for line in &LINES {
        let proxy = DelayProxy::losing(line.round_trip, line.lost)?;
        proxy.lead_to(SocketAddr::from(([127, 0, 0, 1], nginx.port)));
        let url = format!("https://{}/", proxy.address);
        let place = Place { url, authority: authority.clone(), lists: folder.clone(), count };
        StaticSite::new(&root, &place.url, &tree)?;
        measure(settings, report, &abreast, &tree, &place, line)?;
    }
    Ok(())
}

/// Copies over a line with each program in turn.
fn measure(
    settings: &Settings,
    report: &mut Report,
    abreast: &Path,
    tree: &Tree,
    place: &Place,
    line: &Line,
) -> Result<()> {
    let (count, is_exact) = (place.count, line.lost == 0.0);
    let limit = |seconds: f64| Some(seconds).filter(|_| is_exact);
    let mut tools = vec![
        Tool::Ours { name: "abreast, HTTP/2", options: &[], limit: limit(BY_HTTP_2) },
        Tool::Ours {
            name: "abreast, HTTP/1.1",
            options: &["--no-http2"],
            limit: limit(BY_HTTP_1_1),
        },
        Tool::Ours {
            name: "abreast, HTTP/1.1, 32 connections",
            options: &["--no-http2", "--connections", "32"],
            limit: None,
        },
        Tool::Ours {
            name: "abreast, HTTP/1.1, no pipelining",
            options: &["--no-http2", "--no-pipelining"],
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
                    abreast::sync(settings, abreast, &place.url, &copy, &all)?
                }
                Tool::Peer { name, program } => copied_by(settings, place, name, program, &copy)?,
            };
            same::check(&tree.folder, &copy, None).with_context(|| tool.name())?;
            report.raw(&json!({
                "round": round, "tool": tool.name(), "resources": count, "usage": usage.json(),
                "round_trip_ms": line.round_trip.as_millis() as u64, "lost": line.lost,
            }));
            wall.push(usage.seconds);
            cpu.push(usage.cpu);
        }
    }
    let mut rows = Vec::new();
    let over = format!("{} ms", line.round_trip.as_millis());
    for (tool, [wall, cpu]) in tools.iter().zip(&figures) {
        match tool {
            Tool::Ours { limit: Some(limit), .. } => {
                report.at_most(
                    &format!("{}: seconds over {over}", tool.name()),
                    wall,
                    *limit,
                    " s",
                );
            }
            Tool::Ours { .. } => {}
            Tool::Peer { name, .. } => {
                // aria2 has HTTP/1.1 only.
                let own = usize::from(*name == "aria2c");
                let ratio = figures[own][0].over(wall).map(f64::recip);
                let text = format!("{}: speed of {name} over {over}", tools[own].name());
                report.at_least(&text, &ratio, 1.0, " ×");
            }
        }
        rows.push(vec![
            tool.name().to_owned(),
            wall.text(),
            number(count as f64 / wall.median()),
            number(cpu.median()),
        ]);
    }
    let losses = if is_exact {
        String::new()
    } else {
        format!(
            ", and loses {} % of all packets of 1,448 bytes, so that these and the packets of their connection behind them come a \
             round trip later; the speed of a connection does not depend on losses, as it would on a real line",
            line.lost * 100.0
        )
    };
    report.text(&format!(
        "{count} resources of 3.1 KB from nginx with TLS, through a proxy that holds all bytes for {} ms each way and a new connection \
         for {over}{losses}, from starting the program to its end. abreast finds the resources in the lists of the Source; the other \
         programs get a list of all addresses, except rclone, which reads the pages of the folders. wget2, curl and rclone use HTTP/2, \
         aria2 HTTP/1.1, each with up to {IN_FLIGHT} requests in flight (aria2: 16, its most). abreast has 100 requests in flight by \
         HTTP/2; by HTTP/1.1 8 connections with up to 8 requests on each. Before the first resource, curl needs the round trips of a connection and of TLS; \
         abreast also needs one each for the address, the Capability List, the Resource List and the Change List, since each of them is known \
         from the one before ({:.1} s).",
        line.round_trip.as_millis() / 2,
        4.0 * line.round_trip.as_secs_f64(),
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
