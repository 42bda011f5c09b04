//! From any URL of a Source, where are its Capability, Resource and Change Lists? [rs-core §6.3, §8, §9]

use crate::admit::Admission;
use crate::document::{Documents, Go, Page};
use crate::error::{Error, ExitCode};
use crate::links;
use crate::options::SyncOptions;
use crate::session::Session;
use crate::state::key;
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root};
use abreast_store::mirror::Mirror;
use std::collections::VecDeque;
use url::Url;

/// Most documents looked at.
const LOOKS_MAX: usize = 40;
/// Most Capability Lists of one Source Description that are told apart.
const SETS_MAX: usize = 1_000;
/// The link that names what URIs start with.
const URI_SPACE: &str = "http://rdfs.org/ns/void#uriSpace";
/// The link that names where changes since a time are to be had in one package.
const CHANGES_SINCE: &str = "urn:abreast:rel:changes-since";
/// Under this name it is kept.
const CHANGES_SINCE_KEY: &str = "changes-since";

/// Where a set of resources is described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entrance {
    pub(crate) capability_list: Option<String>,
    pub(crate) resource_list: Option<String>,
    pub(crate) change_list: Option<String>,
    pub(crate) resource_dump: Option<String>,
    pub(crate) change_dump: Option<String>,
    /// Older Change Lists.
    pub(crate) change_list_archive: Option<String>,
    /// What the URIs of its resources start with.
    pub(crate) uri_space: Option<String>,
    /// Where changes since a time are to be had in one package.
    pub(crate) changes_since: Option<String>,
}

impl Entrance {
    /// Is there anything that a copy can be made from?
    pub(crate) const fn has_any(&self) -> bool {
        self.resource_list.is_some()
            || self.change_list.is_some()
            || self.resource_dump.is_some()
            || self.change_dump.is_some()
    }

    /// The document that says whose set it is: hosts are judged by it.
    pub(crate) fn first(&self) -> Option<&str> {
        let documents = [&self.resource_list, &self.change_list, &self.resource_dump, &self.change_dump];
        documents.into_iter().find_map(|document| document.as_deref())
    }

    /// As kept by an earlier run.
    pub(crate) fn known(mirror: &Mirror) -> Result<Self, Error> {
        Ok(Self {
            capability_list: mirror.meta(key::CAPABILITY_LIST)?,
            resource_list: mirror.meta(key::RESOURCE_LIST)?,
            change_list: mirror.meta(key::CHANGE_LIST)?,
            resource_dump: mirror.meta(key::RESOURCE_DUMP)?,
            change_dump: mirror.meta(key::CHANGE_DUMP)?,
            change_list_archive: mirror.meta(key::CHANGE_LIST_ARCHIVE)?,
            uri_space: mirror.meta(key::URI_SPACE)?,
            changes_since: mirror.meta(CHANGES_SINCE_KEY)?,
        })
    }

    /// Keeps it for the next run.
    pub(crate) fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        for (key, value) in [
            (key::CAPABILITY_LIST, &self.capability_list),
            (key::RESOURCE_LIST, &self.resource_list),
            (key::CHANGE_LIST, &self.change_list),
            (key::RESOURCE_DUMP, &self.resource_dump),
            (key::CHANGE_DUMP, &self.change_dump),
            (key::CHANGE_LIST_ARCHIVE, &self.change_list_archive),
            (CHANGES_SINCE_KEY, &self.changes_since),
        ] {
            mirror.set_meta(key, value.as_deref())?;
        }
        if self.uri_space.is_some() {
            mirror.set_meta(key::URI_SPACE, self.uri_space.as_deref())?;
        }
        Ok(())
    }
}

/// Why a document is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It was given or linked to.
    Named,
    /// It might be there.
    Guessed,
}

struct Look {
    url: String,
    found: Found,
}

/// What one document led to.
enum Step {
    Entrance(Entrance),
    Follow(Vec<String>),
    Nothing(String),
}

pub(crate) fn discover(documents: &Documents<'_>, options: &SyncOptions) -> Result<Entrance, Error> {
    let start =
        Url::parse(&options.url).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(|| {
            Error::new("usage.url", ExitCode::Usage, format!("`{}` is no http or https URL", options.url))
                .with_help("write it with its scheme, for example https://example.org/")
        })?;
    let mut queue = VecDeque::from([Look { url: options.url.clone(), found: Found::Named }]);
    for guess in guesses(&start) {
        queue.push_back(Look { url: guess, found: Found::Guessed });
    }
    let mut seen: Vec<String> = Vec::new();
    let mut tried: Vec<String> = Vec::new();
    let mut first_error = None;
    while let Some(look) = queue.pop_front() {
        if seen.contains(&look.url) {
            continue;
        }
        if seen.len() >= LOOKS_MAX {
            break;
        }
        seen.push(look.url.clone());
        match step(documents, options, &look.url) {
            Ok(Step::Entrance(entrance)) => return Ok(entrance),
            Ok(Step::Follow(next)) => {
                tried.push(format!("{}: leads on", look.url));
                for url in next.into_iter().rev() {
                    queue.push_front(Look { url, found: Found::Named });
                }
            }
            Ok(Step::Nothing(why)) => tried.push(format!("{}: {why}", look.url)),
            // What was named must work; what was guessed may be anything.
            Err(error) if look.found == Found::Named && !matches!(error.exit_code(), ExitCode::SourceInvalid) => {
                return Err(error);
            }
            Err(error) => {
                tried.push(format!("{}: {}", look.url, error.to_string().lines().next().unwrap_or_default()));
                if look.found == Found::Named {
                    first_error.get_or_insert(error);
                }
            }
        }
    }
    // A document that was named and is broken says more than a list of what is not there.
    if let Some(error) = first_error.filter(|error| !error.code().starts_with("http.")) {
        return Err(error);
    }
    let message = format!("found no ResourceSync documents at {}\n  tried {}", options.url, tried.join("\n  tried "));
    Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message)
        .with_help("give the URL of a Capability List, Resource List, Change List or Sitemap"))
}

/// Forgets where changes since a time are to be had: it is looked for again.
pub(crate) fn forget_changes_since(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(CHANGES_SINCE_KEY, None)?)
}

/// Reads the Capability List again when no dump is known, or not where changes since a time are to be had and these are
/// wanted: a Source may have begun to make some.
pub(crate) fn discover_again(
    session: &Session<'_>,
    known: &Entrance,
    wants_changes_since: bool,
) -> Result<Option<Entrance>, Error> {
    let Some(list) = &known.capability_list else { return Ok(None) };
    let has_dump = known.resource_dump.is_some() || known.change_dump.is_some();
    let is_known = if wants_changes_since { known.changes_since.is_some() } else { has_dump };
    if is_known {
        return Ok(None);
    }
    match step(&session.documents, session.options, list) {
        Ok(Step::Entrance(found)) if found.resource_list == known.resource_list => {
            found.keep(&session.mirror)?;
            Ok(Some(found))
        }
        Err(error) if error.exit_code() == ExitCode::Cancelled => Err(error),
        // What is known does without.
        _ => Ok(None),
    }
}

fn guesses(start: &Url) -> Vec<String> {
    let mut found = Vec::new();
    for place in ["./.well-known/resourcesync", "/.well-known/resourcesync", "/robots.txt", "/sitemap.xml"] {
        if let Ok(url) = start.join(place) {
            found.push(url.into());
        }
    }
    found
}

fn step(documents: &Documents<'_>, options: &SyncOptions, url: &str) -> Result<Step, Error> {
    let mut linked = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let page = documents.look(url, &mut linked, &mut |head: &Head, entry: &Entry| {
        let wanted = matches!(head.capability, Some(Capability::Description | Capability::CapabilityList));
        if !wanted || entries.len() > SETS_MAX {
            return Ok(Go::Enough);
        }
        if entry.loc.is_empty() {
            // The head comes first, and again when a transfer broke off and is repeated.
            entries.clear();
        } else {
            entries.push(entry.clone());
        }
        Ok(Go::On)
    })?;
    let admission = || Admission::new(url, &options.allow_hosts, options.allow_downgrade);
    let resolve = |base: &str, links: Vec<String>| -> Vec<String> {
        let base = Url::parse(base).ok();
        let mut admission = admission();
        links
            .into_iter()
            .filter_map(|link| base.as_ref()?.join(&link).ok())
            .map(String::from)
            .filter(|link| admission.check(link).is_ok())
            .collect()
    };
    let read = match page {
        Page::Missing(error) if matches!(error.exit_code(), ExitCode::Auth) => return Err(error),
        Page::Missing(error) => {
            return Ok(Step::Nothing(error.to_string().lines().next().unwrap_or_default().to_owned()));
        }
        Page::Other(body) => {
            let mut found = linked;
            if links::is_html(body.trim_ascii_start()) {
                found.extend(links::in_html(&body));
            } else if url.ends_with("/robots.txt") {
                found.extend(links::in_robots(&body));
            }
            let found = resolve(url, found);
            return Ok(if found.is_empty() {
                Step::Nothing("no ResourceSync document".to_owned())
            } else {
                Step::Follow(found)
            });
        }
        Page::Document(read) => read,
    };
    let links_with = |rel: &str| -> Vec<String> {
        read.head.links.iter().filter(|link| link.has_rel(rel)).map(|link| link.href.clone()).collect()
    };
    let uri_space = links_with(URI_SPACE).into_iter().next();
    let locs = |capability: Option<Capability>| -> Vec<String> {
        let of = entries.iter().filter(|entry| capability.is_none() || entry.capability == capability);
        of.map(|entry| entry.loc.clone()).collect()
    };
    match read.head.capability {
        Some(Capability::Description) if read.head.root == Root::SitemapIndex => {
            Ok(Step::Follow(resolve(&read.url, locs(None))))
        }
        Some(Capability::Description) => {
            let lists = resolve(&read.url, locs(None));
            choose(&lists, options, url).map(|list| Step::Follow(vec![list]))
        }
        Some(Capability::CapabilityList) => {
            let first = |capability| resolve(&read.url, locs(Some(capability))).into_iter().next();
            let entrance = Entrance {
                capability_list: Some(url.to_owned()),
                resource_list: first(Capability::ResourceList),
                change_list: first(Capability::ChangeList),
                resource_dump: first(Capability::ResourceDump),
                change_dump: first(Capability::ChangeDump),
                change_list_archive: first(Capability::ChangeListArchive),
                uri_space,
                changes_since: resolve(&read.url, links_with(CHANGES_SINCE)).into_iter().next(),
            };
            if !entrance.has_any() {
                return Ok(Step::Nothing("a Capability List with neither lists nor dumps on its host".to_owned()));
            }
            Ok(Step::Entrance(entrance))
        }
        capability @ (Some(
            Capability::ResourceList | Capability::ChangeList | Capability::ResourceDump | Capability::ChangeDump,
        )
        | None) => {
            // The Capability List knows both; a document without one stands for itself.
            for up in resolve(&read.url, links_with("up")) {
                if let Ok(Step::Entrance(entrance)) = step_up(documents, options, &up) {
                    return Ok(Step::Entrance(entrance));
                }
            }
            let whole = resolve(&read.url, links_with("index")).into_iter().next().unwrap_or_else(|| url.to_owned());
            let mut entrance = Entrance { uri_space, ..Entrance::default() };
            *match capability {
                Some(Capability::ChangeList) => &mut entrance.change_list,
                Some(Capability::ResourceDump) => &mut entrance.resource_dump,
                Some(Capability::ChangeDump) => &mut entrance.change_dump,
                _ => &mut entrance.resource_list,
            } = Some(whole);
            Ok(Step::Entrance(entrance))
        }
        Some(other) => Ok(Step::Nothing(format!("a `{}` document, which cannot be copied from", other.token()))),
    }
}

/// One step up only: a Capability List, never back down to a list.
fn step_up(documents: &Documents<'_>, options: &SyncOptions, up: &str) -> Result<Step, Error> {
    let mut capability = None;
    documents.look(up, &mut Vec::new(), &mut |head: &Head, _: &Entry| {
        capability = head.capability;
        Ok(Go::Enough)
    })?;
    if capability == Some(Capability::CapabilityList) {
        step(documents, options, up)
    } else {
        Ok(Step::Nothing(String::new()))
    }
}

/// One Capability List of several.
fn choose(lists: &[String], options: &SyncOptions, url: &str) -> Result<String, Error> {
    let listed = format!("\n  {}", lists.join("\n  "));
    if let Some(set) = &options.set {
        let fits = |list: &&String| list.as_str() == set || list.split(['/', '?', '#']).any(|part| part == set);
        let mut found = lists.iter().filter(fits);
        return match (found.next(), found.next()) {
            (Some(one), None) => Ok(one.clone()),
            (one, _) => {
                let how_many = if one.is_some() { "several sets" } else { "no set" };
                Err(Error::new(
                    "discover.set",
                    ExitCode::Usage,
                    format!("{url} has {how_many} named `{set}`; it has{listed}"),
                )
                .with_help("give the whole URL of one of them to `--set`"))
            }
        };
    }
    match lists {
        [one] => Ok(one.clone()),
        [] => Err(Error::new(
            "discover.nothing",
            ExitCode::SourceInvalid,
            format!("{url} lists no set of resources on its host"),
        )),
        _ => Err(Error::new("discover.set", ExitCode::Usage, format!("{url} has several sets of resources{listed}"))
            .with_help("choose one with `--set NAME` or `--set URL`")),
    }
}
