//! Copies over long lines: bytes a second compared with connections over round trip.

use crate::abreast::{self, Source};
use crate::delay::DelayProxy;
use crate::http::Http;
use crate::nginx::{Nginx, NginxOptions};
use crate::peers::find_or_install;
use crate::report::Report;
use crate::run::settle;
use crate::same;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::static_site::StaticSite;
use crate::tree::{Profile, Tree};
use anyhow::Result;
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const ROUND_TRIP: Duration = Duration::from_millis(50);

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(2_000, 500);
    let abreast = abreast::binary(settings)?;
    let root = settings.folder.join(format!("site-{count}"));
    let tree = Tree::open(&root.join("data"), count, Profile::Records)?;
    let proxy = DelayProxy::start(ROUND_TRIP)?;
    let options =
        NginxOptions { name: "latency", root: &root, workers: 1, count: false, tls: None };
    let nginx = Nginx::start(settings, &find_or_install("nginx")?, &options)?;
    StaticSite::new(&root, &proxy.url(), &tree)?;
    let store = settings.empty_folder("latency-store")?;
    let (data, folder) =
        (store.to_string_lossy().into_owned(), tree.folder.to_string_lossy().into_owned());
    let url = proxy.url();
    let source = Source::start(
        settings,
        &abreast,
        "serve-latency",
        &[&folder, "--data", &data, "--name", "data", "--base-url", &url],
    )?;
    source.wait_ready()?;
    let targets = [
        ("nginx", SocketAddr::from(([127, 0, 0, 1], nginx.port))),
        ("abreast serve", source.address),
    ];
    let mut rows = Vec::new();
    let mut rates = vec![Samples::default(); 4];
    let mut shares = rates.clone();
    let mut round_trips = Samples::default();
    for round in 0..settings.rounds {
        for (place, (name, target)) in targets.iter().enumerate() {
            proxy.lead_to(*target);
            let round_trip = measured_round_trip(&url)?;
            round_trips.push(round_trip * 1_000.0);
            for (half, connections) in [8, 16].into_iter().enumerate() {
                let copy = settings.empty_folder("latency-copy")?;
                settle();
                let base = if place == 0 { format!("{url}data/") } else { format!("{url}data/r/") };
                let limit = f64::from(connections) / round_trip;
                let connections = connections.to_string();
                let options = ["--connections", connections.as_str(), "--base", &base];
                let usage = abreast::sync(settings, &abreast, &url, &copy, &options)?;
                same::check(&tree.folder, &copy, None)?;
                let rate = count as f64 / usage.seconds;
                report.raw(&json!({
                    "round": round, "server": name, "connections": connections, "resources": count,
                    "round_trip": round_trip, "usage": usage.json(),
                }));
                rates[place * 2 + half].push(rate);
                shares[place * 2 + half].push(rate / limit);
            }
        }
    }
    for (place, (name, _)) in targets.iter().enumerate() {
        for (half, connections) in [8, 16].into_iter().enumerate() {
            let at = place * 2 + half;
            report.at_least(
                &format!("{name}, {connections} connections: share of connections / round trip"),
                &shares[at],
                0.9,
                " ×",
            );
            let nominal = f64::from(connections) / ROUND_TRIP.as_secs_f64();
            rows.push(vec![
                (*name).to_owned(),
                connections.to_string(),
                rates[at].text(),
                number(nominal),
                shares[at].text(),
            ]);
        }
    }
    report.text(&format!(
        "{count} resources through a proxy that holds all bytes for 25 ms each way and a new connection for 50 ms; the \
         rate is the rate of the whole run, from starting the program to its end, discovery and lists included. A bare GET through \
         it takes {} ms: the limit is connections over that.",
        round_trips.text()
    ));
    report.table(
        &["server", "connections", "resources/s", "connections / 50 ms", "share of the limit"],
        &rows,
    );
    Ok(())
}

/// The median of twenty GETs on one kept connection, in seconds.
fn measured_round_trip(url: &str) -> Result<f64> {
    let mut http = Http::connect(url)?;
    http.get("/.well-known/resourcesync", "")?;
    let mut samples = Samples::default();
    for _ in 0..20 {
        let start = Instant::now();
        http.get("/.well-known/resourcesync", "")?;
        samples.push(start.elapsed().as_secs_f64());
    }
    Ok(samples.median())
}
