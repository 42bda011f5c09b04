//! The metadata of documents of ResourceSync 0.1 [rs-0.1 §3.1, §5.1].

use crate::read::sitemap::document as sitemap;
use crate::report::error::Error;
use crate::request::pieces::Go;
use crate::request::requests::Requests;
use abreast_resourcesync::v0_1::{Head, Link, V0_1};
use abreast_webtypes::{Moment, Timestamp, W3cDatetime, resolve};

/// The name of the period of a document, whose start is written `start=TIME` (DCMI Period).
const PERIOD: &str = "DCTERMS.temporal";

/// A parsed document, with the metadata of the response.
pub(super) type Read = sitemap::Read<V0_1>;

impl Read {
    /// The time of the last modification, according to the document.
    pub(super) fn modified(&self) -> Option<Moment> {
        self.head.modified.map(|modified| self.moment(modified))
    }
}

/// Reads only the head of a document.
pub(super) fn read_head(requests: &Requests<'_>, url: &str) -> Result<Read, Error> {
    sitemap::read_begin(requests, url, &mut |_| Ok(Go::Enough))
}

/// The start of the interval whose changes the document contains completely, if specified.
pub(super) fn from_of(head: &Head) -> Option<Timestamp> {
    let period = head.metas.iter().find(|meta| meta.name.trim().eq_ignore_ascii_case(PERIOD))?;
    let start = period.content.split(';').find_map(|part| part.trim().strip_prefix("start="))?;
    W3cDatetime::parse(start.trim().as_bytes()).ok().map(|start| start.instant)
}

/// The absolute URL of a link.
pub(super) fn target(base: &str, link: &Link) -> Option<String> {
    resolve(base, link.href.trim()).ok()
}
