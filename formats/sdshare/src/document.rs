//! A whole feed in memory.

use crate::{Entry, Error, Feed, FeedKind, Finding, Limits, Parser, Step};

/// A whole feed in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// What it states of itself.
    pub feed: Feed,
    /// Its entries, in their order.
    pub entries: Vec<Entry>,
    /// Deviations from Atom and SDShare that were accepted.
    pub findings: Vec<Finding>,
}

impl Document {
    /// Reads a feed at an address; relative links are resolved against that.
    ///
    /// # Errors
    /// See [`Parser::next`].
    pub fn from_slice(bytes: &[u8], base: &str, limits: Limits) -> Result<Self, Error> {
        Self::from_answer(bytes, "", base, limits)
    }

    /// The same of an answer with that `Content-Type`.
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

    /// The kind of feed: that of the first entry which shows one; `None` for a feed without such an
    /// entry.
    pub fn kind(&self) -> Option<FeedKind> {
        self.entries.iter().find_map(Entry::kind)
    }
}
