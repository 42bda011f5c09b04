//! Namespaces of the documents [rs-core §4, §7].

use abreast_webtypes::xml::Ns;

/// Namespace of Sitemap elements.
pub const SITEMAP_NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
/// Namespace of ResourceSync elements; their attributes have none.
pub const RS_NAMESPACE: &str = "http://www.openarchives.org/rs/terms/";

/// The namespaces in the order of [`SM`] and [`RS`].
pub(super) const KNOWN: &[&str] = &[SITEMAP_NAMESPACE, RS_NAMESPACE];
pub(super) const SM: Ns = Ns::known(0);
pub(super) const RS: Ns = Ns::known(1);
