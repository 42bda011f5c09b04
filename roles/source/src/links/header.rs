//! Conversion of links to Link header values, and the links of a set.

use super::{PATCH, is_absolute};
use abreast_webtypes::{Link, write_link};

/// Links of a set, for the Capability List of the set and the Source Description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedLinks(pub Vec<Link>);

/// Returns the values of Link headers for a response with the resource. Links to patches are
/// omitted, because a patch describes a single change.
///
/// # Examples
/// ```
/// use abreast_source::links::{LinkRecord, header_links, read_links};
///
/// let record = LinkRecord {
///     rel: "describedby".to_owned(),
///     href: "7.xml".to_owned(),
///     ..LinkRecord::default()
/// };
/// let links = read_links("scans/7.tif", &[record])?;
/// assert_eq!(
///     header_links("https://repo.example/maps/r/", &links),
///     [r#"<https://repo.example/maps/r/scans/7.xml>; rel="describedby""#],
/// );
/// # Ok::<(), String>(())
/// ```
pub fn header_links(resources: &str, links: &[Link]) -> Vec<String> {
    links
        .iter()
        .filter(|link| !link.has_rel(PATCH))
        .map(|link| {
            let mut link = link.clone();
            link.target = href_of(resources, &link.target);
            let bare = link.has_rel("timegate");
            link.params.retain(|(name, _)| !bare && name != "path");
            let mut value = String::new();
            write_link(&mut value, &link);
            value
        })
        .collect()
}

/// Returns the absolute URI of a target, which may be relative to the URIs of the set's resources.
pub(crate) fn href_of(resources: &str, target: &str) -> String {
    if is_absolute(target) { target.to_owned() } else { format!("{resources}{target}") }
}

#[cfg(test)]
mod tests {
    use super::super::{LinkRecord, read_links};
    use super::*;

    #[test]
    fn headers_carry_what_is_true_of_the_resource_now() {
        let records: Vec<LinkRecord> = serde_json::from_str(
            r#"[{"rel":"describedby","href":"res1.xml","type":"application/xml","path":"/x"},
                {"rel":"http://www.openarchives.org/rs/terms/patch","href":"p","type":"a/b"}]"#,
        )
        .unwrap();
        assert_eq!(
            header_links("https://example.org/set/r/", &read_links("d/res1", &records).unwrap()),
            [
                "<https://example.org/set/r/d/res1.xml>; rel=\"describedby\"; type=\"application/xml\""
            ]
        );
    }
}
