//! How far the terms of JSON-LD contexts refer to each other, and how long they are.
//!
//! A context may define a term by another term, this one by a third and so on, and a term may have
//! a separate context. The JSON-LD parser follows the definitions by recursion, and has the keys of
//! an object in memory, so both are limited before parsing.

use abreast_webtypes::SyntaxError;
use json_event_parser::{JsonEvent, JsonSyntaxError, SliceJsonParser};
use std::collections::HashMap;

/// Longest chain of terms that refer to each other.
const MAX_CHAIN: usize = 64;

/// The sizes of the terms that a document uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Most keys and values that may be terms, in one element of an array at the top level.
    uses: usize,
    /// Most values that may be relative IRIs, in one element as well.
    relative: usize,
    /// Bytes of the longest text in a context.
    text: usize,
    /// Length of the longest chain.
    chain: usize,
}

impl Terms {
    /// Most bytes of all used terms, written in full, with a base of this length.
    pub(crate) fn expanded(self, context: Self, base: usize) -> usize {
        let longest = |terms: Self| terms.text.saturating_mul(terms.chain.max(1));
        let terms = self.uses.saturating_mul(longest(self).max(longest(context)));
        terms.saturating_add(self.relative.saturating_mul(base))
    }

    /// The larger values, for several contexts of a document.
    pub(crate) fn max(self, other: Self) -> Self {
        let (text, chain) = (self.text.max(other.text), self.chain.max(other.chain));
        Self { uses: 0, relative: 0, text, chain }
    }
}

#[derive(Default)]
struct Term {
    /// Texts of the definition, each of which may be another term.
    texts: Vec<String>,
    /// The longest chain in the contexts inside the definition.
    inside: usize,
}

enum Level {
    Context(HashMap<String, Term>),
    /// Several contexts.
    Contexts,
    /// The definition of a term in the context around it.
    Definition,
    Other,
}

/// Refuses documents whose contexts have longer chains; visits the IRIs of the contexts that the
/// document refers to.
pub(crate) fn check(document: &[u8], named: &mut dyn FnMut(&str)) -> Result<Terms, SyntaxError> {
    let (mut found, mut uses, mut relative) = (Terms::default(), 0, 0);
    let mut parser = SliceJsonParser::new(document);
    let mut open: Vec<(Level, String)> = Vec::new();
    // In an array at the top level.
    let mut is_array = false;
    loop {
        let event = match parser.parse_next() {
            Ok(event) => event,
            Err(error) => return Err(fault(&error)),
        };
        let in_context = match open.last() {
            Some((Level::Contexts, _)) => true,
            Some((_, key)) => key == "@context",
            None => false,
        };
        let around = open.last().map(|(level, _)| level);
        match event {
            JsonEvent::Eof => return Ok(found),
            JsonEvent::ObjectKey(key) => {
                uses += 1;
                if let Some((_, last)) = open.last_mut() {
                    *last = key.into_owned();
                }
            }
            JsonEvent::StartObject => {
                let level = match around {
                    _ if in_context => Level::Context(HashMap::new()),
                    Some(Level::Context(_)) => Level::Definition,
                    _ => Level::Other,
                };
                open.push((level, String::new()));
            }
            JsonEvent::StartArray => {
                is_array |= open.is_empty();
                let level = if in_context { Level::Contexts } else { Level::Other };
                open.push((level, String::new()));
            }
            JsonEvent::String(text) => {
                uses += 1;
                relative += usize::from(!text.contains([':', ' ']));
                if in_context {
                    named(&text);
                }
                if open.iter().any(|(level, _)| matches!(level, Level::Context(_))) {
                    found.text = found.text.max(text.len());
                }
                if let Some(term) = term_here(&mut open) {
                    term.texts.push(text.into_owned());
                }
            }
            JsonEvent::EndObject | JsonEvent::EndArray => {
                let Some((level, _)) = open.pop() else { continue };
                found.uses = found.uses.max(uses);
                found.relative = found.relative.max(relative);
                if open.is_empty() || open.len() == 1 && is_array {
                    (uses, relative) = (0, 0);
                }
                let Level::Context(terms) = level else { continue };
                let longest = longest(&terms);
                found.chain = found.chain.max(longest);
                if longest > MAX_CHAIN {
                    let message = format!(
                        "terms of a context refer to each other over more than {MAX_CHAIN} terms"
                    );
                    let help = "define terms by absolute IRIs";
                    return Err(SyntaxError::new("rdf.depth", (0, 0), message).with_help(help));
                }
                if let Some(term) = term_around(&mut open) {
                    term.inside = term.inside.max(longest);
                }
            }
            JsonEvent::Number(_) | JsonEvent::Boolean(_) | JsonEvent::Null => {}
        }
    }
}

/// The term whose definition directly contains a text.
fn term_here(open: &mut [(Level, String)]) -> Option<&mut Term> {
    match open {
        [.., (Level::Context(terms), key)] => Some(terms.entry(key.clone()).or_default()),
        [.., (Level::Context(terms), key), (Level::Definition, _)] => {
            Some(terms.entry(key.clone()).or_default())
        }
        _ => None,
    }
}

/// The term whose definition is around the current position, at any distance.
fn term_around(open: &mut [(Level, String)]) -> Option<&mut Term> {
    open.iter_mut().rev().find_map(|(level, key)| match level {
        Level::Context(terms) => Some(terms.entry(key.clone()).or_default()),
        _ => None,
    })
}

/// The longest chain of terms, each counted with the contexts inside it.
fn longest(terms: &HashMap<String, Term>) -> usize {
    let needs = |name: &str| -> Vec<&str> {
        let texts = terms.get(name).into_iter().flat_map(|term| &term.texts).map(String::as_str);
        texts
            .chain([name])
            .flat_map(|text| [Some(text), text.split_once(':').map(|(prefix, _)| prefix)])
            .flatten()
            .filter(|other| *other != name)
            .filter_map(|other| terms.get_key_value(other).map(|(name, _)| name.as_str()))
            .collect()
    };
    let weight = |name: &str| 1 + terms.get(name).map_or(0, |term| term.inside);
    // `None` while the terms that a term refers to are followed.
    let mut lengths: HashMap<&str, Option<usize>> = HashMap::new();
    let mut longest = 0;
    for name in terms.keys() {
        let mut due = vec![name.as_str()];
        while let Some(name) = due.last().copied() {
            let needed = needs(name);
            if !lengths.contains_key(name) {
                lengths.insert(name, None);
                let unknown = needed.iter().filter(|other| !lengths.contains_key(*other));
                due.extend(unknown);
                continue;
            }
            due.pop();
            if lengths.get(name) == Some(&None) {
                // In a cycle the order is unknown: count all its terms.
                let of =
                    |other: &&str| lengths.get(other).copied().flatten().unwrap_or(terms.len());
                let length = weight(name) + needed.iter().map(of).max().unwrap_or(0);
                lengths.insert(name, Some(length));
                longest = longest.max(length);
            }
        }
    }
    longest
}

fn fault(error: &JsonSyntaxError) -> SyntaxError {
    let place = error.location().start;
    let message: String = abreast_webtypes::visible(error.message()).chars().take(300).collect();
    SyntaxError::new("rdf.syntax", (place.line + 1, place.column + 1), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn chain(length: usize) -> String {
        let mut terms = String::from("\"t0\": \"http://e/\"");
        for number in 1..length {
            let _ = write!(terms, ", \"t{number}\": {{\"@id\": \"t{}:x\"}}", number - 1);
        }
        format!("{{{terms}}}")
    }

    #[test]
    fn short_chains_are_accepted() {
        for document in [
            "{}".to_owned(),
            format!("{{\"@context\": {}}}", chain(64)),
            format!("{{\"@context\": [{}, {}]}}", chain(60), chain(60)),
            format!("{{\"@graph\": {}}}", chain(1_000)),
            "{\"@context\": {\"id\": \"@id\", \"a\": \"a\", \"b\": \"c\", \"c\": \"b\"}}"
                .to_owned(),
        ] {
            assert!(check(document.as_bytes(), &mut |_| {}).is_ok(), "{document}");
        }
    }

    #[test]
    fn long_chains_are_refused() {
        for document in [
            format!("{{\"@context\": {}}}", chain(65)),
            format!("{{\"x\": [{{\"\\u0040context\": [null, {}]}}]}}", chain(20_000)),
            format!(
                "{{\"@context\": {{\"a\": {{\"@id\": \"http://e/\", \"@context\": {}}}, \"b\": \"a:b\"}}}}",
                chain(64)
            ),
        ] {
            let checked = check(document.as_bytes(), &mut |_| {});
            assert_eq!(checked.map_err(|error| error.code()), Err("rdf.depth"));
        }
    }
}
