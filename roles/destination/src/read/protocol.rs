//! A protocol that can be read, and the answers that it is recognised by.

use super::Reader;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;

/// Bytes of an answer that readers are chosen by.
pub(crate) const HEAD_BYTES: usize = 4 << 10;

/// A protocol that can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// Its name, for people, and in the state of a copy.
    pub(crate) name: &'static str,
    /// Whether an answer is a document of it, or may lead to one.
    pub(crate) recognises: fn(&AnswerHead<'_>) -> bool,
    /// Whether an answer that links to a Source is a document of it all the same, and no resource.
    pub(crate) has_mark: fn(&AnswerHead<'_>) -> bool,
    pub(crate) reader: fn() -> Box<dyn Reader>,
    /// The reader for an answer that is not a document of it, and may lead to one.
    pub(crate) at_site: Option<FindAtSite>,
}

/// A reader with the name of its protocol; `None` for that of ResourceSync 1.1.
pub(crate) type AtSite = (Option<&'static str>, Box<dyn Reader>);

/// Finds it for an address.
pub(crate) type FindAtSite = fn(&Requests<'_>, &SyncOptions) -> Result<AtSite, Error>;

/// The begin of what an address answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerHead<'a> {
    /// The first bytes, in UTF-8 if they are text, at least [`HEAD_BYTES`] if there are so many; none of a
    /// failure.
    pub(crate) bytes: &'a [u8],
}

impl AnswerHead<'_> {
    /// Whether it is a document of the family of Sitemaps.
    pub(crate) fn is_sitemap(&self) -> bool {
        matches!(self.root_element(), Some("urlset" | "sitemapindex"))
    }

    /// The local name of the root element, if the answer is XML.
    pub(crate) fn root_element(&self) -> Option<&str> {
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        // A character may be cut at the end.
        let text = text.utf8_chunks().next()?.valid();
        let mut rest = text.trim_start();
        loop {
            let after = rest.strip_prefix('<')?;
            rest = if let Some(comment) = after.strip_prefix("!--") {
                comment.split_once("-->")?.1.trim_start()
            } else if after.starts_with(['?', '!']) {
                after.split_once('>')?.1.trim_start()
            } else {
                let end = after.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/'))?;
                return after[..end].rsplit(':').next();
            };
        }
    }
}
