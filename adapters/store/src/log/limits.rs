//! Checks of requests before they reach the store, so that an invalid batch cannot make others fail
//! that are written in the same transaction.

use abreast_core::{
    Beginning, Change, ErrorKind, Imported, LogError, NewSet, SetId, check_change, check_key,
    check_state, check_witness, shown,
};

/// Most changes in one batch.
const BATCH_MAX: usize = 10_000;
/// Longest name of a set.
const SLUG_BYTES_MAX: usize = 64;
/// Most changes in one page: a Sitemap's limit [rs-core §7].
const PAGE_CHANGES_MAX: u32 = 50_000;

/// Checks that a batch is within the limits.
pub(crate) fn check_batch(changes: &[Change]) -> Result<(), LogError> {
    if changes.len() > BATCH_MAX {
        return Err(refused(format!(
            "a batch of {} changes is too large\n  help: send at most {BATCH_MAX} at once",
            changes.len()
        )));
    }
    changes.iter().try_for_each(check_change)
}

/// Passes items on in batches of at most [`BATCH_MAX`].
pub(crate) fn in_batches<T>(
    mut items: Vec<T>,
    mut each: impl FnMut(Vec<T>) -> Result<(), LogError>,
) -> Result<(), LogError> {
    while items.len() > BATCH_MAX {
        let rest = items.split_off(BATCH_MAX);
        each(items)?;
        items = rest;
    }
    each(items)
}

/// Checks resources before they are imported.
pub(crate) fn check_imported(resources: &[Imported]) -> Result<(), LogError> {
    resources.iter().try_for_each(|resource| {
        check_key(&resource.key)?;
        check_state(&resource.key, &resource.state, &resource.witness)
    })
}

/// Checks that fingerprints are within the limits.
pub(crate) fn check_witnesses(witnesses: &[(String, Vec<u8>)]) -> Result<(), LogError> {
    witnesses.iter().try_for_each(|(key, witness)| check_witness(key, witness))
}

/// Checks the options of a new set.
pub(crate) fn check_set(set: &NewSet) -> Result<(), LogError> {
    let slug = set.slug.as_bytes();
    let fits = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let starts =
        slug.first().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !starts || slug.len() > SLUG_BYTES_MAX || !slug.iter().all(fits) {
        return Err(refused(format!(
            "`{}` cannot name a set\n  help: use 1 to {SLUG_BYTES_MAX} of a-z, 0-9, `.`, `_` and `-`, a letter or \
             digit first",
            shown(&set.slug)
        )));
    }
    if !(1..=PAGE_CHANGES_MAX).contains(&set.page_rule.changes) {
        return Err(refused(format!(
            "a page of {} changes is not possible in set `{}`\n  help: use 1 to {PAGE_CHANGES_MAX} [rs-core §7]",
            set.page_rule.changes, set.slug
        )));
    }
    Ok(())
}

/// Error for a set that does not exist.
pub(crate) fn no_set(set: SetId) -> LogError {
    LogError::new(ErrorKind::NoSet, format!("the store has no set number {}", set.0))
}

/// Error for a set that was created with another beginning.
pub(crate) fn other_beginning(new: &NewSet) -> LogError {
    let why = match new.beginning {
        Beginning::Log => {
            "began with files or records that are not in its log; a set of entities, or with \
             `initial_changes`, has all in its log from the first change on"
        }
        Beginning::Base => {
            "was begun as a set of entities or with `initial_changes`, and cannot become another one"
        }
    };
    refused(format!(
        "the set `{}` {why}\n  help: publish this under another name, or with a new store",
        new.slug
    ))
}

/// Error for changes before the import of the base is complete.
pub(crate) fn still_importing() -> LogError {
    LogError::new(
        ErrorKind::Refused,
        "the set's base is still being imported, changes cannot be recorded yet\n  help: wait for the end of the import",
    )
}

/// Error for a change that needs a damaged row.
pub(crate) fn damaged_row(key: &str) -> LogError {
    LogError::new(
        ErrorKind::Corrupt,
        format!(
            "cannot deprecate `{}`: its row in the store is damaged\n  help: record its state again, or run `abreast repair`",
            shown(key)
        ),
    )
}

/// Error for an import after the base is complete.
pub(crate) fn import_is_complete() -> LogError {
    LogError::new(
        ErrorKind::Refused,
        "the set's import is complete, its base cannot be added to\n  help: append changes instead",
    )
}

fn refused(message: String) -> LogError {
    LogError::new(ErrorKind::Refused, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::PageRule;

    fn set(slug: &str) -> NewSet {
        NewSet { slug: slug.into(), ..NewSet::default() }
    }

    #[test]
    fn names_of_sets_are_safe_in_urls() {
        for good in ["a", "0", "books.2026-a_b"] {
            check_set(&set(good)).unwrap();
        }
        for bad in ["", ".", "..", "-a", "A", "a/b", "a b", "ä", &"a".repeat(65)] {
            assert_eq!(check_set(&set(bad)).unwrap_err().kind(), ErrorKind::Refused, "{bad}");
        }
    }

    #[test]
    fn pages_hold_what_a_sitemap_holds() {
        for (changes, good) in [(0, false), (1, true), (50_000, true), (50_001, false)] {
            let rule = PageRule { changes, ..PageRule::default() };
            assert_eq!(
                check_set(&NewSet { page_rule: rule, ..set("a") }).is_ok(),
                good,
                "{changes}"
            );
        }
    }
}
