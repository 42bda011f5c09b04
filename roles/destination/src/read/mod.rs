//! Readers: each parses the documents of a protocol into listed resources and changes.
//!
//! A reader ([`Reader`]) knows the documents of its protocol, and passes their contents to a walk
//! ([`walk::Walk`]). All decisions about the copy are made by the driver ([`driver::Driver`]): the
//! order of requests, the detection of gaps and circles, the known changes, deletions, and the
//! position up to which the copy knows its Source ([`position::Position`]).
//!
//! | file | subject |
//! |---|---|
//! | `driver.rs` | the order of a run, and the conclusions from documents |
//! | `walk.rs` | a walk through documents: order, limits, known changes |
//! | `expectation.rs` | evidence from documents about a copy that is compared with them |
//! | `position.rs`, `marks.rs` | the position up to which the copy knows its Source |
//! | `choice.rs`, `at_site.rs` | the protocol of an address |
//! | `planning.rs`, `selecting.rs` | the path from documents to the plan |
//! | `descriptions.rs`, `sets.rs` | RDF in files, sets of a Source |
//! | `resourcesync/`, `resourcesync_0_1/`, `sitemap/`, `sdshare/`, `emm/` | the protocols |

mod ahead;
mod at_site;
pub(crate) mod choice;
pub(crate) mod descriptions;
pub(crate) mod driver;
pub(crate) mod emm;
pub(crate) mod expectation;
#[cfg(test)]
mod json_lines;
mod leads;
pub(crate) mod marks;
pub(crate) mod moved;
pub(crate) mod planning;
pub(crate) mod position;
pub(crate) mod protocol;
pub(crate) mod renamed;
pub(crate) mod resourcesync;
pub(crate) mod resourcesync_0_1;
pub(crate) mod sdshare;
pub(crate) mod selecting;
pub(crate) mod sets;
mod sitemap;
pub(crate) mod source_sets;
#[cfg(test)]
pub(crate) mod text;
pub(crate) mod walk;

use self::position::Bookmark;
use self::walk::Walk;
use crate::plan::manifest::Manifest;
use crate::plan::planner::PlanContext;
use crate::push::announcement::Announcement;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::package::archive::Package;
use crate::request::package::listing::{Dump, Offered, Packaged};
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Moment, Timestamp};

pub use resourcesync::subscriber::{NotificationContent, NotifiedChange, TopicKind, TopicStep};
pub use sets::name_of;

/// Properties of the readers for any input.
pub(crate) mod fuzz_property {
    pub use super::resourcesync::links::fuzz_property::check as discovery;
    pub use super::resourcesync::manifest::fuzz_property::check as package;
}

/// The documents of a Source, as discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// The document that identifies the Source, to which the rules for other hosts refer.
    pub(crate) first: String,
    /// The common start of the URIs of the resources, if the documents contain it.
    pub(crate) uri_space: Option<String>,
    /// Whether all resources can be listed without storing documents.
    pub(crate) has_list: bool,
    /// Whether discovery was carried out, so that its result must be stored.
    pub(crate) is_found_anew: bool,
}

/// A search for the documents of a Source.
pub(crate) struct Finding<'f, 'a> {
    pub(crate) requests: &'f Requests<'a>,
    pub(crate) options: &'f SyncOptions,
    /// The database of the copy, if there is one.
    pub(crate) known: Option<&'f Mirror>,
    /// The documents are only read: the documents of an earlier run are checked, and nothing is
    /// stored.
    pub(crate) is_read_only: bool,
    /// Whether the address of announcements is determined again.
    pub(crate) looks_again: bool,
    /// Whether the copy has moved to this address, so that the documents of an earlier run are at
    /// another one.
    pub(crate) is_moved: bool,
    /// Receives a code, a URL and a message for the user.
    pub(crate) notice: &'f mut dyn FnMut(&str, &str, &str),
}

/// The documents from which a copy can start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Whole {
    /// A list of all resources.
    #[default]
    Snapshot,
    /// All changes since the beginning.
    Changes,
    /// No such document: only some changes are listed. The help for the user.
    Nothing(&'static str),
}

/// The documents that the Source offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) whole: Whole,
    /// The document of changes, for messages.
    pub(crate) changes: Option<String>,
    /// The changes are in packages, and are planned after the packages of the snapshot were used.
    pub(crate) changes_in_packages: bool,
    /// A comparison with a snapshot is necessary, for a reason of the protocol.
    pub(crate) is_comparison_due: bool,
}

/// The result of reading a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Whether the snapshot has not changed since it was read, so that no resource was passed on.
    pub(crate) is_unchanged: bool,
    /// Whether the snapshot changed while it was read.
    pub(crate) is_unstable: bool,
    /// Whether an expected snapshot cannot be read, so that the next run requests the snapshot
    /// again.
    pub(crate) is_missing: bool,
    /// Whether resources that are not listed are not in the set.
    pub(crate) lists_all: bool,
    /// The time of the list, if it determines the included changes.
    pub(crate) as_of: Option<Moment>,
    /// The time from which changes must be read; `None` if it is not known.
    pub(crate) changes_from: Option<Moment>,
    /// The error if resources would be deleted, because the document may not be a list of all
    /// resources.
    pub(crate) doubt: Option<Error>,
    /// The place from which changes must be read, if the place is not a time.
    pub(crate) bookmark: Option<Bookmark>,
    /// The packages from which the resources were read.
    pub(crate) made_from: Option<Dump>,
    /// The later time of some documents of the snapshot.
    pub(crate) mixed_until: Option<Moment>,
}

/// A document that was pushed.
pub(crate) trait Pushed {
    /// The start of the interval whose changes the document contains completely, if specified.
    fn from(&self) -> Option<Timestamp>;

    /// The newest time in the document.
    fn until(&self) -> Timestamp;

    /// Whether the document contains all changes up to its end, so that a document that starts
    /// there continues from it.
    fn is_span(&self) -> bool;

    /// Passes on the changes of the document.
    fn each(&self, walk: &mut Walk<'_, '_>) -> Result<(), Error>;
}

/// A set of resources of a Source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSet {
    /// The name of the set, as in the URL of its Capability List.
    pub name: String,
    /// The URL of the set's Capability List, or else of the list or dump that replaces it.
    pub url: String,
}

/// Checks that an address may belong to a Source.
///
/// # Errors
/// The address is not an http or https URL.
pub fn check_url(url: &str) -> Result<url::Url, Error> {
    abreast_net::check_url(url).ok().and_then(|()| url::Url::parse(url).ok()).ok_or_else(|| {
        let shown = abreast_webtypes::without_login(url);
        Error::new("usage.url", ExitCode::Usage, format!("`{shown}` is not an http or https URL"))
            .with_help("write it with its scheme and host, for example https://example.org/")
    })
}

/// Reads the documents of a protocol. All decisions about the copy are made by the [`driver`].
pub(crate) trait Reader {
    /// Finds the Source's documents: the documents of an earlier run, or by discovery.
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error>;

    /// Stores the found documents, and later corrections, in the transaction of a plan.
    fn keep(&self, mirror: &Mirror) -> Result<(), Error>;

    /// All sets of the Source to which an address belongs, in the order of the Source.
    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error>;

    /// The documents that the Source offers; `mirror` is the database of the copy.
    fn offers(&self, mirror: Option<&Mirror>, options: &SyncOptions) -> Result<Offers, Error>;

    /// The announcement of the set's changes, if there is one.
    fn announcement(&self) -> Option<Announcement> {
        None
    }

    /// Passes on all resources that the Source lists.
    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error>;

    /// Passes on the changes since the position of the walk, or all changes.
    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error>;

    /// Parses a pushed document, or returns the reason why it cannot be used.
    fn pushed(&self, _bytes: &[u8]) -> Result<Box<dyn Pushed>, String> {
        Err("notifications of this protocol are only hints".to_owned())
    }

    /// The packages that may contain planned resources.
    fn packages(&mut self) -> Option<&mut dyn Packages> {
        None
    }

    /// Whether a resource without statements counts as deleted.
    fn is_gone_if_empty(&self) -> bool {
        true
    }

    /// Adds the solution to an error that ended a run.
    fn explain(&self, _requests: &Requests<'_>, _options: &SyncOptions, error: Error) -> Error {
        error
    }
}

/// The packages of a Source.
pub(crate) trait Packages {
    /// The dumps that may contain planned resources. With `since`, the plan consists of the changes
    /// since then.
    fn offered(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error>;

    /// The URL of a package with all changes since a time, if the Source creates such packages on
    /// request.
    fn since(
        &mut self,
        _run: &mut PlanContext<'_, '_>,
        _since: Timestamp,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Called after the Source has refused such a package.
    fn forget_since(&mut self, _run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        Ok(())
    }

    /// The mapping from resources to members of a package of this reader.
    fn manifest(
        &self,
        requests: &Requests<'_>,
        package: &Package,
        url: &str,
        packaged: Packaged,
    ) -> Result<Manifest, Error>;
}
