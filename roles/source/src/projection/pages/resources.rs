//! Resources of a set: by folder, or those that a search finds.
//!
//! A page costs as many rows as it shows. A search examines a limited number of rows for each page,
//! and the page then has a link that continues after the last one.

use super::folders::{FolderPage, PageEnd};
use super::paths::SetPage;
use super::query::{day, reader, url, values};
use super::set_view::{SetView, shell};
use super::shell::{Count, Place, Shell, Size, page};
use crate::names::media_type::media_type_of;
use crate::names::naming::Naming;
use crate::projection::routes::Route as _;
use crate::publish::{PublishError, PublishedSet, Publisher, Reader, Rendered};
use abreast_core::{KeyRange, Resource, State};
use abreast_webtypes::Timestamp;
use askama::Template;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use unicode_normalization::UnicodeNormalization as _;

/// Most entries that one page shows.
const SHOWN: usize = 100;
/// Rows that a search examines for a page.
const EXAMINED: u64 = 20_000;

/// What a page shows: the parameters of its address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    prefix: String,
    contains: String,
    /// The same text, folded.
    contained: String,
    media_type: String,
    since: Option<Timestamp>,
    since_text: String,
    until: Option<Timestamp>,
    until_text: String,
    after: String,
    prefix_shown: String,
    reader: Reader,
}

impl View {
    /// The view of a query; `None` if the query is not one of this page.
    pub(super) fn parse(query: &str, browser: &Reader) -> Option<Self> {
        let names = ["prefix", "q", "type", "since", "until", "after", "lang"];
        let [prefix, contains, media_type, since_text, until_text, after, languages] =
            values(query, names)?;
        let (since, until) = (day(&since_text), day(&until_text));
        let is_read = |text: &str, day: Option<Timestamp>| text.is_empty() || day.is_some();
        if !(is_read(&since_text, since) && is_read(&until_text, until)) {
            return None;
        }
        let prefix_shown = shown(&prefix);
        Some(Self {
            prefix: written(prefix),
            contained: folded(&contains),
            contains,
            media_type,
            since,
            since_text,
            until,
            until_text,
            after,
            prefix_shown,
            reader: reader(&languages, browser)?,
        })
    }

    /// The view of a page of a static site.
    pub(super) fn of_folder(page: &FolderPage) -> Self {
        let after = match page.after.as_str() {
            "" => String::new(),
            after => format!("{}{after}", page.prefix),
        };
        Self { prefix: page.prefix.clone(), after, ..Self::default() }
    }

    fn searches(&self) -> bool {
        !(self.contains.is_empty() && self.media_type.is_empty())
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Address of the same search, after this key.
    fn after(&self, set: &PublishedSet, address: &str, key: &str) -> String {
        if set.urls.are_in_files() {
            let after = key.strip_prefix(&self.prefix).unwrap_or_default();
            return folder_url(
                set,
                &FolderPage { prefix: self.prefix.clone(), after: after.to_owned() },
            );
        }
        url(
            address,
            &[
                ("prefix", &self.prefix),
                ("q", &self.contains),
                ("type", &self.media_type),
                ("since", &self.since_text),
                ("until", &self.until_text),
                ("after", key),
                ("lang", self.reader.in_address()),
            ],
        )
    }

    fn selects(&self, resource: &Resource) -> bool {
        let modified = resource.state.modified;
        self.since.is_none_or(|since| modified >= since)
            && self.until.is_none_or(|until| modified < until)
            && (self.media_type.is_empty()
                || media_type(resource).starts_with(self.media_type.as_str()))
            && (self.contains.is_empty() || has(resource, &self.contained))
    }
}

impl View {
    /// The label in which the search found its text, if it is not in the name of the row.
    fn found_in<'s>(&self, name: &str, state: &'s State) -> Option<&'s str> {
        let has = |text: &str| folded(text).contains(&self.contained);
        if self.contained.is_empty() || has(name) {
            return None;
        }
        let labels = &state.description.as_deref()?.labels;
        labels.iter().map(|label| label.text.as_str()).find(|text| has(text))
    }
}

/// Whether the name or a label of a resource contains a folded text.
fn has(resource: &Resource, text: &str) -> bool {
    let mut labels = resource.state.description.iter().flat_map(|found| &found.labels);
    folded(&shown(&resource.key)).contains(text)
        || labels.any(|label| folded(&label.text).contains(text))
}

/// A text in lower case and in NFC: macOS stores accents in another form than keyboards send.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.nfc().collect::<String>().to_lowercase()
    }
}

/// A key as people read it: the path of a file without encoding.
pub(super) fn shown(key: &str) -> String {
    match Naming::path(key) {
        Some(path) => String::from_utf8_lossy(&path).into_owned(),
        None => key.to_owned(),
    }
}

/// The beginning of a key that a person wrote: a path is encoded as keys are.
fn written(prefix: String) -> String {
    let is_path = Naming::is_own(&prefix) && !prefix.is_empty() && !prefix.contains('%');
    if is_path { Naming::key(prefix.as_bytes()) } else { prefix }
}

/// Media type of a resource, from its state or its name.
pub(super) fn media_type(resource: &Resource) -> &str {
    let of_name = || {
        if Naming::is_own(&resource.key) { media_type_of(resource.key.as_bytes()) } else { "" }
    };
    resource.state.media_type.as_deref().unwrap_or_else(of_name)
}

/// A line of the page: a folder or a resource.
struct Row {
    url: String,
    name: String,
    /// Language of the name.
    language: Option<String>,
    facts: String,
}

#[derive(Template)]
#[template(path = "resources.html")]
struct ResourcesTemplate<'p> {
    shell: Shell<'p>,
    set: SetView<'p>,
    tab: &'static str,
    address: String,
    view: &'p View,
    /// The languages in the address of the page.
    languages: &'p str,
    /// The folders from the root to the shown one; empty for a search.
    folders: Vec<Place>,
    rows: Vec<Row>,
    searched: Option<String>,
    first: Option<String>,
    next: Option<String>,
    /// Address of the lists with all resources, if the page does not show all.
    list: Option<String>,
    /// Address of the search index of a static site; `None` on a server.
    names: Option<String>,
}

/// A part of the resources.
#[derive(Default)]
struct Listing {
    rows: Vec<Row>,
    /// The last key that was read, if others may follow.
    more_after: Option<String>,
    /// Keys of the folders among the rows.
    folders: Vec<String>,
    /// Whether further entries are on no page.
    is_cut: bool,
    examined: u64,
}

/// Page of the resources that a view selects.
pub(super) fn resources_page(
    publisher: &Publisher,
    set: &PublishedSet,
    view: &View,
) -> Result<Rendered, PublishError> {
    let address = SetPage::Resources.url(&set.urls);
    // Static sites cannot answer queries, and entities are not in folders.
    let by_folder =
        set.urls.are_in_files() || !(view.searches() || set.urls.naming().names_entities());
    let listing = if by_folder {
        folder(publisher, set, view, &address)?
    } else {
        search(publisher, set, view)?
    };
    let set_view = SetView::of(publisher, set)?;
    let title = format!("Resources of {}", set_view.title);
    let searched = view.searches().then(|| match &listing.more_after {
        Some(key) => format!(
            "{} names were searched for this page, up to {}.",
            Count(listing.examined),
            shown(key)
        ),
        None => format!(
            "{} names were searched for this page, up to the last.",
            Count(listing.examined)
        ),
    });
    page(&ResourcesTemplate {
        shell: shell(publisher, set, &title),
        tab: "resources",
        folders: if by_folder { folders(set, view, &address) } else { Vec::new() },
        rows: listing.rows,
        searched,
        first: (!view.after.is_empty()).then(|| view.after(set, &address, "")),
        next: listing.more_after.map(|key| view.after(set, &address, &key)),
        list: listing.is_cut.then(|| set.urls.capability_list()),
        names: set.urls.are_in_files().then(|| SetPage::NamesIndex.url(&set.urls)),
        address,
        languages: view.reader.in_address(),
        view,
        set: set_view,
    })
}

/// Address of a page of a static site; the first page of the root is the page of all resources.
fn folder_url(set: &PublishedSet, page: &FolderPage) -> String {
    if *page == FolderPage::first("") {
        return SetPage::Resources.url(&set.urls);
    }
    SetPage::Folder(page.clone()).url(&set.urls)
}

/// Address of the first page of a folder.
fn address_of(set: &PublishedSet, address: &str, prefix: &str) -> String {
    if set.urls.are_in_files() {
        return folder_url(set, &FolderPage::first(prefix));
    }
    url(address, &[("prefix", prefix)])
}

/// All pages of folders in a static site: each resource and each folder is visited once.
pub(super) fn folder_pages(
    publisher: &Publisher,
    set: &PublishedSet,
) -> Result<Vec<SetPage>, PublishError> {
    let mut pages = vec![SetPage::Resources];
    if publisher.log().head(set.id)?.importing {
        return Ok(pages);
    }
    let mut open = vec![FolderPage::first("")];
    while let Some(page) = open.pop() {
        let view = View::of_folder(&page);
        let listing = folder(publisher, set, &view, "")?;
        open.extend(listing.folders.iter().map(|folder| FolderPage::first(folder)));
        if let Some(key) = listing.more_after {
            let after = key[page.prefix.len()..].to_owned();
            open.push(FolderPage { prefix: page.prefix.clone(), after });
        }
        if page != FolderPage::first("") {
            pages.push(SetPage::Folder(page));
        }
    }
    Ok(pages)
}

/// The folders above and around the shown one.
fn folders(set: &PublishedSet, view: &View, address: &str) -> Vec<Place> {
    let root = Place { name: "All resources".to_owned(), url: address.to_owned() };
    let ends = view.prefix.match_indices('/').map(|(at, _)| at + 1);
    let below = ends.map(|end| {
        let prefix = &view.prefix[..end];
        let name = prefix.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        Place { name: shown(name), url: address_of(set, address, prefix) }
    });
    [root].into_iter().chain(below).collect()
}

/// Keys that begin with a prefix, after a key or folder.
fn range(prefix: &str, after: &str) -> KeyRange {
    let start = match after.strip_suffix('/') {
        _ if after.is_empty() => prefix.to_owned(),
        // `0` follows `/`: all keys in the folder are skipped.
        Some(folder) => format!("{folder}0"),
        None => format!("{after}\0"),
    };
    let end = (!prefix.is_empty()).then(|| format!("{prefix}\u{10ffff}"));
    KeyRange { start, end }
}

/// Lists the files and folders in a folder. Each folder is one row, read with one access to the
/// table of resources.
fn folder(
    publisher: &Publisher,
    set: &PublishedSet,
    view: &View,
    address: &str,
) -> Result<Listing, PublishError> {
    let (prefix, mut listing) = (&view.prefix, Listing::default());
    let is_in_files = set.urls.are_in_files();
    let end = |rows: usize, name: &str| match is_in_files {
        true => FolderPage::end(rows, name),
        false if rows == SHOWN => PageEnd::Ends,
        false => PageEnd::Continue,
    };
    let (mut after, mut at_end) = (view.after.clone(), PageEnd::Continue);
    loop {
        let mut entered = None;
        publisher.log().scan(set.id, &range(prefix, &after), &mut |resource| {
            match at_end {
                PageEnd::Continue => {}
                PageEnd::Ends => listing.more_after = Some(after.clone()),
                PageEnd::Full => listing.is_cut = true,
            }
            if at_end != PageEnd::Continue {
                return ControlFlow::Break(());
            }
            let rest = resource.key.get(prefix.len()..).unwrap_or_default();
            let folder = rest.split_once('/').filter(|_| Naming::is_own(&resource.key));
            let folder = folder.map(|(folder, _)| format!("{prefix}{folder}/"));
            if let Some(folder) = folder.filter(|key| !is_in_files || FolderPage::has_pages(key)) {
                entered = Some(folder);
                return ControlFlow::Break(());
            }
            listing.rows.push(row(set, resource, rest, view));
            resource.key.clone_into(&mut after);
            at_end = end(listing.rows.len(), rest);
            ControlFlow::Continue(())
        })?;
        let Some(folder) = entered else { return Ok(listing) };
        let name = &folder[prefix.len()..];
        let url = address_of(set, address, &folder);
        let row = Row { url, name: shown(name), language: None, facts: "folder".to_owned() };
        listing.rows.push(row);
        at_end = end(listing.rows.len(), name);
        after.clone_from(&folder);
        listing.folders.push(folder);
    }
}

/// Lists the resources that a search selects.
fn search(publisher: &Publisher, set: &PublishedSet, view: &View) -> Result<Listing, PublishError> {
    let mut listing = Listing::default();
    let mut last = String::new();
    publisher.log().scan(set.id, &range(&view.prefix, &view.after), &mut |resource| {
        if listing.rows.len() == SHOWN || listing.examined == EXAMINED {
            listing.more_after = Some(std::mem::take(&mut last));
            return ControlFlow::Break(());
        }
        listing.examined += 1;
        if view.selects(resource) {
            listing.rows.push(row(set, resource, &resource.key, view));
        }
        resource.key.clone_into(&mut last);
        ControlFlow::Continue(())
    })?;
    Ok(listing)
}

/// Address of the page about a resource: entities have their own pages, files a page of the set.
pub(crate) fn page_url(set: &PublishedSet, key: &str, reader: &Reader) -> String {
    if set.urls.are_in_files() {
        return set.urls.naming().uri(key);
    }
    if set.urls.naming().names_entities() {
        return url(&set.urls.naming().uri(key), &[("lang", reader.in_address())]);
    }
    history_url(set, key)
}

/// Address of the page of the set about a resource, which also has the versions of a removed one.
pub(super) fn history_url(set: &PublishedSet, key: &str) -> String {
    url(&SetPage::Resource.url(&set.urls), &[("key", key)])
}

/// The row of a resource; `name` is its key, or the end of its key.
fn row(set: &PublishedSet, resource: &Resource, name: &str, view: &View) -> Row {
    let state = &resource.state;
    let (mut facts, media_type) = (String::new(), media_type(resource));
    if let Some(types) = state.description.as_deref().map(|found| &found.types) {
        let names = types.iter().map(|iri| iri.rsplit(['#', '/']).next().unwrap_or(iri));
        facts = names.take(3).collect::<Vec<_>>().join(", ");
    } else {
        facts.push_str(media_type);
    }
    if let Some(length) = state.length.filter(|_| !set.urls.naming().names_entities()) {
        let _ = write!(facts, " · {}", Size(length));
    }
    let modified = state.modified.to_string();
    let _ = write!(facts, " · {}", modified.get(..10).unwrap_or(&modified));
    if resource.deprecated.is_some() {
        facts.push_str(" · deprecated");
    }
    let label = set.about.label(state.description.as_deref(), view.reader.languages());
    let name = label.map_or_else(|| shown(name), |label| label.text.clone());
    if let Some(found) = view.found_in(&name, state) {
        let _ = write!(facts, " · {found}");
    }
    Row {
        url: page_url(set, &resource.key, &view.reader),
        name,
        language: label.map(|label| label.language.clone()).filter(|tag| !tag.is_empty()),
        facts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_ignore_case_and_the_form_of_letters() {
        assert_eq!(folded("Fu\u{308}hrer.TXT"), folded("FÜHRER.txt"));
        assert_ne!(folded("Führer"), folded("Fuhrer"));
    }
}
