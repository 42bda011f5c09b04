//! Time of a copy, of a second run, and of a run after 1 % changed, beside other programs.

use crate::abreast::{self, Source};
use crate::nginx::{Nginx, NginxOptions, Requests};
use crate::peers::{Peer, RsyncDaemon, find_or_install};
use crate::report::Report;
use crate::run::{Usage, log_path, settle, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::static_site::StaticSite;
use crate::tree::{Profile, Tree};
use crate::{same, samples};
use anyhow::{Context, Result};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

const PHASES: [&str; 3] = ["baseline", "nothing changed", "1 % changed"];

/// The mirroring programs.
#[derive(Clone, Debug, PartialEq)]
enum Tool {
    /// From nginx, with these options.
    Ours(&'static [&'static str]),
    /// From `abreast serve`.
    OursFromOurs,
    Peer(Peer, PathBuf),
}

impl Tool {
    fn name(&self) -> String {
        match self {
            Self::Ours([]) => "abreast sync, nginx".to_owned(),
            Self::Ours(options) => format!("abreast sync {}, nginx", options.join(" ")),
            Self::OursFromOurs => "abreast sync, abreast serve".to_owned(),
            Self::Peer(peer, program) => peer.shown(program),
        }
    }
}

/// All figures of one tool in one phase.
#[derive(Clone, Default)]
struct Figures {
    wall: Samples,
    cpu: Samples,
    memory: Samples,
    server: Samples,
    requests: Option<Requests>,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let abreast = abreast::binary(settings)?;
    let nginx = find_or_install("nginx")?;
    report.text(
        "Metadata records of 3.1 KB on average, from 127.0.0.1 into a folder of the same file system, files in memory, \
         writes settled before each run; 16 connections where a program has an option, else its default. rsync speaks its \
         own protocol to its own daemon; wget2 and rclone follow nginx's folder pages; resync and abreast read \
         ResourceSync documents. Server CPU is nginx's or abreast serve's.",
    );
    let sizes = if settings.quick { vec![2_000] } else { vec![20_000, 100_000] };
    for count in sizes {
        one_size(settings, report, count, &abreast, &nginx)?;
    }
    Ok(())
}

fn one_size(
    settings: &Settings,
    report: &mut Report,
    count: usize,
    abreast: &Path,
    nginx: &Path,
) -> Result<()> {
    let root = settings.folder.join(format!("site-{count}"));
    let mut tree = Tree::open(&root.join("data"), count, Profile::Records)?;
    let mut nginx = Nginx::start(
        settings,
        nginx,
        &NginxOptions { name: "mirror", root: &root, workers: 1, count: true, tls: None },
    )?;
    let mut site = StaticSite::new(&root, &nginx.url(), &tree)?;
    let store = settings.empty_folder("mirror-store")?;
    let (data, folder) =
        (store.to_string_lossy().into_owned(), tree.folder.to_string_lossy().into_owned());
    let arguments = [&folder, "--data", &data, "--name", "data", "--changes-per-list", "50000"];
    let source = Source::start(settings, abreast, "serve-mirror", &arguments)?;
    source.wait_ready()?;
    let mut tools = vec![Tool::Ours(&[]), Tool::Ours(&["--connections", "16"]), Tool::OursFromOurs];
    tools.extend(
        Peer::ALL.into_iter().filter_map(|peer| Some(Tool::Peer(peer, peer.program(settings)?))),
    );
    let rsync = tools.iter().find_map(|tool| match tool {
        Tool::Peer(Peer::Rsync, program) => {
            Some(RsyncDaemon::start(settings, program, &tree.folder))
        }
        _ => None,
    });
    let rsync = rsync.transpose()?;
    let mut figures: BTreeMap<(usize, usize), Figures> = BTreeMap::new();
    let mut alone = Samples::default();
    let copies = settings.empty_folder("copies")?;
    settings.wait_for_deletions();
    // Every baseline comes before the first change: replaced files are freed inodes, and files
    // created soon after those cost several times as much. Each round has new folders; the last
    // ones are followed.
    for (phase, phase_name) in PHASES.iter().enumerate() {
        for round in 0..settings.rounds {
            if phase == 2 {
                let position = source.position()?;
                let step = round as u64 + 1 + samples_seed(count);
                let changed = tree.change(step)?;
                site.publish(&tree, &changed)?;
                source.wait_position(position + changed.len() as u64)?;
                let seconds = replace_alone(&copies.join("alone"), &tree, &changed)?;
                report.raw(&json!({ "round": round, "resources": count, "replaced_alone_seconds": seconds }));
                alone.push(seconds);
            }
            for (place, tool) in tools.iter().enumerate() {
                // The slowest has one round, at the smaller size.
                if matches!(tool, Tool::Peer(Peer::Resync, _)) && (round > 0 || count > 20_000) {
                    continue;
                }
                let last = if matches!(tool, Tool::Peer(Peer::Resync, _)) {
                    0
                } else {
                    settings.rounds - 1
                };
                let copy =
                    copies.join(format!("{}-{place}", if phase == 0 { round } else { last }));
                std::fs::create_dir_all(&copy)?;
                settle();
                let server = nginx.cpu() + source.server.cpu();
                let (usage, requests) = match tool {
                    Tool::Ours(more) => {
                        let base = format!("{}data/", nginx.url());
                        let mut options = vec!["--base", &base];
                        options.extend(*more);
                        (abreast::sync(settings, abreast, &nginx.url(), &copy, &options)?, None)
                    }
                    Tool::OursFromOurs => {
                        let before = source.responses()?;
                        let usage = abreast::sync(settings, abreast, &source.url(), &copy, &[])?;
                        // The question itself is one.
                        let all = source.responses()? - before - 1;
                        (usage, Some(Requests { all, ..Requests::default() }))
                    }
                    Tool::Peer(peer, program) => {
                        let url = rsync.as_ref().map_or("", |rsync| rsync.url.as_str());
                        let log = log_path(&settings.folder, peer.name())?;
                        let state = settings.folder.join("logs");
                        (
                            timed(
                                program,
                                &peer.arguments(&nginx.url(), url, &copy),
                                &state,
                                &log,
                            )?
                            .0,
                            None,
                        )
                    }
                };
                let server = nginx.cpu() + source.server.cpu() - server;
                let counted = nginx.new_requests()?;
                let requests = requests.unwrap_or(counted);
                // wget2 keeps the folder pages it followed, although its options reject them.
                let beside = matches!(tool, Tool::Peer(Peer::Wget2, _)).then_some("index.html");
                same::check(&tree.folder, &copy, beside)
                    .with_context(|| format!("{}, {phase_name}", tool.name()))?;
                report.raw(&json!({
                    "round": round, "resources": count, "phase": phase_name, "tool": tool.name(), "usage": usage.json(),
                    "server_cpu": server, "requests": requests.all, "bodies": requests.bodies, "bytes": requests.bytes,
                }));
                figures.entry((place, phase)).or_default().push(usage, server, requests);
            }
        }
    }
    settings.note_deletions()?;
    tables(report, count, &tools, &figures);
    report.text(&format!(
        "Replacing the changed files alone, their bytes in memory (create, write, rename; no network, no lists, no digests), \
         takes {} s: {} % of the baseline's time, nginx.",
        alone.text(),
        alone.over(&figures.get(&(0, 0)).map(|found| found.wall.clone()).unwrap_or_default()).map(|ratio| ratio * 100.0).text(),
    ));
    targets(report, count, &tools, &figures, &alone);
    Ok(())
}

/// The least that any program must do which replaces whole files: how long does it take?
fn replace_alone(folder: &Path, tree: &Tree, changed: &[usize]) -> Result<f64> {
    std::fs::create_dir_all(folder)?;
    let place = |number: &usize| folder.join(number.to_string());
    for number in changed {
        std::fs::write(place(number), vec![b'-'; tree.body(*number).len()])?;
    }
    let bodies: Vec<_> = changed.iter().map(|number| tree.body(*number)).collect();
    settle();
    let began = Instant::now();
    let temporary = folder.join("temporary");
    for (number, body) in changed.iter().zip(&bodies) {
        std::fs::write(&temporary, body)?;
        std::fs::rename(&temporary, place(number))?;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Another choice of changed files for each size.
fn samples_seed(count: usize) -> u64 {
    count as u64 * 1_000
}

impl Figures {
    fn push(&mut self, usage: Usage, server: f64, requests: Requests) {
        self.wall.push(usage.seconds);
        self.cpu.push(usage.cpu);
        self.memory.push(usage.memory_mib);
        self.server.push(server);
        self.requests = Some(requests);
    }
}

fn tables(
    report: &mut Report,
    count: usize,
    tools: &[Tool],
    figures: &BTreeMap<(usize, usize), Figures>,
) {
    for (phase, name) in PHASES.iter().enumerate() {
        report.text(&format!("**{} resources, {name}**", number(count as f64)));
        let rows: Vec<Vec<String>> = tools
            .iter()
            .enumerate()
            .filter_map(|(place, tool)| Some((tool, figures.get(&(place, phase))?)))
            .map(|(tool, found)| {
                let asked = found.requests.filter(|_| !matches!(tool, Tool::Peer(Peer::Rsync, _)));
                let each =
                    |samples: &Samples| samples::number(samples.median() * 1e6 / count as f64);
                vec![
                    tool.name(),
                    found.wall.text(),
                    number(count as f64 / found.wall.median()),
                    number(found.cpu.median()),
                    each(&found.cpu),
                    number(found.server.median()),
                    number(found.memory.median()),
                    asked.map_or("–".to_owned(), |asked| number(asked.all as f64)),
                    // `abreast serve` does not count bytes.
                    asked
                        .filter(|asked| asked.bytes > 0)
                        .map_or("–".to_owned(), |asked| number(asked.bytes as f64 / 1e6)),
                ]
            })
            .collect();
        let head = [
            "",
            "wall, s",
            "resources/s",
            "CPU, s",
            "CPU, µs a resource",
            "server CPU, s",
            "memory, MiB",
            "requests",
            "MB",
        ];
        report.table(&head, &rows);
    }
}

fn targets(
    report: &mut Report,
    count: usize,
    tools: &[Tool],
    figures: &BTreeMap<(usize, usize), Figures>,
    alone: &Samples,
) {
    let size = number(count as f64);
    let wall = |place: usize, phase: usize| {
        figures.get(&(place, phase)).map(|found| found.wall.clone()).unwrap_or_default()
    };
    for (place, ours) in
        tools.iter().enumerate().filter(|(_, tool)| !matches!(tool, Tool::Peer(..)))
    {
        let name = ours.name();
        for (other, tool) in tools.iter().enumerate() {
            let Tool::Peer(peer, _) = tool else { continue };
            let bound = match peer {
                Peer::Rsync => 1.0,
                Peer::Wget2 | Peer::Rclone => 2.0,
                Peer::Resync => 8.0,
            };
            let baseline = wall(other, 0);
            if !baseline.is_empty() {
                // The peer's time over ours, as speeds compare the other way round.
                let ratio = wall(place, 0).over(&baseline).map(f64::recip);
                report.at_least(
                    &format!("{size}: {name}: speed of {}", peer.name()),
                    &ratio,
                    bound,
                    " ×",
                );
            }
        }
        let requests =
            figures.get(&(place, 1)).and_then(|found| found.requests).map(|asked| asked.all as f64);
        report.at_most(
            &format!("{size}: {name}: requests when nothing changed"),
            &requests.into_iter().collect(),
            2.0,
            "",
        );
        let unchanged = wall(place, 1).map(|seconds| seconds * 1_000.0);
        report.at_most(&format!("{size}: {name}: nothing changed"), &unchanged, 10.0, " ms");
        report.at_most(
            &format!("{size}: {name}: 1 % changed, relative to replacing these files alone"),
            &wall(place, 2).over(alone),
            1.5,
            " ×",
        );
    }
}
