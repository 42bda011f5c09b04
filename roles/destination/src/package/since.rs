//! Is one package with all changes since a time to be had, and cheaper than anything else?
//!
//! A Source that makes such packages on demand says so in its Capability List. How long the package will be nobody says
//! beforehand; but the Change Lists were just read, and it holds what they list. It supplies planned bytes as any package
//! does. When it cannot be had, that is told, and the run goes on as if there were none.

use super::choose::{UNKNOWN_BYTES, WORTH_A_LOOK, Wanted, package_seconds};
use super::listing::ListedPackage;
use super::{Chosen, Packaged};
use crate::apply::Report;
use crate::error::{Error, ExitCode};
use crate::options::Dumps;
use crate::plan::listed::Listed;
use crate::read::resourcesync::discover::{Entrance, forget_changes_since};
use crate::session::Session;
use abreast_webtypes::Timestamp;
use url::Url;

/// More changes are not asked for: no manifest may have more entries [rs-core §7].
const CHANGES_MAX: u64 = 50_000;
/// More bytes of changes are not asked for.
const BYTES_MAX: u64 = 1 << 30;
/// What a change has in a package beside its bytes: an entry of the manifest and two headers.
const CHANGE_BYTES: u64 = 700;
/// Bytes that a package may have more than twice what is expected: changes go on while it is made.
const SPARE_BYTES: u64 = 1 << 20;
/// What the Source takes to put one change into a package, and how many bytes it reads in a second.
const MAKING_SECONDS: f64 = 0.000_05;
const MAKING_BYTES_PER_SECOND: f64 = 100_000_000.0;

/// How much changed, as the Change Lists tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    changes: u64,
    bytes: u64,
}

impl Changes {
    /// Counts a change that was read.
    pub(crate) fn note(&mut self, change: &Listed<'_>) {
        self.changes += 1;
        if !change.is_deletion() {
            self.bytes = self.bytes.saturating_add(change.length.unwrap_or(UNKNOWN_BYTES));
        }
    }

    /// At least so much.
    fn or(self, changes: u64, bytes: u64) -> Self {
        Self { changes: self.changes.max(changes), bytes: self.bytes.max(bytes) }
    }

    /// Length of a package with them.
    fn package_bytes(self) -> u64 {
        self.bytes.saturating_add(self.changes.saturating_mul(CHANGE_BYTES))
    }

    fn making_seconds(self) -> f64 {
        self.changes as f64 * MAKING_SECONDS + self.bytes as f64 / MAKING_BYTES_PER_SECOND
    }
}

impl Session<'_> {
    /// Takes what is planned out of one package with all changes since a time, if that is announced and cheaper than
    /// asking for each.
    ///
    /// # Errors
    /// Those that end a run; all others are told.
    pub(super) fn apply_changes_since(&mut self, entrance: &Entrance, reports: &mut Vec<Report>) -> Result<(), Error> {
        let Some(package) = self.choose_changes_since(entrance)? else { return Ok(()) };
        self.report.begin_phase("fetching");
        self.check_cancelled()?;
        let chosen = Chosen { packages: Vec::new(), packaged: Packaged::Changes, at: None, is_plan: false };
        match self.download(&package).and_then(|file| self.apply_package(&chosen, &package, file, reports)) {
            Ok(()) => {}
            Err(error) if error.code() == "dump.space" => self.tell_no_changes_since(&package, &error),
            Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io | ExitCode::Other) => {
                return Err(error);
            }
            Err(error) => {
                self.tell_no_changes_since(&package, &error);
                if error.code() == "http.status" {
                    forget_changes_since(&self.mirror)?;
                }
            }
        }
        self.discard_package(&package);
        Ok(())
    }

    fn tell_no_changes_since(&mut self, package: &ListedPackage, error: &Error) {
        let message = format!("{error}\n  other packages are looked for, or resources asked for one by one");
        self.report.notice(error.code(), &package.url, &message);
    }

    /// The package, if it is worth it.
    fn choose_changes_since(&mut self, entrance: &Entrance) -> Result<Option<ListedPackage>, Error> {
        let dumps = self.options.dumps;
        if dumps == Dumps::Never || self.packages.since.is_none() || self.packages.planned.is_some() {
            return Ok(None);
        }
        let due = self.mirror.changes_due()?;
        let Some(oldest) = due.oldest else { return Ok(None) };
        if dumps == Dumps::Auto && due.resources < WORTH_A_LOOK {
            return Ok(None);
        }
        let bytes = if due.bytes > 0 { due.bytes } else { due.resources * UNKNOWN_BYTES };
        let expected = self.packages.changes.or(due.resources, bytes);
        if expected.changes > CHANGES_MAX || expected.package_bytes() > BYTES_MAX {
            return Ok(None);
        }
        let pace = self.requests.care.pace();
        let wanted = Wanted { resources: due.resources, bytes, connections: self.options.connections.max(1) as u64 };
        let asking = wanted.seconds(pace);
        let package = package_seconds([Some(expected.package_bytes())].into_iter(), pace);
        let package = package.map(|seconds| seconds + expected.making_seconds());
        tracing::debug!(?pace, asking, package, "changes since a time in one package or not");
        if dumps == Dumps::Auto && package.is_none_or(|package| package >= asking) {
            return Ok(None);
        }
        let Some(address) = self.newest_entrance(entrance, true)?.changes_since else { return Ok(None) };
        // Just before the first of them.
        let url = since_url(&address, Timestamp::from_micros(oldest.saturating_sub(1)));
        let made_to = Some(expected.package_bytes().saturating_mul(2).saturating_add(SPARE_BYTES));
        Ok(url.map(|url| ListedPackage { url, made_to, ..ListedPackage::default() }))
    }
}

/// Where to ask for what changed since then.
fn since_url(address: &str, since: Timestamp) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    url.set_fragment(None);
    url.query_pairs_mut().append_pair("time", &since.to_string());
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::Change;
    use crate::plan::listed::testing::listed;

    #[test]
    fn the_time_is_added_to_the_query() {
        let since = Timestamp::from_micros(1_767_225_600_000_001);
        let url = |address| since_url(address, since).unwrap_or_default();
        assert_eq!(url("http://h/s/since"), "http://h/s/since?time=2026-01-01T00%3A00%3A00.000001Z");
        assert_eq!(url("http://h/s?set=a#b"), "http://h/s?set=a&time=2026-01-01T00%3A00%3A00.000001Z");
        assert_eq!(since_url("/s", since), None);
    }

    #[test]
    fn a_package_is_expected_to_hold_every_change() {
        let mut changes = Changes::default();
        let change =
            |length, change| Listed { length, change: Some(change), ..listed("http://h/l", "http://h/a", Vec::new()) };
        changes.note(&change(Some(100), Change::Put));
        changes.note(&change(None, Change::Put));
        changes.note(&change(Some(100), Change::Deleted));
        assert_eq!(changes, Changes { changes: 3, bytes: 100 + UNKNOWN_BYTES });
        assert_eq!(changes.package_bytes(), 100 + UNKNOWN_BYTES + 3 * CHANGE_BYTES);
        assert_eq!(changes.or(5, 7), Changes { changes: 5, ..changes });
    }
}
