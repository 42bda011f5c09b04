//! Proactive negotiation: the choice among several media types for a client [rfc9110 §12.5.1].

/// Most media ranges of a header field; more are ignored.
const MAX_RANGES: usize = 64;

/// Chooses among the offered media types, best first; `None` is 406.
///
/// The most specific range that matches a type decides its weight; the first type with the highest
/// weight is chosen. If the field is missing or does not have a valid range, the first type is
/// chosen.
///
/// ```
/// use abreast_rdf::choose;
///
/// let offered = ["application/rdf+xml", "text/turtle"];
/// assert_eq!(choose(None, &offered), Some(0));
/// assert_eq!(choose(Some("text/turtle, */*;q=0.1"), &offered), Some(1));
/// assert_eq!(choose(Some("image/png"), &offered), None);
/// ```
pub fn choose(accept: Option<&str>, offered: &[&str]) -> Option<usize> {
    let ranges: Vec<Range<'_>> = accept
        .map(|accept| split(accept, ',').filter_map(Range::parse).take(MAX_RANGES).collect())
        .unwrap_or_default();
    if ranges.is_empty() {
        return (!offered.is_empty()).then_some(0);
    }
    let weight = |media_type: &str| {
        let matching = ranges.iter().filter_map(|range| {
            range.specificity(media_type).map(|specificity| (specificity, range.thousandths))
        });
        matching.max().map_or(0, |(_, thousandths)| thousandths)
    };
    let mut best = None;
    for (index, media_type) in offered.iter().enumerate() {
        let weight = weight(media_type);
        if weight > best.map_or(0, |(_, best)| best) {
            best = Some((index, weight));
        }
    }
    best.map(|(index, _)| index)
}

/// A media range of the field.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    thousandths: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = split(text, ';');
        // Lenient: `*` alone, which Java's HTTP client sends.
        let essence = match parts.next()?.trim() {
            "*" => "*/*",
            essence => essence,
        };
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) || (kind == "*" && subtype != "*") {
            return None;
        }
        let mut range = Self { kind, subtype, parameters: Vec::new(), thousandths: 1_000 };
        for (name, value) in parts.filter_map(parameter) {
            if name.eq_ignore_ascii_case("q") {
                range.thousandths = thousandths(value)?;
                // Ignore the rest: extensions after the weight are not defined by any
                // specification.
                break;
            }
            range.parameters.push((name, value));
        }
        Some(range)
    }

    /// How exactly the range matches the media type; `None` if it does not match.
    fn specificity(&self, media_type: &str) -> Option<usize> {
        let mut parts = split(media_type, ';');
        let (kind, subtype) = parts.next()?.trim().split_once('/')?;
        if self.kind == "*" {
            return Some(0);
        }
        if !self.kind.eq_ignore_ascii_case(kind) {
            return None;
        }
        if self.subtype == "*" {
            return Some(1);
        }
        if !self.subtype.eq_ignore_ascii_case(subtype) {
            return None;
        }
        let offered: Vec<_> = parts.filter_map(parameter).collect();
        let mut specificity = 2;
        for (name, value) in &self.parameters {
            let same = offered.iter().find(|(offered, _)| offered.eq_ignore_ascii_case(name));
            match same {
                Some((_, offered)) if offered.eq_ignore_ascii_case(value) => specificity += 1,
                Some(_) => return None,
                // Lenient: a parameter that the offered type does not have, such as `charset`, is
                // ignored.
                None => {}
            }
        }
        Some(specificity)
    }
}

/// Splits a text at separators outside of quoted strings.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return !quoted && character == separator,
        }
        false
    })
}

/// `name=value`, with the value's quotes removed.
fn parameter(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let value = value.trim();
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let name = name.trim();
    is_token(name).then_some((name, unquoted.unwrap_or(value)))
}

fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

/// A weight in thousandths; `None` if it is invalid.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    let part: u16 = if is_digits { format!("{part:0<3}").parse().ok()? } else { return None };
    match whole {
        "1" if part == 0 => Some(1_000),
        "0" => Some(part),
        // Lenient: `.2`, which Java's HTTP client sends.
        "" if text.len() > 1 => Some(part),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERED: [&str; 4] =
        ["application/rdf+xml", "application/n-triples", "text/plain", "text/turtle;charset=utf-8"];

    fn chosen(accept: &str) -> Option<&'static str> {
        choose(Some(accept), &OFFERED).map(|index| OFFERED[index])
    }

    #[test]
    fn the_highest_weight_wins_and_then_the_first() {
        assert_eq!(chosen("text/turtle"), Some(OFFERED[3]));
        assert_eq!(chosen("TEXT/Turtle ; q=0.5, application/n-triples;q=0.6"), Some(OFFERED[1]));
        assert_eq!(chosen("text/turtle;q=0.5, application/n-triples;q=0.5"), Some(OFFERED[1]));
        assert_eq!(chosen("text/*"), Some(OFFERED[2]));
        assert_eq!(chosen("*/*"), Some(OFFERED[0]));
        assert_eq!(chosen("*/*;q=0.1, text/turtle"), Some(OFFERED[3]));
    }

    #[test]
    fn the_most_specific_range_decides() {
        assert_eq!(chosen("*/*, application/rdf+xml;q=0"), Some(OFFERED[1]));
        assert_eq!(chosen("text/*;q=0.9, text/plain;q=0.1, text/turtle;q=0.2"), Some(OFFERED[3]));
        assert_eq!(chosen("text/turtle;q=0.1, text/turtle;charset=utf-8;q=1"), Some(OFFERED[3]));
        assert_eq!(chosen("text/turtle;charset=ascii"), None);
    }

    #[test]
    fn nothing_acceptable_is_none() {
        for accept in ["image/png", "text/turtle;q=0", "*/*;q=0", "application/*;q=0.0, image/*"] {
            assert_eq!(chosen(accept), None, "{accept}");
        }
        assert_eq!(choose(None, &[]), None);
        assert_eq!(choose(Some("*/*"), &[]), None);
    }

    #[test]
    fn absent_or_unreadable_fields_accept_all() {
        assert_eq!(choose(None, &OFFERED), Some(0));
        for accept in ["", " ", ",,", "text", "*/turtle", "text/turtle;q=2"] {
            assert_eq!(chosen(accept), Some(OFFERED[0]), "{accept}");
        }
    }

    #[test]
    fn fields_as_sent_by_old_clients_are_read() {
        assert_eq!(
            chosen("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"),
            Some(OFFERED[0])
        );
        assert_eq!(
            chosen("application/ld+json;profile=\"a,b;c\\\"\", text/plain"),
            Some(OFFERED[2])
        );
        assert_eq!(chosen("text/plain;format=flowed"), Some(OFFERED[2]));
    }
}
