//! Selection of the version of a resource at a time, and of the versions before and after it.

use super::VersionUrls;
use super::http_date;
use super::timemap::LINK_FORMAT;
use abreast_core::{ChangeLog, LogError, Order, SetId, Version};
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A version of a resource, with the times of the adjacent, first and last versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The version selected by the request.
    pub chosen: Version,
    /// Time of the oldest version in the store.
    pub first: Timestamp,
    /// Time of the newest version in the store.
    pub last: Timestamp,
    /// Time of the version before the selected one; `None` if the selected version is the oldest.
    pub previous: Option<Timestamp>,
    /// Time of the version after the selected one; `None` if the selected version is the newest.
    pub next: Option<Timestamp>,
}

impl History {
    /// Selects the version that was current at a time, in whole seconds. If the resource did not
    /// exist at that time, selects the first version. Returns `None` if the store does not have any
    /// version of the resource.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn at(
        log: &dyn ChangeLog,
        set: SetId,
        key: &str,
        seconds: i64,
    ) -> Result<Option<Self>, LogError> {
        // HTTP dates have whole seconds, so the last version in that second is selected.
        let end = Timestamp::from_seconds(seconds).plus_micros(999_999);
        let chosen = match one(log, set, key, end, Order::NewestFirst)? {
            Some(version) => Some(version),
            None => one(log, set, key, Timestamp::MIN, Order::OldestFirst)?,
        };
        chosen.map(|chosen| Self::around(log, set, key, chosen)).transpose()
    }

    /// Selects the newest version of a resource.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn newest(log: &dyn ChangeLog, set: SetId, key: &str) -> Result<Option<Self>, LogError> {
        let chosen = one(log, set, key, Timestamp::MAX, Order::NewestFirst)?;
        chosen.map(|chosen| Self::around(log, set, key, chosen)).transpose()
    }

    /// Selects the version whose time is exactly `time`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn exactly(
        log: &dyn ChangeLog,
        set: SetId,
        key: &str,
        time: Timestamp,
    ) -> Result<Option<Self>, LogError> {
        let chosen =
            one(log, set, key, time, Order::NewestFirst)?.filter(|version| version.time == time);
        chosen.map(|chosen| Self::around(log, set, key, chosen)).transpose()
    }

    fn around(
        log: &dyn ChangeLog,
        set: SetId,
        key: &str,
        chosen: Version,
    ) -> Result<Self, LogError> {
        let time_of = |from, order| {
            Ok::<_, LogError>(one(log, set, key, from, order)?.map(|version| version.time))
        };
        let previous = time_of(chosen.time.plus_micros(-1), Order::NewestFirst)?;
        let next = time_of(chosen.time.next(), Order::OldestFirst)?;
        let first = match previous {
            Some(_) => time_of(Timestamp::MIN, Order::OldestFirst)?,
            None => None,
        };
        let last = match next {
            Some(_) => time_of(Timestamp::MAX, Order::NewestFirst)?,
            None => None,
        };
        Ok(Self {
            first: first.unwrap_or(chosen.time),
            last: last.unwrap_or(chosen.time),
            previous,
            next,
            chosen,
        })
    }

    /// Returns the value of the Link header for these versions [rfc7089 §2.2]. `negotiated` is true
    /// in responses of a TimeGate.
    pub fn links(&self, urls: &VersionUrls, key: &str, negotiated: bool) -> String {
        let mut out = format!("<{}>; rel=\"original\"", urls.original(key));
        if !negotiated {
            let _ = write!(out, ", <{}>; rel=\"timegate\"", urls.timegate(key));
        }
        let _ = write!(
            out,
            ", <{}>; rel=\"timemap\"; type=\"{LINK_FORMAT}\"; from=\"{}\"; until=\"{}\"",
            urls.timemap(key),
            http_date(self.first),
            http_date(self.last)
        );
        // A version has a single link, with all of its relations.
        let mut relations: BTreeMap<Timestamp, Vec<&str>> = BTreeMap::new();
        let mut add = |time: Timestamp, relation| relations.entry(time).or_default().push(relation);
        add(self.first, "first");
        add(self.last, "last");
        self.previous.into_iter().for_each(|time| add(time, "prev"));
        self.next.into_iter().for_each(|time| add(time, "next"));
        add(self.chosen.time, "memento");
        for (time, mut relations) in relations {
            relations.retain(|relation| *relation != "memento");
            relations.push("memento");
            let (url, relations) = (urls.memento(key, time), relations.join(" "));
            let _ = write!(out, ", <{url}>; rel=\"{relations}\"; datetime=\"{}\"", http_date(time));
        }
        out
    }
}

fn one(
    log: &dyn ChangeLog,
    set: SetId,
    key: &str,
    from: Timestamp,
    order: Order,
) -> Result<Option<Version>, LogError> {
    Ok(log.versions(set, key, from, order, 1)?.pop())
}
