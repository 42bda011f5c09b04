//! Reader for lists of other publishers, as records for an import: Resource Lists, Change Lists and
//! plain Sitemaps.

use crate::links::LinkRecord;
use abreast_resourcesync::v1_1::{Change, Entry, Ln, ReadError, Reader, Root};
use abreast_webtypes::Timestamp;
use std::io::Read;
use thiserror::Error;

/// The reason why a list cannot be imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListError {
    /// The document is an index of lists.
    #[error(
        "an index of lists holds no resources\n  help: import the lists that it names, one by one"
    )]
    Index,
    /// The document cannot be read or parsed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Kind of change in a Change List.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedChange {
    /// The list reports the resource as created.
    Created,
    /// The list reports the resource as updated.
    Updated,
    /// The list reports the resource as deleted.
    Deleted,
}

/// A resource as a list describes it. A deleted resource has no length and no digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedRecord {
    /// Line where the entry starts, counted from 1.
    pub line: u64,
    /// URI of the resource, from `loc`.
    pub uri: String,
    /// Kind of change, in a list of changes.
    pub change: Option<ListedChange>,
    /// Value of `lastmod`; in a Change List it may be the time of the change [rs-core §12.1].
    pub lastmod: Option<Timestamp>,
    /// Length of the resource in bytes.
    pub length: Option<u64>,
    /// Media type of the resource.
    pub media_type: Option<String>,
    /// Content coding of the resource.
    pub encoding: Option<String>,
    /// Digests in the syntax of the `hash` attribute.
    pub hash: Option<String>,
    /// Links, including `via`, which identifies the original Source after several republications
    /// [rs-core §14.8].
    pub links: Vec<LinkRecord>,
}

/// Reader of the records of a list, one at a time.
pub struct ListReader<R> {
    reader: Reader<R>,
    entry: Entry,
}

impl<R: Read> ListReader<R> {
    /// Starts reading a list with its head.
    ///
    /// # Errors
    /// The list cannot be read, or is an index.
    pub fn new(input: R) -> Result<Self, ListError> {
        let mut reader = Reader::new(input);
        if reader.head()?.root == Root::SitemapIndex {
            return Err(ListError::Index);
        }
        Ok(Self { reader, entry: Entry::default() })
    }

    /// Reads the next record; `None` at the end of the list.
    ///
    /// # Errors
    /// The rest of the list cannot be read.
    pub fn read(&mut self) -> Result<Option<ListedRecord>, ListError> {
        let there = self.reader.next(&mut self.entry)?;
        Ok(there.then(|| record_of(&self.entry)))
    }
}

fn record_of(entry: &Entry) -> ListedRecord {
    let record = ListedRecord {
        line: entry.line,
        uri: entry.loc.clone(),
        change: entry.change.map(|change| match change {
            Change::Created => ListedChange::Created,
            Change::Updated => ListedChange::Updated,
            Change::Deleted => ListedChange::Deleted,
        }),
        ..ListedRecord::default()
    };
    if record.change == Some(ListedChange::Deleted) {
        return record;
    }
    ListedRecord {
        lastmod: entry.lastmod.map(|lastmod| lastmod.instant),
        length: entry.length,
        media_type: entry.media_type.clone(),
        encoding: entry.encoding.clone(),
        hash: entry.digests.strongest().map(|_| entry.digests.to_string()),
        links: entry.links.iter().map(link_of).collect(),
        ..record
    }
}

fn link_of(link: &Ln) -> LinkRecord {
    LinkRecord {
        rel: link.rel.clone(),
        href: link.href.clone(),
        hash: link.digests.strongest().map(|_| link.digests.to_string()),
        length: link.length,
        modified: link.modified.map(|modified| modified.instant.to_string()),
        path: link.path.clone(),
        media_type: link.media_type.clone(),
        encoding: link.encoding.clone(),
        pri: link.pri.filter(|pri| (1..=999_999).contains(pri)),
        title: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                        xmlns:rs=\"http://www.openarchives.org/rs/terms/\">";

    #[test]
    fn entries_become_records_and_deletions_have_no_state() {
        let list = format!(
            "{HEAD}\n<rs:md capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"/>\n\
             <url><loc>http://x/a</loc><lastmod>2026-01-02T00:00:00Z</lastmod>\
             <rs:md change=\"updated\" length=\"3\" type=\"text/plain\"/>\
             <rs:ln rel=\"via\" href=\"http://y/a\" pri=\"1000000\"/></url>\n\
             <url><loc>http://x/b</loc><rs:md change=\"deleted\" length=\"3\"/></url></urlset>"
        );
        let mut reader = ListReader::new(list.as_bytes()).unwrap();
        let first = reader.read().unwrap().unwrap();
        assert_eq!((first.uri.as_str(), first.line, first.length), ("http://x/a", 3, Some(3)));
        assert_eq!(
            (first.change, first.media_type.as_deref()),
            (Some(ListedChange::Updated), Some("text/plain"))
        );
        assert_eq!((first.links[0].href.as_str(), first.links[0].pri), ("http://y/a", None));
        let deleted = ListedRecord {
            line: 4,
            uri: "http://x/b".into(),
            change: Some(ListedChange::Deleted),
            ..ListedRecord::default()
        };
        assert_eq!(reader.read().unwrap(), Some(deleted));
        assert_eq!(reader.read().unwrap(), None);
    }

    #[test]
    fn an_index_is_refused_with_help() {
        let index = HEAD.replace("urlset", "sitemapindex") + "</sitemapindex>";
        let refused = ListReader::new(index.as_bytes()).err().unwrap();
        assert!(matches!(refused, ListError::Index) && refused.to_string().contains("help:"));
    }
}
