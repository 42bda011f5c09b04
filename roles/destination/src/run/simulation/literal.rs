//! The algorithms in the specifications, and of another consumer, implemented to the letter: their
//! losses in the same simulation.

use super::BASE;
use super::copy::{Bench, Copy};
use super::oracle::{Wrong, each_seed, live};
use super::world::{self, ask, provider};
use crate::read::emm::PROTOCOL;
use crate::report::error::{Error, ExitCode};
use abreast_testkit::number;
use abreast_testkit::providers::{Known, Protocol, Provider, Reply, SHAPES, Shape};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// [emm-0.1 §7.1]
    Emm01,
    /// [emm-1.0 §B.1]
    Reverse,
    /// [emm-1.0 §B.2], with the step to the next page that it leaves out.
    Forward,
    /// [iiif-discovery §3.5]
    Iiif,
    /// The algorithm of the harvester of Yale's LUX.
    Lux,
}

impl Algorithm {
    const ALL: [Self; 5] = [Self::Emm01, Self::Reverse, Self::Forward, Self::Iiif, Self::Lux];

    fn name(self) -> &'static str {
        match self {
            Self::Emm01 => "EMM 0.1, 7.1",
            Self::Reverse => "EMM 1.0, B.1",
            Self::Forward => "EMM 1.0, B.2",
            Self::Iiif => "IIIF, 3.5",
            Self::Lux => "LUX",
        }
    }

    /// Whether the algorithm supports feeds of this shape.
    fn is_for(self, shape: &Shape) -> bool {
        match self {
            Self::Emm01 | Self::Reverse => shape.is_newest_first && shape.is_latest_only,
            Self::Forward => !shape.is_newest_first && !shape.is_latest_only,
            Self::Iiif | Self::Lux => {
                !shape.is_newest_first && shape.has_prev && shape.date.is_some()
            }
        }
    }
}

/// A copy that one algorithm makes.
struct Literal {
    algorithm: Algorithm,
    kept: BTreeMap<String, String>,
    /// The date up to which it has processed the feed.
    last: Option<String>,
    /// The page that it processed last.
    last_page: Option<String>,
}

type Outcome<T = ()> = Result<T, Error>;

/// A document, whole.
fn whole(reply: &Reply) -> Outcome<String> {
    if reply.status == 200 && reply.cut.is_none() {
        return Ok(String::from_utf8_lossy(&reply.body).into_owned());
    }
    Err(Error::new("http.status", ExitCode::Retryable, reply.status.to_string()))
}

fn json(url: &str) -> Outcome<Value> {
    let failed = |cause| Error::new("json", ExitCode::SourceInvalid, "no JSON").with_cause(cause);
    serde_json::from_str(&whole(&ask(url, Known::default())?)?).map_err(failed)
}

/// The URL in a reference: a string, or an object with `id`.
fn url_of(value: &Value) -> Option<String> {
    let text = value.as_str().or(value["id"].as_str())?;
    Some(if text.starts_with('/') { format!("{BASE}{text}") } else { text.to_owned() })
}

fn items(page: &Value) -> &[Value] {
    page["orderedItems"].as_array().map_or(&[], Vec::as_slice)
}

/// The type without its prefix.
fn kind(item: &Value) -> &str {
    let kind = item["type"].as_str().or(item["type"][0].as_str()).unwrap_or_default();
    kind.strip_prefix("as:").unwrap_or(kind)
}

fn date(item: &Value) -> Option<&str> {
    item["published"].as_str().or(item["endTime"].as_str())
}

impl Literal {
    fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, kept: BTreeMap::new(), last: None, last_page: None }
    }

    fn run(&mut self) -> Outcome {
        let entry = json(&format!("{BASE}/feed"))?;
        match self.algorithm {
            Algorithm::Emm01 => self.emm_01(&entry),
            Algorithm::Reverse => self.reverse(&entry),
            Algorithm::Forward => self.forward(&entry),
            Algorithm::Iiif => self.iiif(&entry),
            Algorithm::Lux => self.lux(&entry),
        }
    }

    fn add(&mut self, iri: &str) -> Outcome {
        let reply = ask(iri, Known::default())?;
        if matches!(reply.status, 404 | 410) {
            // No version can be added.
            return Ok(());
        }
        let body = whole(&reply)?;
        let version = body.split('"').nth(1).unwrap_or_default().to_owned();
        self.kept.insert(iri.to_owned(), version);
        Ok(())
    }

    /// `switch(activity.type)`
    fn switch(&mut self, item: &Value) -> Outcome {
        let Some(iri) = url_of(&item["object"]) else { return Ok(()) };
        if matches!(kind(item), "Remove" | "Update") {
            self.kept.remove(&iri);
        }
        if matches!(kind(item), "Add" | "Update") {
            self.add(&iri)?;
        }
        Ok(())
    }

    /// Processes an item by its type, according to the definitions of the types.
    fn by_type(&mut self, item: &Value) -> Outcome {
        let Some(iri) = url_of(&item["object"]) else { return Ok(()) };
        match kind(item) {
            "Remove" | "Delete" => drop(self.kept.remove(&iri)),
            "Add" | "Create" | "Update" | "Deprecate" => self.add(&iri)?,
            _ => {}
        }
        Ok(())
    }

    fn emm_01(&mut self, entry: &Value) -> Outcome {
        let (mut next, mut newest) = (url_of(&entry["first"]), None);
        'pages: while let Some(url) = next {
            let page = json(&url)?;
            for item in items(&page) {
                self.switch(item)?;
                newest = newest.max(date(item).map(str::to_owned));
                if self.last.as_deref().zip(date(item)).is_some_and(|(last, date)| date < last) {
                    break 'pages;
                }
            }
            next = url_of(&page["next"]).filter(|next| *next != url);
        }
        self.last = newest.max(self.last.take());
        Ok(())
    }

    fn reverse(&mut self, entry: &Value) -> Outcome {
        let (mut next, mut last_update) = (url_of(&entry["first"]), None);
        'pages: while let Some(url) = next {
            let page = json(&url)?;
            for item in items(&page) {
                if self.last.as_deref().zip(date(item)).is_some_and(|(from, date)| date < from) {
                    break 'pages;
                }
                self.by_type(item)?;
                last_update = date(item).map(str::to_owned);
            }
            next = url_of(&page["next"]).filter(|next| *next != url);
        }
        self.last = last_update.or(self.last.take());
        Ok(())
    }

    fn forward(&mut self, entry: &Value) -> Outcome {
        let mut current = self.last_page.clone().or_else(|| url_of(&entry["first"]));
        while let Some(url) = current {
            let page = json(&url)?;
            let next = url_of(&page["next"]);
            if next.is_some() {
                for item in items(&page) {
                    self.by_type(item)?;
                }
            }
            self.last_page = Some(url);
            current = next;
        }
        Ok(())
    }

    fn iiif(&mut self, entry: &Value) -> Outcome {
        // The time of the previous run: that of the last one that ended.
        let now = provider(|provider| provider.time());
        let (mut done, mut only_delete) = (HashSet::new(), false);
        let mut previous = url_of(&entry["last"]);
        'pages: while let Some(url) = previous {
            let page = json(&url)?;
            for item in items(&page).iter().rev() {
                if self.last.as_deref().zip(date(item)).is_some_and(|(last, date)| date < last) {
                    break 'pages;
                }
                if kind(item) == "Refresh" {
                    if self.last.is_none() {
                        break 'pages;
                    }
                    only_delete = true;
                }
                let Some(iri) = url_of(&item["object"]).filter(|iri| !done.contains(iri)) else {
                    continue;
                };
                match kind(item) {
                    "Delete" | "Remove" => drop(self.kept.remove(&iri)),
                    _ if only_delete => continue,
                    // The target is the feed itself, since these feeds do not contain `target`.
                    "Update" | "Create" | "Add" => self.add(&iri)?,
                    "Move" => {
                        self.kept.remove(&iri);
                        if let Some(target) = url_of(&item["target"]) {
                            self.add(&target)?;
                        }
                    }
                    _ => {}
                }
                done.insert(iri);
            }
            previous = url_of(&page["prev"]);
        }
        self.last = Some(now);
        Ok(())
    }

    fn lux(&mut self, entry: &Value) -> Outcome {
        let mut newest = self.last.clone();
        let mut done = HashSet::new();
        let mut previous = url_of(&entry["last"]);
        'pages: while let Some(url) = previous {
            let page = json(&url)?;
            for item in items(&page).iter().rev() {
                if self.last.as_deref().zip(date(item)).is_some_and(|(last, date)| date < last)
                    || kind(item) == "Refresh"
                {
                    break 'pages;
                }
                newest = newest.max(date(item).map(str::to_owned));
                let Some(iri) = url_of(&item["object"]).filter(|iri| done.insert(iri.clone()))
                else {
                    continue;
                };
                // Failures for single entities are ignored.
                match kind(item) {
                    "Delete" => drop(self.kept.remove(&iri)),
                    _ => match self.add(&iri) {
                        Err(error) if error.exit_code() == ExitCode::Cancelled => {
                            return Err(error);
                        }
                        _ => {}
                    },
                }
            }
            previous = url_of(&page["prev"]);
        }
        self.last = newest;
        Ok(())
    }
}

/// The errors in copies of `count` providers without and with adversity, as cells of a table, and
/// whether there are any.
fn cells(
    count: usize,
    is_for: impl Fn(&Shape) -> bool,
    copy: impl Fn(&Bench, u64, bool) -> Wrong + Sync,
) -> (String, bool) {
    let seeds = (1..).filter(|seed| is_for(&SHAPES[*seed as usize % SHAPES.len()]));
    let seeds: Vec<u64> = seeds.take(count).collect();
    let (mut cells, mut any) = (String::new(), false);
    for is_calm in [true, false] {
        let (mut all, mut asked) = (Wrong::default(), 0);
        let each = |bench: &Bench, seed| {
            let wrong = copy(bench, seed, is_calm);
            (wrong, world::asked())
        };
        for (wrong, requests) in each_seed(&seeds, each) {
            all.lost += wrong.lost;
            all.revived += wrong.revived;
            all.stale += wrong.stale;
            asked += requests;
        }
        any |= all != Wrong::default();
        let _ = write!(
            cells,
            " {} | {} | {} | {} |",
            all.lost,
            all.revived,
            all.stale,
            asked / seeds.len()
        );
    }
    (cells, any)
}

#[test]
fn stated_algorithms_lose_entities_and_ours_does_not() {
    let count = number("ABREAST_TEST_SEEDS").unwrap_or(100) as usize;
    let (ours, any) = cells(
        count,
        |_| true,
        |bench, seed, is_calm| {
            let made = Provider::new(Protocol::Activities, seed, BASE, is_calm);
            let mut copy = Copy::new(bench, made.url(), PROTOCOL.reader);
            // Missing resources count if the last run did not report them.
            match live(made, seed, &mut || copy.run()).unwrap() {
                ExitCode::Ok => Wrong::of(&copy.kept),
                _ => Wrong::default(),
            }
        },
    );
    let mut table = format!("| `abreast sync` |{ours}\n");
    assert!(!any, "{table}");
    for algorithm in Algorithm::ALL {
        let is_for = |shape: &Shape| algorithm.is_for(shape);
        let (cells, any) = cells(count, is_for, |_, seed, is_calm| {
            let mut literal = Literal::new(algorithm);
            // What fails is left for the next run.
            let made = Provider::new(Protocol::Activities, seed, BASE, is_calm);
            let _ = live(made, seed, &mut || literal.run().map(|()| ExitCode::Ok));
            Wrong::of(&literal.kept)
        });
        let _ = writeln!(table, "| {} |{cells}", algorithm.name());
        // The algorithm starts with the first date that it ever processed, in each run.
        assert!(any || algorithm == Algorithm::Reverse, "{algorithm:?} loses nothing");
    }
    eprintln!("{table}");
}
