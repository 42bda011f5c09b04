//! Hub throughput: notifications per CPU second, latency, and fairness between subscribers.

mod fairness;
mod pending;
pub(crate) mod serving;

use crate::abreast;
use crate::peers::find_or_install;
use crate::receiver::Receiver;
use crate::report::Report;
use crate::run::settle;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::wrk;
use abreast_websub::{Key, Method};
use anyhow::{Context as _, Result};
use serde_json::json;
use serving::{AddressLayout, BODY, Hub, callback};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Connections of wrk: as many as the hub has to one host.
const CONNECTIONS: usize = 8;
/// Connections of wrk in the run that only shows how much their number matters.
const MORE_CONNECTIONS: usize = 64;
/// Publishers at a time, where they are many.
const PUBLISHERS: usize = 256;

/// One way to deliver, and what it is measured against.
struct DeliveryMode {
    name: &'static str,
    places: AddressLayout,
    /// Behaviour of the receiver: keep the connection, or close it.
    letter: char,
    signed: Option<Method>,
    /// Which part of the limit is wanted.
    wanted: f64,
    per_second: Samples,
    per_cpu: Samples,
    limit: Samples,
}

impl DeliveryMode {
    const fn new(
        name: &'static str,
        places: AddressLayout,
        letter: char,
        signed: Option<Method>,
        wanted: f64,
    ) -> Self {
        let none = Samples::new;
        Self {
            name,
            places,
            letter,
            signed,
            wanted,
            per_second: none(),
            per_cpu: none(),
            limit: none(),
        }
    }
}

impl DeliveryMode {
    /// Which of the limits of wrk is its own.
    fn limited_by(&self) -> usize {
        match (self.letter, self.places) {
            ('c', _) => 1,
            (_, AddressLayout::Own) => 2,
            (_, AddressLayout::One) => 0,
        }
    }
}

type Part = fn(&Bench<'_>, &mut Report) -> Result<()>;

/// The measurements, in this order.
const PARTS: [(&str, Part); 6] = [
    ("rates", |bench, report| bench.rates(report)),
    ("times", |bench, report| bench.times(report)),
    ("fairness", |bench, report| fairness::run(bench.settings, &bench.program, report)),
    ("accepts", |bench, report| bench.accepts(report)),
    ("memory", |bench, report| bench.memory(report)),
    ("pending", |bench, report| pending::run(bench.settings, &bench.program, report)),
];

struct Bench<'a> {
    settings: &'a Settings,
    program: PathBuf,
    wrk: PathBuf,
    /// Subscribers of one topic.
    subscribers: usize,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let bench = Bench {
        settings,
        program,
        wrk: find_or_install("wrk")?,
        subscribers: settings.size(1_000, 200),
    };
    for (_, part) in PARTS.iter().filter(|(name, _)| settings.wants(name)) {
        part(&bench, report)?;
    }
    Ok(())
}

/// The names of the parts, for `--only`.
pub(crate) fn part_names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}

impl Bench<'_> {
    /// Callbacks of all subscribers, with a secret each or none.
    fn subscriptions(
        &self,
        places: AddressLayout,
        port: u16,
        letter: char,
        signed: bool,
    ) -> impl Iterator<Item = (String, Option<Vec<u8>>)> + use<> {
        let secret = move |number| signed.then(|| format!("{number:032x}").into_bytes());
        (0..self.subscribers)
            .map(move |number| (callback(places, port, letter, number), secret(number)))
    }

    /// Deliveries for a CPU second, beside what wrk posts to the same receiver for one of its own.
    fn rates(&self, report: &mut Report) -> Result<()> {
        let mut ways = [
            DeliveryMode::new("connections kept, one host", AddressLayout::One, 'k', None, 0.7),
            DeliveryMode::new("connections kept, a host each", AddressLayout::Own, 'k', None, 0.7),
            DeliveryMode::new("a new connection each", AddressLayout::One, 'c', None, 0.6),
            DeliveryMode::new(
                "a secret each, sha256",
                AddressLayout::One,
                'k',
                Some(Method::Sha256),
                0.6,
            ),
            DeliveryMode::new(
                "a secret each, sha512",
                AddressLayout::One,
                'k',
                Some(Method::Sha512),
                0.6,
            ),
        ];
        let (seconds, count) = (self.settings.size(3, 1), self.settings.size(50, 10));
        // The measurements of wrk: kept connections, new ones, as many kept ones as there are
        // hosts, and a number between.
        let limits = [
            ('k', CONNECTIONS),
            ('c', CONNECTIONS),
            ('k', self.subscribers),
            ('k', MORE_CONNECTIONS),
        ];
        let (mut posts, mut macs) = ([const { Samples::new() }; 4], [const { Samples::new() }; 2]);
        for round in 0..self.settings.rounds {
            for (place, (letter, connections)) in limits.into_iter().enumerate() {
                let mut receiver = Receiver::start(self.settings)?;
                let script = wrk::post_script(
                    self.settings,
                    "post",
                    &[("Content-Type", "application/xml")],
                    BODY,
                )?;
                let url = callback(AddressLayout::One, receiver.port, letter, 0);
                let asked = wrk::run(
                    self.settings,
                    &self.wrk,
                    &url,
                    connections,
                    seconds,
                    &["-s", &script],
                )?;
                receiver.reset()?;
                posts[place].push(asked.requests / asked.cpu);
                report.raw(&json!({ "round": round, "wrk": letter.to_string(), "connections": connections,
                    "posts_per_s": asked.requests / asked.seconds,
                    "posts_per_cpu_s": asked.requests / asked.cpu, "receiver_cpu_s": receiver.server.cpu() }));
            }
            for (place, method) in [Method::Sha256, Method::Sha512].into_iter().enumerate() {
                macs[place].push(signatures(method));
            }
            for way in &mut ways {
                let (per_second, per_cpu) = self.rate(way, count)?;
                let post = posts[way.limited_by()].last();
                let limit = match way.signed {
                    None => post,
                    Some(method) => {
                        1.0 / (1.0 / post
                            + 1.0 / macs[usize::from(method == Method::Sha512)].last())
                    }
                };
                way.per_second.push(per_second);
                way.per_cpu.push(per_cpu);
                way.limit.push(limit);
                report.raw(&json!({ "round": round, "deliveries": way.name, "per_s": per_second, "per_cpu_s": per_cpu,
                    "limit_per_cpu_s": limit }));
            }
        }
        for way in &ways {
            let share = way.per_cpu.over(&way.limit);
            report.at_least(
                &format!("{}: deliveries for a CPU second, of the limit", way.name),
                &share,
                way.wanted,
                " ×",
            );
        }
        let rows: Vec<Vec<String>> = ways
            .iter()
            .map(|way| {
                let share = way.per_cpu.over(&way.limit);
                let limit = way.limit.text();
                vec![
                    way.name.to_owned(),
                    way.per_cpu.text(),
                    limit,
                    share.text(),
                    way.per_second.text(),
                ]
            })
            .collect();
        report.text(&format!(
            "{count} notifications of 10 KiB to {} subscriptions, from `abreast serve` with its store on disk: every \
             notification durable before it is delivered, progress recorded. CPU time is the time of the whole server, from the first \
             request to publish to the last answer. The limit is what wrk posts to the same receiver for a second of its own CPU \
             time, on as many connections as the hub has: {} on {CONNECTIONS} kept ones, {} on new ones, {} on {} kept ones; on \
             {MORE_CONNECTIONS} kept ones it is {}. For signed deliveries the time of one HMAC is added ({} and {} a second).",
            self.subscribers,
            posts[0].text(),
            posts[1].text(),
            posts[2].text(),
            self.subscribers,
            posts[3].text(),
            macs[0].text(),
            macs[1].text()
        ));
        report.table(&["deliveries", "for a CPU second", "limit", "share", "a second"], &rows);
        Ok(())
    }

    fn rate(&self, way: &DeliveryMode, count: usize) -> Result<(f64, f64)> {
        let mut receiver = Receiver::start(self.settings)?;
        let subscriptions =
            self.subscriptions(way.places, receiver.port, way.letter, way.signed.is_some());
        let options = way
            .signed
            .map(|method| format!("signature = \"{}\"", method.name()))
            .unwrap_or_default();
        let mut hub = Hub::start(self.settings, &self.program, &options, subscriptions)?;
        settle();
        hub.deliver(&mut receiver, self.subscribers, count)
    }

    /// From publishing to the last subscriber, and what hanging receivers cost the others.
    fn times(&self, report: &mut Report) -> Result<()> {
        let count = self.settings.size(100, 10);
        let (mut last, mut last_99) = (Samples::default(), Samples::default());
        let (mut alone, mut beside) = (Samples::default(), Samples::default());
        for round in 0..self.settings.rounds {
            let mut receiver = Receiver::start(self.settings)?;
            let port = receiver.port;
            let all = self.subscriptions(AddressLayout::One, port, 'k', false);
            let mut hub = Hub::start(self.settings, &self.program, "", all)?;
            settle();
            let (to_last, _) = hub.spread(&mut receiver, self.subscribers, count)?;
            last.push(to_last.median());
            last_99.push(to_last.quantile(0.99));
            drop((hub, receiver));
            let mut each = [0.0; 2];
            for (found, letter) in each.iter_mut().zip(['u', 'h']) {
                let mut receiver = Receiver::start(self.settings)?;
                let port = receiver.port;
                let good = move |number| if number % 10 == 9 { letter } else { 'k' };
                let all = (0..self.subscribers).map(move |number| {
                    (callback(AddressLayout::Own, port, good(number), number), None)
                });
                let mut hub = Hub::start(self.settings, &self.program, "", all)?;
                settle();
                *found =
                    hub.spread(&mut receiver, self.subscribers / 10 * 9, count)?.1.quantile(0.99);
            }
            alone.push(each[0]);
            beside.push(each[1]);
            report.raw(&json!({ "round": round, "last_ms": to_last.median(), "last_p99_ms": to_last.quantile(0.99),
                "p99_ms_all_answer": each[0], "p99_ms_tenth_hangs": each[1] }));
        }
        let subscribers = number(self.subscribers as f64);
        report.at_most(
            &format!("publishing to the last of {subscribers} subscribers, p99"),
            &last_99,
            150.0,
            " ms",
        );
        let effect = beside.over(&alone);
        report.at_most(
            "a tenth of the subscribers hangs: p99 of the others, relative to none hanging",
            &effect,
            1.1,
            " ×",
        );
        report.text(&format!(
            "{count} notifications one after another, each published when every subscriber has the previous one; timed from the \
             request to publish, its durable record included. Hanging subscribers take a connection and never answer; for this, \
             each subscriber is on a separate host."
        ));
        report.table(
            &["ms", ""],
            &[
                vec!["to the last subscriber, median".to_owned(), last.text()],
                vec!["to the last subscriber, p99".to_owned(), last_99.text()],
                vec!["to each, p99, all answer".to_owned(), alone.text()],
                vec!["to each, p99, a tenth hangs".to_owned(), beside.text()],
            ],
        );
        Ok(())
    }

    /// Notifications accepted: many publishers at a time, and one.
    fn accepts(&self, report: &mut Report) -> Result<()> {
        let (mut rates, mut single, mut single_99, mut disk) =
            (Samples::default(), Samples::default(), Samples::default(), Samples::default());
        for round in 0..self.settings.rounds {
            let mut hub = Hub::start(self.settings, &self.program, "", std::iter::empty())?;
            settle();
            let one = hub.accept(self.settings.size(500, 50))?;
            let headers = hub.headers("http://example.org/nobody");
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let script = wrk::post_script(self.settings, "publish", &headers, BODY)?;
            let url = format!("{}hub", hub.source.url());
            let seconds = self.settings.size(5, 1);
            let asked =
                wrk::run(self.settings, &self.wrk, &url, PUBLISHERS, seconds, &["-s", &script])?;
            drop(hub);
            let bare =
                bare_appends(&self.settings.folder.join("hub-bare"), self.settings.size(500, 50))?;
            rates.push(asked.requests / asked.seconds);
            single.push(one.median());
            single_99.push(one.quantile(0.99));
            disk.push(bare.median());
            report.raw(
                &json!({ "round": round, "accepted_per_s": asked.requests / asked.seconds, "one_ms": one.median(),
                "one_p99_ms": one.quantile(0.99), "disk_ms": bare.median(), "disk_p99_ms": bare.quantile(0.99) }),
            );
        }
        report.at_least(
            &format!("accepted a second over HTTP, durable, {PUBLISHERS} publishers"),
            &rates,
            5_000.0,
            "",
        );
        report.at_most("one accepted, durable, p99", &single_99, 5.0, " ms");
        report.text(
            "Notifications of 10 KiB posted with a token to a topic nobody subscribes to, each durable before its answer: by \
             wrk in groups, and one after another on one connection. For comparison, a file alone, appended to and made durable.",
        );
        report.table(
            &["", ""],
            &[
                vec![format!("accepted a second, {PUBLISHERS} at a time"), rates.text()],
                vec!["one, median, ms".to_owned(), single.text()],
                vec!["one, p99, ms".to_owned(), single_99.text()],
                vec!["disk alone, 10 KiB appended and durable, median, ms".to_owned(), disk.text()],
            ],
        );
        Ok(())
    }

    /// Memory of a hub whose subscribers have all there is.
    fn memory(&self, report: &mut Report) -> Result<()> {
        let count = self.settings.size(100_000, 10_000);
        let mut peaks = [Samples::default(), Samples::default()];
        for round in 0..self.settings.rounds {
            for (peak, count) in peaks.iter_mut().zip([0, count]) {
                let secret = |number| Some(format!("{number:032x}").into_bytes());
                let idle = (0..count).map(|number| {
                    (callback(AddressLayout::Own, 8_080, 'k', number), secret(number))
                });
                let hub = Hub::start(self.settings, &self.program, "", idle)?;
                let memory = hub.source.server.peak_memory_mib()?;
                report.raw(&json!({ "round": round, "idle": count, "peak_mib": memory }));
                peak.push(memory);
            }
        }
        let shown = number(count as f64);
        report.at_most(&format!("memory with {shown} idle subscriptions"), &peaks[1], 64.0, " MiB");
        report.text(&format!(
            "Memory is the peak of the whole server from its start on, all {shown} subscriptions read, each with a secret of \
             32 bytes; without subscriptions, the figure is {} MiB.",
            peaks[0].text()
        ));
        Ok(())
    }
}

/// Signatures of 10 KiB a second of one thread, each with a key of its own.
fn signatures(method: Method) -> f64 {
    let body = vec![b'x'; BODY];
    let (begun, mut count) = (Instant::now(), 0.0);
    while begun.elapsed().as_secs_f64() < 0.3 {
        for number in 0..100 {
            black_box(Key::new(method, format!("{number:032x}").as_bytes()).sign(black_box(&body)));
        }
        count += 100.0;
    }
    count / begun.elapsed().as_secs_f64()
}

/// Milliseconds to append 10 KiB to a file and make them durable.
fn bare_appends(path: &Path, count: usize) -> Result<Samples> {
    let mut file =
        std::fs::File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut took = Samples::default();
    for _ in 0..count {
        let begun = Instant::now();
        file.write_all(&[b'x'; BODY])?;
        file.sync_data()?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    std::fs::remove_file(path)?;
    Ok(took)
}
