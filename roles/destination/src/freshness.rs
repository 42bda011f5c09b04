//! For how long does the Source say that a list need not be asked for again?

use abreast_net::{Response, retry_after};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// Longest time between polls that a Source can ask for.
pub(crate) const FRESH_MAX: Duration = Duration::from_secs(3_600);

/// What the list that is polled said in this run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freshness(Rc<Cell<Option<Duration>>>);

impl Freshness {
    /// Notes what the first list polled in this run said; lists read on the way may be closed, and fresh for ever.
    pub(crate) fn note(&self, response: &Response) {
        if self.0.get().is_none() {
            let header = |name| response.header(name);
            self.0.set(Some(fresh_for(header("cache-control"), header("age"), header("retry-after"))));
        }
    }

    pub(crate) fn get(&self) -> Duration {
        self.0.get().unwrap_or_default()
    }
}

/// What is left of `max-age`, or what `Retry-After` asks for if that is longer; at most [`FRESH_MAX`].
fn fresh_for(cache_control: Option<&str>, age: Option<&str>, retry: Option<&str>) -> Duration {
    let directives = || cache_control.into_iter().flat_map(|value| value.split(',')).map(str::trim);
    let ask_always =
        directives().any(|directive| ["no-cache", "no-store"].iter().any(|name| directive.eq_ignore_ascii_case(name)));
    let max_age = directives().find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("max-age").then(|| value.parse::<u64>().ok()).flatten()
    });
    let age = age.and_then(|age| age.trim().parse::<u64>().ok()).unwrap_or(0);
    let fresh = max_age.filter(|_| !ask_always).map_or(0, |max_age| max_age.saturating_sub(age));
    let pause = retry.and_then(|value| retry_after(value, SystemTime::now())).unwrap_or_default();
    Duration::from_secs(fresh).max(pause).min(FRESH_MAX)
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
            (Some("max-age=-1"), None, None, 0),
            (Some("max-age=10"), None, Some("120"), 120),
            (None, None, Some("soon"), 0),
            (None, None, None, 0),
        ] {
            assert_eq!(fresh_for(cache_control, age, retry).as_secs(), seconds, "{cache_control:?} {age:?} {retry:?}");
        }
    }
}
