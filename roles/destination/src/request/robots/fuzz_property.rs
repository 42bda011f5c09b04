//! Properties of every robots.txt: for fuzzing and for the tests of its seeds.

use super::rules::{fits, normal};
use super::{DELAY_MAX, RULES_MAX, parse, path_of, written_for_us};

/// Longest path and pattern that are matched the slow way, too.
const BYTES_MAX: usize = 64;

/// The first line is a URI, the others are a robots.txt. The stored rules are bounded, line ends do
/// not matter, and patterns match according to their definition.
///
/// # Panics
/// A property does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (uri, text) = text.split_once('\n').unwrap_or((&text, ""));
    let written = written_for_us(text).paths;
    assert!(written.len() <= RULES_MAX);
    let rules = parse(text);
    assert!(rules.delay.is_none_or(|delay| delay <= DELAY_MAX));
    if !text.contains('\r') {
        assert_eq!(parse(&text.replace('\n', "\r\n")), rules);
    }
    let path = path_of(uri);
    assert!(path.starts_with('/'));
    let allowed = rules.rules.allow(path);
    let path = normal(path);
    if path.len() > BYTES_MAX || written.iter().any(|(pattern, _)| pattern.len() > BYTES_MAX) {
        return;
    }
    let mut best: Option<(usize, bool)> = None;
    for (pattern, allows) in &written {
        let fitting = fits_by_definition(pattern.as_bytes(), path.as_bytes());
        assert_eq!(fits(pattern, &path), fitting, "{pattern} {path}");
        if fitting {
            best = best.max(Some((pattern.len(), *allows)));
        }
    }
    assert_eq!(allowed, best.is_none_or(|(_, allows)| allows));
}

/// `*` is any number of any bytes, `$` at the end is the end, else anything may follow: one row of
/// a table for each byte of the pattern, in which the pattern up to there fits the path up to here.
fn fits_by_definition(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, to_the_end) = match pattern {
        [pattern @ .., b'$'] => (pattern, true),
        _ => (pattern, false),
    };
    let mut row = vec![false; path.len() + 1];
    row[0] = true;
    for byte in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in 0..=path.len() {
            next[at] = match byte {
                b'*' => row[..=at].contains(&true),
                _ => at > 0 && row[at - 1] && path[at - 1] == *byte,
            };
        }
        row = next;
    }
    if to_the_end { row[path.len()] } else { row.contains(&true) }
}
