//! Properties of every filter: for fuzzing and for the tests of its seeds.

use super::{Decision, Filter, MediaType, Subject};

/// Rules of one filter that are tried.
const RULES_TRIED: usize = 3;

/// The first lines are a URI, a path and a media type, the others are rules. A filter's text makes
/// the same filter, and the first rule that decides alone decides among others. Nothing is taken in
/// a folder that is left out.
///
/// # Panics
/// When that is not so.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (uri, path, media_type) = (line(), line(), line());
    let rules: Vec<&str> = Filter::lines(line()).take(RULES_TRIED).collect();
    let each: Result<Vec<Filter>, String> = rules.iter().map(|rule| Filter::new([*rule])).collect();
    let (filter, each) = match (Filter::new(rules.iter().copied()), each) {
        (Ok(filter), Ok(each)) => (filter, each),
        (filter, each) => {
            assert!(filter.is_err() == each.is_err(), "{filter:?} {each:?}");
            return;
        }
    };
    let again: Vec<&str> = Filter::lines(filter.text()).collect();
    assert_eq!(
        again,
        rules.iter().map(|rule| rule.trim_end_matches(['\r', '\n'])).collect::<Vec<_>>()
    );

    let listed = MediaType::Listed(Some(media_type).filter(|listed| !listed.is_empty()));
    let subject = Subject { uri, path: path.as_bytes(), media_type: listed, ..Subject::default() };
    let alone = each
        .iter()
        .map(|filter| filter.decide(&subject))
        .find(|alone| *alone != Decision::Taken("no rule"));
    assert_eq!(filter.decide(&subject), alone.unwrap_or(Decision::Taken("no rule")));
    let ends = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(end, _)| end);
    for folder in ends.map(|end| &path.as_bytes()[..end]) {
        let is_left_out = filter.leaves_out_folder(folder);
        assert!(
            !is_left_out || matches!(filter.decide(&subject), Decision::Excluded(_)),
            "{folder:?}"
        );
    }
    // Knowledge of a type never changes a decision that was made without it.
    let before = filter.decide(&Subject { media_type: MediaType::Unknown, ..subject });
    assert!(before == Decision::Unknown || before == filter.decide(&subject));
    if filter.decide(&subject) == Decision::Taken("no rule") {
        assert_eq!(filter.clone().only().decide(&subject), Decision::Excluded("no rule takes it"));
    }
}
