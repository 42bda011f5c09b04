//! Write rate of a hub's store, beside the rate of its disk.

use crate::report::Report;
use crate::run::own_cpu;
use crate::samples::Samples;
use crate::settings::Settings;
use abreast_core::hub::{HubStore as _, NewTarget, Progress, Secret, TargetId, TargetKind};
use abreast_core::{Clock as _, NewNotification, Offset, Payload, SystemClock, TopicId, TopicLog};
use abreast_store::hub::SqliteHub;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Bytes of a notification.
const BODY: usize = 10 * 1024;
/// Notifications that publishers wait for at the same time.
const WINDOWS: [usize; 4] = [1, 16, 64, 256];
/// Targets whose progress is recorded at once.
const SAVED: usize = 10_000;

#[derive(Default)]
struct Figures {
    /// Appends of one body, each made durable: a second.
    bare: Samples,
    /// Megabytes a second, written in pieces of a megabyte that are each made durable.
    bytes: Samples,
    accepted: [Samples; WINDOWS.len()],
    cpu: [Samples; WINDOWS.len()],
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let mut figures = Figures::default();
    let mut known = Targets::default();
    for round in 0..settings.rounds {
        let folder = settings.empty_folder("hub-store")?;
        let seconds = if settings.quick { 0.5 } else { 3.0 };
        let path = folder.join("bare");
        let bare = appended(&path, &vec![round as u8; BODY], seconds)?;
        let bytes = appended(&path, &vec![round as u8; 1 << 20], seconds)?;
        figures.bare.push(bare);
        figures.bytes.push(bytes * f64::from(1 << 20) / 1e6);
        report.raw(&json!({ "round": round, "bare_appends_per_s": bare, "bare_mb_per_s": bytes * 1.048_576 }));
        let store = SqliteHub::open(&folder.join("hub.db"), Arc::new(SystemClock))?;
        let topic = store.open_topic("http://127.0.0.1/topic")?;
        for (place, window) in WINDOWS.into_iter().enumerate() {
            let cpu = own_cpu();
            let accepted = publish(&store, topic, window, seconds)?;
            let rate = accepted as f64 / seconds;
            let cpu = (own_cpu() - cpu) * 1e6 / accepted as f64;
            figures.accepted[place].push(rate);
            figures.cpu[place].push(cpu);
            report.raw(&json!({ "round": round, "window": window, "accepted_per_s": rate, "cpu_us_each": cpu }));
        }
        known.measure(settings, store, topic, &folder.join("hub.db"), round, report)?;
    }
    let [.., many] = &figures.accepted;
    report.at_least("accepted a second, 256 publishers at a time, 10 KiB each", many, 5_000.0, "");
    report.at_most(&format!("start, with {} targets", known.count), &known.start, 1_000.0, " ms");
    report.at_most(&format!("progress of {SAVED} targets, durable"), &known.save, 200.0, " ms");
    report.text(
        "Notifications of 10 KiB, each a separate row, durable before its publisher gets the response. The disk alone, for comparison: a \
         file that 10 KiB are appended to and made durable (`fdatasync`) one after another, and the same by the mebibyte. \
         Notifications accepted during a write are made durable together.",
    );
    let mut rows =
        vec![vec!["disk alone, 10 KiB at a time".to_owned(), figures.bare.text(), String::new()]];
    for (place, window) in WINDOWS.into_iter().enumerate() {
        let name =
            if window == 1 { "one publisher".to_owned() } else { format!("{window} publishers") };
        let name = format!("accepted, {name} at a time");
        rows.push(vec![name, figures.accepted[place].text(), figures.cpu[place].text()]);
    }
    let bytes = figures.bytes.map(|megabytes| megabytes * 1e6 / BODY as f64);
    rows.push(vec![
        "disk alone, by the mebibyte, in 10 KiB".to_owned(),
        bytes.text(),
        String::new(),
    ]);
    report.table(&["a second", "", "CPU µs each"], &rows);
    report.table(
        &[&format!("{} targets", known.count), "ms"],
        &[
            vec!["start: the store opened, every target read".to_owned(), known.start.text()],
            vec![format!("progress of {SAVED}, next to each other"), known.save.text()],
            vec![format!("progress of {SAVED}, spread over all"), known.spread.text()],
        ],
    );
    Ok(())
}

/// How often a second these bytes can be appended and made durable.
fn appended(path: &Path, bytes: &[u8], seconds: f64) -> Result<f64> {
    let mut file = File::create(path)?;
    let begun = Instant::now();
    let mut count = 0.0;
    while begun.elapsed().as_secs_f64() < seconds {
        file.write_all(bytes)?;
        file.sync_data()?;
        count += 1.0;
    }
    let rate = count / begun.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}

/// Publishes with so many unanswered at a time; gives back how many were answered.
fn publish(store: &SqliteHub, topic: TopicId, window: usize, seconds: f64) -> Result<u64> {
    let (sender, free) = channel();
    for _ in 0..window {
        sender.send(Ok(Offset(0)))?;
    }
    let begun = Instant::now();
    let mut sent = 0_u64;
    while begun.elapsed().as_secs_f64() < seconds {
        free.recv()??;
        let mut body = vec![b'x'; BODY];
        body[..8].copy_from_slice(&sent.to_be_bytes());
        let content = NewNotification {
            media_type: "application/xml".into(),
            links: String::new(),
            payload: Payload::Bytes(body.into()),
        };
        let sender = sender.clone();
        store.publish_then(topic, content, Box::new(move |result| drop(sender.send(result))));
        sent += 1;
    }
    let answered = sent.saturating_sub(window as u64);
    for _ in 0..window {
        free.recv()??;
    }
    Ok(answered.max(1))
}

#[derive(Default)]
struct Targets {
    count: usize,
    start: Samples,
    save: Samples,
    spread: Samples,
}

impl Targets {
    fn measure(
        &mut self,
        settings: &Settings,
        store: SqliteHub,
        topic: TopicId,
        path: &Path,
        round: usize,
        report: &mut Report,
    ) -> Result<()> {
        self.count = settings.size(100_000, 20_000);
        let (sender, receiver) = channel();
        for number in 0..self.count {
            let sender = sender.clone();
            let new = NewTarget {
                topic,
                kind: TargetKind::Subscription,
                address: format!("http://127.0.0.1:8080/callbacks/{number:020x}?of=subscriber"),
                secret: Some(Secret::from(vec![number as u8; 32])),
                lease_until: Some(
                    SystemClock.now().plus_micros(Duration::from_secs(864_000).as_micros() as i64),
                ),
                cursor: Some(Offset(0)),
            };
            store.put_target_then(new, Box::new(move |result| drop(sender.send(result.map(drop)))));
        }
        drop(sender);
        receiver.iter().collect::<Result<(), _>>()?;
        drop(store);

        let begun = Instant::now();
        let store = SqliteHub::open(path, Arc::new(SystemClock))?;
        let mut targets = Vec::new();
        loop {
            let page = store.all_targets(targets.last().copied().unwrap_or_default(), 5_000)?;
            if page.is_empty() {
                break;
            }
            targets.extend(page.iter().map(|target| target.id));
        }
        let start = begun.elapsed().as_secs_f64() * 1e3;
        ensure!(targets.len() == self.count, "{} targets are there", targets.len());

        let save = |targets: &mut dyn Iterator<Item = TargetId>, cursor: u64| -> Result<f64> {
            let progress: Vec<Progress> = targets.take(SAVED).map(|id| moved(id, cursor)).collect();
            let begun = Instant::now();
            ensure!(store.save_progress(progress)?.is_empty(), "all progress is recorded");
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        };
        let near = save(&mut targets.iter().copied(), 1)?;
        let apart = (self.count / SAVED).max(1);
        let spread = save(&mut targets.iter().copied().step_by(apart), 2)?;
        let sizes = store.sizes().context("the store's sizes")?;
        report.raw(&json!({ "round": round, "targets": self.count, "start_ms": start, "save_ms": near,
            "save_spread_ms": spread, "file_bytes": sizes.file_bytes, "body_bytes": sizes.body_bytes }));
        self.start.push(start);
        self.save.push(near);
        self.spread.push(spread);
        Ok(())
    }
}

fn moved(id: TargetId, cursor: u64) -> Progress {
    Progress {
        id,
        generation: 1,
        cursor: Offset(cursor),
        attempts: 0,
        first_failed: None,
        next_at: None,
        last: None,
        dead: None,
    }
}
