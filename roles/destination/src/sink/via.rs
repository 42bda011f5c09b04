//! The origin of a file that is published again: a link in the file `.NAME.links.json` next to the
//! file. A Source publishes this link in its documents [rs-core §14.8].
//!
//! In a chain of aggregators, only the first origin is published: a listed link `via` is written
//! unchanged.

use super::outcome::Notice;
use super::{Body, TemporaryFile};
use crate::copy::place::{Place, create_temporary, shown};
use crate::report::failure::Failure;
use abreast_folder::{Dir, ErrorKind};
use abreast_store::mirror::Task;
use abreast_webtypes::{Digests, Timestamp};
use serde_json::{Map, Value};
use std::io::{Read as _, Write as _};

const RELATION: &str = "via";
/// The relation of the address of the request, if it differs from the URI.
const REQUESTED: &str = "urn:abreast:rel:requested";
/// Longest link taken over from a list.
pub(crate) const VIA_BYTES_MAX: usize = 8 << 10;
/// Longest file of links that is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Whether a file of links has this name. No resource may have such a name, since it could contain
/// wrong links for other resources.
pub(crate) fn is_sidecar(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(b".links.json")
}

/// The name of the file whose links are in a file of this name.
pub(crate) fn owner(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(b".")?.strip_suffix(b".links.json").filter(|owner| !owner.is_empty())
}

fn sidecar(name: &[u8]) -> Vec<u8> {
    [b".".as_slice(), name, b".links.json"].concat()
}

pub(crate) fn to_json(
    href: &str,
    modified: Option<Timestamp>,
    hash: &str,
    length: Option<u64>,
    media_type: Option<&str>,
) -> Value {
    let mut link = Map::new();
    let mut put = |name: &str, value: Value| link.insert(name.to_owned(), value);
    put("rel", RELATION.into());
    put("href", href.into());
    if let Some(modified) = modified {
        put("modified", modified.to_string().into());
    }
    if !hash.is_empty() {
        put("hash", hash.into());
    }
    if let Some(length) = length {
        put("length", length.into());
    }
    if let Some(media_type) = media_type {
        put("type", media_type.into());
    }
    Value::Object(link)
}

/// Metadata of the bytes that a link is written for.
pub(super) struct Known<'a> {
    pub(super) digests: &'a Digests,
    pub(super) length: u64,
    pub(super) media_type: Option<&'a str>,
}

impl<'a> Known<'a> {
    pub(super) fn of(body: &'a Body<'_>) -> Self {
        Self { digests: &body.digests, length: body.length, media_type: body.media_type.as_deref() }
    }
}

/// Writes the origin of a resource next to its file, and preserves other links.
pub(super) fn write(
    task: &Task,
    place: &Place,
    known: &Known<'_>,
) -> Result<Option<Notice>, Failure> {
    let item = &task.pending;
    let listed = item.via.as_deref().and_then(|json| serde_json::from_str(json).ok());
    let via = listed.unwrap_or_else(|| {
        let modified = item.modified.map(Timestamp::from_micros);
        to_json(
            &item.uri,
            modified,
            &known.digests.to_string(),
            Some(known.length),
            known.media_type,
        )
    });
    let name = sidecar(place.name());
    if name.len() > 255 {
        return Ok(Some(Notice::new(
            "via.name",
            "its name is too long for a file of links beside it",
        )));
    }
    let Some(others) = others(&place.dir, &name)? else {
        let message = format!("`{}` is not an array of links; it was not changed", shown(&name));
        return Ok(Some(Notice::new("via.file", message)));
    };
    let requested = item.access.as_ref().and_then(|access| access.href.as_deref());
    let requested = requested.map(|href| serde_json::json!({"rel": REQUESTED, "href": href}));
    let links: Vec<Value> = std::iter::once(via).chain(requested).chain(others).collect();
    replace(&place.dir, &name, &links)?;
    Ok(None)
}

/// Removes the origin of a deleted resource, and preserves other links.
pub(super) fn remove(place: &Place) -> Result<(), Failure> {
    let name = sidecar(place.name());
    match others(&place.dir, &name)? {
        Some(others) if !others.is_empty() => replace(&place.dir, &name, &others),
        Some(_) => match place.dir.unlink(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        },
        None => Ok(()),
    }
}

/// A file got another name: so do its links.
pub(super) fn rename(from: &Place, to: &Place) -> Result<(), abreast_folder::Error> {
    match from.dir.rename(&sidecar(from.name()), &to.dir, &sidecar(to.name())) {
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::TooLong | ErrorKind::Name
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Whether this is a file of links that a run wrote, without its file. A killed run may leave such
/// a file.
pub(crate) fn is_orphan(dir: &Dir, name: &[u8]) -> bool {
    owner(name).is_some_and(|owner| {
        dir.stat(owner).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }) && matches!(links(dir, name), Ok(Some(links))
            if !links.is_empty() && links.iter().all(is_written))
}

/// Whether a run wrote this link.
fn is_written(link: &Value) -> bool {
    link["rel"] == RELATION || link["rel"] == REQUESTED
}

/// The links of a file except its origin; `None` if the file of links is not valid.
fn others(dir: &Dir, name: &[u8]) -> Result<Option<Vec<Value>>, Failure> {
    let mut links = links(dir, name)?;
    if let Some(links) = &mut links {
        links.retain(|link| !is_written(link));
    }
    Ok(links)
}

/// The links of a file, empty if the file of links is missing; `None` if it is not valid.
fn links(dir: &Dir, name: &[u8]) -> Result<Option<Vec<Value>>, Failure> {
    let (file, stat) = match dir.open_read(name) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::TooLong | ErrorKind::Name
            ) =>
        {
            return Ok(Some(Vec::new()));
        }
        opened => opened?,
    };
    let mut bytes = Vec::new();
    if stat.size > FILE_BYTES_MAX || file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).is_err() {
        return Ok(None);
    }
    Ok(serde_json::from_slice::<Vec<Value>>(&bytes).ok())
}

fn replace(dir: &Dir, name: &[u8], links: &[Value]) -> Result<(), Failure> {
    let mut temporary_name = crate::copy::path_map::TEMPORARY_PREFIX.to_vec();
    temporary_name.extend_from_slice(
        &crate::copy::names::temporary_name(&String::from_utf8_lossy(name))[3..],
    );
    let file = create_temporary(dir, &temporary_name)?;
    let mut temporary = TemporaryFile {
        dir: dir.clone(),
        name: temporary_name,
        file,
        kept: false,
        resumable: false,
    };
    let mut text = serde_json::to_vec(links).map_err(std::io::Error::from)?;
    text.push(b'\n');
    temporary.file.write_all(&text)?;
    temporary.dir.rename(&temporary.name, dir, name)?;
    temporary.kept = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_of_links_are_known() {
        assert!(
            is_sidecar(b".a.links.json") && !is_sidecar(b"a.links.json") && !is_sidecar(b".a.json")
        );
        assert_eq!(owner(b".a.links.json"), Some(&b"a"[..]));
        assert_eq!(owner(b"..links.json"), None);
    }
}
