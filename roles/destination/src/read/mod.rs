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
    /// The document that identifies the Source: hosts are judged by it.
    pub(crate) first: String,
    /// The common begin of the URIs of the resources, where that is given.
    pub(crate) uri_space: Option<String>,
    /// All resources can be listed without keeping anything.
    pub(crate) has_list: bool,
    /// Discovery was made: the state has to keep its result.
    pub(crate) is_found_anew: bool,
}

/// A search for the documents of a Source.
pub(crate) struct Finding<'f, 'a> {
    pub(crate) requests: &'f Requests<'a>,
    pub(crate) options: &'f SyncOptions,
    /// The state of the copy, if there is one.
    pub(crate) known: Option<&'f Mirror>,
    /// The documents are only read: what an earlier run found is checked, and nothing is kept.
    pub(crate) is_read_only: bool,
    /// Where changes are announced is looked up again.
    pub(crate) looks_again: bool,
    /// The copy has moved to this address: what an earlier run found was at another one.
    pub(crate) is_moved: bool,
    /// Takes a code, a URL and a message for the user.
    pub(crate) notice: &'f mut dyn FnMut(&str, &str, &str),
}

/// What a copy can begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Whole {
    /// A list of all resources.
    #[default]
    Snapshot,
    /// All changes since the beginning.
    Changes,
    /// Nothing: only some changes are listed. What the user can do.
    Nothing(&'static str),
}

/// What there is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) whole: Whole,
    /// The document of changes, for messages.
    pub(crate) changes: Option<String>,
    /// The changes are in packages: they are planned when those of the snapshot have been used.
    pub(crate) changes_in_packages: bool,
    /// The copy must be compared with a snapshot, for a reason that only the protocol knows.
    pub(crate) is_comparison_due: bool,
}

/// The result of reading a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// It is as it was read before: nothing was handed over.
    pub(crate) is_unchanged: bool,
    /// It changed while it was read.
    pub(crate) is_unstable: bool,
    /// There should be one, and it cannot be read: the next run asks for it again.
    pub(crate) is_missing: bool,
    /// What it does not list is not in the set.
    pub(crate) lists_all: bool,
    /// The time of the list, where it shows which changes are in it.
    pub(crate) as_of: Option<Moment>,
    /// The time from which changes are to be read; `None` if it is not known.
    pub(crate) changes_from: Option<Moment>,
    /// Why it may be no list of all resources: the error if anything would be deleted.
    pub(crate) doubt: Option<Error>,
    /// The place from which changes are to be read, where that is no time.
    pub(crate) bookmark: Option<Bookmark>,
    /// The packages that the resources were read of.
    pub(crate) made_from: Option<Dump>,
    /// Some of its documents are of this later time.
    pub(crate) mixed_until: Option<Moment>,
}

/// A document that was pushed.
pub(crate) trait Pushed {
    /// All changes since then are in it, if it gives that.
    fn from(&self) -> Option<Timestamp>;

    /// The newest time in it.
    fn until(&self) -> Timestamp;

    /// It gives all changes until then, so that one that begins there continues it.
    fn is_span(&self) -> bool;

    /// Hands over its changes.
    fn each(&self, walk: &mut Walk<'_, '_>) -> Result<(), Error>;
}

/// A set of resources of a Source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSet {
    /// Its name, as in the URL of its Capability List.
    pub name: String,
    /// Its Capability List; of a Source without one the list or dump that stands for it.
    pub url: String,
}

/// Checks that an address may be that of a Source.
///
/// # Errors
/// It is not an http or https URL.
pub fn check_url(url: &str) -> Result<url::Url, Error> {
    abreast_net::check_url(url).ok().and_then(|()| url::Url::parse(url).ok()).ok_or_else(|| {
        let shown = abreast_webtypes::without_login(url);
        Error::new("usage.url", ExitCode::Usage, format!("`{shown}` is not an http or https URL"))
            .with_help("write it with its scheme and host, for example https://example.org/")
    })
}

/// Reads the documents of one protocol. It decides nothing about the copy: that is the driver's, see [`driver`].
pub(crate) trait Reader {
    /// Finds the Source's documents, as an earlier run knew them or by discovery.
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error>;

    /// Stores what was found, or is known better by now, in the transaction of a plan.
    fn keep(&self, mirror: &Mirror) -> Result<(), Error>;

    /// All sets of the Source that an address belongs to, in the Source's order.
    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error>;

    /// What there is to read; `mirror` is the state of the copy.
    fn offers(&self, mirror: Option<&Mirror>, options: &SyncOptions) -> Result<Offers, Error>;

    /// Where changes of the set are announced, if anywhere.
    fn announcement(&self) -> Option<Announcement> {
        None
    }

    /// Hands over all that the Source lists.
    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error>;

    /// Hands over the changes since the position of the walk, or all.
    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error>;

    /// Reads what was pushed, or why it cannot be used.
    fn pushed(&self, _bytes: &[u8]) -> Result<Box<dyn Pushed>, String> {
        Err("notifications of this protocol are only hints".to_owned())
    }

    /// The packages that planned resources may be in.
    fn packages(&mut self) -> Option<&mut dyn Packages> {
        None
    }

    /// Whether a resource about which nothing is stated any more is gone.
    fn is_gone_if_empty(&self) -> bool {
        true
    }

    /// Adds the way out to an error that ended a run.
    fn explain(&self, _requests: &Requests<'_>, _options: &SyncOptions, error: Error) -> Error {
        error
    }
}

/// The packages of a Source.
pub(crate) trait Packages {
    /// The dumps that planned resources may be in; `since` where the plan is what changed since then.
    fn offered(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error>;

    /// The URL of one package with all changes since a time, where the Source makes such packages on request.
    fn since(
        &mut self,
        _run: &mut PlanContext<'_, '_>,
        _since: Timestamp,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// The Source refused such a package.
    fn forget_since(&mut self, _run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        Ok(())
    }

    /// Which resource is which member of a package that this reader named.
    fn manifest(
        &self,
        requests: &Requests<'_>,
        package: &Package,
        url: &str,
        packaged: Packaged,
    ) -> Result<Manifest, Error>;
}
