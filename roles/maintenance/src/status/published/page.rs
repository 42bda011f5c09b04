//! The state of copies as a page, without scripts and external files.

use super::copies::{PublishedCopy, PublishedStatus};
use crate::status::report::AuditStatus;
use abreast_webtypes::{count, visible};
use std::fmt::Write as _;

/// The style of the page. It is the only thing that the policy of the page permits.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:45rem;margin:1rem auto;padding:0 1rem;\
color:#1a1a1a;background:#fff}h1{font-size:1.5rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}h1,h2,dd{overflow-wrap:anywhere}\
.state{font-weight:600}.good{color:#14602b}.wait{color:#7a4a00}.bad{color:#9b1c1c}dt{font-weight:600}dd{margin:0 0 .5rem}\
a{color:inherit}@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}.good{color:#8fdca4}\
.wait{color:#ffc46b}.bad{color:#ff9d9d}}";
/// SHA-256 of the style for the policy.
const STYLE_HASH: &str = "0FDbsrFYDlYKCniHtFl6BrrUD/C2Ym2Y6gyDa4cfrEI=";

/// Writes the page with the state of each copy.
pub(super) fn text(status: &PublishedStatus) -> String {
    let title = match status.copies.as_slice() {
        [one] => format!("State of the copy {}", escaped(&one.name)),
        _ => "State of copies".to_owned(),
    };
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; \
         base-uri 'none'; form-action 'none'\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>{title}</title>\n\
         <link rel=\"alternate\" type=\"application/json\" href=\"status.json\">\
         <link rel=\"alternate\" type=\"text/turtle\" href=\"status.ttl\">\n<style>{STYLE}</style></head>\n<body><main>\
         <h1>{title}</h1>\n"
    );
    if status.copies.is_empty() {
        out.push_str("<p>There is no copy.</p>\n");
    }
    let several = status.copies.len() > 1;
    for copy in &status.copies {
        if several {
            let _ = writeln!(out, "<section><h2>{}</h2>", escaped(&copy.name));
        } else {
            out.push_str("<section>\n");
        }
        one(copy, &mut out);
        out.push_str("</dl>\n</section>\n");
    }
    if status.copies_left_out > 0 {
        let _ = writeln!(out, "<p>and {}</p>", count(status.copies_left_out, "further copy"));
    }
    let _ = write!(
        out,
        "<p>Written at {} by abreast, as <a href=\"status.json\">JSON</a> and <a href=\"status.ttl\">RDF</a> too.</p>\n\
         </main></body></html>\n",
        time(&status.time)
    );
    out
}

fn one(copy: &PublishedCopy, out: &mut String) {
    let (class, words) = match (copy.state.as_str(), &copy.stalled_since) {
        ("in step", _) => ("good", "in step".to_owned()),
        ("stalled", Some(since)) => ("bad", format!("stalled since {}", time(since))),
        ("stalled", None) => ("bad", "stalled".to_owned()),
        (other, _) => ("wait", escaped(other)),
    };
    let _ = writeln!(out, "<p class=\"state {class}\">{words}</p>\n<dl>");
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    };
    if let Some(source) = &copy.source {
        row("Source", escaped(source));
    }
    let lag = match copy.behind_seconds {
        Some(0) => "none is known".to_owned(),
        Some(seconds) => count(seconds, "second"),
        None => "not known: no run has been complete".to_owned(),
    };
    row("Lag", lag);
    row("Completeness", completeness(copy));
    let or_never = |at: &Option<String>| at.as_deref().map_or("never".to_owned(), time);
    row("Last success", or_never(&copy.last_success));
    row("Last run", or_never(&copy.last_run));
    if !copy.problems.is_empty() {
        row("Problems of the last run", escaped(&copy.problems.join(", ")));
    }
    row("Last audit", copy.last_audit.as_ref().map_or("none".to_owned(), audit));
}

fn completeness(copy: &PublishedCopy) -> String {
    let more = if copy.resources_more { "more than " } else { "" };
    let mut text = format!("{more}{}", count(copy.resources, "resource"));
    if copy.complete {
        text.push_str("; nothing is known to be missing");
    }
    for (number, what) in [
        (copy.pending, "waiting"),
        (copy.failed, "failed"),
        (copy.held_deletions, "held deletions"),
    ] {
        if number > 0 {
            let _ = write!(text, "; {number} {what}");
        }
    }
    text
}

fn audit(audit: &AuditStatus) -> String {
    let AuditStatus { same, different, missing, extra, unverified, .. } = audit;
    format!(
        "{} at {}{}: {same} same, {different} different, {missing} missing, {extra} extra, {unverified} not compared",
        escaped(&audit.result),
        time(&audit.time),
        if audit.full { ", with digests" } else { "" },
    )
}

fn time(text: &str) -> String {
    let text = escaped(text);
    format!("<time datetime=\"{text}\">{text}</time>")
}

/// Escapes text for a page. Characters that change the direction of text are shown as visible characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use sha2::Digest as _;

    #[test]
    fn the_policy_permits_the_style_of_the_page() {
        let hash = sha2::Sha256::digest(STYLE.as_bytes());
        assert_eq!(STYLE_HASH, base64::engine::general_purpose::STANDARD.encode(hash));
    }
}
