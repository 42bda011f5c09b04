//! A whole feed in memory.

use crate::{Entry, Feed, FeedKind, Finding, Limits, Parser, Step};
use abreast_webtypes::SyntaxError as Error;

/// A whole feed in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Title, time, author and links of the feed.
    pub feed: Feed,
    /// The entries, in the order of the feed.
    pub entries: Vec<Entry>,
    /// Accepted deviations from Atom and SDShare.
    pub findings: Vec<Finding>,
}

impl Document {
    /// Reads a feed at an address, against which relative links are resolved.
    ///
    /// # Errors
    /// See [`Parser::next`].
    pub fn from_slice(bytes: &[u8], base: &str, limits: Limits) -> Result<Self, Error> {
        Self::from_answer(bytes, "", base, limits)
    }

    /// Reads the body of a response with this `Content-Type`, whose `charset` is used as encoding.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{Document, Limits};
    ///
    /// // "Künstler" in ISO 8859-1.
    /// let feed = b"<feed xmlns='http://www.w3.org/2005/Atom'><title>K\xfcnstler</title></feed>";
    /// let media_type = "application/atom+xml; charset=ISO-8859-1";
    /// let url = "https://museum.example/sdshare";
    /// let read = Document::from_answer(feed, media_type, url, Limits::default())?;
    /// assert_eq!(read.feed.title, "Künstler");
    /// # Ok::<(), abreast_sdshare::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`Parser::next`].
    pub fn from_answer(
        bytes: &[u8],
        media_type: &str,
        base: &str,
        limits: Limits,
    ) -> Result<Self, Error> {
        let mut parser = Parser::new(base, limits);
        parser.use_charset(media_type);
        parser.feed(bytes);
        parser.finish();
        let (mut entries, mut entry) = (Vec::new(), Entry::default());
        loop {
            match parser.next(&mut entry)? {
                Step::Entry => entries.push(std::mem::take(&mut entry)),
                Step::NeedInput => {}
                Step::End => break,
            }
        }
        let (feed, findings) = parser.into_parts();
        Ok(Self { feed, entries, findings })
    }

    /// The kind of feed, by the first entry that shows a kind; `None` if none does.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{Document, FeedKind, Limits};
    ///
    /// let feed = br#"<feed xmlns="http://www.w3.org/2005/Atom"><entry>
    ///   <title>Local history</title>
    ///   <link rel="http://www.sdshare.org/2012/core/collectionfeed" type="application/atom+xml"
    ///     href="/sdshare/local-history"/>
    /// </entry></feed>"#;
    /// let read = Document::from_slice(feed, "https://library.example/sdshare", Limits::default())?;
    /// assert_eq!(read.kind(), Some(FeedKind::Overview));
    /// assert_eq!(read.entries[0].links[0].href, "https://library.example/sdshare/local-history");
    /// # Ok::<(), abreast_sdshare::Error>(())
    /// ```
    pub fn kind(&self) -> Option<FeedKind> {
        self.entries.iter().find_map(Entry::kind)
    }
}
