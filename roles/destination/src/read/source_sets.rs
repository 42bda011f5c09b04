//! The sets of a Source.

use super::choice::Choice;
use super::{SourceSet, check_url};
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_net::Shared;
use std::sync::atomic::AtomicBool;

/// All sets of the Source that an address belongs to, in the Source's order.
///
/// # Errors
/// The address or the Source Description cannot be read; a set on a host that is not allowed.
pub fn source_sets(options: &SyncOptions, cancel: &AtomicBool) -> Result<Vec<SourceSet>, Error> {
    check_url(&options.url)?;
    let requests = Requests::new(options, cancel, &Shared::new(options.net_options()))?;
    Choice::default().reader(&requests, options, None)?.sets(&requests, options)
}
