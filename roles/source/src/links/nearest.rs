//! Search for the known name that is most similar to a misspelled name.

/// Returns the known name that is most similar to `name`; an empty string if `known` is empty.
///
/// # Examples
/// ```
/// use abreast_source::links::nearest;
///
/// assert_eq!(nearest("incldue", &["include", "exclude", "folder"]), "include");
/// ```
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> &'a str {
    let name = name.to_ascii_lowercase();
    let alike = known.iter().map(|known| (strsim::jaro(known, &name), *known));
    alike.max_by(|(one, _), (two, _)| one.total_cmp(two)).map_or("", |(_, nearest)| nearest)
}
