//! TimeMaps: pages of the versions of a resource, as a list of links [rfc7089 §5, §5.1.1] or as
//! JSON.

use super::{VersionUrls, http_date};
use abreast_core::{ChangeLog, LogError, Order, SetId, Version};
use abreast_webtypes::Timestamp;
use std::fmt::Write as _;

/// Media type of a list of links [rfc6690 §2].
pub const LINK_FORMAT: &str = "application/link-format";
/// Most versions in one page of a TimeMap.
pub const VERSIONS_PER_PAGE: usize = 1_000;

/// A page of the versions of a resource, at most [`VERSIONS_PER_PAGE`] in responses of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeMap {
    /// Versions in the page, the oldest first; never empty.
    versions: Vec<Version>,
    /// Requested start of the page; `None` for the first page.
    from: Option<Timestamp>,
    /// Start of the next page; `None` for the last page.
    next: Option<Timestamp>,
    /// Times of the oldest and the newest version of the resource.
    span: (Timestamp, Timestamp),
}

impl TimeMap {
    /// Reads the page that starts at a time, or the first page. Returns `None` if the store does
    /// not have a version at or after that time.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read(
        log: &dyn ChangeLog,
        set: SetId,
        key: &str,
        from: Option<Timestamp>,
        limit: usize,
    ) -> Result<Option<Self>, LogError> {
        let start = from.unwrap_or(Timestamp::MIN);
        let mut versions = log.versions(set, key, start, Order::OldestFirst, limit + 1)?;
        let next = versions.get(limit).map(|version| version.time);
        versions.truncate(limit);
        let Some((oldest, newest)) =
            versions.first().zip(versions.last()).map(|(one, two)| (one.time, two.time))
        else {
            return Ok(None);
        };
        let end = |order, from, here| {
            Ok::<_, LogError>(
                log.versions(set, key, from, order, 1)?
                    .first()
                    .map_or(here, |version| version.time),
            )
        };
        let first =
            if from.is_some() { end(Order::OldestFirst, Timestamp::MIN, oldest)? } else { oldest };
        let last =
            if next.is_some() { end(Order::NewestFirst, Timestamp::MAX, newest)? } else { newest };
        Ok(Some(Self { versions, from, next, span: (first, last) }))
    }

    /// Formats the page as a list of links.
    pub fn to_links(&self, urls: &VersionUrls, key: &str) -> String {
        let own = self.from.map_or_else(|| urls.timemap(key), |from| urls.timemap_from(key, from));
        let mut out = format!(
            "<{}>; rel=\"original\",\n<{}>; rel=\"timegate\",\n<{own}>; rel=\"self\"; type=\"{LINK_FORMAT}\"",
            urls.original(key),
            urls.timegate(key),
        );
        if let Some((first, last)) = self.versions.first().zip(self.versions.last()) {
            let _ = write!(
                out,
                "; from=\"{}\"; until=\"{}\"",
                http_date(first.time),
                http_date(last.time)
            );
        }
        if self.from.is_some() {
            let _ =
                write!(out, ",\n<{}>; rel=\"timemap\"; type=\"{LINK_FORMAT}\"", urls.timemap(key));
        }
        if let Some(next) = self.next {
            let _ = write!(
                out,
                ",\n<{}>; rel=\"timemap\"; type=\"{LINK_FORMAT}\"; from=\"{}\"",
                urls.timemap_from(key, next),
                http_date(next)
            );
        }
        for version in &self.versions {
            let relation = match (version.time == self.span.0, version.time == self.span.1) {
                (true, true) => "first last memento",
                (true, false) => "first memento",
                (false, true) => "last memento",
                (false, false) => "memento",
            };
            let (url, date) = (urls.memento(key, version.time), http_date(version.time));
            let _ = write!(out, ",\n<{url}>; rel=\"{relation}\"; datetime=\"{date}\"");
        }
        out.push('\n');
        out
    }

    /// Formats the page as JSON, with the member names that other web archives use. Times are
    /// exact, and deletions are included.
    pub fn to_json(&self, urls: &VersionUrls, key: &str) -> String {
        // The URLs of versions do not contain characters that JSON escapes, except in absolute
        // keys.
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let own = self
            .from
            .map_or_else(|| urls.timemap_json(key), |from| urls.timemap_json_from(key, from));
        let mut out = format!(
            "{{\n \"original_uri\": {},\n \"self\": {},\n \"timegate_uri\": {},\n \"timemap_uri\": \
             {{\"link_format\": {}, \"json_format\": {}}},\n",
            text(&urls.original(key)),
            text(&own),
            text(&urls.timegate(key)),
            text(&urls.timemap(key)),
            text(&urls.timemap_json(key)),
        );
        if let Some(next) = self.next {
            let _ = writeln!(out, " \"next\": {},", text(&urls.timemap_json_from(key, next)));
        }
        let entry = |time: Timestamp| {
            format!("\"datetime\": \"{time}\", \"uri\": {}", text(&urls.memento(key, time)))
        };
        out.push_str(" \"mementos\": {\n  \"list\": [");
        for (number, version) in self.versions.iter().enumerate() {
            let separator = if number == 0 { "" } else { "," };
            let gone = if version.state.is_none() { ", \"deleted\": true" } else { "" };
            let _ = write!(out, "{separator}\n   {{{}{gone}}}", entry(version.time));
        }
        let _ = write!(
            out,
            "\n  ],\n  \"first\": {{{}}},\n  \"last\": {{{}}}\n }}\n}}\n",
            entry(self.span.0),
            entry(self.span.1)
        );
        out
    }
}
