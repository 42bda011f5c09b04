//! Deliveries by one, two and three nodes of a hub on one machine.

use crate::abreast;
use crate::benches::hub::serving::{AddressLayout, BODY, TOPIC, callback, subscribe};
use crate::http::Http;
use crate::receiver::{Receiver, now};
use crate::report::Report;
use crate::run::{Server, free_port, log_path, timed, wait_until};
use crate::samples::Samples;
use crate::settings::Settings;
use abreast_store::PostgresOptions;
use abreast_store::hub::NodeOptions;
use abreast_testkit::postgres::Postgres;
use anyhow::{Context as _, Result, ensure};
use std::process::Command;
use std::time::Duration;

const NODES: usize = 3;
const NOTIFICATIONS: usize = 20;
/// The longest lease that makes the start of a node short.
const LEASE: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(120);

/// A process that delivers.
struct Node {
    server: Server,
    http: Http,
}

pub(super) fn run(settings: &Settings, server: &Postgres, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let subscribers = settings.size(1_000, 100);
    let place = settings.empty_folder("nodes")?;
    let mut receiver = Receiver::start(settings)?;
    let url = server.create("deliveries");
    let options = NodeOptions::default();
    let port = receiver.port;
    let callbacks =
        (0..subscribers).map(|number| (callback(AddressLayout::Own, port, 'k', number), None));
    subscribe(&PostgresOptions::default().connect(&url)?.hub(options)?, callbacks)?;
    let create = ["token", "create", "--name", "bench", "--scope", "write", "--data", &url];
    let (_, reply) = timed(&program, &create, &place, &log_path(&settings.folder, "token")?)?;
    let token = reply.split_whitespace().find(|word| word.starts_with("abreast_"));
    let headers = format!(
        "Content-Type: application/xml\r\nAuthorization: Bearer {}\r\nLink: <{TOPIC}>; rel=\"self\"\r\n",
        token.context("`abreast token create` printed no token")?
    );
    let mut rates = [Samples::new(), Samples::new(), Samples::new()];
    let mut cpu = rates.clone();
    for _ in 0..settings.rounds {
        for (rates, (cpu, count)) in rates.iter_mut().zip(cpu.iter_mut().zip(1..=NODES)) {
            let start = |number| {
                let config = place.join(format!("{number}.toml"));
                let text = format!(
                    "data = {url:?}\nscratch = {:?}\nnode = \"{number}\"\nbase_url = \"http://hub.example.org/\"\n\
                     [database]\nlease = \"3s\"\n[hub]\nprivate_callbacks = true\nallow_topics = [\"http://example.org/\"]\n",
                    place.join(format!("scratch-{number}")).display().to_string()
                );
                std::fs::write(&config, text)?;
                let address = format!("127.0.0.1:{}", free_port()?);
                let mut command = Command::new(&program);
                command.args(["hub", "--listen", &address, "--config"]).arg(config);
                let log = log_path(&settings.folder, &format!("node-{number}"))?;
                let server = Server::start(&mut command, &log)?;
                let base = format!("http://{address}/");
                wait_until("starting a node", LIMIT, || {
                    let ready = Http::connect(&base).and_then(|mut http| http.get("/readyz", ""));
                    Ok(ready.is_ok_and(|answer| answer.status == 200))
                })?;
                Ok(Node { server, http: Http::connect(&base)? })
            };
            let mut nodes = (0..count).map(start).collect::<Result<Vec<Node>>>()?;
            // Until the shards are divided.
            std::thread::sleep(2 * LEASE);
            let body = vec![b'x'; BODY];
            let publish = |nodes: &mut [Node], number: usize| -> Result<()> {
                let node = &mut nodes[number % count];
                let answer = node.http.post("/hub", &headers, &body)?;
                ensure!(answer.status == 200, "the hub answered {}", answer.status);
                Ok(())
            };
            receiver.reset()?;
            publish(&mut nodes, 0)?;
            receiver.wait(subscribers, LIMIT)?;
            receiver.reset()?;
            let used = |nodes: &[Node]| nodes.iter().map(|node| node.server.cpu()).sum::<f64>();
            let (begin, before) = (now(), used(&nodes));
            for number in 0..NOTIFICATIONS {
                publish(&mut nodes, number)?;
            }
            let all = subscribers * NOTIFICATIONS;
            receiver.wait(all, LIMIT)?;
            let last = receiver.times()?.into_iter().map(|(_, time)| time).max().unwrap_or(begin);
            rates.push(all as f64 / ((last - begin) as f64 / 1e9));
            cpu.push((used(&nodes) - before) * 1e6 / all as f64);
            for node in &mut nodes {
                node.server.stop();
            }
        }
    }
    let [one, _, three] = &rates;
    report.at_least("deliveries a second of 3 nodes, over 1 node", &three.over(one), 0.9, " ×");
    report.text(&format!(
        "{subscribers} subscribers with a host each, {NOTIFICATIONS} notifications of 10 KiB published through all nodes at once; nodes, \
         database and receiver share this machine."
    ));
    let rows: Vec<Vec<String>> = (1..=NODES)
        .zip(rates.iter().zip(&cpu))
        .map(|(count, (rate, cpu))| vec![count.to_string(), rate.text(), cpu.text()])
        .collect();
    report.table(&["nodes", "deliveries a second", "CPU µs of the nodes each"], &rows);
    Ok(())
}
