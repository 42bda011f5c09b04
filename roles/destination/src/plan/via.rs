//! The origin of a resource, as a list states it.

use crate::plan::listed::{Listed, Relation};
use crate::sink::via::{VIA_BYTES_MAX, to_json};

/// The origin that a list states for a resource, as a link in JSON.
pub(crate) fn listed_via(listed: &Listed<'_>) -> Option<String> {
    let link = listed.links_to(Relation::Origin).find(|link| url::Url::parse(link.href).is_ok())?;
    let mut digests = String::new();
    if !link.digests.is_empty() {
        digests = link.digests.to_string();
    }
    let json =
        to_json(link.href, link.modified, &digests, link.length, link.media_type).to_string();
    (json.len() <= VIA_BYTES_MAX).then_some(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::Link;
    use crate::plan::listed::testing::{link, listed};
    use serde_json::Value;

    #[test]
    fn only_a_usable_origin_is_taken_over() {
        let via = |relation, href: &str| {
            let links = vec![Link { length: Some(5), ..link(relation, href) }];
            listed_via(&listed("http://h/list.xml", "http://h/a", links))
        };
        let text = via(Relation::Origin, "http://original.example/a").unwrap();
        let link: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            link,
            serde_json::json!({"rel": "via", "href": "http://original.example/a", "length": 5})
        );
        assert_eq!(via(Relation::Mirror, "http://original.example/a"), None);
        assert_eq!(via(Relation::Origin, "../a"), None);
        assert_eq!(via(Relation::Origin, &format!("http://h/{}", "a".repeat(9_000))), None);
    }
}
