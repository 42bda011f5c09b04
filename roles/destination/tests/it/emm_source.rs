//! A server of change feeds as libraries and museums write them; each test sets its habits.

use abreast_testkit::pages::{Answer, Server};
use abreast_webtypes::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

const JSON: &str = "application/activity+json";
const N_TRIPLES: &str = "application/n-triples";
/// A time in the past, in seconds: 2026-01-01.
const EPOCH: i64 = 1_767_225_600;
const DAY: i64 = 86_400;

/// How the server behaves.
#[derive(Clone)]
pub(crate) struct Habits {
    pub(crate) context: &'static str,
    /// The member that has the date.
    pub(crate) date: &'static str,
    /// Dates are days.
    pub(crate) whole_days: bool,
    /// The first page has the newest activity.
    pub(crate) newest_first: bool,
    /// Only the last activity of each entity.
    pub(crate) latest_only: bool,
    /// The Entry Point links to the last page, and pages link to the previous one.
    pub(crate) has_last: bool,
    pub(crate) has_prev: bool,
    /// References are strings, relative ones; otherwise objects.
    pub(crate) bare_references: bool,
    /// Types are arrays of prefixed names.
    pub(crate) listed_types: bool,
    /// Objects link to their representations; otherwise they are asked for by `Accept`.
    pub(crate) has_links: bool,
    /// Every change is an `Update`.
    pub(crate) only_updates: bool,
    /// The collection that pages name is not there.
    pub(crate) lost_collection: bool,
    /// The last page links to itself as the next one.
    pub(crate) next_is_self: bool,
    /// Activities of a page.
    pub(crate) page: usize,
}

impl Default for Habits {
    /// The Entity Metadata Management API 1.0.
    fn default() -> Self {
        Self {
            context: "https://emm-spec.org/1.0/context.json",
            date: "published",
            whole_days: false,
            newest_first: false,
            latest_only: false,
            has_last: true,
            has_prev: true,
            bare_references: false,
            listed_types: false,
            has_links: true,
            only_updates: false,
            lost_collection: false,
            next_is_self: false,
            page: 3,
        }
    }
}

impl Habits {
    /// The newest first, of each entity the last change, days, no way back.
    pub(crate) fn of_congress() -> Self {
        Self {
            context: "https://www.w3.org/ns/activitystreams#",
            whole_days: true,
            newest_first: true,
            latest_only: true,
            has_last: false,
            has_prev: false,
            bare_references: true,
            listed_types: true,
            ..Self::default()
        }
    }

    /// All changes from the first one on.
    pub(crate) fn of_getty() -> Self {
        Self { date: "endTime", has_links: false, ..Self::default() }
    }

    /// The newest first, by time; the last page leads to itself.
    pub(crate) fn of_libris() -> Self {
        Self {
            newest_first: true,
            has_last: false,
            has_prev: false,
            next_is_self: true,
            ..Self::default()
        }
    }

    /// Files that grow at the end, of a collection that is elsewhere.
    pub(crate) fn of_blue_core() -> Self {
        Self { lost_collection: true, has_prev: false, ..Self::default() }
    }

    /// Level 2 of IIIF Change Discovery, of descriptions.
    pub(crate) fn of_iiif() -> Self {
        Self {
            context: "http://iiif.io/api/discovery/1/context.json",
            date: "endTime",
            ..Self::default()
        }
    }

    /// Few members, and everything an update.
    pub(crate) fn of_marva() -> Self {
        Self {
            bare_references: true,
            only_updates: true,
            has_links: false,
            has_last: false,
            has_prev: false,
            ..Self::default()
        }
    }
}

#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) number: usize,
    pub(crate) kind: &'static str,
    pub(crate) time: i64,
    /// Members that replace members of the server.
    pub(crate) more: Value,
}

/// The content of the server.
#[derive(Clone, Default)]
pub(crate) struct Data {
    pub(crate) entities: BTreeMap<usize, String>,
    pub(crate) changes: Vec<Change>,
    /// In seconds.
    pub(crate) now: i64,
    pub(crate) habits: Habits,
    /// The full download, and its time.
    pub(crate) download: Option<(String, i64)>,
    /// The start of the IRIs of entities, if it is not the server's own address.
    names: Option<String>,
}

#[derive(Clone)]
pub(crate) struct EmmSource {
    pub(crate) server: Server,
    data: Arc<Mutex<Data>>,
}

impl EmmSource {
    pub(crate) fn start(habits: Habits) -> Self {
        let data = Arc::new(Mutex::new(Data { habits, now: EPOCH, ..Data::default() }));
        let source = Self { server: Server::start(), data };
        source.answer_first(|_, _| None);
        source
    }

    /// The same feed, of the same entities, on another server.
    pub(crate) fn at_another_address(&self) -> Self {
        self.data().names = Some(self.server.base.clone());
        let source = Self { server: Server::start(), data: Arc::clone(&self.data) };
        source.answer_first(|_, _| None);
        source
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/feed")
    }

    pub(crate) fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap()
    }

    /// An answer at a path, before anything else.
    pub(crate) fn answer_first(
        &self,
        answer: impl Fn(&str, usize) -> Option<Answer> + Send + Sync + 'static,
    ) {
        let own = (self.server.base.clone(), Arc::clone(&self.data));
        self.server.handler(move |target, number| {
            answer(target, number).or_else(|| own.1.lock().unwrap().answer(&own.0, target))
        });
    }

    /// The IRI of an entity, which is on this server.
    pub(crate) fn iri(&self, number: usize) -> String {
        let names = self.data().names.clone();
        format!("{}/id/{number}", names.as_ref().unwrap_or(&self.server.base))
    }

    pub(crate) fn put(&self, number: usize, value: &str) {
        let iri = self.iri(number);
        let lines = format!(
            "<{iri}> <http://ns.example/value> \"{value}\" .\n<{iri}> <http://ns.example/part> _:p{number} .\n\
             _:p{number} <http://ns.example/of> \"part of {value}\" .\n"
        );
        let is_new = self.data().entities.insert(number, lines).is_none();
        self.record(number, if is_new { "Create" } else { "Update" });
    }

    pub(crate) fn delete(&self, number: usize) {
        self.data().entities.remove(&number);
        self.record(number, "Delete");
    }

    /// Records a change of a kind.
    pub(crate) fn record(&self, number: usize, kind: &'static str) {
        self.record_with(number, kind, Value::Null);
    }

    pub(crate) fn record_with(&self, number: usize, kind: &'static str, more: Value) {
        let mut data = self.data();
        data.now += 2;
        let time = data.now;
        data.changes.push(Change { number, kind, time, more });
    }

    /// Goes on by whole days.
    pub(crate) fn wait_days(&self, days: i64) {
        self.data().now += days * DAY;
    }

    /// Makes a full download of what there is.
    pub(crate) fn make_download(&self) {
        let mut data = self.data();
        data.download = Some((data.entities.values().map(String::as_str).collect(), data.now));
    }

    /// All statements there are now.
    pub(crate) fn statements(&self) -> String {
        self.data().entities.values().map(String::as_str).collect()
    }
}

impl Data {
    fn time(&self, seconds: i64) -> String {
        let text = Timestamp::from_seconds(seconds).to_string();
        if self.habits.whole_days { text[..10].to_owned() } else { text }
    }

    /// The activities in the order of the feed.
    fn listed(&self) -> Vec<&Change> {
        let mut changes: Vec<&Change> = self.changes.iter().collect();
        if self.habits.latest_only {
            let last = |number| self.changes.iter().rposition(|change| change.number == number);
            let is_last = |(at, change): &(usize, &Change)| last(change.number) == Some(*at);
            let latest = self.changes.iter().enumerate().filter(is_last);
            changes = latest.map(|(_, change)| change).collect();
        }
        if self.habits.newest_first {
            changes.reverse();
        }
        changes
    }

    fn reference(&self, base: &str, path: &str, kind: &str) -> Value {
        if self.habits.bare_references {
            json!(path)
        } else {
            json!({"id": format!("{base}{path}"), "type": kind})
        }
    }

    pub(crate) fn answer(&self, base: &str, target: &str) -> Option<Answer> {
        let clock = UNIX_EPOCH + Duration::from_secs(self.now as u64);
        let date = httpdate::fmt_http_date(clock);
        let send = |value: &Value| {
            let answer = Answer::ok(value.to_string()).header("content-type", JSON);
            Some(answer.header("date", &date))
        };
        let habits = &self.habits;
        let listed = self.listed();
        let pages = listed.len().div_ceil(habits.page).max(1);
        let page = |number: usize| {
            self.reference(base, &format!("/feed/{number}"), "OrderedCollectionPage")
        };
        if target == "/feed" {
            let mut entry = json!({"@context": habits.context, "id": format!("{base}/feed"), "type": "OrderedCollection",
                "first": page(1), "totalItems": listed.len()});
            if habits.has_last {
                entry["last"] = page(pages);
            }
            if let Some((_, time)) = &self.download {
                let updated = Timestamp::from_seconds(*time).to_string();
                entry["url"] = json!([{"type": "Link", "href": "/about.html", "mediaType": "text/html"},
                    {"type": "Link", "href": "/download", "mediaType": N_TRIPLES, "updated": updated}]);
            }
            return send(&entry);
        }
        if target == "/download" {
            let (lines, _) = self.download.as_ref()?;
            return Some(Answer::ok(lines.clone()).header("content-type", N_TRIPLES));
        }
        if let Some(number) = target.strip_prefix("/feed/") {
            let number: usize = number.parse().ok()?;
            if number == 0 || number > pages {
                return Some(Answer::status(404));
            }
            let items = listed.iter().skip((number - 1) * habits.page).take(habits.page);
            let items: Vec<Value> = items.map(|change| self.activity(base, change)).collect();
            let whole = if habits.lost_collection { "/lost" } else { "/feed" };
            let mut document = json!({"@context": habits.context, "id": format!("{base}{target}"),
                "type": "OrderedCollectionPage", "orderedItems": items,
                "partOf": self.reference(base, whole, "OrderedCollection")});
            if number < pages {
                document["next"] = page(number + 1);
            } else if habits.next_is_self {
                document["next"] = page(number);
            }
            if number > 1 && habits.has_prev {
                document["prev"] = page(number - 1);
            }
            return send(&document);
        }
        let entity = target.strip_prefix("/id/")?;
        let number: usize = entity.strip_suffix(".nt").unwrap_or(entity).parse().ok()?;
        Some(match self.entities.get(&number) {
            Some(lines) => Answer::ok(lines.clone()).header("content-type", N_TRIPLES),
            None => Answer::status(404),
        })
    }

    fn activity(&self, base: &str, change: &Change) -> Value {
        let habits = &self.habits;
        let Change { number, kind, time, more } = change;
        let kind = if habits.only_updates && *kind != "Delete" { "Update" } else { kind };
        let names = self.names.as_deref().unwrap_or(base);
        let mut object =
            json!({"id": format!("{names}/id/{number}"), "type": "http://ns.example/Term"});
        if habits.has_links {
            object["url"] = json!([
                {"type": "Link", "href": format!("{base}/id/{number}.html"), "mediaType": "text/html"},
                {"type": "Link", "href": format!("/id/{number}.nt"), "mediaType": N_TRIPLES}]);
        }
        let mut activity = json!({"type": kind, "object": object, habits.date: self.time(*time)});
        if habits.listed_types {
            activity["type"] = json!([format!("as:{kind}")]);
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            activity[name] = value.clone();
        }
        activity
    }
}
