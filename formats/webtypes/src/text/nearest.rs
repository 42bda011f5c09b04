//! The known name that a user probably meant.

/// Minimum similarity, from 0 to 1, of an unknown name and the known name that a help proposes.
const NEAR: f64 = 0.7;

/// The known name that is most similar to an unknown name, for the help of an error; `None` if no
/// name is similar.
///
/// ```
/// assert_eq!(abreast_webtypes::nearest("lables", &["warc", "labels"]), Some("labels"));
/// assert_eq!(abreast_webtypes::nearest("foo", &["warc", "labels"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = |known: &str| strsim::jaro(known, name);
    let nearest = known.iter().max_by(|one, two| near(one).total_cmp(&near(two))).copied();
    nearest.filter(|nearest| near(nearest) > NEAR)
}
