//! Discovery of ResourceSync documents in web pages and robots.txt [rs-core §6.3].

use crate::fetch::root::root_of;
use crate::sdshare;
use abreast_resourcesync::v1_1::SITEMAP_NAMESPACE;

/// Whether the answer of an address that links to its Source is a document itself, by its first bytes. Any other is
/// a resource, as copies take it.
pub(crate) fn is_document(begin: &[u8]) -> bool {
    let is_sitemap = |(_, name): (bool, String)| matches!(&*name, "urlset" | "sitemapindex");
    root_of(begin, &[SITEMAP_NAMESPACE]).is_some_and(is_sitemap)
        || sdshare::is_feed(begin) && abreast_sdshare::has_mark(begin)
        || abreast_emm::has_mark(begin)
}
