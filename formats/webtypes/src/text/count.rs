//! Counts in messages for people.

/// A count with its noun, in the singular for 1: `1 file`, `2 files`, `0 entries`.
///
/// # Examples
/// ```
/// use abreast_webtypes::count;
///
/// assert_eq!(count(1u64, "entry"), "1 entry");
/// assert_eq!(count(3u64, "entry"), "3 entries");
/// assert_eq!(count(0u64, "change"), "0 changes");
/// ```
pub fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// Counts with [`count`] items in memory, whose number is a `usize`.
pub fn count_of(number: usize, noun: &str) -> String {
    count(number as u64, noun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(
            (count(1_u64, "file").as_str(), count(0_u64, "file").as_str()),
            ("1 file", "0 files")
        );
        assert_eq!(
            (count_of(1, "entry").as_str(), count_of(2, "entry").as_str()),
            ("1 entry", "2 entries")
        );
    }
}
