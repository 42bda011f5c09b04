//! Finds the documents of a set from an address: all links are in its Sitemap
//! [rs-0.1 §4.2, §5.1].

use super::document::{Read, read_head, target};
use super::recognise::is_dump_begin;
use super::site;
use crate::push::announcement::PushOffer;
use crate::read::check_url;
use crate::read::moved::other_source;
use crate::read::protocol::HEAD_BYTES;
use crate::read::sitemap::document::{BEGIN_BYTES, DOCUMENT_BYTES_MAX, read_received};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::package::listing::ListedPackage;
use crate::request::pieces::{Asked, Go, receive, unasked};
use crate::request::requests::Requests;
use abreast_resourcesync::v0_1::{CHANGE_SET, DUMP, Link};
use abreast_store::mirror::Mirror;

const SITEMAP: &str = "rs01-sitemap";
const CHANGES: &str = "rs01-changes";
const DUMPS: &str = "rs01-dump";
const OFFERS: &str = "rs01-push";
/// Maximum number of Sitemaps of a site that are read to find the Sitemap of a change set or a
/// dump.
const SITEMAPS_MAX: usize = 10;

/// The documents that describe a set of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryPoints {
    /// The Sitemap, or the index of several.
    pub(crate) sitemap: Option<String>,
    /// The current change set.
    pub(crate) change_set: Option<String>,
    /// The parts of the dump: all that are linked in one form.
    pub(crate) dumps: Vec<DumpLink>,
    /// The push addresses for change sets.
    pub(crate) offers: Vec<PushOffer>,
}

/// Forms of dumps, the best first: a Source may offer the same in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Zip,
    Warc,
    Other,
}

/// A dump, or a part of a dump, as a document links to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DumpLink {
    pub(crate) url: String,
    pub(crate) media_type: Option<String>,
}

impl DumpLink {
    pub(super) fn package(&self) -> ListedPackage {
        let (url, media_type) = (self.url.clone(), self.media_type.clone());
        ListedPackage { url, media_type, may_be_warc: true, ..ListedPackage::default() }
    }

    fn form(&self) -> Form {
        let package = self.package();
        match () {
            () if package.is_warc() => Form::Warc,
            () if package.check_format().is_ok() => Form::Zip,
            () => Form::Other,
        }
    }

    fn to_line(&self) -> String {
        let media_type = self.media_type.iter().flat_map(|it| it.split_ascii_whitespace());
        [self.url.as_str()].into_iter().chain(media_type).collect::<Vec<_>>().join(" ")
    }

    fn from_line(line: &str) -> Self {
        let (url, media_type) = line.split_once(' ').map_or((line, None), |(a, b)| (a, Some(b)));
        Self { url: url.to_owned(), media_type: media_type.map(str::to_owned) }
    }
}

impl EntryPoints {
    /// Whether there is anything that a copy can be made from.
    pub(super) const fn has_any(&self) -> bool {
        self.sitemap.is_some() || self.change_set.is_some() || !self.dumps.is_empty()
    }

    /// The document that identifies the set: hosts are judged by it.
    pub(super) fn first(&self) -> Option<&str> {
        let dump = self.dumps.first().map(|dump| dump.url.as_str());
        self.sitemap.as_deref().or(self.change_set.as_deref()).or(dump)
    }

    /// The documents to which a document links. Documents on hosts that are not allowed are left
    /// out.
    pub(super) fn of(read: &Read, url: &str, options: &SyncOptions) -> Self {
        let base = &read.answered.url;
        let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
        let mut admitted = |link: &Link| admitted(base, link, &mut admission);
        let with_rel = |rel: &'static str| read.head.links.iter().filter(move |it| it.has_rel(rel));
        let dumps = of_one_form(with_rel(DUMP).filter_map(&mut admitted));
        let mut first = |rel: &'static str, wanted: &dyn Fn(&Link) -> bool| {
            with_rel(rel).filter(|link| wanted(link)).find_map(&mut admitted)
        };
        let current = first(CHANGE_SET, &|link| link.has_rel("current"))
            .or_else(|| first(CHANGE_SET, &|link| !link.has_rel("prev")))
            .map(|link| link.url);
        let is_change_set = read.head.is_change_set(base);
        let sitemap = if is_change_set {
            first("sitemap", &|_| true).or_else(|| first("up", &|_| true)).map(|link| link.url)
        } else {
            Some(url.to_owned())
        };
        let change_set = current.or_else(|| is_change_set.then(|| url.to_owned()));
        let offers = PushOffer::all_of(&read.head.links, base, change_set.as_deref());
        Self { sitemap, change_set, dumps, offers }
    }

    /// Adds documents from another document of the set, if they are not known.
    pub(super) fn add(&mut self, other: Self) {
        self.sitemap = self.sitemap.take().or(other.sitemap);
        self.change_set = self.change_set.take().or(other.change_set);
        if self.dumps.is_empty() {
            self.dumps = other.dumps;
        }
        if self.offers.is_empty() {
            self.offers = other.offers;
        }
    }

    /// Takes all parts of a dump that is linked in a page; the first was found.
    pub(super) fn take_parts(&mut self, urls: impl Iterator<Item = String>) {
        self.dumps = of_one_form(urls.map(|url| DumpLink { url, media_type: None }));
    }

    /// Retains the known change set and its push addresses if none were found, since a Sitemap need
    /// not link to them.
    pub(super) fn keep_changes_of(&mut self, known: &Self) {
        if self.change_set.is_none() {
            self.change_set.clone_from(&known.change_set);
        }
        if self.offers.is_empty() && self.change_set == known.change_set {
            self.offers.clone_from(&known.offers);
        }
    }

    /// # Errors
    /// The folder is a copy of another set, `known`.
    pub(super) fn check_same(&self, known: &Self, url: &str) -> Result<(), Error> {
        let same = |own: Option<&str>, known: Option<&str>| own.is_some() && own == known;
        let is_known = |dump: &DumpLink| known.dumps.iter().any(|known| known.url == dump.url);
        if !known.has_any()
            || same(self.sitemap.as_deref(), known.sitemap.as_deref())
            || same(self.change_set.as_deref(), known.change_set.as_deref())
            || self.dumps.iter().any(is_known)
        {
            return Ok(());
        }
        let of = |points: &Self| points.first().unwrap_or_default().to_owned();
        let message =
            format!("this folder is a copy of {}, not of {} ({url})", of(known), of(self));
        Err(other_source(message))
    }

    /// The documents that an earlier run stored.
    pub(super) fn known(mirror: &Mirror) -> Result<Self, Error> {
        let dumps = mirror.meta(DUMPS)?.unwrap_or_default();
        let offers = mirror.meta(OFFERS)?.unwrap_or_default();
        Ok(Self {
            sitemap: mirror.meta(SITEMAP)?,
            change_set: mirror.meta(CHANGES)?,
            dumps: dumps.lines().map(DumpLink::from_line).collect(),
            offers: offers.lines().filter_map(PushOffer::from_line).collect(),
        })
    }

    /// Stores the documents for the next run.
    pub(super) fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        let lines = |lines: Vec<String>| Some(lines.join("\n")).filter(|lines| !lines.is_empty());
        mirror.set_meta(SITEMAP, self.sitemap.as_deref())?;
        mirror.set_meta(CHANGES, self.change_set.as_deref())?;
        let dumps = lines(self.dumps.iter().map(DumpLink::to_line).collect());
        mirror.set_meta(DUMPS, dumps.as_deref())?;
        let offers = lines(self.offers.iter().map(PushOffer::to_line).collect());
        Ok(mirror.set_meta(OFFERS, offers.as_deref())?)
    }
}

/// The dumps of a single format, without duplicates: ZIP files, otherwise WARC files. If there are
/// neither, the dumps that cannot be read, for the error message.
fn of_one_form(links: impl Iterator<Item = DumpLink>) -> Vec<DumpLink> {
    let mut dumps: Vec<DumpLink> = Vec::new();
    for link in links {
        if !dumps.iter().any(|known| known.url == link.url) {
            dumps.push(link);
        }
    }
    let best = dumps.iter().map(DumpLink::form).min();
    dumps.retain(|link| Some(link.form()) == best);
    dumps
}

/// Finds the documents of the set at an address.
///
/// # Errors
/// The document cannot be read, or does not belong to this version.
pub(super) fn find(
    requests: &Requests<'_>,
    options: &SyncOptions,
    address: &str,
) -> Result<EntryPoints, Error> {
    check_url(address)?;
    let asked = Asked::begin(address, BEGIN_BYTES, DOCUMENT_BYTES_MAX);
    let mut received = receive(requests, &asked)?.ok_or_else(|| unasked(address))?;
    if is_dump_begin(&received.first_bytes(HEAD_BYTES)?) {
        let alone = || EntryPoints {
            dumps: vec![DumpLink { url: address.to_owned(), media_type: None }],
            ..EntryPoints::default()
        };
        return Ok(dump_of_site(requests, options, address)?.unwrap_or_else(alone));
    }
    let read = read_received(requests, received, &mut |_| Ok(Go::Enough))?;
    let mut found = EntryPoints::of(&read, address, options);
    if let (None, Some(current)) = (&found.sitemap, found.change_set.clone())
        && let Some(of_site) = sitemap_of(requests, options, address, &current)?
    {
        found.add(of_site);
    }
    Ok(found)
}

/// The absolute URL of a link, unless its host is not allowed.
fn admitted(base: &str, link: &Link, admission: &mut Admission) -> Option<DumpLink> {
    let url = target(base, link).filter(|url| admission.check(url).is_ok())?;
    Some(DumpLink { url, media_type: link.media_type.clone() })
}

/// All parts of the dump to which this file belongs, and the changes since, if a Sitemap of the
/// site links to the file: a single part would be taken for the whole dump.
fn dump_of_site(
    requests: &Requests<'_>,
    options: &SyncOptions,
    address: &str,
) -> Result<Option<EntryPoints>, Error> {
    let mut of_site = None;
    each_sitemap(requests, options, (address, false), &mut |url, read| {
        let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
        let links = read.head.links.iter().filter(|link| link.has_rel(DUMP));
        let all: Vec<_> =
            links.filter_map(|link| admitted(&read.answered.url, link, &mut admission)).collect();
        if let Some(own) = all.iter().find(|link| link.url == address).map(DumpLink::form) {
            let dumps = of_one_form(all.into_iter().filter(|link| link.form() == own));
            let found = EntryPoints::of(read, url, options);
            of_site = Some(EntryPoints { sitemap: None, dumps, ..found });
        }
        of_site.is_some()
    })?;
    Ok(of_site)
}

/// The Sitemap of the site that has this current change set: change sets need not link to it.
fn sitemap_of(
    requests: &Requests<'_>,
    options: &SyncOptions,
    address: &str,
    current: &str,
) -> Result<Option<EntryPoints>, Error> {
    let mut of_site = None;
    each_sitemap(requests, options, (address, true), &mut |url, read| {
        let found = EntryPoints::of(read, url, options);
        if found.sitemap.is_some() && found.change_set.as_deref() == Some(current) {
            of_site = Some(found);
        }
        of_site.is_some()
    })?;
    Ok(of_site)
}

/// Reads the Sitemaps to which the site of an address, or the response of the address itself,
/// links, until `is_it` returns true. Sitemaps that cannot be read are skipped.
fn each_sitemap(
    requests: &Requests<'_>,
    options: &SyncOptions,
    (address, own): (&str, bool),
    is_it: &mut dyn FnMut(&str, &Read) -> bool,
) -> Result<(), Error> {
    for url in site::sitemaps(requests, options, address, own)?.into_iter().take(SITEMAPS_MAX) {
        match read_head(requests, &url) {
            Ok(read) if is_it(&url, &read) => break,
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}
