//! The topic for changes of resources in a Capability List [rs-change-notification §4.1].

use crate::push::announcement::Topic;
use abreast_resourcesync::v1_1::{Capability, Document};
use abreast_websub::MAX_HUBS;
use abreast_webtypes::{SyntaxError, resolve};

/// The first entry of a Capability List for changes of resources.
pub(crate) fn topic_in(list: &[u8], base: &str) -> Result<Option<Topic>, SyntaxError> {
    let document = Document::from_slice(list)?;
    let entry = document
        .entries
        .into_iter()
        .find(|entry| entry.capability == Some(Capability::ChangeNotification));
    Ok(entry.and_then(|entry| {
        let hubs = entry.links.iter().filter(|link| link.has_rel("hub"));
        let hubs = hubs.filter_map(|link| resolve(base, &link.href).ok()).take(MAX_HUBS).collect();
        Some(Topic { url: resolve(base, &entry.loc).ok()?, hubs, ..Topic::default() })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_names_topic_and_hubs() {
        let list = |entry: &str| {
            format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                 xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md capability=\"capabilitylist\"/>\
                 <url><loc>http://e/f</loc><rs:md capability=\"framework-notification\"/></url>{entry}</urlset>"
            )
        };
        let with = "<url><loc>/t</loc><rs:ln rel=\"hub\" href=\"http://h/\"/><rs:ln rel=\"hub\" href=\"/hub\"/>\
             <rs:md capability=\"change-notification\"/></url>";
        let found = topic_in(list(with).as_bytes(), "http://e/caps.xml").unwrap();
        let hubs = vec!["http://h/".to_owned(), "http://e/hub".to_owned()];
        assert_eq!(found, Some(Topic { url: "http://e/t".to_owned(), hubs, ..Topic::default() }));
        assert_eq!(topic_in(list("").as_bytes(), "http://e/caps.xml").unwrap(), None);
        assert!(topic_in(b"<html>", "http://e/").is_err());
    }
}
