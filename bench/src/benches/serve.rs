//! Requests per second of `abreast serve`, beside nginx with the same bytes.

use crate::abreast::{self, Source};
use crate::http::{Http, locs, path_of};
use crate::machine;
use crate::nginx::{Nginx, NginxOptions};
use crate::peers::find_or_install;
use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::tree::{Profile, Tree};
use crate::wrk;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::fs;

/// Entries of about 230 bytes that make a document of 9 KB.
const SMALL_SET: usize = 40;

struct Work {
    name: &'static str,
    /// For wrk: nothing, or a header.
    header: &'static str,
    /// The path to ask, or nothing for many.
    ours: String,
    nginx: String,
    bytes: usize,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let (count, seconds) = (settings.size(20_000, 2_000), settings.size(5, 1));
    let (abreast, wrk) = (abreast::binary(settings)?, find_or_install("wrk")?);
    let root = settings.folder.join(format!("site-{count}"));
    let tree = Tree::open(&root.join("data"), count, Profile::Records)?;
    let small = Tree::open(&settings.folder.join("small/data"), SMALL_SET, Profile::Records)?;
    let store = settings.empty_folder("serve-store")?;
    let config = store.join("abreast.toml");
    fs::write(
        &config,
        format!(
            "data = \"{}\"\n[[set]]\nname = \"data\"\nfolder = \"{}\"\n[[set]]\nname = \"small\"\nfolder = \"{}\"\n",
            store.join("store").display(),
            tree.folder.display(),
            small.folder.display()
        ),
    )?;
    let source =
        Source::start(settings, &abreast, "serve-serve", &["--config", &config.to_string_lossy()])?;
    source.wait_ready()?;

    // nginx serves the very bytes of our documents.
    let mut http = Http::connect(&source.url())?;
    let list = list_path(&mut http, "/data/resourcelist.xml")?;
    let mut works = vec![Work {
        name: "resources, each in turn",
        header: "",
        ours: String::new(),
        nginx: String::new(),
        bytes: 3_100,
    }];
    let documents = [
        ("list of 40 resources", list_path(&mut http, "/small/resourcelist.xml")?, "small.xml"),
        ("list of all resources", list, "large.xml"),
    ];
    for (name, path, file) in documents {
        let body = http.get_ok(&path)?;
        fs::write(root.join(file), &body)?;
        works.push(Work {
            name,
            header: "",
            ours: path.clone(),
            nginx: format!("/{file}"),
            bytes: body.len(),
        });
        if file == "large.xml" {
            let packed = http.get(&path, "Accept-Encoding: gzip\r\n")?.body;
            ensure!(packed.starts_with(&[0x1f, 0x8b]), "{path} did not come in gzip");
            fs::write(root.join("large.xml.gz"), &packed)?;
            let (nginx, bytes) = (format!("/{file}"), packed.len());
            works.push(Work {
                name: "the same in gzip",
                header: "Accept-Encoding: gzip",
                ours: path,
                nginx,
                bytes,
            });
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let program = find_or_install("nginx")?;
    let start = |workers: usize| {
        let name = format!("serve-{workers}");
        Nginx::start(
            settings,
            &program,
            &NginxOptions { name: &name, root: &root, workers, count: false, tls: None },
        )
    };
    let (one, all) = (start(1)?, start(cores)?);
    let names = [
        "abreast serve".to_owned(),
        "nginx, 1 worker".to_owned(),
        format!("nginx, {cores} workers"),
    ];
    let scripts = [
        wrk::script(settings, "ours", "/data/r/", count)?,
        wrk::script(settings, "nginx", "/data/", count)?,
    ];

    let mut rates = vec![vec![Samples::default(); names.len()]; works.len()];
    let mut costs = rates.clone();
    for round in 0..settings.rounds {
        for (place, work) in works.iter().enumerate() {
            for (which, name) in names.iter().enumerate() {
                let (url, cpu): (String, Box<dyn Fn() -> f64>) = match which {
                    0 => (source.url(), Box::new(|| source.server.cpu())),
                    1 => (one.url(), Box::new(|| one.cpu())),
                    _ => (all.url(), Box::new(|| all.cpu())),
                };
                let path = if which == 0 { &work.ours } else { &work.nginx };
                let url = format!("{}{}", url.trim_end_matches('/'), path);
                let script = path.is_empty().then(|| &scripts[usize::from(which > 0)]);
                let before = cpu();
                let (requests, took) = wrk::ask(
                    settings,
                    &wrk,
                    &url,
                    work.header,
                    script.map(String::as_str),
                    seconds,
                )?;
                let cost = (cpu() - before) * 1e6 / requests;
                report.raw(&json!({
                    "round": round, "work": work.name, "server": name, "requests": requests, "seconds": took,
                    "server_cpu_us_each": cost,
                }));
                rates[place][which].push(requests / took);
                costs[place][which].push(cost);
            }
        }
    }
    let mut rows = Vec::new();
    for (place, work) in works.iter().enumerate() {
        for which in 1..names.len() {
            let ratio = rates[place][0].over(&rates[place][which]);
            report.at_least(
                &format!("{}: requests/s of {}", work.name, names[which]),
                &ratio,
                0.7,
                " ×",
            );
        }
        for (which, name) in names.iter().enumerate() {
            let rate = &rates[place][which];
            rows.push(vec![
                work.name.to_owned(),
                number(work.bytes as f64 / 1_000.0),
                name.clone(),
                rate.text(),
                number(rate.median() * work.bytes as f64 / 1e6),
                costs[place][which].text(),
            ]);
        }
    }
    report.text(&format!(
        "wrk, 1 thread, 16 connections, {seconds} s each; {count} resources of 3.1 KB in a fixed random order; nginx {} serves \
         the same files, and the same bytes of the documents, with sendfile, gzip_static and no log. wrk and the server \
         share {cores} cores, so CPU a request matters as much as requests/s.",
        machine::version(&program.to_string_lossy(), "-v")
    ));
    report.table(&["", "KB", "server", "requests/s", "MB/s", "server CPU, µs a request"], &rows);
    Ok(())
}

/// Where the entries are: the list itself, or the only list of its index.
fn list_path(http: &mut Http, path: &str) -> Result<String> {
    let document = http.get_ok(path)?;
    if !String::from_utf8_lossy(&document).contains("<sitemapindex") {
        return Ok(path.to_owned());
    }
    let lists = locs(&document);
    Ok(path_of(lists.first().context("an index without lists")?).to_owned())
}
