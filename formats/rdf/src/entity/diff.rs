//! Differences between two versions of a description, and their application.

use std::cmp::Ordering;

use crate::notation::statement::split_lines;

/// The lines to remove from one version and to add to it to get the other version, both in the
/// order of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Lines of the old version only.
    pub removed: Vec<u8>,
    /// Lines of the new version only.
    pub added: Vec<u8>,
}

/// Error for a difference between other versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the difference is for another version: {} `{line}`\n  help: fetch the whole description",
    if *.is_missing { "it removes a line that is missing," } else { "it adds a line that exists," }
)]
pub struct OtherVersion {
    /// Whether a line to be removed is missing; otherwise, a line to be added exists already.
    pub is_missing: bool,
    /// The line of the difference that does not fit.
    pub line: String,
}

/// The lines to remove and the lines to add. Both versions are canonical lines: sorted, without
/// duplicates.
///
/// # Examples
/// ```
/// use abreast_rdf::difference;
///
/// let old = b"<http://h/7> <http://h/shelf> \"A 12\" .\n<http://h/7> <http://h/title> \"Atlas\" .\n";
/// let new = b"<http://h/7> <http://h/shelf> \"B 3\" .\n<http://h/7> <http://h/title> \"Atlas\" .\n";
/// let change = difference(old, new);
/// assert_eq!(change.removed, b"<http://h/7> <http://h/shelf> \"A 12\" .\n");
/// assert_eq!(change.added, b"<http://h/7> <http://h/shelf> \"B 3\" .\n");
/// ```
pub fn difference(old: &[u8], new: &[u8]) -> Difference {
    let mut result = Difference::default();
    let (mut old, mut new) = (split_lines(old).peekable(), split_lines(new).peekable());
    loop {
        let (before, after) = (old.peek().copied(), new.peek().copied());
        let order = match (before, after) {
            (Some(before), Some(after)) => before.cmp(after),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return result,
        };
        if order != Ordering::Greater {
            old.next();
        }
        if order != Ordering::Less {
            new.next();
        }
        match (order, before, after) {
            (Ordering::Less, Some(line), _) => push_line(&mut result.removed, line),
            (Ordering::Greater, _, Some(line)) => push_line(&mut result.added, line),
            _ => {}
        }
    }
}

impl Difference {
    /// Whether both versions are equal.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// Number of statements removed, and of statements added.
    pub fn counts(&self) -> (usize, usize) {
        (split_lines(&self.removed).count(), split_lines(&self.added).count())
    }

    /// Applies the difference to the old version, and returns the new one.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::difference;
    ///
    /// let old = b"<http://h/7> <http://h/shelf> \"A 12\" .\n";
    /// let new = b"<http://h/7> <http://h/shelf> \"B 3\" .\n";
    /// let change = difference(old, new);
    /// assert_eq!(change.apply(old)?, new);
    /// let error = change.apply(new).expect_err("the lines to remove are missing");
    /// assert!(error.is_missing);
    /// # Ok::<(), abreast_rdf::OtherVersion>(())
    /// ```
    ///
    /// # Errors
    /// When `old` is not the version that the difference is for.
    pub fn apply(&self, old: &[u8]) -> Result<Vec<u8>, OtherVersion> {
        let other = |is_missing, line| OtherVersion {
            is_missing,
            line: String::from_utf8_lossy(line).into_owned(),
        };
        let mut removed = split_lines(&self.removed).peekable();
        let mut added = split_lines(&self.added).peekable();
        let mut new = Vec::with_capacity(old.len() + self.added.len());
        for line in split_lines(old) {
            while let Some(added) = added.next_if(|added| *added < line) {
                push_line(&mut new, added);
            }
            if let Some(missing) = removed.next_if(|removed| *removed < line) {
                return Err(other(true, missing));
            }
            if removed.next_if_eq(&line).is_some() {
                continue;
            }
            if let Some(existing) = added.next_if_eq(&line) {
                return Err(other(false, existing));
            }
            push_line(&mut new, line);
        }
        if let Some(missing) = removed.next() {
            return Err(other(true, missing));
        }
        for line in added {
            push_line(&mut new, line);
        }
        Ok(new)
    }
}

fn push_line(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn lines(numbers: &BTreeSet<u8>) -> Vec<u8> {
        let mut lines: Vec<String> = numbers.iter().map(|number| format!("{number}\n")).collect();
        lines.sort();
        lines.concat().into_bytes()
    }

    #[test]
    fn a_difference_for_another_version_is_refused() {
        let change = difference(b"a\nb\n", b"b\nc\n");
        assert_eq!(
            (change.removed.as_slice(), change.added.as_slice()),
            (&b"a\n"[..], &b"c\n"[..])
        );
        assert_eq!(change.apply(b"a\nb\n").unwrap(), b"b\nc\n");
        for (old, is_missing, line) in
            [(&b"b\n"[..], true, "a"), (b"", true, "a"), (b"a\nb\nc\n", false, "c")]
        {
            let expected = OtherVersion { is_missing, line: line.to_owned() };
            assert_eq!(change.apply(old), Err(expected));
        }
        assert_eq!(
            change.apply(b"").unwrap_err().to_string(),
            "the difference is for another version: it removes a line that is missing, `a`\n  \
             help: fetch the whole description"
        );
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_old_to_new(old: BTreeSet<u8>, new: BTreeSet<u8>) {
            let change = difference(&lines(&old), &lines(&new));
            prop_assert_eq!(change.apply(&lines(&old)).unwrap(), lines(&new));
            let removed: BTreeSet<u8> = old.difference(&new).copied().collect();
            let added: BTreeSet<u8> = new.difference(&old).copied().collect();
            prop_assert_eq!(&change, &Difference { removed: lines(&removed), added: lines(&added) });
            prop_assert_eq!(change.is_empty(), old == new);
        }
    }
}
