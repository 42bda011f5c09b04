//! Readers: from the documents of one protocol each to listed resources and changes.
//!
//! A run and an audit know a Source through [`Reader`] only. A reader finds the documents, reads
//! them, and hands over what they list, for a comparison ([`crate::plan::comparison`]) or as
//! changes ([`crate::plan::changes`]). How far it has read is its own affair: it keeps that in the
//! state, in the transaction that keeps the plan, and only shows it to people.

mod at_site;
mod boundary;
pub(crate) mod choice;
pub(crate) mod descriptions;
mod emm;
pub(crate) mod pieces;
pub(crate) mod resourcesync;
mod resourcesync_0_1;
mod sdshare;
pub(crate) mod sets;
mod sitemap;
#[cfg(test)]
pub(crate) mod text;

use self::choice::Choice;
use crate::error::{Error, ExitCode};
use crate::events::Observer;
use crate::options::SyncOptions;
use crate::package::archive::Package;
use crate::package::listing::{Offered, Packaged};
use crate::package::manifest::Manifest;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::push::Topic;
use crate::requests::Requests;
use crate::select::OtherCategories;
use crate::state::key;
use abreast_net::Shared;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{SyntaxError, Timestamp};
use std::sync::atomic::AtomicBool;

pub use resourcesync::Tolerance;
pub use resourcesync::subscriber::{NotificationContent, NotifiedChange, TopicKind, TopicStep};
pub use resourcesync_0_1::push::PushOffer;
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
    /// The common begin of the URIs of the resources, where that is stated.
    pub(crate) uri_space: Option<String>,
    /// All resources can be listed without keeping anything.
    pub(crate) has_list: bool,
}

/// A set of resources of a Source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSet {
    /// Its name, as in the URL of its Capability List.
    pub name: String,
    /// Its Capability List; of a Source without one the list or dump that stands for it.
    pub url: String,
}

/// The document that names the topic of a set.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    /// Its URL: hosts are judged by it.
    pub(crate) url: String,
    /// Finds the topic in its bytes; the second argument is the URL that it answered at.
    pub(crate) topic_in: fn(&[u8], &str) -> Result<Option<Topic>, SyntaxError>,
    /// Other ways in which changes are pushed.
    pub(crate) offers: Vec<PushOffer>,
}

/// All sets of the Source that an address belongs to, in the Source's order.
///
/// # Errors
/// The address or the Source Description cannot be read; a set on a host that is not allowed.
pub fn source_sets(options: &SyncOptions, cancel: &AtomicBool) -> Result<Vec<SourceSet>, Error> {
    check_url(&options.url)?;
    let requests = Requests::new(options, cancel, &Shared::new(options.net_options()))?;
    Choice::default().reader(&requests, options, None)?.sets(&requests, options)
}

/// Checks that an address may be that of a Source.
///
/// # Errors
/// It is not an http or https URL.
pub fn check_url(url: &str) -> Result<url::Url, Error> {
    abreast_net::check_url(url).ok().and_then(|()| url::Url::parse(url).ok()).ok_or_else(|| {
        Error::new("usage.url", ExitCode::Usage, format!("`{url}` is not an http or https URL"))
            .with_help("write it with its scheme and host, for example https://example.org/")
    })
}

/// Reads the documents of a Source.
pub(crate) trait Reader {
    /// Finds the Source's documents, as an earlier run knew them or by discovery.
    fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error>;

    /// Finds them for reading what the Source lists, and keeps nothing; `known` is the state of the
    /// copy, which names its set where the user does not.
    fn find_read_only(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        observer: &dyn Observer,
    ) -> Result<Start, Error>;

    /// All sets of the Source that an address belongs to, in the Source's order.
    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error>;

    /// Where changes of the set are announced, if anywhere.
    fn announcement(&self, _mirror: &Mirror) -> Result<Option<Announcement>, Error> {
        Ok(None)
    }

    /// Hands over each listed resource. Lists that cannot be read are left out, but for the first.
    fn each_resource(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<(), Error>;

    /// Hands over each listed resource and the changes since. Every list must be read.
    fn expect(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error>;

    /// Plans what makes the copy equal to the Source.
    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error>;

    /// The dumps that planned resources may be in; `since` where the plan is what changed since
    /// then.
    fn packages(
        &mut self,
        _run: &mut PlanContext<'_, '_>,
        _since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error> {
        Ok(Vec::new())
    }

    /// The URL of one package with all changes since a time, where the Source makes such packages
    /// on request.
    fn package_since(
        &mut self,
        _run: &mut PlanContext<'_, '_>,
        _since: Timestamp,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// The Source refused such a package.
    fn forget_package_since(&mut self, _run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        Ok(())
    }

    /// Which resource is which member of a package that this reader named.
    fn manifest(
        &self,
        _requests: &Requests<'_>,
        _package: &Package,
        url: &str,
        _packaged: Packaged,
    ) -> Result<Manifest, Error> {
        Err(Error::new(
            "internal",
            ExitCode::Other,
            format!("{url} is a package of a protocol without packages"),
        ))
    }

    /// Plans what could not be planned before the plan so far was carried out; `true` when there
    /// may be more to do.
    fn plan_rest(&mut self, _run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Whether a resource about which nothing is stated any more is gone.
    fn is_gone_if_empty(&self) -> bool {
        true
    }

    /// Plans what changed while the plan was carried out; `false` when nothing more is known.
    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error>;

    /// Up to where the Source is known, in words for people.
    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error>;

    /// Whether changes were announced that the copy does not have.
    fn is_behind(&self, _mirror: &Mirror) -> Result<bool, Error> {
        Ok(false)
    }

    /// Adds the way out to an error that ended a run.
    fn explain(&self, _requests: &Requests<'_>, _options: &SyncOptions, error: Error) -> Error {
        error
    }
}

/// Keeps what the address of the options led to.
fn keep_found(
    run: &mut PlanContext<'_, '_>,
    keep: &dyn Fn(&Mirror) -> Result<(), Error>,
) -> Result<(), Error> {
    let (options, mirror) = (run.planner.options, run.planner.mirror);
    run.planner.begin(run.report)?;
    mirror.set_meta(key::SOURCE_URL, Some(&options.url))?;
    mirror.set_meta(key::SET, options.set.as_deref())?;
    keep(mirror)?;
    run.planner.commit()
}

/// Takes what a Source lists, to compare a copy with it.
pub(crate) trait Expecting {
    /// A resource is listed.
    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error>;

    /// Lists were not read because of their categories.
    fn left_out(&mut self, _categories: &OtherCategories) {}

    /// Changes before this time do not count: they are in what was listed.
    fn changes_since(&mut self, since: Option<Timestamp>);

    /// Changes handed over from here on are earlier than those before, where their times are the
    /// same: documents are walked back.
    fn earlier_list(&mut self);

    /// A resource changed after the list was made, at that time in microseconds, or `i64::MIN` where
    /// none is stated. Of several changes of one time the last one counts.
    fn changed(&mut self, listed: &Listed<'_>, time: i64) -> Result<(), Error>;

    /// Whether a resource that was handed over is expected in the copy.
    fn is_wanted(&self, uri: &str) -> Result<bool, Error>;
}
