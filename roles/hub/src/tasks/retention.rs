//! Retention: dropping notifications from the logs, and the limit of the store.

use crate::deliver::Engine;
use abreast_core::hub::{Topic, TopicSummary};
use abreast_core::{LogError, Offset, TopicId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Topics read from the store at once.
const PAGE: usize = 500;

/// Drops old notifications periodically; `full` is set while the store accepts no more.
pub(crate) async fn sweep(engine: Arc<Engine>, full: Arc<AtomicBool>) {
    let mut ticks =
        tokio::time::interval(engine.options.retention_sweep.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (engine, full) = (Arc::clone(&engine), Arc::clone(&full));
        let swept = tokio::task::spawn_blocking(move || sweep_once(&engine, &full)).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "old notifications cannot be dropped");
        }
    }
}

fn sweep_once(engine: &Engine, full: &AtomicBool) -> Result<(), LogError> {
    if engine.held.is_first() {
        trim_all(engine)?;
    }
    let most = engine.options.store_bytes;
    let is_full = engine.store.sizes()?.body_bytes > most;
    if full.swap(is_full, Relaxed) != is_full {
        tracing::warn!(is_full, most, "the hub's store: whether it is full changed");
    }
    Ok(())
}

/// Drops old notifications of all topics.
fn trim_all(engine: &Engine) -> Result<(), LogError> {
    let most = engine.options.store_bytes;
    // Near the limit, the age does not matter: notifications are dropped unless a target needs
    // them.
    let crowded = engine.store.sizes()?.body_bytes > most / 5 * 4;
    let slowest = Slowest::of(engine)?;
    let mut after = TopicId(0);
    loop {
        let page = engine.store.topics(after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for topic in page {
            let taken = slowest.of_topic(engine, &topic).unwrap_or(topic.head);
            trim(engine, topic.id, topic.head, taken, crowded)?;
        }
    }
}

/// The smallest cursors of the topics' targets.
enum Slowest {
    /// All targets are in the engine.
    InEngine,
    /// By the URL of the topic, as recorded by all nodes.
    Recorded(HashMap<String, Offset>),
}

impl Slowest {
    fn of(engine: &Engine) -> Result<Self, LogError> {
        if !engine.held.is_shared() {
            return Ok(Self::InEngine);
        }
        let topics = engine.store.summary(engine.now())?.topics;
        let cursor = |topic: TopicSummary| (topic.url, Offset(topic.head - topic.lag));
        Ok(Self::Recorded(topics.into_iter().map(cursor).collect()))
    }

    /// `None` without targets.
    fn of_topic(&self, engine: &Engine, topic: &Topic) -> Option<Offset> {
        match self {
            Self::InEngine => engine.slowest(topic.id),
            Self::Recorded(cursors) => cursors.get(&topic.url).copied(),
        }
    }
}

/// Drops notifications after the retention time unless a target needs them, and after twice that
/// time in any case; targets then have a dead letter for them.
fn trim(
    engine: &Engine,
    topic: TopicId,
    head: Offset,
    taken: Offset,
    crowded: bool,
) -> Result<(), LogError> {
    let keep = engine.options.keep;
    let now = engine.now();
    let before = |age: Duration| {
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        engine.store.accepted_before(topic, now.plus_micros(-age))
    };
    let old = if crowded { head } else { before(keep)? };
    let up_to = old.min(taken).max(before(keep.saturating_mul(2))?);
    if up_to > Offset(0) { engine.store.trim(topic, up_to) } else { Ok(()) }
}
