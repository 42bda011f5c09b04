//! Discovery: from any URL of a Source to its Capability, Resource and Change Lists [rs-core §6.3,
//! §8, §9].
//!
//! The address from the user must respond. Only a page or the root of a site leads to other
//! documents of the site, and the way to them is reported.

use super::document::{Page, read_page};
use super::sets::{Candidate, add};
use super::{keys, links};
use crate::read::emm::other_json;
use crate::read::resourcesync::document::{is_oai_pmh, is_rss};
use crate::read::resourcesync::entry_points::EntryPoints;
use crate::read::sitemap::document::Part;
use crate::read::{check_url, sets};
use crate::report::error::{Error, ExitCode, line_of};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::pieces::Go;
use crate::request::requests::Requests;
use abreast_resourcesync::v1_1::{Capability, Entry};
use abreast_store::mirror::Mirror;
use abreast_webtypes::robots_sitemaps;
use std::collections::HashSet;
use url::Url;

/// Maximum number of documents in one search.
const DOCUMENTS_MAX: usize = 40;
/// Maximum number of entries in a Source Description or Capability List; a Sitemap may have as
/// many.
const SETS_MAX: usize = 50_000;
/// The link to the common start of URIs.
const URI_SPACE: &str = "http://rdfs.org/ns/void#uriSpace";
/// The link to the address that creates a package with all changes since a time.
const CHANGES_SINCE: &str = "urn:abreast:rel:changes-since";

/// The code of the strict reader's error about a Sitemap without elements of this version.
const PLAIN_SITEMAP: &str = "rs.no-md";

/// The help if discovery finds nothing.
const GIVE: &str = "give the URL of a Capability List, Resource List, Change List or Sitemap, of a feed of SDShare, or of an \
                    Entry Point of a change feed";

impl EntryPoints {
    /// The contents of a Capability List that was missing before, if it is available now and
    /// belongs to the same lists.
    pub(crate) fn find_missing(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Option<Self>, Error> {
        let Some(list) = &self.missing_capability_list else { return Ok(None) };
        let found = match set_above(requests, options, list) {
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            Ok(Above::Set(set)) => set.entry_points,
            _ => None,
        };
        Ok(found.map(|found| *found).filter(|found| found.check_same(self, list).is_ok()))
    }

    /// The current contents of the Capability List; `None` if the list cannot be read, or belongs
    /// to another Resource List.
    pub(crate) fn read_again(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        list: &str,
    ) -> Result<Option<Self>, Error> {
        let found = match inspect(requests, options, list) {
            Ok(Seen::Sets(sets)) => sets.into_iter().find_map(|set| set.entry_points),
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            _ => None,
        };
        Ok(found.map(|found| *found).filter(|found| found.resource_list == self.resource_list))
    }
}

/// The documents of a set, and the way to them if the given address does not describe the set
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discovered {
    pub(crate) entry_points: EntryPoints,
    /// The way from the address to the documents, for the user.
    pub(crate) route: Option<String>,
}

/// The kind of document at an address.
enum Seen {
    /// A Source Description, or a document of a single set.
    Sets(Vec<Candidate>),
    /// An index of Source Descriptions.
    Descriptions(Vec<String>),
    /// Another file: its links, and the message about a JSON file.
    Page { links: Vec<String>, is_html: bool, json: Option<String> },
}

/// Finds the set that the user means; [`super::sets`] has the rule by which it is chosen.
///
/// # Errors
/// The address given cannot be read, or leads nowhere; several sets and no choice between them.
pub(crate) fn discover(
    requests: &Requests<'_>,
    options: &SyncOptions,
) -> Result<Discovered, Error> {
    find(requests, options).map_err(|error| with_other_sets(requests, options, error))
}

fn find(requests: &Requests<'_>, options: &SyncOptions) -> Result<Discovered, Error> {
    let found = Search { requests, options, seen: Vec::new(), tried: Vec::new() }
        .run(options.set.is_some())?;
    let chosen = sets::choose(&found.candidates, options.set.as_deref(), &options.url)?;
    let entry_points = entry_points_of(requests, options, chosen.clone())?;
    let route = found.route.map(|route| {
        match entry_points.capability_list.as_deref().or(entry_points.first()) {
            Some(list) if list != found.at => format!("{route}, which leads to {list}"),
            _ => route,
        }
    });
    Ok(Discovered { entry_points, route })
}

/// All sets of the Source that the given address belongs to.
///
/// # Errors
/// As [`discover`].
pub(crate) fn discover_all(
    requests: &Requests<'_>,
    options: &SyncOptions,
) -> Result<Vec<Candidate>, Error> {
    let found = Search { requests, options, seen: Vec::new(), tried: Vec::new() }
        .run(true)
        .map_err(|error| with_other_sets(requests, options, error))?;
    for candidate in &found.candidates {
        candidate.check()?;
    }
    Ok(found.candidates)
}

/// The documents of a set, from its Capability List if that was not read yet.
fn entry_points_of(
    requests: &Requests<'_>,
    options: &SyncOptions,
    chosen: Candidate,
) -> Result<EntryPoints, Error> {
    chosen.check()?;
    let url = match chosen {
        Candidate { entry_points: Some(entry_points), .. } => return Ok(*entry_points),
        Candidate { url, .. } => url,
    };
    let nothing = |what: &str| {
        Error::new(
            "discover.nothing",
            ExitCode::SourceInvalid,
            format!("{url} is listed as a set of resources, but it is {what}"),
        )
    };
    match inspect(requests, options, &url)? {
        Seen::Sets(mut sets) if sets.len() == 1 => {
            let set = sets.remove(0);
            set.entry_points
                .map(|entry_points| *entry_points)
                .ok_or_else(|| nothing("a Source Description"))
        }
        Seen::Sets(_) | Seen::Descriptions(_) => Err(nothing("a Source Description")),
        Seen::Page { .. } => Err(nothing("not a ResourceSync document")),
    }
}

/// The result of a search.
struct Searched {
    candidates: Vec<Candidate>,
    /// The document that contains the candidates.
    at: String,
    /// The way from the given address to that document, if they differ.
    route: Option<String>,
}

/// One search, which starts at the given address.
struct Search<'a> {
    requests: &'a Requests<'a>,
    options: &'a SyncOptions,
    seen: Vec<String>,
    /// Requested without success.
    tried: Vec<String>,
}

impl Search<'_> {
    /// Only pages, `Link` headers and roots of sites lead to other documents. With `whole`, a
    /// document of a single set leads to the Source Description, so that a set can be chosen by its
    /// name.
    fn run(mut self, whole: bool) -> Result<Searched, Error> {
        let given = self.options.url.clone();
        let start = check_url(&given)?;
        let is_root = start.path().ends_with('/');
        let page = match self.inspect(&given) {
            Ok(Seen::Page { links, is_html, json }) if links.is_empty() => {
                if !is_html && start.path() != "/" {
                    let kind = json.map(|kind| format!(": {kind}")).unwrap_or_default();
                    let message = format!(
                        "{given} is not a document of ResourceSync or another protocol that is read{kind}"
                    );
                    return Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message));
                }
                Ok(is_html)
            }
            Ok(Seen::Page { links, .. }) => return self.follow(links),
            Ok(Seen::Descriptions(parts)) => return self.descriptions(parts, given, None),
            Ok(Seen::Sets(candidates)) if whole => return self.widen(candidates, &start),
            Ok(Seen::Sets(candidates)) => {
                return Ok(Searched { candidates, at: given, route: None });
            }
            // Web servers send such a response for a folder without an index page.
            Err(error) if is_root && is_absent(&error) => Err(error),
            Err(error) if start.path() == "/" && error.code() == HEADER => {
                self.tried.push(line_of(&given, &error));
                Err(error)
            }
            Err(error) => return Err(error),
        };
        // From a folder that does not exist nothing follows for the rest of the site.
        let is_site = page.is_ok() || start.path() == "/";
        if let Some(found) = self.site(&start, is_site)? {
            return Ok(found);
        }
        let error = match page {
            Err(error) if start.path() != "/" || error.exit_code() == ExitCode::Auth => {
                return Err(error);
            }
            Ok(true) => Error::new(
                "discover.page",
                ExitCode::SourceInvalid,
                format!("{given} is a web page that leads to no ResourceSync document, and its site has none"),
            )
            .with_help("ask the site's operator for the URL of its Capability List, Resource List or Sitemap"),
            _ => Error::new(
                "discover.nothing",
                ExitCode::SourceInvalid,
                format!("found no ResourceSync documents at {given}"),
            )
            .with_help(GIVE),
        };
        Err(error.with_tried(&self.tried))
    }

    fn inspect(&mut self, url: &str) -> Result<Seen, Error> {
        if self.seen.len() >= DOCUMENTS_MAX {
            let message =
                format!("{} leads through more than {DOCUMENTS_MAX} documents", self.options.url);
            return Err(Error::new("discover.nothing", ExitCode::Limit, message)
                .with_help("give the URL of a Capability List, Resource List or Sitemap"));
        }
        self.seen.push(url.to_owned());
        inspect(self.requests, self.options, url)
    }

    /// Reads the well-known places of a Source [rs-core §6.3]; each may be missing.
    fn site(&mut self, start: &Url, is_site: bool) -> Result<Option<Searched>, Error> {
        let all = [
            "./.well-known/resourcesync",
            "/.well-known/resourcesync",
            "/robots.txt",
            "/sitemap.xml",
        ];
        for place in &all[..if is_site { all.len() } else { 1 }] {
            let Ok(url) = start.join(place).map(String::from) else { continue };
            if self.seen.contains(&url) {
                continue;
            }
            let route = format!("{start} names no Source itself; found {url}");
            match self.inspect(&url) {
                Ok(Seen::Sets(candidates))
                    if place.ends_with("resourcesync") && candidates[0].is_sitemap() =>
                {
                    let message = format!(
                        "{url} is not a Source Description, which it should be [rs-core §6.3.2]"
                    );
                    return Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message)
                        .with_help("give the URL of a Capability List, Resource List or Sitemap"));
                }
                Ok(Seen::Sets(candidates)) => {
                    return Ok(Some(Searched { candidates, at: url, route: Some(route) }));
                }
                Ok(Seen::Descriptions(parts)) => {
                    return self.descriptions(parts, url, Some(route)).map(Some);
                }
                Ok(Seen::Page { links, is_html: false, .. }) if !links.is_empty() => {
                    let candidates: Vec<_> = links.into_iter().map(Candidate::at).collect();
                    return Ok(Some(Searched { candidates, at: url, route: Some(route) }));
                }
                Ok(Seen::Page { .. }) => {
                    self.tried.push(format!("{url}: not a ResourceSync document"));
                }
                Err(error) if is_absent(&error) => self.tried.push(line_of(&url, &error)),
                // A document that is broken, or may exist, is reported instead of searching at
                // other places.
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The documents that a page links to must exist.
    fn follow(&mut self, links: Vec<String>) -> Result<Searched, Error> {
        let mut found: Vec<Candidate> = Vec::new();
        let mut at = String::new();
        for link in links {
            if self.seen.contains(&link) {
                continue;
            }
            let sets = match self.inspect(&link)? {
                Seen::Sets(sets) => sets,
                Seen::Descriptions(parts) => {
                    self.descriptions(parts, link.clone(), None)?.candidates
                }
                Seen::Page { .. } => {
                    self.tried.push(format!("{link}: not a ResourceSync document"));
                    continue;
                }
            };
            if at.is_empty() {
                at = link;
            }
            add(&mut found, sets);
        }
        if found.is_empty() {
            return Err(Error::new(
                "discover.nothing",
                ExitCode::SourceInvalid,
                format!("{} links to no ResourceSync document", self.options.url),
            )
            .with_tried(&self.tried)
            .with_help(GIVE));
        }
        let route = Some(format!("{} links to {at}", self.options.url));
        Ok(Searched { candidates: found, at, route })
    }

    /// All sets of an index of Source Descriptions [rs-core §8].
    fn descriptions(
        &mut self,
        parts: Vec<String>,
        at: String,
        route: Option<String>,
    ) -> Result<Searched, Error> {
        let mut candidates = Vec::new();
        for part in parts {
            if let Seen::Sets(sets) = self.inspect(&part)? {
                add(&mut candidates, sets);
            }
        }
        Ok(Searched { candidates, at, route })
    }

    /// Finds the Source of a document of a single set.
    fn widen(&mut self, candidates: Vec<Candidate>, start: &Url) -> Result<Searched, Error> {
        let given = self.options.url.clone();
        let [one] = candidates.as_slice() else {
            return Ok(Searched { candidates, at: given, route: None });
        };
        let is_chosen = self.options.set.as_deref().is_some_and(|set| sets::fits(&one.url, set));
        if one.entry_points.is_none() || is_chosen {
            return Ok(Searched { candidates, at: given, route: None });
        }
        if let Some(up) = one.up.clone() {
            let found = match self.inspect(&up)? {
                Seen::Sets(candidates) => Searched { candidates, at: up, route: None },
                Seen::Descriptions(parts) => self.descriptions(parts, up, None)?,
                Seen::Page { .. } => return Ok(Searched { candidates, at: given, route: None }),
            };
            // The user has requested another set than the set of this list.
            if let Some(set) = &self.options.set
                && !one.is_sitemap()
            {
                return Err(sets::of_another(&given, &one.url, set, &found.candidates));
            }
            return Ok(Searched {
                route: Some(format!("{given} is of the Source {}", found.at)),
                ..found
            });
        }
        if one.is_sitemap()
            && let Some(found) = self
                .site(start, true)?
                .filter(|found| found.candidates.iter().all(|set| !set.is_sitemap()))
        {
            return Ok(found);
        }
        Ok(Searched { candidates, at: given, route: None })
    }
}

/// The code of the error for a header block that is too long, such as the headers of a page with a
/// link for each of many sets.
const HEADER: &str = "http.header";

/// Whether the server answers that the document does not exist, or must not be shown.
fn is_absent(error: &Error) -> bool {
    matches!(error.status(), Some(400 | 403 | 404 | 405 | 410))
}

/// Adds the way out to an error of an address that was mistyped, or of a set that was renamed or
/// removed: the other sets of the site, if it has a Source.
pub(crate) fn with_other_sets(
    requests: &Requests<'_>,
    options: &SyncOptions,
    error: Error,
) -> Error {
    let is_missing = matches!(error.status(), Some(404 | 410));
    if error.help().is_some() || !(is_missing || error.code() == "discover.nothing") {
        return error;
    }
    let Ok(root) = Url::parse(&options.url).and_then(|url| url.join("/")) else { return error };
    let leads_to_sets =
        |place: &str| match root.join(place).map(|url| inspect(requests, options, url.as_str())) {
            Ok(Ok(Seen::Page { links, .. })) => !links.is_empty(),
            Ok(Ok(Seen::Sets(_) | Seen::Descriptions(_))) => true,
            Ok(Err(_)) | Err(_) => false,
        };
    if ["/", "/.well-known/resourcesync"].iter().any(|place| leads_to_sets(place)) {
        return error
            .with_help(format!("`abreast explore {root}` lists the sets that the site has now"));
    }
    error.with_help(if is_missing { "check the address" } else { GIVE })
}

/// Removes the address that creates packages with changes since a time: the next run determines it
/// again.
pub(crate) fn forget_changes_since(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(keys::CHANGES_SINCE, None)?)
}

/// Reads the Capability List again if no dump is known, or if the address for packages with changes
/// since a time is required and not known: the Source may have started to offer them.
pub(crate) fn discover_again(
    (requests, options): (&Requests<'_>, &SyncOptions),
    mirror: &Mirror,
    known: &EntryPoints,
    wants_changes_since: bool,
) -> Result<Option<EntryPoints>, Error> {
    let Some(list) = &known.capability_list else { return Ok(None) };
    let has_dump = known.resource_dump.is_some() || known.change_dump.is_some();
    let is_known = if wants_changes_since { known.changes_since.is_some() } else { has_dump };
    if is_known {
        return Ok(None);
    }
    let found = known.read_again(requests, options, list)?;
    if let Some(found) = &found {
        found.keep(mirror)?;
    }
    Ok(found)
}

/// Reads one address and determines the kind of its document.
fn inspect(requests: &Requests<'_>, options: &SyncOptions, url: &str) -> Result<Seen, Error> {
    let mut linked = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let page = read_page(requests, url, &mut linked, &mut |part| {
        if !matches!(
            part.head().capability,
            Some(Capability::Description | Capability::CapabilityList)
        ) {
            return Ok(Go::Enough);
        }
        match part {
            Part::Begin(..) => {}
            Part::Entry(..) if entries.len() >= SETS_MAX => {
                let message = format!("{url} names more than {SETS_MAX} documents");
                return Err(Error::new("discover.sets", ExitCode::Limit, message)
                    .with_help("give the URL of the Capability List of the set that you want"));
            }
            Part::Entry(_, entry) => entries.push(entry.clone()),
        }
        Ok(Go::On)
    });
    let page = match page {
        // The document may belong to ResourceSync 0.1. The reader of this version reports the error
        // again.
        Err(error) if error.code() == PLAIN_SITEMAP => {
            let entry_points =
                EntryPoints { resource_list: Some(url.to_owned()), ..EntryPoints::default() };
            return Ok(Seen::Sets(vec![Candidate {
                entry_points: Some(Box::new(entry_points)),
                ..Candidate::at(url.to_owned())
            }]));
        }
        page => page?,
    };
    let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
    let absolute =
        |base: &str, link: &str| Url::parse(base).ok()?.join(link).ok().map(String::from);
    let mut resolve = |base: &str, links: Vec<String>| -> Vec<String> {
        let mut seen = HashSet::new();
        let links = links.into_iter().filter_map(|link| absolute(base, &link));
        links.filter(|link| admission.check(link).is_ok() && seen.insert(link.clone())).collect()
    };
    let read = match page {
        Page::Other(body) => {
            let text = body.trim_ascii_start();
            if linked.is_empty() && is_oai_pmh(text) {
                let message = format!(
                    "{url} is an OAI-PMH endpoint, which is another protocol than ResourceSync"
                );
                return Err(Error::new("discover.oai-pmh", ExitCode::SourceInvalid, message).with_help(
                    "ask the repository for its ResourceSync documents; many have them at /.well-known/resourcesync",
                ));
            }
            if linked.is_empty() && is_rss(text) {
                let message = format!(
                    "{url} is an RSS feed, which names neither all resources nor deletions"
                );
                return Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message).with_help(
                    "ask the site for its ResourceSync documents, its Sitemap, or a feed of SDShare, which is Atom",
                ));
            }
            let mut found = linked;
            let is_html = links::is_html(text);
            if is_html {
                found.extend(links::in_html(&body));
            } else if url.ends_with("/robots.txt") {
                found.extend(robots_sitemaps(&body));
            }
            let json = other_json(&body, url);
            return Ok(Seen::Page { links: resolve(url, found), is_html, json });
        }
        Page::Document(read) => read,
    };
    let links_with = |rel: &str| -> Vec<String> {
        read.head
            .links
            .iter()
            .filter(|link| link.has_rel(rel))
            .map(|link| link.href.clone())
            .collect()
    };
    let uri_space = links_with(URI_SPACE).into_iter().next();
    match read.head.capability {
        Some(Capability::Description) if read.is_index => Ok(Seen::Descriptions(resolve(
            &read.answered.url,
            entries.into_iter().map(|entry| entry.loc).collect(),
        ))),
        Some(Capability::Description) => {
            let mut found = Vec::new();
            let sets = entries.iter().filter_map(|entry| absolute(&read.answered.url, &entry.loc));
            let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
            add(
                &mut found,
                sets.map(|set| Candidate {
                    refusal: admission.check(&set).err(),
                    ..Candidate::at(set)
                })
                .collect(),
            );
            if found.is_empty() {
                let message = format!("{url} is a Source Description without a set of resources");
                return Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message));
            }
            Ok(Seen::Sets(found))
        }
        Some(Capability::CapabilityList) => {
            let mut first = |capability| {
                let of = entries.iter().filter(|entry| entry.capability == Some(capability));
                resolve(&read.answered.url, of.map(|entry| entry.loc.clone()).collect())
                    .into_iter()
                    .next()
            };
            let entry_points = EntryPoints {
                capability_list: Some(url.to_owned()),
                missing_capability_list: None,
                resource_list: first(Capability::ResourceList),
                change_list: first(Capability::ChangeList),
                resource_dump: first(Capability::ResourceDump),
                change_dump: first(Capability::ChangeDump),
                change_list_archive: first(Capability::ChangeListArchive),
                uri_space,
                changes_since: resolve(&read.answered.url, links_with(CHANGES_SINCE))
                    .into_iter()
                    .next(),
            };
            if !entry_points.has_any() {
                let message =
                    format!("{url} is a Capability List with neither lists nor dumps on its host");
                return Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message)
                    .with_help(
                        "if they are on another host that you trust, name it with `--allow-host`",
                    ));
            }
            let up = resolve(&read.answered.url, links_with("up")).into_iter().next();
            Ok(Seen::Sets(vec![Candidate {
                up,
                entry_points: Some(Box::new(entry_points)),
                ..Candidate::at(url.to_owned())
            }]))
        }
        capability @ (Some(
            Capability::ResourceList
            | Capability::ChangeList
            | Capability::ResourceDump
            | Capability::ChangeDump,
        )
        | None) => {
            // The Capability List knows both; a document without one stands for itself.
            let mut missing_capability_list = None;
            for up in resolve(&read.answered.url, links_with("up")) {
                match set_above(requests, options, &up)? {
                    Above::Set(set) => return Ok(Seen::Sets(vec![set])),
                    Above::Missing => drop(missing_capability_list.get_or_insert(up)),
                    Above::Other => {}
                }
            }
            let whole = resolve(&read.answered.url, links_with("index"))
                .into_iter()
                .next()
                .unwrap_or_else(|| url.to_owned());
            let mut entry_points =
                EntryPoints { missing_capability_list, uri_space, ..EntryPoints::default() };
            *match capability {
                Some(Capability::ChangeList) => &mut entry_points.change_list,
                Some(Capability::ResourceDump) => &mut entry_points.resource_dump,
                Some(Capability::ChangeDump) => &mut entry_points.change_dump,
                _ => &mut entry_points.resource_list,
            } = Some(whole);
            Ok(Seen::Sets(vec![Candidate {
                entry_points: Some(Box::new(entry_points)),
                ..Candidate::at(url.to_owned())
            }]))
        }
        Some(other) => {
            let message =
                format!("{url} is a `{}` document, which cannot be copied from", other.token());
            Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message).with_help(GIVE))
        }
    }
}

/// The target of a list's link `up`.
enum Above {
    Set(Candidate),
    /// The target does not exist.
    Missing,
    /// The target is not a Capability List.
    Other,
}

/// Follows one link up, to a Capability List, and never down to a list. A missing target, or
/// another kind of document, is ignored. A target that cannot be read or parsed is an error, since
/// the copy stores the result.
fn set_above(requests: &Requests<'_>, options: &SyncOptions, up: &str) -> Result<Above, Error> {
    let stops = |error: &Error| {
        let is_broken = error.exit_code() == ExitCode::SourceInvalid
            && !is_absent(error)
            && error.code() != "discover.nothing";
        error.is_transient() || error.exit_code() == ExitCode::Cancelled || is_broken
    };
    let mut capability = None;
    let read = read_page(requests, up, &mut Vec::new(), &mut |part| {
        capability = part.head().capability;
        Ok(Go::Enough)
    });
    match read {
        Err(error) if stops(&error) => return Err(error),
        Err(error) if is_absent(&error) => return Ok(Above::Missing),
        _ if capability != Some(Capability::CapabilityList) => return Ok(Above::Other),
        _ => {}
    }
    match inspect(requests, options, up) {
        Ok(Seen::Sets(sets)) => Ok(sets.into_iter().next().map_or(Above::Other, Above::Set)),
        Err(error) if stops(&error) => Err(error),
        _ => Ok(Above::Other),
    }
}
