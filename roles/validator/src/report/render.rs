//! Rendering of a report as text, JSON lines and HTML.

use crate::report::document::{Document, MAKING, Report};
use crate::report::finding::Finding;
use crate::report::rule::severity_word;
use abreast_core::Severity;
use abreast_webtypes::visible;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Text for a terminal: findings by document, then the summary.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let mut last = None;
    for found in &report.findings {
        if last != Some(&found.url) {
            let name = name_of(report, &found.url);
            let _ = writeln!(
                out,
                "{}{}",
                if last.is_some() { "\n" } else { "" },
                visible(&format!("{name}{}", found.url))
            );
            last = Some(&found.url);
        }
        let _ = write!(out, "  {:7} ", severity_word(found.severity));
        if found.line > 0 {
            let _ = write!(out, "{}: ", place(found));
        }
        let _ =
            writeln!(out, "{} ({}) [{}]", visible(&found.message), found.rule.id, found.rule.cites);
        if found.more > 0 {
            let _ =
                writeln!(out, "          and {} more of this rule in this document", found.more);
        }
        if !found.severity.eq(&Severity::Note) {
            let _ = writeln!(out, "          help: {}", found.help);
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&summary(report));
    out
}

fn place(found: &Finding) -> String {
    match found.column {
        0 => format!("line {}", found.line),
        column => format!("line {}, column {column}", found.line),
    }
}

/// Counts in one line, then a line for each reason why the validation is incomplete.
fn summary(report: &Report) -> String {
    let mut out = String::new();
    let count = |severity| report.count(severity);
    let plural =
        |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let _ = writeln!(
        out,
        "{}, {}, {} in {} with {}; {} fetched (seed {})",
        plural(count(Severity::Error), "error"),
        plural(count(Severity::Warning), "warning"),
        plural(count(Severity::Note), "note"),
        plural(report.read() as u64, "document"),
        abreast_webtypes::count(report.entries(), "entry"),
        plural(report.sampled, "resource"),
        report.seed,
    );
    if report.unique_one_in > 1 {
        let _ =
            writeln!(out, "one URI in {} was checked for being listed twice", report.unique_one_in);
    }
    if let Some(limit) = report.limit {
        let _ = writeln!(out, "incomplete: the limit {limit} was reached");
    }
    if report.cancelled {
        let _ = writeln!(out, "incomplete: stopped before the end");
    }
    let is_making = |document: &&Document| {
        document.problem.as_deref().is_some_and(|problem| problem.ends_with(MAKING))
    };
    for Document { url, .. } in report.documents.iter().filter(is_making) {
        let _ = writeln!(out, "incomplete: {} is {MAKING}", visible(url));
    }
    out
}

fn name_of(report: &Report, url: &str) -> String {
    let document = report.documents.iter().find(|document| document.url == url);
    document
        .filter(|document| !document.name.is_empty())
        .map_or(String::new(), |document| format!("{} ", document.name))
}

/// JSON for programs, one object per line: all documents, all findings, then the summary.
pub fn ndjson(report: &Report) -> String {
    let mut out = String::new();
    for document in &report.documents {
        let _ = writeln!(out, "{}", document_json(document, &report.documents));
    }
    for found in &report.findings {
        let _ = writeln!(out, "{}", finding_json(found));
    }
    let _ = writeln!(
        out,
        "{}",
        json!({
            "type": "summary",
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "notes": report.count(Severity::Note),
            "documents": report.read(),
            "entries": report.entries(),
            "bytes": report.bytes(),
            "sampled": report.sampled,
            "seed": report.seed,
            "unique_one_in": report.unique_one_in,
            "limit": report.limit,
            "cancelled": report.cancelled,
        })
    );
    out
}

/// JSON object of a document; `all` contains its parent.
pub fn document_json(document: &Document, all: &[Document]) -> Value {
    let mut line = json!({
        "type": "document",
        "url": document.url,
        "name": document.name,
        "found_by": document.found_by,
        "parent": document.parent.and_then(|parent| all.get(parent)).map(|parent| &parent.url),
        "level": document.level,
        "read": document.read,
        "problem": document.problem,
        "entries": document.entries,
        "bytes": document.bytes,
        "milliseconds": document.millis,
        "at": document.at.map(|time| time.to_string()),
        "completed": document.completed.map(|time| time.to_string()),
        "from": document.from.map(|time| time.to_string()),
        "until": document.until.map(|time| time.to_string()),
    });
    if let (Some(feed), Value::Object(line)) = (&document.feed, &mut line) {
        line.insert("title".to_owned(), json!(feed.title));
        line.insert("updated".to_owned(), json!(feed.updated.map(|time| time.to_string())));
        line.insert("newest".to_owned(), json!(feed.newest.map(|time| time.to_string())));
        line.insert("formats".to_owned(), json!(feed.formats));
        line.insert("pages".to_owned(), json!(feed.pages));
        line.insert("hubs".to_owned(), json!(feed.hubs));
        line.insert("size".to_owned(), json!(feed.size));
    }
    if let (Some(feed), Value::Object(line)) = (&document.changes, &mut line) {
        let downloads = feed.downloads.iter().map(|download| {
            let updated = download.updated.map(|time| time.to_string());
            json!({"url": download.url, "media_type": download.media_type, "updated": updated})
        });
        line.insert("profile".to_owned(), json!(feed.profile));
        line.insert("title".to_owned(), json!(feed.title));
        line.insert("part_of".to_owned(), json!(feed.part_of));
        line.insert("total_items".to_owned(), json!(feed.total));
        line.insert("pages".to_owned(), json!(feed.pages));
        line.insert("direction".to_owned(), json!(feed.direction));
        line.insert("newest".to_owned(), json!(feed.newest.map(|time| time.to_string())));
        line.insert(
            "kinds".to_owned(),
            json!(feed.kinds.iter().cloned().collect::<BTreeMap<_, _>>()),
        );
        line.insert("downloads".to_owned(), downloads.collect());
        line.insert("hubs".to_owned(), json!(feed.hubs));
        line.insert("patches".to_owned(), json!(feed.patches));
    }
    line
}

fn finding_json(found: &Finding) -> Value {
    json!({
        "type": "finding",
        "severity": severity_word(found.severity),
        "rule": found.rule.id,
        "level": found.rule.level.word(),
        "cites": found.rule.cites,
        "url": found.url,
        "line": Some(found.line).filter(|line| *line > 0),
        "column": Some(found.column).filter(|column| *column > 0),
        "message": found.message,
        "more": found.more,
        "title": found.rule.title,
        "help": found.help,
    })
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;\
color:#1a1a1a;background:#fff}h1{font-size:1.6rem}h2{font-size:1.1rem;overflow-wrap:anywhere;margin-top:2rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;\
border-bottom:1px solid #bbb;overflow-wrap:anywhere}.error{color:#9b1c1c;font-weight:600}\
.warning{color:#7a4a00;font-weight:600}.note{color:#30506e}.help{color:#444}\
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}th,td{border-color:#555}.error{color:#ff9d9d}\
.warning{color:#ffc46b}.note{color:#a8cdf0}.help{color:#bbb}}";

/// Self-contained HTML page, without scripts and external files.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let title = report
        .documents
        .iter()
        .find(|document| document.found_by == "given")
        .map(|document| &document.url);
    let title = escaped(title.map_or("a Source", String::as_str));
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>Validation of {title}</title>\n<style>{STYLE}</style></head>\n<body><main>\
         <h1>Validation of {title}</h1>\n<p>{}</p>\n",
        summary(report).lines().map(escaped).collect::<Vec<_>>().join("<br>")
    );
    if report.findings.is_empty() {
        out.push_str("<p>Nothing was found.</p>\n");
    }
    let mut rest = report.findings.as_slice();
    while let Some(first) = rest.first() {
        let end = rest.iter().position(|found| found.url != first.url).unwrap_or(rest.len());
        let (these, after) = rest.split_at(end);
        rest = after;
        let _ = write!(
            out,
            "<section><h2>{}{}</h2>\n<table><thead><tr><th scope=\"col\">Severity</th><th scope=\"col\">Place</th>\
             <th scope=\"col\">Finding</th><th scope=\"col\">Rule</th></tr></thead><tbody>\n",
            escaped(&name_of(report, &first.url)),
            escaped(&first.url)
        );
        for found in these {
            let word = severity_word(found.severity);
            let place = if found.line > 0 { place(found) } else { "whole".to_owned() };
            let more = if found.more > 0 {
                format!(" <em>and {} more</em>", found.more)
            } else {
                String::new()
            };
            let _ = writeln!(
                out,
                "<tr><td class=\"{word}\">{word}</td><td>{place}</td><td>{}{more}<br>\
                 <span class=\"help\">{}: {}</span></td><td>{}<br>{}</td></tr>",
                escaped(&found.message),
                escaped(found.rule.title),
                escaped(found.help),
                escaped(found.rule.id),
                escaped(found.rule.cites)
            );
        }
        out.push_str("</tbody></table></section>\n");
    }
    out.push_str(
        "<section><h2>Documents</h2>\n<table><thead><tr><th scope=\"col\">Document</th><th scope=\"col\">What</th>\
         <th scope=\"col\">Entries</th><th scope=\"col\">Bytes</th></tr></thead><tbody>\n",
    );
    for document in &report.documents {
        let problem = document.problem.as_deref().filter(|_| !document.read);
        let what = problem.unwrap_or(&document.name);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&document.url),
            escaped(what),
            document.entries,
            document.bytes
        );
    }
    out.push_str("</tbody></table></section>\n</main></body></html>\n");
    out
}

/// All rules as a table in Markdown.
pub fn rules_table() -> String {
    let mut out = String::from(
        "| rule | asked for | level | severity, lenient | where |\n|---|---|---|---|---|\n",
    );
    for rule in crate::report::rules::RULES {
        let (severity, lenient) = (severity_word(rule.severity), severity_word(rule.lenient));
        let severity = if severity == lenient {
            severity.to_owned()
        } else {
            format!("{severity}, {lenient}")
        };
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {severity} | [{}] |",
            rule.id,
            rule.title,
            rule.level.word(),
            rule.cites
        );
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> Report {
        let url = "http://example.org/<script>alert(1)</script>\u{1b}[31m\u{202e}".to_owned();
        Report {
            documents: vec![Document {
                url: url.clone(),
                found_by: "given",
                ..Document::default()
            }],
            findings: vec![Finding {
                severity: Severity::Error,
                rule: &crate::report::rules::ORDER,
                url,
                line: 3,
                column: 9,
                message: "\"<b>'&\u{7}".to_owned(),
                help: crate::report::rules::ORDER.help,
                more: 2,
            }],
            seed: 1,
            ..Report::default()
        }
    }

    #[test]
    fn a_page_escapes_what_others_wrote_and_fetches_nothing() {
        let page = html(&hostile());
        assert!(
            !page.contains("<script") && !page.contains("<b>") && !page.contains('\u{1b}'),
            "{page}"
        );
        assert!(page.contains("&quot;&lt;b&gt;&#39;&amp;"), "{page}");
        assert!(
            page.contains("lang=\"en\"")
                && page.contains("scope=\"col\"")
                && !page.contains("src=")
        );
    }

    #[test]
    fn text_is_escaped_and_has_place_rule_and_help() {
        let text = text(&hostile());
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert!(text.contains("error   line 3, column 9:"), "{text}");
        assert!(
            text.contains("(RS-12.1-order) [rs-core §12.1]") && text.contains("help: sort by"),
            "{text}"
        );
        assert!(
            text.contains("and 2 more") && text.contains("3 errors, 0 warnings, 0 notes"),
            "{text}"
        );
    }

    #[test]
    fn each_line_for_programs_is_an_object() {
        let lines: Vec<Value> =
            ndjson(&hostile()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["document", "finding", "summary"]);
        assert_eq!((&lines[1]["line"], &lines[2]["errors"]), (&json!(3), &json!(3)));
    }
}
