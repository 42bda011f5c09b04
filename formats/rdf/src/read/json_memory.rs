//! The memory that the JSON-LD parser needs for a document, estimated before parsing.
//!
//! The parser stores each open object once for each object around it, and the statements of an
//! object until it is read. For an array at the top level it stores one element at a time.

use json_event_parser::{JsonEvent, SliceJsonParser};

/// Bytes for a key, value or bracket in each object around it.
const EVENT: u64 = 130;
const KEY: u64 = 200;
const STATEMENT: u64 = 450;
/// Bytes for each byte of an element.
const TEXT: u64 = 3;

/// Values of these keys do not make separate statements.
const QUIET: [&str; 7] =
    ["@id", "@value", "@language", "@direction", "@index", "@graph", "@context"];

/// An object or array that is open.
#[derive(Default)]
struct Open {
    is_object: bool,
    /// Whether the last key is in [`QUIET`].
    is_quiet: bool,
    /// Number of keys, values and brackets inside.
    events: u64,
    /// Memory for the largest object inside, in bytes.
    held: u64,
}

/// Counts for one element of the array at the top level.
#[derive(Default)]
struct Element {
    begin: u64,
    keys: u64,
    statements: u64,
    /// Whether there is a list, which has two statements for each item.
    has_list: bool,
}

impl Element {
    fn bytes(&self, end: u64, held: u64) -> u64 {
        let statements = self.statements * if self.has_list { 2 } else { 1 };
        held * EVENT + self.keys * KEY + statements * STATEMENT + (end - self.begin) * TEXT
    }
}

/// Estimated upper limit of the memory that the parser needs for this document, in bytes.
pub(crate) fn needed(document: &[u8]) -> u64 {
    let mut parser = SliceJsonParser::new(document);
    let (mut open, mut element, mut most): (Vec<Open>, _, u64) = (vec![], Element::default(), 0);
    let mut length = 0;
    // The parser itself will report a syntax error.
    while let Ok(event) = parser.parse_next() {
        let around = open.last_mut();
        let is_quiet = around.as_ref().is_some_and(|around| around.is_quiet);
        if let Some(around) = around {
            around.events += 1;
            if let JsonEvent::ObjectKey(key) = &event {
                around.is_quiet = QUIET.contains(&key.as_ref());
                element.has_list |= key == "@list";
            }
        }
        match event {
            JsonEvent::Eof => break,
            JsonEvent::ObjectKey(key) => {
                element.keys += 1;
                length += key.len() as u64;
            }
            JsonEvent::StartObject => {
                element.statements += u64::from(!is_quiet);
                open.push(Open { is_object: true, ..Open::default() });
            }
            // The items are values of the same key.
            JsonEvent::StartArray => open.push(Open { is_quiet, ..Open::default() }),
            JsonEvent::EndObject | JsonEvent::EndArray => {
                let Some(closed) = open.pop() else { continue };
                let held = closed.held + if closed.is_object { closed.events } else { 0 };
                let is_element = match open.as_mut_slice() {
                    [] => true,
                    [top] if !top.is_object => true,
                    [.., around] => {
                        around.events += closed.events;
                        around.held = around.held.max(held);
                        false
                    }
                };
                if is_element {
                    most = most.max(element.bytes(length, held));
                    element = Element { begin: length, ..Element::default() };
                }
            }
            JsonEvent::String(text) => {
                element.statements += u64::from(!is_quiet);
                // Also in a context, for a term whose values are lists.
                element.has_list |= text == "@list";
                length += text.len() as u64;
            }
            JsonEvent::Number(_) | JsonEvent::Boolean(_) | JsonEvent::Null => {
                element.statements += u64::from(!is_quiet);
            }
        }
    }
    most.max(element.bytes(length, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_at_the_top_are_held_one_element_at_a_time() {
        let node = r#"{"@id":"http://e/1","http://p":[1,{"@id":"http://e/2"}]}"#;
        let many = vec![node; 1_000].join(",");
        let one = needed(node.as_bytes());
        assert_eq!(needed(format!("[{many}]").as_bytes()), one);
        assert!(needed(format!(r#"{{"@graph":[{many}]}}"#).as_bytes()) > 500 * one);
    }

    #[test]
    fn depth_and_lists_count() {
        let wide = format!("[{}]", vec!["1"; 1_000].join(","));
        let of = |text: String| needed(text.as_bytes());
        let flat = of(format!(r#"{{"v":{wide}}}"#));
        let deep = (0..60).fold(wide.clone(), |inner, _| format!(r#"{{"v":{inner}}}"#));
        assert!(of(deep) > 10 * flat);
        assert!(of(format!(r#"{{"v":{{"@list":{wide}}}}}"#)) > flat + 400_000);
    }
}
