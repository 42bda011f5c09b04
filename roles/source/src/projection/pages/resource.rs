//! Page of one resource: its properties, a preview, its links and its versions.

use super::paths::SetPage;
use super::query::{reader, url, values};
use super::resources::{media_type, page_url, shown};
use super::set_view::shell;
use super::shell::{Linked, Shell, Size, Time, page};
use crate::projection::routes::Route as _;
use crate::publish::representations::Representation;
use crate::publish::{PublishError, PublishedSet, Publisher, Reader, Rendered};
use abreast_core::{Order, Resource, State, Version};
use abreast_webtypes::{Timestamp, visible_lines};
use askama::Template;
use askama::filters::Safe;
use similar::{ChangeTag, TextDiff};
use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

/// Bytes of a text that a page shows.
const PREVIEW: u64 = 32 << 10;
/// Longest version that is compared with another one, in bytes.
const COMPARED: u64 = 256 << 10;
/// Lines of a difference that a page shows.
const LINES: usize = 500;
/// Time for a comparison; a longer one has a coarser result.
const PATIENCE: Duration = Duration::from_millis(200);
/// Versions that a page lists.
const VERSIONS: usize = 20;

/// The resource and the versions of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    key: String,
    /// Time of the version to compare with the version before it.
    difference: Option<Timestamp>,
    reader: Reader,
}

impl Asked {
    /// The resource of a query; `None` if the query is not one of this page.
    pub(super) fn parse(query: &str, browser: &Reader) -> Option<Self> {
        let [key, difference, languages] = values(query, ["key", "difference", "lang"])?;
        let reader = reader(&languages, browser)?;
        let time = match difference.as_str() {
            "" => None,
            micros => Some(Timestamp::from_micros(micros.parse().ok()?)),
        };
        (!key.is_empty()).then_some(Self { key, difference: time, reader })
    }
}

/// The content of a resource, as far as a page shows it.
enum Preview {
    Image,
    /// Text, and whether it is only the first part.
    Text(String, bool),
    None,
}

/// The value of a property.
enum Value<'p> {
    Text(String),
    Linked(Linked<'p>),
    Time(Time),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&super::shell::escaped(text)),
            Self::Linked(linked) => linked.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

struct LinkRow<'p> {
    rel: &'p str,
    target: Safe<Linked<'p>>,
}

struct VersionRow {
    url: String,
    time: Safe<Time>,
    facts: String,
    difference: Option<String>,
}

struct DifferenceView {
    from: Safe<Time>,
    to: Safe<Time>,
    lines: Option<Vec<Line>>,
}

/// A line of a difference.
struct Line {
    sign: &'static str,
    text: String,
}

impl Line {
    fn class(&self) -> &'static str {
        match self.sign {
            "+" => "plus",
            "\u{2212}" => "minus",
            _ => "",
        }
    }
}

#[derive(Template)]
#[template(path = "resource.html")]
struct ResourceTemplate<'p> {
    shell: Shell<'p>,
    uri: &'p str,
    /// The URI, as a link if browsers can open it.
    linked: Safe<Linked<'p>>,
    facts: Vec<(&'static str, Safe<Value<'p>>)>,
    preview: Preview,
    difference: Option<DifferenceView>,
    links: Vec<LinkRow<'p>>,
    versions: Vec<VersionRow>,
    timemap: Option<String>,
}

/// Page of a resource of a set.
pub(super) fn resource_page(
    publisher: &Publisher,
    set: &PublishedSet,
    asked: &Asked,
) -> Result<Rendered, PublishError> {
    let (log, key) = (publisher.log(), &asked.key);
    let found = log.resource(set.id, key)?;
    let found = found.filter(|_| set.representations.selects(key));
    let stored = match &set.versions {
        Some(_) => log.versions(set.id, key, Timestamp::MAX, Order::NewestFirst, VERSIONS + 1)?,
        None => Vec::new(),
    };
    if found.is_none() && stored.is_empty() {
        return Err(PublishError::NotFound);
    }
    let uri = set.urls.naming().uri(key);
    if set.urls.naming().names_entities() && found.is_some() {
        return Err(PublishError::Elsewhere(page_url(set, key, &asked.reader)));
    }
    let title = shown(key);
    let is_ours = uri.starts_with(publisher.urls().base());
    page(&ResourceTemplate {
        shell: shell(publisher, set, &title).below("Resources", SetPage::Resources.url(&set.urls)),
        facts: found.as_ref().map_or_else(
            || vec![("State", Safe(Value::Text("not in the set any more".to_owned())))],
            facts,
        ),
        preview: found.as_ref().map_or(Preview::None, |found| preview(set, found, is_ours)),
        difference: asked.difference.and_then(|time| difference(set, &stored, time)),
        links: found.as_ref().map(links).unwrap_or_default(),
        versions: versions(set, key, &stored),
        timemap: set.versions.as_ref().map(|urls| urls.timemap(key)),
        linked: Linked::new(&uri),
        uri: &uri,
    })
}

fn facts(resource: &Resource) -> Vec<(&'static str, Safe<Value<'_>>)> {
    let state = &resource.state;
    let mut facts = Vec::new();
    let media_type = media_type(resource);
    if !media_type.is_empty() {
        facts.push(("Media type", Safe(Value::Text(media_type.to_owned()))));
    }
    if let Some(length) = state.length {
        let text = match length {
            0..1000 => Size(length).to_string(),
            _ => format!("{} ({} bytes)", Size(length), super::shell::Count(length)),
        };
        facts.push(("Size", Safe(Value::Text(text))));
    }
    facts.push(("Modified", Safe(Value::Time(Time(state.modified)))));
    let digests = state.digests.to_string();
    if !digests.is_empty() {
        facts.push(("Digests", Safe(Value::Text(digests))));
    }
    for instead in resource.deprecated.iter().flatten() {
        facts.push(("Deprecated; use instead", Safe(Value::Linked(Linked::plain(instead)))));
    }
    facts
}

fn links(resource: &Resource) -> Vec<LinkRow<'_>> {
    let links = resource.state.links.iter();
    links.map(|link| LinkRow { rel: &link.rel, target: Linked::new(&link.target) }).collect()
}

/// Whether a media type is text that people read.
fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let known =
        ["application/json", "application/xml", "application/n-triples", "application/n-quads"];
    essence.starts_with("text/")
        || known.contains(&essence)
        || essence == "application/trig"
        || essence.ends_with("+xml")
        || essence.ends_with("+json")
}

fn preview(set: &PublishedSet, resource: &Resource, is_ours: bool) -> Preview {
    let media_type = media_type(resource);
    let images =
        ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"];
    if images.contains(&media_type) && is_ours {
        return Preview::Image;
    }
    if !is_text(media_type) || resource.state.encoding.is_some() {
        return Preview::None;
    }
    let text = match set.representations.open(&resource.key, &resource.state) {
        Ok(Representation::File(file)) => text_of(file, PREVIEW),
        Ok(Representation::Kept(content)) => text_of(content, PREVIEW),
        Ok(Representation::Elsewhere) | Err(_) => return Preview::None,
    };
    let Ok(Some((text, is_cut))) = text else { return Preview::None };
    let is_json = media_type.ends_with("json") && !is_cut && !text.trim_end().contains('\n');
    let value = is_json.then(|| serde_json::from_str::<serde_json::Value>(&text).ok()).flatten();
    let indented = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    Preview::Text(indented.unwrap_or(text), is_cut)
}

/// The first part of a text, and whether more follows; `None` if the bytes are not UTF-8.
fn text_of(bytes: impl Read, most: u64) -> io::Result<Option<(String, bool)>> {
    let mut read = Vec::new();
    bytes.take(most + 1).read_to_end(&mut read)?;
    let is_cut = read.len() as u64 > most;
    read.truncate(most as usize);
    let whole = match std::str::from_utf8(&read) {
        Ok(_) => read.len(),
        // The cut may be inside a character.
        Err(error) if is_cut && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Ok(None),
    };
    read.truncate(whole);
    Ok(String::from_utf8(read).ok().map(|text| (text, is_cut)))
}

fn versions(set: &PublishedSet, key: &str, stored: &[Version]) -> Vec<VersionRow> {
    let Some(urls) = &set.versions else { return Vec::new() };
    let address = SetPage::Resource.url(&set.urls);
    let row = |(at, version): (usize, &Version)| {
        let facts = match &version.state {
            None => "deleted".to_owned(),
            Some(state) => state.length.map(|length| Size(length).to_string()).unwrap_or_default(),
        };
        let time = version.time.as_micros().to_string();
        let former = stored.get(at + 1);
        VersionRow {
            url: urls.memento(key, version.time),
            time: Time::of(version.time),
            facts,
            difference: former.map(|_| url(&address, &[("key", key), ("difference", &time)])),
        }
    };
    stored.iter().enumerate().take(VERSIONS).map(row).collect()
}

/// The difference between the version of a time and the version before it.
fn difference(set: &PublishedSet, stored: &[Version], time: Timestamp) -> Option<DifferenceView> {
    let at = stored.iter().position(|version| version.time == time)?;
    let (new, old) = (&stored[at], stored.get(at + 1)?);
    let text = |version: &Version| text_of_version(set, version.state.as_ref());
    let lines = text(old).zip(text(new)).map(|(old, new)| compare(&old, &new));
    Some(DifferenceView { from: Time::of(old.time), to: Time::of(new.time), lines })
}

/// Text of a stored version; empty for a deletion. `None` if it is not stored, long or not text.
fn text_of_version(set: &PublishedSet, state: Option<&State>) -> Option<String> {
    let Some(state) = state else { return Some(String::new()) };
    let kept = set.representations.open_kept(state).ok()??;
    let (text, is_cut) = text_of(kept, COMPARED).ok()??;
    (!is_cut).then_some(text)
}

fn compare(old: &str, new: &str) -> Vec<Line> {
    let difference = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let line = |sign, text: &str| Line { sign, text: visible_lines(text).into_owned() };
    let mut lines = Vec::new();
    for (number, group) in difference.grouped_ops(3).iter().enumerate() {
        if number > 0 {
            lines.push(line("", "…"));
        }
        for change in group.iter().flat_map(|op| difference.iter_changes(op)) {
            if lines.len() == LINES {
                lines.push(line("", "… the difference is longer"));
                return lines;
            }
            let sign = match change.tag() {
                ChangeTag::Delete => "\u{2212}",
                ChangeTag::Insert => "+",
                ChangeTag::Equal => "",
            };
            lines.push(line(sign, change.value().trim_end_matches('\n')));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_the_changed_lines_and_three_around() {
        let old: String = (0..40)
            .flat_map(|number| ["line ".to_owned(), number.to_string(), "\n".to_owned()])
            .collect();
        let new = old.replace("line 20\n", "line twenty\n").replace("line 39\n", "");
        let lines: Vec<_> = compare(&old, &new)
            .into_iter()
            .map(|line| format!("{}{}", line.sign, line.text))
            .collect();
        let wanted = [
            "line 17",
            "line 18",
            "line 19",
            "\u{2212}line 20",
            "+line twenty",
            "line 21",
            "line 22",
            "line 23",
            "…",
            "line 36",
            "line 37",
            "line 38",
            "\u{2212}line 39",
        ];
        assert_eq!(lines, wanted);
        let long: String = "x\n".repeat(2 * LINES);
        assert_eq!(compare("", &long).len(), LINES + 1);
    }

    #[test]
    fn previews_end_between_characters() {
        let read = |bytes: &[u8], most| text_of(bytes, most).unwrap();
        assert_eq!(read("aé".as_bytes(), 3), Some(("aé".to_owned(), false)));
        assert_eq!(read("aéb".as_bytes(), 2), Some(("a".to_owned(), true)));
        assert_eq!(read(b"a\xff", 10), None);
    }
}
