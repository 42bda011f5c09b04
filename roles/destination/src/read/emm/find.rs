//! The way from an address to the Entry Point of a feed.

use super::document::{Read, read};
use crate::read::check_url;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use abreast_emm::DocumentKind;

/// The Entry Point of the feed at an address; a page stands for its feed where that cannot be read.
pub(super) fn find(requests: &Requests<'_>, options: &SyncOptions) -> Result<Read, Error> {
    check_url(&options.url)?;
    let found = read(requests, &options.url)?;
    let whole = match found.document.kind {
        DocumentKind::EntryPoint => return Ok(found),
        DocumentKind::Page => found.document.part_of.clone().filter(|url| *url != options.url),
    };
    let Some(url) = whole else { return Ok(found) };
    check_host(options, &options.url, &url)?;
    match read(requests, &url) {
        Ok(whole) if whole.document.kind == DocumentKind::EntryPoint => Ok(whole),
        // Some pages name a collection that is at another address, or nowhere.
        Ok(_) => Ok(found),
        Err(error) if error.exit_code() == ExitCode::SourceInvalid => Ok(found),
        Err(error) => Err(error),
    }
}

/// # Errors
/// A document is on a host that is not allowed.
pub(super) fn check_host(options: &SyncOptions, named_by: &str, url: &str) -> Result<(), Error> {
    let mut admission = Admission::new(&options.url, &options.allow_hosts, options.allow_downgrade);
    admission.check(url).map_err(|refusal| {
        let message = format!("{named_by} leads to {url}: {}", refusal.message());
        Error::new(refusal.code(), ExitCode::SourceInvalid, message)
    })
}
