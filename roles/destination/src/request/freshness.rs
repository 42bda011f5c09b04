//! Freshness lifetime of a list: the time for which a list need not be requested again, according
//! to its server.

pub(crate) mod fuzz_property;

use abreast_net::{Response, retry_after};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// Longest pause between polls that a Source can require.
pub(crate) const FRESH_MAX: Duration = Duration::from_secs(3_600);

/// The freshness of the polled list in this run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freshness(Rc<Cell<Option<Duration>>>);

impl Freshness {
    /// Records the freshness of the first polled list in this run; other lists may be closed, and
    /// fresh forever.
    pub(crate) fn note(&self, response: &Response) {
        if self.0.get().is_none() {
            let header = |name| response.header(name);
            self.0.set(Some(fresh_for(
                header("cache-control"),
                header("age"),
                header("retry-after"),
                SystemTime::now(),
            )));
        }
    }

    /// The list polled was closed meanwhile: another one is polled from now on.
    pub(crate) fn forget(&self) {
        self.0.set(None);
    }

    pub(crate) fn get(&self) -> Duration {
        self.0.get().unwrap_or_default()
    }
}

/// The remainder of `max-age`, or `Retry-After` if that is longer; at most [`FRESH_MAX`].
///
/// If there are several values, the first one is used. A value that is not a number makes a list
/// stale [rfc9111 §4.2, §5.1].
fn fresh_for(
    cache_control: Option<&str>,
    age: Option<&str>,
    retry: Option<&str>,
    now: SystemTime,
) -> Duration {
    let directives = || cache_control.into_iter().flat_map(directives);
    let ask_always = directives().any(|directive| {
        ["no-cache", "no-store"].iter().any(|name| directive.eq_ignore_ascii_case(name))
    });
    let max_age = directives().find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        name.trim().eq_ignore_ascii_case("max-age").then(|| value.trim())
    });
    let max_age = max_age.filter(|_| !ask_always).map_or(0, |value| {
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        seconds(quoted.unwrap_or(value)).unwrap_or(0)
    });
    let age = age.and_then(|age| seconds(age.split(',').next()?.trim())).unwrap_or(0);
    let pause = retry.and_then(|value| retry_after(value, now)).unwrap_or_default();
    Duration::from_secs(max_age.saturating_sub(age)).max(pause).min(FRESH_MAX)
}

/// The directives of a list. Commas in quoted strings, such as lists of header names, do not
/// separate directives [rfc9111 §5.2].
fn directives(list: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    let ends = move |character| {
        let literally = escaped;
        escaped = quoted && character == '\\' && !literally;
        quoted ^= character == '"' && !literally;
        character == ',' && !quoted
    };
    list.split(ends).map(str::trim)
}

/// Digits, and nothing else; more than can be counted is as much as can be.
fn seconds(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_fresh_for_what_is_left_of_its_age_up_to_a_cap() {
        for (cache_control, age, retry, seconds) in [
            (Some("public, max-age=600"), None, None, 600),
            (Some("Max-Age=\"600\""), Some("100"), None, 500),
            (Some("max-age=600"), Some("900"), None, 0),
            (Some("max-age=600, no-cache"), None, None, 0),
            (Some("max-age=99999999999"), None, None, 3_600),
            (Some("max-age=99999999999999999999999"), Some("10"), None, 3_600),
            (Some("max-age=600"), Some("99999999999999999999999"), None, 0),
            (Some("max-age=600"), Some("100, 5"), None, 500),
            (Some("max-age=600"), Some("-100"), None, 600),
            (Some("max-age=-1"), None, None, 0),
            (Some("max-age=+5"), None, None, 0),
            (Some("max-age=soon, max-age=600"), None, None, 0),
            (Some("max-age=5, max-age=600"), None, None, 5),
            (Some("private=\"a, max-age=600\""), None, None, 0),
            (Some("private=\"a, no-store, b\\\"\", max-age=600"), None, None, 600),
            (Some("max-age=10"), None, Some("120"), 120),
            (None, None, Some("soon"), 0),
            (None, None, None, 0),
        ] {
            assert_eq!(
                fresh_for(cache_control, age, retry, SystemTime::now()).as_secs(),
                seconds,
                "{cache_control:?} {age:?} {retry:?}"
            );
        }
    }
}
