//! The last lines of the log.

use crate::request::{Page, Request, rendered};
use askama::Template;
use serde_json::Value;
use std::fmt::Write as _;

/// Levels of the log, the most important first.
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    time: String,
    level: String,
    /// The set or the job.
    of: String,
    message: String,
}

#[derive(Template)]
#[template(path = "log.html")]
struct LogTemplate<'p> {
    root: &'p str,
    /// The least important level of the page.
    level: &'static str,
    levels: [&'static str; 5],
    lines: Vec<Line>,
}

impl Line {
    /// A line in the form of the log: JSON or text.
    fn parse(line: &str) -> Self {
        if let Ok(Value::Object(entry)) = serde_json::from_str(line) {
            let text = |value: &Value| match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let fields = entry.get("fields").and_then(Value::as_object);
            let field = |name| fields.and_then(|all| all.get(name)).map(text).unwrap_or_default();
            let mut message = field("message");
            for (name, value) in fields.into_iter().flatten() {
                if !matches!(name.as_str(), "message" | "set" | "job") {
                    // Writing to a string succeeds.
                    let _ = write!(message, " {name}={}", text(value));
                }
            }
            let top = |name| entry.get(name).map(text).unwrap_or_default();
            let of = [field("set"), field("job")].concat();
            return Self { time: top("timestamp"), level: top("level"), of, message };
        }
        let mut rest = line.trim_start();
        let mut time = "";
        if let Some((first, after)) = rest.split_once(' ')
            && first.ends_with('Z')
            && first.contains('T')
        {
            (time, rest) = (first, after.trim_start());
        }
        let level = rest.split(' ').next().filter(|word| LEVELS.contains(word)).unwrap_or_default();
        let mut message = rest[level.len()..].trim_start();
        let mut of = "";
        // The field of the set or the job is the last one.
        for name in [" set=\"", " job=\""] {
            if let Some((before, value)) = message.rsplit_once(name)
                && let Some(value) = value.strip_suffix('"')
            {
                (message, of) = (before, value);
            }
        }
        Self {
            time: time.to_owned(),
            level: level.to_owned(),
            of: of.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// The page of the log, the newest line first.
pub(crate) fn page(request: &Request<'_>) -> Page {
    let asked = request.field("level").unwrap_or_default();
    let at = LEVELS.iter().position(|level| level.eq_ignore_ascii_case(&asked)).unwrap_or(4);
    let shown = &LEVELS[..=at];
    let lines = (request.sources.log)();
    let lines = lines.iter().rev().map(|line| Line::parse(line));
    let template = LogTemplate {
        root: &request.root,
        level: LEVELS[at],
        levels: LEVELS,
        lines: lines.filter(|line| shown.contains(&&*line.level)).collect(),
    };
    Page { title: "Log".to_owned(), tab: "log", content: rendered(&template) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_both_forms() {
        let line = Line::parse(
            r#"{"timestamp":"2026-02-01T10:00:00Z","level":"WARN","fields":{"message":"m","set":"a","n":3},"target":"t"}"#,
        );
        let parts = (&*line.time, &*line.level, &*line.of, &*line.message);
        assert_eq!(parts, ("2026-02-01T10:00:00Z", "WARN", "a", "m n=3"));
        let line = Line::parse("2026-02-01T10:00:00.5Z  INFO m n=1 set=\"a\"");
        assert_eq!((&*line.level, &*line.of, &*line.message), ("INFO", "a", "m n=1"));
        let line = Line::parse("  help: x");
        assert_eq!((&*line.time, &*line.level, &*line.message), ("", "", "help: x"));
        assert_eq!(Line::parse("").message, "");
    }
}
