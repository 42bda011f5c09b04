//! A protocol with a reader, and the recognition of its responses.

use super::Reader;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;

/// Number of bytes of a response by which a reader is chosen.
pub(crate) const HEAD_BYTES: usize = 4 << 10;

/// A protocol that can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// The word for the protocol in messages and in the database of a copy.
    pub(crate) name: &'static str,
    /// Whether a response is a document of the protocol, or may lead to one.
    pub(crate) recognises: fn(&AnswerHead<'_>) -> bool,
    /// Whether a response with a link to a Source is nevertheless a document of the protocol, and
    /// not a resource.
    pub(crate) has_mark: fn(&AnswerHead<'_>) -> bool,
    pub(crate) reader: fn() -> Box<dyn Reader>,
    /// The reader for a response that is not a document of the protocol, but may lead to one.
    pub(crate) at_site: Option<FindAtSite>,
}

/// A reader and the word for its protocol; `None` for ResourceSync 1.1.
pub(crate) type AtSite = (Option<&'static str>, Box<dyn Reader>);

/// Finds the reader for an address.
pub(crate) type FindAtSite = fn(&Requests<'_>, &SyncOptions) -> Result<AtSite, Error>;

/// The start of the response of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerHead<'a> {
    /// The first bytes, converted to UTF-8 if they are text: at least [`HEAD_BYTES`], if the
    /// response is that long. Empty for an error response.
    pub(crate) bytes: &'a [u8],
}

impl AnswerHead<'_> {
    /// Whether the response is a Sitemap or a Sitemap index.
    pub(crate) fn is_sitemap(&self) -> bool {
        matches!(self.root_element(), Some("urlset" | "sitemapindex"))
    }

    /// The local name of the root element, if the response is XML.
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
