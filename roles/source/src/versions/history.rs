//! The version of a resource at a time, and the versions around it.

use super::VersionUrls;
use super::http_date;
use super::timemap::LINK_FORMAT;
use abreast_core::{ChangeLog, LogError, Order, SetId, Version};
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A version of a resource, and the times of those around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The version that the request selects.
    pub chosen: Version,
    /// The time of the oldest version in the store.
    pub first: Timestamp,
    /// The time of the newest version.
    pub last: Timestamp,
    /// The time of the version before the selected one.
    pub previous: Option<Timestamp>,
    /// The time of the version after the selected one.
    pub next: Option<Timestamp>,
}

impl History {
    /// The version that was there at a time, down to the second; the first one, if none was there
    /// yet. `None`: no version of this resource is kept.
    ///
    /// # Errors
    /// When the log fails.
    pub fn at(
        log: &dyn ChangeLog,
        set: SetId,
        key: &str,
        seconds: i64,
    ) -> Result<Option<Self>, LogError> {
        // Dates on the wire have whole seconds: all versions of that second had come.
        let end = Timestamp::from_seconds(seconds).plus_micros(999_999);
        let chosen = match one(log, set, key, end, Order::NewestFirst)? {
            Some(version) => Some(version),
            None => one(log, set, key, Timestamp::MIN, Order::OldestFirst)?,
        };
        chosen.map(|chosen| Self::around(log, set, key, chosen)).transpose()
    }

    /// The newest version.
    ///
    /// # Errors
    /// When the log fails.
    pub fn newest(log: &dyn ChangeLog, set: SetId, key: &str) -> Result<Option<Self>, LogError> {
        let chosen = one(log, set, key, Timestamp::MAX, Order::NewestFirst)?;
        chosen.map(|chosen| Self::around(log, set, key, chosen)).transpose()
    }

    /// The version since exactly that time.
    ///
    /// # Errors
    /// When the log fails.
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

    /// The value of the Link header with these versions [rfc7089 §2.2]. `negotiated`: it is a
    /// TimeGate's.
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
        // One link for each version, with all that it is.
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
