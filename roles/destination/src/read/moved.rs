//! A Source that has moved to another address: errors, and the record of an unfinished move.

use crate::copy::common_base::authority_root;
use crate::copy::key;
use crate::read::resourcesync::entry_points::EntryPoints;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::same_origin;
use crate::request::moves::Move;
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

/// What a copy knows of its Source's addresses: a resource, the base of all, and the address of the copy.
pub(crate) fn known_addresses(mirror: &Mirror) -> Result<Vec<String>, Error> {
    let keys = [key::BASE, key::SOURCE_URL];
    let known = keys.map(|key| mirror.meta(key)).into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(known.into_iter().flatten().collect())
}

/// The address of the copy, if the given one is a former address: it redirects there permanently.
pub(crate) fn current_address(
    (requests, options): (&Requests<'_>, &SyncOptions),
    mirror: &Mirror,
) -> Result<Option<String>, Error> {
    let is_other = |known: &String| *known != options.url && same_origin(known, &options.url);
    let Some(known) = mirror.meta(key::SOURCE_URL)?.filter(|known| is_other(known)) else {
        return Ok(None);
    };
    let to = requests.open(&options.url, 0, |answer| {
        answer
            .ok()
            .filter(|begun| begun.response.has_moved())
            .map(|begun| begun.response.url().to_owned())
    });
    Ok(to.ok().flatten().filter(|to| *to == known))
}

/// The options of a run that moves the copy, if the address of the copy has moved, too.
pub(crate) fn follow_move(
    (requests, options): (&Requests<'_>, &SyncOptions),
    found: &Move,
    mirror: &Mirror,
) -> Result<SyncOptions, Error> {
    let has_moved = |url: &str, to: &str| {
        let seen = requests.open(url, 0, |answer| {
            answer.is_ok_and(|begun| begun.response.has_moved() && begun.response.url() == to)
        });
        seen.unwrap_or(false)
    };
    let moved = SyncOptions { moved: true, ..options.clone() };
    if let Some(to) = found.apply(&options.url) {
        let set = options
            .set
            .as_ref()
            .map(|set| found.apply(set).unwrap_or_else(|| found.name().to_owned()));
        if has_moved(&options.url, &to) {
            return Ok(SyncOptions { url: to, set, ..moved });
        }
    } else if let Some(first) = EntryPoints::known(mirror)?.first()
        && found.apply(first).is_some_and(|to| has_moved(first, &to))
    {
        let name = found.name();
        return match &options.set {
            None => Ok(SyncOptions { set: Some(name.to_owned()), ..moved }),
            Some(set) => Err(Error::new(
                "source.renamed",
                ExitCode::Usage,
                format!("the set `{set}` is `{name}` now, at {}; nothing was changed", found.to),
            )
            .with_help(format!("run again with `--set {name} --moved`: the copy is kept"))),
        };
    }
    // A document has moved, and not the set.
    Ok(options.clone())
}

/// The error for a comparison with a set that was renamed or removed at the Source.
pub(crate) fn explain(
    run: (&Requests<'_>, &SyncOptions),
    mirror: Option<&Mirror>,
    error: Error,
) -> Error {
    match run.0.moves.take().found {
        Some(found) => {
            let message =
                format!("the set of this copy is at {} now, and not at {}", found.to, found.from);
            Error::new("source.renamed", ExitCode::Usage, message)
                .with_help("run `abreast sync` with the same arguments first: the copy is kept")
        }
        None => or_removed(run, mirror, error),
    }
}

/// The error for a set that the Source has removed: its address, or its known Capability List, answers 410
/// [rfc9110 §15.5.11].
pub(crate) fn or_removed(
    (requests, options): (&Requests<'_>, &SyncOptions),
    mirror: Option<&Mirror>,
    error: Error,
) -> Error {
    if error.status() != Some(410) {
        return error;
    }
    let is_gone = |url: &String| {
        let is_gone = |error: &abreast_net::Error| error.status() == Some(410);
        requests.open(url, 0, |answer| answer.is_err_and(is_gone)).unwrap_or(false)
    };
    let known = mirror.and_then(|mirror| EntryPoints::known(mirror).ok());
    let list = known.and_then(|known| known.first().map(str::to_owned));
    let Some(url) = [Some(options.url.clone()), list].into_iter().flatten().find(is_gone) else {
        return error;
    };
    let message = format!("the Source has removed this set: {url} answers 410, gone");
    let error =
        Error::new("source.removed", ExitCode::SourceInvalid, message).with_status(Some(410));
    error.with_help("the copy is kept as it is; end its job, or give the address of another set")
}
