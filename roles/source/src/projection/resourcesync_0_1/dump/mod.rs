//! Dumps [rs-0.1 §4.2]: the packages of a Resource Dump of version 1.1 in two other forms. The
//! forms are made at the first request, and stored next to the packages.
//!
//! | file | subject |
//! |---|---|
//! | `manifest.rs` | the manifest of a package in version 0.1, and its parts |
//! | `zip.rs` | the package as a ZIP file with another manifest |
//! | `warc.rs` | the package as records of a web archive |
//!
//! `DCTERMS.modified` of the manifest is the time of the Resource Dump. If the manifest of a package
//! exceeds the limits of a Sitemap, the package becomes several files. The dump consists of all
//! files to which the Sitemap links.

mod manifest;
mod warc;
mod zip;

use super::site_link;
use super::values::Limits;
use crate::made::MadeFile;
use crate::projection::plain_number;
use crate::projection::resourcesync::dumps::{Derived, Dump, Package, SetDumps};
use crate::publish::files::{FileError, PublishedFile};
use crate::publish::{Freshness, PublishedSet, SetUrls};
use abreast_resourcesync::v0_1::{DUMP, Link};
use manifest::Manifest;
pub(crate) use manifest::PartCounter;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of packages whose count of parts is cached.
const MAX_KNOWN: usize = 10_000;
/// Seconds after which a client may request a dump again that is being made.
const RETRY: u32 = 5;

/// A form of dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Zip,
    Warc,
}

impl Format {
    const ALL: [Self; 2] = [Self::Zip, Self::Warc];

    const fn ending(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Warc => "warc.gz",
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Zip => "application/zip",
            Self::Warc => "application/warc",
        }
    }
}

/// Path of a dump of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpPath<S> {
    pub(super) set: S,
    format: Format,
    name: DumpName,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DumpName {
    /// `v0.1/dump.zip`: the newest dump, if it is a single file.
    Newest,
    /// `v0.1/dump/{package}-{part}.zip`: a file that never changes.
    Part(String, u64),
}

impl<S> DumpPath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        let (slug, rest) = path.split_once('/')?;
        let rest = rest.strip_prefix("v0.1/dump")?;
        let (format, stem) = Format::ALL.into_iter().find_map(|format| {
            Some((format, rest.strip_suffix(format.ending())?.strip_suffix('.')?))
        })?;
        let name = match stem.strip_prefix('/') {
            None if stem.is_empty() => DumpName::Newest,
            None => return None,
            Some(name) => {
                let (package, part) = name.rsplit_once('-')?;
                DumpName::Part(package.to_owned(), plain_number(part).filter(|part| *part > 0)?)
            }
        };
        Some(Self { set: find(slug)?, format, name })
    }
}

/// Address of the newest dump in a format.
fn newest_url(urls: &SetUrls, format: Format) -> String {
    format!("{}v0.1/dump.{}", urls.base(), format.ending())
}

/// Whether the newest dump, or the dump that the first request would make, is a single file.
pub(super) fn has_one(set: &PublishedSet) -> bool {
    set.dumps().is_some_and(|dumps| match dumps.newest_resources() {
        Some(newest) => match &*newest.packages {
            [package] => package.parts.is_none_or(|parts| parts == 1),
            _ => false,
        },
        None => !dumps.impossible(),
    })
}

/// Links from a page or a resource to the dump of its set.
pub(super) fn set_links(set: &PublishedSet) -> impl Iterator<Item = abreast_webtypes::Link> + '_ {
    Format::ALL
        .into_iter()
        .map(|format| site_link(DUMP, newest_url(&set.urls, format), format.media_type()))
}

/// Cached number of parts of each package, by the name of the package. The number never changes.
#[derive(Debug, Default)]
pub(super) struct KnownParts(Mutex<HashMap<String, u64>>);

/// The dumps of a set.
pub(super) struct SetDump<'a> {
    pub(super) set: &'a Arc<PublishedSet>,
    pub(super) known: &'a KnownParts,
    pub(super) limits: Limits,
}

impl SetDump<'_> {
    /// A number that changes when the links to dumps change.
    pub(super) fn version(set: &PublishedSet) -> u64 {
        let Some(dumps) = set.dumps() else { return 0 };
        let newest = dumps.newest_resources().map_or(0, |dump| dump.end.as_micros() as u64);
        newest ^ u64::from(dumps.impossible())
    }

    /// Links of the Sitemap to all files of the dump. If the dump is a single file, or was not made
    /// yet, the addresses are constant.
    pub(super) fn links(&self) -> Vec<Link> {
        let Some(dumps) = self.set.dumps() else { return Vec::new() };
        let newest = dumps.newest_resources();
        if newest.is_none() && dumps.impossible() {
            return Vec::new();
        }
        // All parts or no parts: links to some parts would omit resources, and a copy would lack
        // them.
        let parts = match newest.map(|dump| self.all_parts(dumps, &dump)).transpose() {
            Ok(parts) => parts.unwrap_or_default(),
            Err(error) => {
                tracing::error!(
                    "set `{}`: no link to its dump: cannot read a manifest: {error}",
                    self.set.slug
                );
                return Vec::new();
            }
        };
        let mut links = Vec::new();
        for format in Format::ALL {
            let mut add = |href| {
                let media_type = Some(format.media_type().to_owned());
                links.push(Link { rel: DUMP.to_owned(), href, media_type, ..Link::default() });
            };
            if parts.len() < 2 {
                add(newest_url(&self.set.urls, format));
            } else {
                for (package, part) in &parts {
                    add(self.url(package, *part, format));
                }
            }
        }
        links
    }

    fn url(&self, package: &str, part: u64, format: Format) -> String {
        let (base, ending) = (self.set.urls.base(), format.ending());
        format!("{base}v0.1/dump/{package}-{part}.{ending}")
    }

    /// Packages of a dump, each with the numbers of its parts.
    fn all_parts(&self, dumps: &SetDumps, dump: &Dump) -> std::io::Result<Vec<(String, u64)>> {
        let mut all = Vec::new();
        for package in &dump.packages {
            let parts = self.parts(dumps, package)?;
            all.extend((1..=parts).map(|part| (package.stem.clone(), part)));
        }
        Ok(all)
    }

    /// Number of parts of a package, from the description of its dump. Descriptions written by
    /// earlier versions lack the number: the parts are then counted in the manifest.
    fn parts(&self, dumps: &SetDumps, package: &Package) -> std::io::Result<u64> {
        let stem = package.stem.as_str();
        if let Some(parts) = package.parts.filter(|_| self.limits == Limits::default()) {
            return Ok(parts);
        }
        let known = || self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parts) = known().get(stem) {
            return Ok(*parts);
        }
        let path = dumps.file(&format!("{stem}.xml")).ok_or(std::io::ErrorKind::NotFound)?;
        let parts = Manifest { path: &path, limits: self.limits, parts: u64::MAX }.parts()?;
        let mut known = known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(stem.to_owned(), parts);
        Ok(parts)
    }

    /// Opens a dump, and makes the dump at the first request.
    pub(super) fn open(
        &self,
        path: &DumpPath<&Arc<PublishedSet>>,
    ) -> Result<PublishedFile, FileError> {
        let none = || {
            FileError::NotFound(
                "there is no such dump; it may have been replaced: read the Sitemap again"
                    .to_owned(),
            )
        };
        let dumps = self.set.dumps().ok_or_else(none)?;
        let (package, part, freshness) = match &path.name {
            DumpName::Part(package, part) => (package.clone(), *part, Freshness::Immutable),
            DumpName::Newest => {
                dumps.ask();
                let Some(dump) = dumps.newest_resources() else {
                    return Err(match dumps.failure() {
                        _ if dumps.impossible() => none(),
                        Some((detail, seconds)) => FileError::Later { detail, seconds },
                        None => FileError::Making {
                            detail: "the dump is being made".to_owned(),
                            seconds: RETRY,
                        },
                    });
                };
                let parts = self.all_parts(dumps, &dump).map_err(|cause| FileError::Failed {
                    detail: "the dump cannot be read".to_owned(),
                    cause: Box::new(cause),
                })?;
                let [(package, part)] = parts.as_slice() else {
                    let detail = "this dump has several parts; the Sitemap links to each of them";
                    return Err(FileError::NotFound(detail.to_owned()));
                };
                (package.clone(), *part, Freshness::Revalidate)
            }
        };
        let described = dumps.described(&package)?;
        let parts = described.and_then(|described| self.parts(dumps, &described).ok());
        let parts = parts.filter(|parts| part <= *parts).ok_or_else(none)?;
        let url = self.url(&package, part, path.format);
        let limits = self.limits;
        let make = |zip: &Path, out: &mut MadeFile| {
            let copy = zip.with_extension("xml");
            let manifest = Manifest { path: &copy, limits, parts };
            match path.format {
                Format::Zip => zip::write(zip, &manifest, part, out),
                Format::Warc => warc::write(zip, &manifest, part, &url, out),
            }
        };
        let ending = format!("v0.1-{part}.{}", path.format.ending());
        let made = dumps.derived(&package, &ending, &make);
        let (made, digest) = made.map_err(|error| match error {
            Derived::None => none(),
            Derived::Busy => FileError::Later {
                detail: "this dump is being made, or others are".to_owned(),
                seconds: RETRY,
            },
            Derived::Failed(cause) => FileError::Failed {
                detail: "the dump could not be made".to_owned(),
                cause: Box::new(cause),
            },
            Derived::Refused(refused) => refused,
        })?;
        let location = (freshness == Freshness::Revalidate).then(|| url.clone());
        Ok(PublishedFile {
            content: made,
            gzip: None,
            content_type: path.format.media_type().into(),
            set: Arc::clone(self.set),
            location,
            freshness,
            negotiated: false,
            digest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_have_one_path() {
        let of = |path: &str| {
            let found = DumpPath::parse(path, |slug| (slug == "a").then_some(()))?;
            Some((found.format, found.name))
        };
        let part = |package: &str, part| DumpName::Part(package.to_owned(), part);
        assert_eq!(of("a/v0.1/dump.zip"), Some((Format::Zip, DumpName::Newest)));
        assert_eq!(of("a/v0.1/dump.warc.gz"), Some((Format::Warc, DumpName::Newest)));
        assert_eq!(of("a/v0.1/dump/x-y.1-2-3.zip"), Some((Format::Zip, part("x-y.1-2", 3))));
        for path in [
            "a/v0.1/dump",
            "a/v0.1/dump/",
            "a/v0.1/dump/x.zip",
            "a/v0.1/dump/x-0.zip",
            "a/v0.1/dump/x-01.zip",
            "a/v0.1/dumps.zip",
            "b/v0.1/dump.zip",
            "a/dump/x-1.zip",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
