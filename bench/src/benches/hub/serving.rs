//! `abreast serve` as a hub whose subscriptions are there before it starts.

use crate::abreast::Source;
use crate::http::Http;
use crate::receiver::{Receiver, now};
use crate::run::{log_path, timed};
use crate::samples::Samples;
use crate::settings::Settings;
use abreast_core::hub::{HubStore, NewTarget, Secret, TargetKind};
use abreast_core::{Clock as _, Offset, SystemClock};
use abreast_store::hub::SqliteHub;
use anyhow::{Context as _, Result, ensure};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Bytes of a notification.
pub(crate) const BODY: usize = 10 * 1024;
pub(crate) const TOPIC: &str = "http://example.org/topic";
/// No phase may take longer.
const LIMIT: Duration = Duration::from_secs(120);
const LEASE: Duration = Duration::from_secs(864_000);

/// Subscribers on an address of their own each, or all on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressLayout {
    One,
    Own,
}

/// The callback of a subscriber: `way` selects the receiver's behaviour.
pub(crate) fn callback(places: AddressLayout, port: u16, way: char, number: usize) -> String {
    match places {
        AddressLayout::One => format!("http://127.0.0.1:{port}/{way}/{number}"),
        // All of 127/8 is this machine; each address is another host to the hub.
        AddressLayout::Own => {
            let (above, number) = (number / 62_500, number % 62_500);
            format!(
                "http://127.{}.{}.{}:{port}/{way}/{number}",
                above + 1,
                number / 250,
                number % 250 + 1
            )
        }
    }
}

/// A hub that runs.
pub(crate) struct Hub {
    pub(crate) source: Source,
    http: Http,
    pub(crate) token: String,
    body: Vec<u8>,
}

impl Hub {
    /// Starts one that has these subscriptions: callbacks, and secrets where there are any.
    /// `options` are lines of `[hub]`.
    pub(crate) fn start(
        settings: &Settings,
        program: &Path,
        options: &str,
        subscriptions: impl Iterator<Item = (String, Option<Vec<u8>>)>,
    ) -> Result<Self> {
        let place = settings.empty_folder("hub")?;
        let (data, folder) = (place.join("data"), place.join("folder"));
        std::fs::create_dir_all(&data)?;
        std::fs::create_dir_all(&folder)?;
        seed(&data.join("hub.db"), subscriptions)?;
        let config = place.join("abreast.toml");
        let text = format!(
            "data = {:?}\n[api]\nwrite = true\n[hub]\nallow_topics = [\"http://example.org/\"]\n{options}\n\
             [[set]]\nname = \"set\"\nfolder = {:?}\n",
            data.display().to_string(),
            folder.display().to_string()
        );
        std::fs::write(&config, text)?;
        let data = data.to_string_lossy();
        let create =
            ["token", "create", "--name", "bench", "--scope", "write", "--data", data.as_ref()];
        let (_, reply) = timed(program, &create, &place, &log_path(&settings.folder, "token")?)?;
        let token = reply.split_whitespace().find(|word| word.starts_with("abreast_"));
        let token = token.context("`abreast token create` printed no token")?.to_owned();
        let source = Source::start(
            settings,
            program,
            "serve-hub",
            &["--config", &config.to_string_lossy()],
        )?;
        source.wait_ready()?;
        let http = Http::connect(&source.url())?;
        Ok(Self { source, http, token, body: vec![b'x'; BODY] })
    }

    /// Publishes on a new connection from now on: the server closes one that was unused for long.
    pub(crate) fn reconnect(&mut self) -> Result<()> {
        self.http = Http::connect(&self.source.url())?;
        Ok(())
    }

    /// The headers of a notification.
    pub(crate) fn headers(&self, topic: &str) -> [(&'static str, String); 3] {
        [
            ("Content-Type", "application/xml".to_owned()),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Link", format!("<{topic}>; rel=\"self\"")),
        ]
    }

    /// Publishes a notification, gives back its number.
    pub(crate) fn publish(&mut self, topic: &str) -> Result<u64> {
        let mut headers = String::new();
        for (name, value) in self.headers(topic) {
            let _ = write!(headers, "{name}: {value}\r\n");
        }
        let answer = self.http.post("/hub", &headers, &self.body)?;
        let reply = String::from_utf8_lossy(&answer.body);
        ensure!(answer.status == 200, "the hub answered {}: {reply}", answer.status);
        reply
            .split_whitespace()
            .last()
            .and_then(|word| word.parse().ok())
            .context("the hub returned no number")
    }

    /// Deliveries a second, and a CPU second of the hub: so many notifications at once, to so many
    /// subscribers.
    pub(crate) fn deliver(
        &mut self,
        receiver: &mut Receiver,
        subscribers: usize,
        count: usize,
    ) -> Result<(f64, f64)> {
        receiver.reset()?;
        self.publish(TOPIC)?;
        receiver.wait(subscribers, LIMIT)?;
        receiver.reset()?;
        let (begun, cpu) = (now(), self.source.server.cpu());
        for _ in 0..count {
            self.publish(TOPIC)?;
        }
        receiver.wait(subscribers * count, LIMIT)?;
        let cpu = self.source.server.cpu() - cpu;
        let times = receiver.times()?;
        // More than these are repeats: of what had to make room, or whose answer was lost.
        ensure!(times.len() >= subscribers * count, "{} deliveries came", times.len());
        let last = times.iter().map(|(_, time)| *time).max().unwrap_or(begun);
        let all = times.len() as f64;
        Ok((all / ((last - begun) as f64 / 1e9), all / cpu))
    }

    /// Publishes a notification: milliseconds until each has it.
    pub(crate) fn first(&mut self, receiver: &mut Receiver, subscribers: usize) -> Result<Samples> {
        let begun = now();
        self.publish(TOPIC)?;
        receiver.wait(subscribers, LIMIT)?;
        Ok(receiver.times()?.into_iter().map(|(_, time)| (time - begun) as f64 / 1e6).collect())
    }

    /// Publishes one notification after another, each when the one before is with everybody:
    /// milliseconds until the last subscriber has it, and until each has it.
    pub(crate) fn spread(
        &mut self,
        receiver: &mut Receiver,
        subscribers: usize,
        count: usize,
    ) -> Result<(Samples, Samples)> {
        self.first(receiver, subscribers)?;
        receiver.reset()?;
        let mut begun = HashMap::new();
        for number in 1..=count {
            let time = now();
            begun.insert(self.publish(TOPIC)?, time);
            receiver.wait(subscribers * number, LIMIT)?;
        }
        let mut last: HashMap<u64, f64> = HashMap::new();
        let mut each = Samples::default();
        for (offset, time) in receiver.times()? {
            let begun = begun.get(&offset).context("a delivery of nothing")?;
            let took = (time - begun) as f64 / 1e6;
            each.push(took);
            let last = last.entry(offset).or_default();
            *last = last.max(took);
        }
        Ok((last.into_values().collect(), each))
    }

    /// Publishes one notification after another, each when the one before is with everybody, those
    /// that fail once too: milliseconds until each subscriber has it. Timed from when it is
    /// durable, which the disk decides: from the answer to the publisher, or from the first
    /// delivery if that was sooner.
    pub(crate) fn spread_with(
        &mut self,
        receiver: &mut Receiver,
        subscribers: usize,
        failing: usize,
        count: usize,
    ) -> Result<Samples> {
        let mut begun = HashMap::new();
        for number in 1..=count {
            begun.insert(self.publish(TOPIC)?, now());
            receiver.wait(subscribers * number, LIMIT)?;
            receiver.wait_repeats(failing * number)?;
        }
        let times = receiver.times()?;
        for (offset, time) in &times {
            begun.entry(*offset).and_modify(|begun| *begun = (*begun).min(*time));
        }
        let took = |(offset, time)| begun.get(&offset).map(|begun| (time - begun) as f64 / 1e6);
        Ok(times.into_iter().filter_map(took).collect())
    }

    /// Milliseconds until a notification is accepted, one after another, each time.
    pub(crate) fn accept(&mut self, count: usize) -> Result<Samples> {
        let mut took = Samples::default();
        for _ in 0..count {
            let begun = now();
            self.publish("http://example.org/nobody")?;
            took.push((now() - begun) as f64 / 1e6);
        }
        Ok(took)
    }
}

/// Puts subscriptions into a store that nobody has open.
fn seed(path: &Path, subscriptions: impl Iterator<Item = (String, Option<Vec<u8>>)>) -> Result<()> {
    let store = SqliteHub::open(path, Arc::new(SystemClock))?;
    subscribe(&store, subscriptions)?;
    store.close();
    Ok(())
}

/// Puts subscriptions to [`TOPIC`] into a store.
pub(crate) fn subscribe(
    store: &dyn HubStore,
    subscriptions: impl Iterator<Item = (String, Option<Vec<u8>>)>,
) -> Result<()> {
    let topic = store.open_topic(TOPIC)?;
    let until = SystemClock.now().plus_micros(LEASE.as_micros() as i64);
    let (sender, receiver) = channel();
    for (address, secret) in subscriptions {
        let sender = sender.clone();
        let new = NewTarget {
            topic,
            kind: TargetKind::Subscription,
            address,
            secret: secret.map(Secret::from),
            lease_until: Some(until),
            cursor: Some(Offset(0)),
        };
        store.put_target_then(new, Box::new(move |result| drop(sender.send(result.map(drop)))));
    }
    drop(sender);
    receiver.iter().collect::<Result<(), _>>()?;
    Ok(())
}
