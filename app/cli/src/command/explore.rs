//! `abreast explore`: the tree of documents that a Source, an SDShare server or a change feed publishes.

use crate::command::explore_feeds;
use crate::command::validate::{WalkArgs, nothing_found};
use abreast_validator::{
    ChangeFeedFacts, Document, FeedFacts, Finding, FullDownload, Report, Share, Unreachable,
    document_json, validate,
};
use abreast_webtypes::{count, without_login};
use clap::Args;
use indicatif::HumanBytes;
use serde_json::json;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast explore https://papers.example.org/
  abreast explore https://papers.example.org/resourcelist.xml --depth 1
  abreast explore https://papers.example.org/sdshare
  abreast explore https://id.example.org/authorities/emm/1.0
  abreast explore https://papers.example.org/ --json | jq -r 'select(.name == \"Change List\") | .url'

Walks up to the Source Description and down to every list; resources and packages are not fetched. The change feeds
that the site names in /.well-known/host-meta.json are listed at the end: give one of them to read it.
From a feed of SDShare it walks down: from an overview to collections, snapshots and every page of fragments feeds.
From an Entry Point of a change feed (EMM, IIIF Change Discovery) it reads every page, from a page those of its Entry Point.
From a Sitemap or change set of ResourceSync 0.1 it reads lists, change sets back to the first, and the manifest of a dump.

Exit codes: 0 everything was read, 1 some documents or pages were not, or name what cannot be requested, 2 usage; if no document or feed is found: 4 there is none,
5 try again later, 6 no secure connection, 12 not authorised; 130 cancelled.";

/// Displayed characters of a download's URL. Half are from its end, where the URLs of a feed's
/// downloads differ.
const URL_SHOWN_MAX: usize = 300;

/// Options of `explore`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ExploreArgs {
    /// Any address of the Source, a feed of SDShare, or an Entry Point of a change feed
    pub(crate) url: String,
    /// Depth: 0 Source Description or overview, 1 Capability Lists or collections, 2 their documents or feeds, 3 the
    /// lists of indexes or the snapshots
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u32>,
    /// Print one JSON object per line, for each document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) walk: WalkArgs,
}

/// Runs `explore`.
pub(crate) fn run(args: &ExploreArgs) -> ExitCode {
    let mut options = match args.walk.options(vec![args.url.clone()]) {
        Ok(options) => options,
        Err(error) => {
            let code = crate::program::exit::code(&error);
            crate::program::logging::failure(&error, code);
            return ExitCode::from(code);
        }
    };
    (options.sample, options.packages) = (Share::Some(0), Share::Some(0));
    options.depth = args.depth.unwrap_or(u32::MAX);
    let mut report = validate(&options, &crate::program::signals::cancel_on_signal());
    report.note_unusable();
    if args.json {
        for document in &report.documents {
            crate::program::terminal::line(&document_json(document, &report.documents).to_string());
        }
    } else if report.found_source() {
        for line in tree(&report) {
            crate::program::terminal::report(&line);
        }
    }
    if !report.cancelled {
        for url in explore_feeds::find(&report, options.net) {
            crate::program::terminal::line(&if args.json {
                json!({ "type": "link", "name": "change feed", "url": url.as_str() }).to_string()
            } else {
                format!("change feed {url}")
            });
        }
    }
    for found in report.circles() {
        crate::program::terminal::warning(&format!("abreast: {}: {}", found.url, found.message));
    }
    if let Some(limit) = report.limit {
        crate::program::terminal::warning(&format!(
            "abreast: the tree is incomplete: the limit {limit} was reached"
        ));
    }
    let code = if report.cancelled {
        130
    } else if !report.found_source() {
        crate::program::terminal::warning(&nothing(&args.url, &report));
        nothing_found(&report)
    } else {
        u8::from(report.documents.iter().any(|document| document.problem.is_some()))
    };
    if report.saw_nothing() && !report.cancelled {
        let problem = report
            .documents
            .iter()
            .find_map(|document| document.problem.clone())
            .unwrap_or_default();
        let context = format!("cannot read any document of `{}`", without_login(&args.url));
        let error = if problem.is_empty() {
            anyhow::anyhow!(context)
        } else {
            anyhow::anyhow!(problem).context(context)
        };
        crate::program::logging::failure(&error, code);
    }
    ExitCode::from(code)
}

/// The error when no ResourceSync document is found, with the addresses that were tried.
fn nothing(url: &str, report: &Report) -> String {
    let (what, help) = match report.unreachable {
        Some(Unreachable::Making) => {
            ("cannot read yet", "run the same command again when the server has made it")
        }
        Some(_) => (
            "cannot reach",
            "check the address, and that its server is running; `abreast doctor URL` tests the connection",
        ),
        None => (
            "found no ResourceSync documents from",
            "give the URL of a Capability List, Resource List, Change List or Sitemap, of a feed of SDShare, or of an Entry Point",
        ),
    };
    let mut lines = vec![format!("abreast: {what} {url}")];
    let given = report.documents.iter().map(|document| {
        let about = |rule: &str| {
            let is_about =
                |finding: &&Finding| finding.url == document.url && finding.rule.id == rule;
            Some(report.findings.iter().find(is_about)?.message.clone())
        };
        // The kind before the syntax: JSON after a byte order mark has both faults.
        let kinds = ["RS-6.2-reachable", "AS-2-object", "EMM-3-kind", "AS-2-json"];
        let why = document.problem.clone().or_else(|| kinds.into_iter().find_map(about));
        (&document.url, why.unwrap_or_else(|| not_a_document(document)))
    });
    let tried = report.tried.iter().map(|(url, why)| (url, why.clone()));
    lines.extend(given.chain(tried).map(|(url, why)| format!("  tried {url}: {why}")));
    lines.push(format!("  help: {help}"));
    lines.join("\n")
}

/// Describes the content of an address that is not a document of a Source.
fn not_a_document(document: &Document) -> String {
    match (document.name.as_str(), &document.feed) {
        ("", _) => "not a ResourceSync document".to_owned(),
        ("JSON", _) => "JSON that is not a change feed".to_owned(),
        ("Atom feed", Some(feed)) => feed.as_other_feed(),
        (found, _) => format!("a {found}, not a ResourceSync document"),
    }
}

fn tree(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, document) in report.documents.iter().enumerate() {
        if document.parent.is_none() {
            branch(report, number, "", "", &mut lines);
        }
    }
    lines
}

/// Appends the lines for a document and, recursively, its children.
fn branch(report: &Report, number: usize, first: &str, rest: &str, lines: &mut Vec<String>) {
    let document = &report.documents[number];
    lines.push(format!("{first}{}", shown(document)));
    if let Some(problem) = document.problem.as_ref().filter(|_| document.read) {
        lines.push(format!("{rest}incomplete: {problem}"));
    }
    for download in document.changes.iter().flat_map(|feed| &feed.downloads) {
        lines.push(format!("{rest}  {}", shown_download(download)));
    }
    // As deep as documents can point to each other, which is a few levels: indexes of indexes are
    // shown too.
    if rest.len() > 200 {
        return;
    }
    for (place, child) in document.children.iter().enumerate() {
        let last = place + 1 == document.children.len();
        let (mark, line) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(report, *child, &format!("{rest}{mark}"), &format!("{rest}{line}"), lines);
    }
}

fn shown(document: &Document) -> String {
    let url = &document.url;
    if let Some(problem) = document.problem.as_ref().filter(|_| !document.read) {
        return format!("{url}  ({problem})");
    }
    if let Some(feed) = &document.feed {
        return format!("{} {url}  ({})", document.name, feed_facts(document, feed).join(", "));
    }
    if let Some(feed) = &document.changes {
        return format!("{} {url}  ({})", document.name, change_facts(document, feed).join(", "));
    }
    let entries = count(document.entries, "entry");
    let mut facts = vec![entries, HumanBytes(document.bytes).to_string()];
    for (word, time) in [
        ("at", document.at),
        ("completed", document.completed),
        ("from", document.from),
        ("until", document.until),
    ] {
        if let Some(time) = time {
            facts.push(format!("{word} {time}"));
        }
    }
    facts.push(format!("{} ms", document.millis));
    format!("{} {url}  ({})", document.name, facts.join(", "))
}

/// Properties of an SDShare feed or snapshot, for display.
fn feed_facts(document: &Document, feed: &FeedFacts) -> Vec<String> {
    let mut facts = Vec::new();
    if !feed.title.is_empty() {
        facts.push(format!("\"{}\"", abreast_webtypes::excerpt(&feed.title)));
    }
    if feed.pages > 0 {
        facts.push(count(document.entries, "entry"));
        facts.push(count(feed.pages, "page"));
        facts.push(HumanBytes(document.bytes).to_string());
    }
    facts.extend(feed.size.map(|size| HumanBytes(size).to_string()));
    facts.extend(feed.updated.map(|time| format!("updated {time}")));
    facts.extend(feed.newest.map(|time| format!("newest entry {time}")));
    facts.extend(feed.formats.iter().cloned());
    facts.extend(feed.hubs.iter().map(|hub| format!("hub {hub}")));
    if feed.pages > 0 {
        facts.push(format!("{} ms", document.millis));
    }
    facts
}

/// Properties of a change feed, for display.
fn change_facts(document: &Document, feed: &ChangeFeedFacts) -> Vec<String> {
    let mut facts = Vec::new();
    if !feed.title.is_empty() {
        facts.push(format!("\"{}\"", abreast_webtypes::excerpt(&feed.title)));
    }
    facts.push(match feed.total.filter(|total| *total != document.entries) {
        Some(total) => {
            format!("{} of {}", document.entries, count(total, "activity"))
        }
        None => count(document.entries, "activity"),
    });
    if feed.pages > 0 {
        facts.push(count(feed.pages, "page"));
    }
    facts.push(HumanBytes(document.bytes).to_string());
    facts.extend(feed.direction.map(str::to_owned));
    facts.extend(feed.newest.map(|time| format!("newest change {time}")));
    if !feed.kinds.is_empty() {
        let kinds = feed.kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
        facts.push(format!("newest page: {}", kinds.collect::<Vec<_>>().join(" ")));
    }
    facts.extend(feed.part_of.iter().map(|whole| format!("part of {whole}")));
    facts.extend(feed.patches.map(|how| format!("patches {how}")));
    facts.extend(feed.hubs.iter().map(|hub| format!("hub {hub}")));
    facts.push(format!("{} ms", document.millis));
    facts
}

/// The line for a link to a full download.
fn shown_download(download: &FullDownload) -> String {
    let url: Vec<char> = download.url.chars().collect();
    let shown = if url.len() <= URL_SHOWN_MAX {
        download.url.clone()
    } else {
        let (begin, end) = (&url[..URL_SHOWN_MAX / 2], &url[url.len() - URL_SHOWN_MAX / 2..]);
        begin.iter().chain(&['…']).chain(end).collect()
    };
    let mut facts = Vec::new();
    if !download.media_type.is_empty() {
        facts.push(abreast_webtypes::excerpt(&download.media_type));
    }
    facts.extend(download.updated.map(|time| format!("until {time}")));
    let facts = if facts.is_empty() { String::new() } else { format!("  ({})", facts.join(", ")) };
    format!("download {shown}{facts}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_of_one_feed_are_shown_in_lines_that_differ() {
        let mut feed = ChangeFeedFacts::default();
        let paths = ["/snapshots/1/", &format!("/{}/", "a".repeat(8_000))];
        for path in paths {
            for ending in ["nt", "ttl", "rdf"] {
                let mut download = FullDownload::default();
                download.url = format!("https://id.example.org{path}all.{ending}");
                download.media_type = "text/turtle".to_owned();
                download.updated = Some(abreast_webtypes::Timestamp::from_seconds(0));
                feed.downloads.push(download);
            }
        }
        let mut document = Document::default();
        (document.read, document.changes) = (true, Some(feed));
        let mut report = Report::default();
        report.documents = vec![document];
        let lines = tree(&report);
        assert_eq!(
            lines[1],
            "  download https://id.example.org/snapshots/1/all.nt  (text/turtle, until 1970-01-01T00:00:00Z)"
        );
        assert_eq!(lines.len(), 7, "{lines:#?}");
        let different: std::collections::HashSet<_> = lines.iter().collect();
        assert_eq!(different.len(), lines.len(), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() < 400), "{lines:#?}");
    }
}
