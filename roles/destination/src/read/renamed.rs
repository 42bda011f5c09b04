//! A set with another name or address at the same server, and a set that its Source has removed.

use crate::copy::key;
use crate::read::resourcesync::entry_points::EntryPoints;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::same_origin;
use crate::request::moves::Move;
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;

/// Addresses of the Source that a copy has stored: the base of all resources, and the address of the copy.
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
