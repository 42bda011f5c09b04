//! Limits and steps of the parsers.

use abreast_webtypes::xml::DEFAULT_MAX_DOCUMENT_LENGTH;

/// Most entries in a Sitemap by the specification [rs-core §7, rs-0.1 §3.2].
pub const SPEC_MAX_ENTRIES: u64 = 50_000;

/// Limits on a document: it is refused when it exceeds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Most entries, 200,000 by default: four times the specification's limit, which some
    /// publishers exceed [rs-core §7].
    pub entries: u64,
    /// Most bytes after decompression, 512 MiB by default.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 200_000, bytes: DEFAULT_MAX_DOCUMENT_LENGTH }
    }
}

impl Limits {
    /// Limits for manifests in packages: 2,000,000 entries, because a manifest has an entry for
    /// each member, or several if a resource changed again.
    pub const fn of_manifest() -> Self {
        Self { entries: 2_000_000, bytes: DEFAULT_MAX_DOCUMENT_LENGTH }
    }

    /// Refuses documents with more entries.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::{Entry, Limits, Reader};
    ///
    /// let list = r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
    ///   <url><loc>https://repo.example/1</loc></url>
    ///   <url><loc>https://repo.example/2</loc></url>
    /// </urlset>"#;
    /// let mut reader = Reader::with_limits(list.as_bytes(), Limits::default().with_entries(1));
    /// let mut entry = Entry::default();
    /// assert!(reader.next(&mut entry)?);
    /// assert!(reader.next(&mut entry).is_err());
    /// # Ok::<(), abreast_resourcesync::v1_1::ReadError>(())
    /// ```
    #[must_use]
    pub const fn with_entries(mut self, entries: u64) -> Self {
        self.entries = entries;
        self
    }

    /// Refuses documents with more bytes.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}

/// The result of a call of `next` of a parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More input is needed: call `feed` or `finish`.
    NeedInput,
    /// The head is complete, see `head` of the parser. Returned once, before the first entry.
    Head,
    /// The next entry was written to the passed `Entry`.
    Entry,
    /// The document is complete. Only now may a caller conclude that missing entries are not
    /// listed.
    End,
}
