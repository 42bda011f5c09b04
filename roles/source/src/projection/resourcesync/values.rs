//! Values that several documents share.

use abreast_resourcesync::v1_1::Ln;

pub(super) const XML: &str = "application/xml";

/// Link `rs:ln` with a relation and a target only.
pub(super) fn link(rel: &str, href: &str) -> Ln {
    Ln { rel: rel.to_owned(), href: href.to_owned(), ..Ln::default() }
}

/// Time in the precision that documents use.
pub(super) fn exactly(instant: abreast_webtypes::Timestamp) -> abreast_webtypes::W3cDatetime {
    abreast_webtypes::W3cDatetime { instant, precision: abreast_webtypes::Precision::Fraction }
}
