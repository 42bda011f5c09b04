//! ResourceSync 1.1 and plain Sitemaps.

use crate::model::error::Error;
use crate::model::item::{Entry, Head, Link};
use crate::protocol::{Next, Out, Source};
use abreast_resourcesync::v1_1::{self, Capability, Change, Ln, ReadError, Reader, Root};
use abreast_webtypes::{Digests, W3cDatetime, excerpt};

pub(crate) fn text(time: Option<W3cDatetime>) -> Option<String> {
    time.map(|time| time.instant.to_string())
}

pub(crate) fn hash(digests: &Digests) -> Option<String> {
    digests.strongest().map(|_| digests.to_string())
}

pub(crate) fn failed(url: &str, error: ReadError) -> Error {
    match error {
        ReadError::Syntax(fault) => Error::syntax(url, &fault),
        ReadError::Io(error) => Error::input(url, error),
    }
}

pub(crate) fn read(source: &mut Source<'_>, out: &mut Out<'_>) -> Result<Next, Error> {
    let url = source.url;
    let mut reader = Reader::new(&mut *source.input);
    let head = reader.head().map_err(|error| failed(url, error))?;
    let root = head.root;
    out.document(head_of(url, head))?;
    let (mut entry, mut next) = (v1_1::Entry::default(), Next::new());
    while reader.next(&mut entry).map_err(|error| failed(url, error))? {
        if root == Root::SitemapIndex {
            next.push(entry.loc.clone());
        }
        out.entry(entry_of(&mut entry))?;
        entry.clear();
    }
    Ok(next)
}

fn head_of(url: &str, head: &v1_1::Head) -> Head {
    let kind = head.capability.map_or_else(
        || if head.root == Root::UrlSet { "Sitemap" } else { "Sitemap Index" }.to_owned(),
        |capability| capability.name(head.root),
    );
    Head {
        url: url.to_owned(),
        protocol: if head.capability.is_some() { "ResourceSync 1.1" } else { "Sitemaps" }
            .to_owned(),
        kind,
        is_index: head.root == Root::SitemapIndex,
        capability: head.capability.map(|capability| capability.token().to_owned()),
        at: text(head.at),
        completed: text(head.completed),
        from: text(head.from),
        until: text(head.until),
        links: head.links.iter().cloned().map(link_of).collect(),
        ..Head::default()
    }
}

fn entry_of(entry: &mut v1_1::Entry) -> Entry {
    Entry {
        uri: std::mem::take(&mut entry.loc),
        change: entry.change.map(|change| change.token().to_owned()),
        datetime: text(entry.datetime),
        lastmod: text(entry.lastmod),
        length: entry.length,
        hash: hash(&entry.digests),
        media_type: entry.media_type.take(),
        encoding: entry.encoding.take(),
        path: entry.path.take(),
        capability: entry.capability.map(|capability| capability.token().to_owned()),
        at: text(entry.at),
        completed: text(entry.completed),
        from: text(entry.from),
        until: text(entry.until),
        links: entry.links.drain(..).map(link_of).collect(),
        ..Entry::default()
    }
}

fn link_of(link: Ln) -> Link {
    Link {
        rel: link.rel,
        href: link.href,
        pri: link.pri,
        modified: text(link.modified),
        length: link.length,
        hash: hash(&link.digests),
        media_type: link.media_type,
        encoding: link.encoding,
        path: link.path,
        title: None,
    }
}

/// Writes a document of ResourceSync 1.1 entry by entry: a Resource List, a Change List, an index or any other kind,
/// by its capability.
///
/// # Examples
/// ```
/// use abreast_documents::{Entry, Head, ListWriter};
///
/// let head = Head { capability: Some("resourcelist".to_owned()), ..Head::default() };
/// let mut writer = ListWriter::new(&head)?;
/// writer.entry(&Entry { uri: "https://example.org/a".to_owned(), length: Some(5), ..Entry::default() })?;
/// let text = String::from_utf8(writer.finish()).expect("documents are UTF-8");
/// assert!(text.contains("<rs:md length=\"5\"/>"));
/// # Ok::<(), abreast_documents::Error>(())
/// ```
#[derive(Debug)]
pub struct ListWriter {
    root: Root,
    out: Vec<u8>,
    entries: u64,
    before: u64,
}

impl ListWriter {
    /// Most entries of a document by the specification [rs-core §7].
    pub const ENTRIES_MAX: u64 = v1_1::SPEC_MAX_ENTRIES;

    /// Starts a document with its capability, times and links.
    ///
    /// # Errors
    /// A time or the capability cannot be written.
    pub fn new(head: &Head) -> Result<Self, Error> {
        let written = head_to(head).map_err(|message| Error::Entry { number: 0, message })?;
        let mut out = Vec::new();
        v1_1::write_head(&mut out, &written);
        Ok(Self { root: written.root, out, entries: 0, before: 0 })
    }

    /// Counts entries in errors after those of earlier documents, for a list in several documents.
    #[must_use]
    pub fn numbered_after(mut self, before: u64) -> Self {
        self.before = before;
        self
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// A field cannot be written, or the document has [`ListWriter::ENTRIES_MAX`] entries.
    pub fn entry(&mut self, entry: &Entry) -> Result<(), Error> {
        self.entries += 1;
        let number = self.before.saturating_add(self.entries);
        let refused = |message: String| Error::Entry { number, message };
        if self.entries > Self::ENTRIES_MAX {
            return Err(refused(format!("a document has at most {} entries", Self::ENTRIES_MAX)));
        }
        v1_1::write_entry(&mut self.out, self.root, &entry_to(entry).map_err(refused)?);
        Ok(())
    }

    /// Removes the bytes that are complete, so that a long document is written in pieces.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Ends the document, and returns the bytes that were not taken.
    pub fn finish(mut self) -> Vec<u8> {
        v1_1::write_end(&mut self.out, self.root);
        self.out
    }
}

fn time(name: &str, value: Option<&String>) -> Result<Option<W3cDatetime>, String> {
    let Some(value) = value else { return Ok(None) };
    W3cDatetime::parse(value.as_bytes())
        .map(Some)
        .map_err(|error| format!("`{name}`: `{}`: {error}", excerpt(value)))
}

fn capability(value: Option<&String>) -> Result<Option<Capability>, String> {
    let Some(value) = value else { return Ok(None) };
    let found = Capability::from_token(value);
    let known = || Capability::ALL.map(Capability::token).join(", ");
    found
        .map(Some)
        .ok_or_else(|| format!("`capability`: `{}` is not one of {}", excerpt(value), known()))
}

fn digests(value: Option<&String>) -> Result<Digests, String> {
    let mut digests = Digests::default();
    if let Some(value) = value {
        digests
            .parse_into(value.as_bytes())
            .map_err(|error| format!("`hash`: `{}`: {error}", excerpt(value)))?;
    }
    Ok(digests)
}

fn head_to(head: &Head) -> Result<v1_1::Head, String> {
    Ok(v1_1::Head {
        root: if head.is_index { Root::SitemapIndex } else { Root::UrlSet },
        capability: capability(head.capability.as_ref())?,
        at: time("at", head.at.as_ref())?,
        completed: time("completed", head.completed.as_ref())?,
        from: time("from", head.from.as_ref())?,
        until: time("until", head.until.as_ref())?,
        links: head.links.iter().map(link_to).collect::<Result<_, _>>()?,
        lenient_capability: false,
    })
}

fn entry_to(entry: &Entry) -> Result<v1_1::Entry, String> {
    if let Some(fault) = abreast_webtypes::absolute_fault(&entry.uri) {
        return Err(format!("`uri`: `{}`: {fault}", excerpt(&entry.uri)));
    }
    let change = entry.change.as_deref().map(|word| {
        Change::from_token(word).ok_or_else(|| {
            format!("`change`: `{}` is not created, updated or deleted", excerpt(word))
        })
    });
    Ok(v1_1::Entry {
        loc: entry.uri.clone(),
        lastmod: time("lastmod", entry.lastmod.as_ref())?,
        capability: capability(entry.capability.as_ref())?,
        at: time("at", entry.at.as_ref())?,
        completed: time("completed", entry.completed.as_ref())?,
        from: time("from", entry.from.as_ref())?,
        until: time("until", entry.until.as_ref())?,
        change: change.transpose()?,
        datetime: time("datetime", entry.datetime.as_ref())?,
        digests: digests(entry.hash.as_ref())?,
        length: entry.length,
        media_type: entry.media_type.clone(),
        encoding: entry.encoding.clone(),
        path: entry.path.clone(),
        links: entry.links.iter().map(link_to).collect::<Result<_, _>>()?,
        line: 0,
    })
}

fn link_to(link: &Link) -> Result<Ln, String> {
    if link.rel.is_empty() || link.href.is_empty() {
        return Err("`links`: a link needs `rel` and `href`".to_owned());
    }
    Ok(Ln {
        rel: link.rel.clone(),
        href: link.href.clone(),
        pri: link.pri,
        modified: time("modified", link.modified.as_ref())?,
        media_type: link.media_type.clone(),
        length: link.length,
        digests: digests(link.hash.as_ref())?,
        encoding: link.encoding.clone(),
        path: link.path.clone(),
    })
}
