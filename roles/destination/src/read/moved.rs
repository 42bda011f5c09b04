//! A Source that has moved to another address: errors, and the record of an unfinished move.

use crate::copy::common_base::authority_root;
use crate::copy::key;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;

/// The new address, until the documents there were found.
pub(crate) const MOVED: &str = "moved";

/// Whether the copy has moved to an address whose documents were not found yet.
pub(crate) fn is_under_way(mirror: &Mirror) -> Result<bool, Error> {
    Ok(mirror.meta(MOVED)?.is_some())
}

/// Ends a move, in the transaction that stores the documents at the new address.
pub(crate) fn finish(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(MOVED, None)?)
}

/// The error for a copy of another address than the given one.
pub(crate) fn other_source(message: impl Into<String>) -> Error {
    Error::new("folder.source", ExitCode::Usage, message).with_help(
        "use another place; or, if the Source has moved there, run again with `--moved`: the copy is kept",
    )
}

/// Adds to such an error that the address of the copy redirects to the given one.
pub(crate) fn with_redirect(
    error: Error,
    (requests, options): (&Requests<'_>, &SyncOptions),
    mirror: &Mirror,
) -> Result<Error, Error> {
    let Some(known) = mirror.meta(key::SOURCE_URL)?.filter(|known| *known != options.url) else {
        return Ok(error);
    };
    let to = requests
        .open(&known, 0, |answer| answer.ok().map(|begun| begun.response.url().to_string()));
    let is_server = |url: &String| authority_root(url) == authority_root(&options.url);
    Ok(match to.ok().flatten().filter(|to| is_server(to) && !is_server(&known)) {
        Some(to) => {
            error.with_line(&format!("{known} redirects to {to} now: the Source has moved"))
        }
        None => error,
    })
}
