//! What receivers that hang cost the others: healthy ones, and ones that fail once and get the
//! notification again.

use super::serving::{AddressLayout, Hub, callback};
use crate::receiver::Receiver;
use crate::report::Report;
use crate::run::settle;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::net::TcpListener;
use std::path::Path;

/// Receivers that answer, and receivers that fail once for each notification.
const HEALTHY: usize = 200;
const FAILING: usize = 20;

/// Where those are that hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StalledSubscribers {
    Port,
    Host,
    Hosts,
}

impl StalledSubscribers {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Port, "on one port"),
        (Self::Host, "on one host, a port each"),
        (Self::Hosts, "on a host each"),
    ];
}

/// p99 in milliseconds.
#[derive(Default)]
struct FairnessFigures {
    first: Samples,
    healthy: Samples,
    repeats: Samples,
}

pub(super) fn run(settings: &Settings, program: &Path, report: &mut Report) -> Result<()> {
    let crowds: &[usize] = if settings.quick { &[0, 10, 100] } else { &[0, 10, 100, 1_000, 5_000] };
    let count = settings.size(20, 5);
    let mut rows = Vec::new();
    for (crowd, name) in StalledSubscribers::ALL {
        let mut all: Vec<FairnessFigures> =
            crowds.iter().map(|_| FairnessFigures::default()).collect();
        for round in 0..settings.rounds {
            for (found, hanging) in all.iter_mut().zip(crowds) {
                let [first, healthy, repeats] = one(settings, program, crowd, *hanging, count)?;
                report.raw(&json!({ "round": round, "hanging": hanging, "where": name, "first_p99_ms": first,
                    "healthy_p99_ms": healthy, "repeats_p99_ms": repeats }));
                found.first.push(first);
                found.healthy.push(healthy);
                found.repeats.push(repeats);
            }
        }
        for (found, hanging) in all.iter().zip(crowds) {
            let hanging = number(*hanging as f64);
            rows.push(vec![
                format!("{hanging} {name}"),
                found.healthy.text(),
                found.repeats.text(),
                found.first.text(),
            ]);
        }
        for (found, hanging) in all.iter().zip(crowds).skip(1) {
            let hanging = number(*hanging as f64);
            let healthy = found.healthy.over(&all[0].healthy);
            report.at_most(
                &format!("{hanging} hang {name}: p99 of the others, relative to none hanging"),
                &healthy,
                1.5,
                " ×",
            );
            let repeats = found.repeats.over(&all[0].repeats);
            report.at_most(
                &format!("{hanging} hang {name}: p99 of repeats, relative to none hanging"),
                &repeats,
                1.5,
                " ×",
            );
        }
    }
    report.text(&format!(
        "{HEALTHY} receivers answer, {FAILING} answer 503 to each notification once, and so many take a connection and never \
         answer. {count} notifications one after another, each published when every answering receiver has the previous one; \
         timed from when it is durable (the answer to the publisher, or the first delivery if that was sooner). A repeat is timed from the failure on, its random pause of 0.1 to 1 s included. \
         At the first notification after the start nobody is known yet."
    ));
    report.table(
        &[
            "p99 in ms; hanging receivers",
            "of the others",
            "of repeats",
            "of the first notification",
        ],
        &rows,
    );
    Ok(())
}

fn one(
    settings: &Settings,
    program: &Path,
    crowd: StalledSubscribers,
    hanging: usize,
    count: usize,
) -> Result<[f64; 3]> {
    let mut receiver = Receiver::start(settings)?;
    let port = receiver.port;
    // Connections are taken by the system, and nobody reads them.
    let silent = (0..if crowd == StalledSubscribers::Host { hanging } else { 0 })
        .map(|_| TcpListener::bind("127.0.0.1:0"));
    let silent =
        silent.collect::<Result<Vec<_>, _>>().context("cannot open a port for each that hangs")?;
    let ports = silent
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect::<Result<Vec<_>>>()?;
    let places =
        if crowd == StalledSubscribers::Hosts { AddressLayout::Own } else { AddressLayout::One };
    let bad = (0..hanging).map(|number| {
        let port = ports.get(number).copied().unwrap_or(port);
        callback(places, port, 'h', 1_000 + number)
    });
    let good = (0..HEALTHY).map(|number| callback(places, port, 'k', number));
    let failing = (0..FAILING).map(|number| callback(places, port, 'f', 500 + number));
    // Those who hang come first: they are in the way.
    let all = bad.chain(failing).chain(good).map(|callback| (callback, None));
    let mut hub = Hub::start(settings, program, "", all)?;
    settle();
    let first = hub.first(&mut receiver, HEALTHY)?;
    receiver.wait_repeats(FAILING)?;
    receiver.reset()?;
    hub.reconnect()?;
    let each = hub.spread_with(&mut receiver, HEALTHY, FAILING, count)?;
    let repeats: Samples =
        receiver.repeats()?.into_iter().map(|nanos| nanos as f64 / 1e6).collect();
    Ok([first.quantile(0.99), each.quantile(0.99), repeats.quantile(0.99)])
}
