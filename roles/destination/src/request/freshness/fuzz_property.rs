//! Properties of every answer that states how long it is fresh: for fuzzing and for the tests of
//! its seeds.

use super::{FRESH_MAX, fresh_for};
use std::time::{Duration, UNIX_EPOCH};

/// Age of the lists that are tried, in seconds.
const AGES: [&str; 4] = ["1", "60", "3599", "99999999999999999999999"];

/// The lines are `Cache-Control`, `Age` and `Retry-After`; an empty line stands for a missing
/// header. The freshness lifetime never exceeds the limit or the time in the headers, an older
/// response never has a longer one, and quoted text does not matter.
///
/// # Panics
/// A property does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(3, '\n').map(|line| Some(line).filter(|line| !line.is_empty()));
    let mut line = || lines.next().flatten();
    let (cache_control, age, retry) = (line(), line(), line());
    let now = UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    let fresh = |cache_control: &str, age| fresh_for(Some(cache_control), age, None, now);
    let wish = cache_control.unwrap_or_default();

    let pause = fresh_for(None, age, retry, now);
    assert_eq!(fresh_for(cache_control, age, retry, now), fresh(wish, age).max(pause));
    assert!(fresh(wish, age).max(pause) <= FRESH_MAX);
    let ages = AGES.map(|age| fresh(wish, Some(age)));
    assert!(ages.is_sorted_by(|younger, older| younger >= older) && ages[3].is_zero(), "{ages:?}");
    assert!(fresh(wish, None) >= fresh(wish, age).max(ages[0]));
    assert_eq!(fresh(&wish.to_ascii_uppercase(), age), fresh(wish, age));

    // Who speaks first is heard; who wants to be asked always, wherever that stands.
    assert!(fresh(&format!("no-store, {wish}"), age).is_zero());
    for (first, seconds) in
        [("max-age=17", 17), ("max-age = \"17\"", 17), ("MAX-AGE=x", 0), ("max-age=", 0)]
    {
        let first = fresh(&format!("{first}, {wish}"), None);
        assert!(first.is_zero() || first.as_secs() == seconds, "{first:?}");
        // When the rest is silent on its own, it is silent here.
        let asks_always = fresh(&format!("max-age=1,{wish}"), None).is_zero();
        assert_eq!(first.is_zero(), asks_always || seconds == 0);
    }
    let words = wish.replace(['"', '\\'], "");
    let quoted = format!("private=\"{words}, \\\", no-cache, max-age=5\"");
    assert_eq!(fresh(&format!("{quoted},{wish}"), age), fresh(wish, age));
    assert!(fresh(&quoted, age).is_zero());
    assert_eq!(fresh(&format!("{quoted},max-age=5"), None).as_secs(), 5);
    // A plain list reads as one that is split at each comma.
    if words == wish {
        let each = || wish.split(',').map(str::trim);
        let asks_always = each().any(|one| {
            one.eq_ignore_ascii_case("no-cache") || one.eq_ignore_ascii_case("no-store")
        });
        let named = |one: &&str| {
            one.split('=').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("max-age"))
        };
        let own = each()
            .filter(|one| one.contains('='))
            .find(named)
            .map_or(Duration::ZERO, |own| fresh(own, age));
        assert_eq!(fresh(wish, age), if asks_always { Duration::ZERO } else { own });
    }
}
