//! Plain Sitemaps for crawlers, which reject unknown elements, and robots.txt with their URLs.

use super::paths::SetPage;
use crate::projection::routes::Route as _;
use crate::publish::publisher::{MAX_IN_MEMORY, Publisher};
use crate::publish::{Output, PublishError, PublishedSet, Rendered};
use abreast_core::{ChangeLog, ShardId, ShardRule};
use abreast_resourcesync::plain_sitemap::{
    Entry, Root, write_end, write_plain_entry, write_plain_head,
};
use abreast_webtypes::{Precision, W3cDatetime};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

const XML: &str = "application/xml";

/// `/robots.txt`: permits all crawlers, and lists the Sitemaps where discovery starts [rs-core
/// §6.3].
pub(super) fn robots(publisher: &Publisher) -> Rendered {
    let mut text = format!("User-agent: *\nAllow: /\nSitemap: {}\n", publisher.urls().sitemap());
    for sitemap in publisher.projections().flat_map(|one| one.robots_sitemaps(publisher)) {
        let _ = writeln!(text, "Sitemap: {sitemap}");
    }
    Rendered { bytes: text.into_bytes(), content_type: "text/plain; charset=utf-8" }
}

/// `/sitemap.xml`: index of the plain Sitemaps of all sets.
pub(super) fn index(
    log: &dyn ChangeLog,
    sets: &[Arc<PublishedSet>],
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let mut shards = 0;
    for set in sets {
        shards += log.head(set.id)?.resources / (ShardRule::DEFAULT.resources / 2) + 1;
    }
    output.expect(shards * 120);
    let mut bytes = Vec::new();
    write_plain_head(&mut bytes, Root::SitemapIndex);
    for set in sets {
        if log.head(set.id)?.importing {
            continue;
        }
        for shard in log.shards(set.id)? {
            let lastmod = W3cDatetime { instant: shard.time, precision: Precision::Fraction };
            let entry = Entry {
                loc: SetPage::Sitemap(shard.id).url(&set.urls),
                lastmod: Some(lastmod),
                ..Entry::default()
            };
            write_plain_entry(&mut bytes, Root::SitemapIndex, &entry);
        }
    }
    write_end(&mut bytes, Root::SitemapIndex);
    Ok(Rendered { bytes, content_type: XML })
}

/// One plain Sitemap, with URIs and times of modification only.
pub(super) fn shard(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    id: ShardId,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let shard = log.shard(set.id, id)?.ok_or(PublishError::NotFound)?;
    let naming = set.urls.naming();
    let length = 512 + shard.resources * 100;
    output.expect(length);
    let mut bytes = Vec::with_capacity((length as usize).min(MAX_IN_MEMORY));
    write_plain_head(&mut bytes, Root::UrlSet);
    let mut entry = Entry::default();
    log.scan(set.id, &shard.range, &mut |resource| {
        naming.write_uri(&resource.key, &mut entry.loc);
        entry.lastmod =
            Some(W3cDatetime { instant: resource.state.modified, precision: Precision::Second });
        write_plain_entry(&mut bytes, Root::UrlSet, &entry);
        output.drain(&mut bytes);
        ControlFlow::Continue(())
    })?;
    write_end(&mut bytes, Root::UrlSet);
    Ok(Rendered { bytes, content_type: XML })
}
