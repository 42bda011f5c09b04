//! The memory of subscriptions whose callbacks were not asked yet, or did not answer.

use super::serving::{AddressLayout, Hub, TOPIC, callback};
use crate::http::Http;
use crate::report::Report;
use crate::run::settle;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Requests of one client address: the hub takes 2,000 at once.
const OF_ONE_CLIENT: usize = 1_500;
/// Requests before the first reading of memory, so that exchanges under way count in both.
const BEFORE: usize = 500;

pub(super) fn run(settings: &Settings, program: &Path, report: &mut Report) -> Result<()> {
    let count = settings.size(10_000, 1_000);
    let mut each = Samples::default();
    for round in 0..settings.rounds {
        // Connections are accepted by the system, and nobody reads them.
        let silent =
            TcpListener::bind("0.0.0.0:0").context("cannot open a port for the callbacks")?;
        let port = silent.local_addr()?.port();
        let hub = Hub::start(settings, program, "", std::iter::empty())?;
        settle();
        subscribe(&hub, port, 0, BEFORE)?;
        let before = (unverified(&hub)?, hub.source.server.memory_kib()?);
        subscribe(&hub, port, BEFORE, count)?;
        let after = (unverified(&hub)?, hub.source.server.memory_kib()?);
        ensure!(
            after.0 > before.0,
            "the hub has {} unverified subscriptions, {} before",
            after.0,
            before.0
        );
        let bytes = (after.1 - before.1) * 1024.0 / (after.0 - before.0);
        report.raw(&json!({ "round": round, "unverified": [before.0, after.0], "memory_kib": [before.1, after.1],
            "bytes_each": bytes }));
        each.push(bytes);
    }
    report.at_most("memory of one subscription that is not verified", &each, 2_048.0, " B");
    report.text(&format!(
        "{} subscriptions were requested over HTTP, each with a callback on a separate host that takes connections and never \
         answers, and a secret of 32 bytes. The figure is the growth of resident memory from the first {BEFORE} requests to \
         the last, for each subscription that `/metrics` counts as unverified then.",
        number((BEFORE + count) as f64)
    ));
    Ok(())
}

fn subscribe(hub: &Hub, port: u16, first: usize, count: usize) -> Result<()> {
    let numbers: Vec<usize> = (first..first + count).collect();
    for (group, numbers) in numbers.chunks(OF_ONE_CLIENT).enumerate() {
        // Another client each: all of 127/8 is this machine.
        let client =
            Ipv4Addr::new(127, 0, if first == 0 { 8 } else { 9 }, 1 + u8::try_from(group)?);
        let mut http = Http::connect_from(client, hub.source.address)?;
        for number in numbers {
            let callback = callback(AddressLayout::Own, port, 'h', *number);
            let form = format!(
                "hub.mode=subscribe&hub.topic={TOPIC}&hub.callback={callback}&hub.secret={number:032x}"
            );
            let answer = http.post(
                "/hub",
                "Content-Type: application/x-www-form-urlencoded\r\n",
                form.as_bytes(),
            )?;
            let reply = String::from_utf8_lossy(&answer.body);
            ensure!(answer.status == 202, "the hub answered {}: {reply}", answer.status);
        }
    }
    Ok(())
}

fn unverified(hub: &Hub) -> Result<f64> {
    let metrics = String::from_utf8(Http::connect(&hub.source.url())?.get_ok("/metrics")?)?;
    let line = metrics.lines().find_map(|line| line.strip_prefix("abreast_hub_unverified "));
    Ok(line.context("/metrics has no abreast_hub_unverified")?.trim().parse()?)
}
