//! Values that several documents share.

use abreast_resourcesync::v1_1::Ln;

pub(super) const XML: &str = "application/xml";

/// `rs:ln rel="up"`, and others with only a target.
pub(super) fn link(rel: &str, href: &str) -> Ln {
    Ln { rel: rel.to_owned(), href: href.to_owned(), ..Ln::default() }
}

/// An instant as documents state it.
pub(super) fn exactly(instant: abreast_webtypes::Timestamp) -> abreast_webtypes::W3cDatetime {
    abreast_webtypes::W3cDatetime { instant, precision: abreast_webtypes::Precision::Fraction }
}
