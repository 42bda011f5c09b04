//! Links in input files and API requests: JSON with the attributes of `rs:ln` [rs-core §7].

use super::{PATCH, check_relation, is_absolute};
use abreast_webtypes::{Digests, Link, MAX_URI_LENGTH, W3cDatetime};
use serde::{Deserialize, Serialize};

/// Most links that the log stores for a resource.
pub const MAX_LINKS: usize = 256;
/// Most bytes in all links of a resource; the log accepts 64 KiB.
pub(crate) const MAX_LINK_BYTES: usize = 60 * 1_024;
/// Most bytes in an attribute other than `href`.
const MAX_TEXT: usize = 1_024;

/// A link with the attributes of `rs:ln`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRecord {
    /// Relation types, separated by spaces: registered names or URIs.
    pub rel: String,
    /// Target of the link: an absolute URI, or a reference relative to the resource. A reference
    /// that starts with `/` is relative to the top of the set.
    pub href: String,
    /// Digests of the target, in the format of documents: `md5:… sha-256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Length of the target, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Time of the last modification of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// Path of the target in a package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Media type of the target.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content coding of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Priority among links with the same relation, from 1 to 999999; 1 is the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pri: Option<u32>,
    /// Title of the target, for display to users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl LinkRecord {
    /// Validates this link of the resource with the given key.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::links::LinkRecord;
    ///
    /// let record = LinkRecord {
    ///     rel: "describedby".to_owned(),
    ///     href: "../records/7.xml".to_owned(),
    ///     ..LinkRecord::default()
    /// };
    /// assert_eq!(record.to_link("scans/7.tif")?.target, "records/7.xml");
    /// let fault = LinkRecord { pri: Some(0), ..record }.to_link("scans/7.tif").unwrap_err();
    /// assert_eq!(fault, "`pri`: 0 is not between 1 and 999999");
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// The invalid attribute, and why it is invalid.
    pub fn to_link(&self, key: &str) -> Result<Link, String> {
        if self.rel.len() > MAX_TEXT {
            return Err(format!("`rel`: longer than {MAX_TEXT} bytes"));
        }
        check_relation(&self.rel)?;
        let target = target_of(key, &self.href).map_err(|reason| format!("`href`: {reason}"))?;
        let mut params: Vec<(String, String)> = Vec::new();
        let mut push = |name: &str, value: String| params.push((name.to_owned(), value));
        if let Some(hash) = &self.hash {
            let mut digests = Digests::default();
            digests.parse_into(hash.as_bytes()).map_err(|error| format!("`hash`: {error}"))?;
            push("hash", digests.to_string());
        }
        if let Some(length) = self.length {
            push("length", length.to_string());
        }
        if let Some(modified) = &self.modified {
            let read = W3cDatetime::parse(modified.as_bytes())
                .map_err(|error| format!("`modified`: {error}"))?;
            push("modified", read.instant.to_string());
        }
        for (name, value) in
            [("path", &self.path), ("type", &self.media_type), ("encoding", &self.encoding)]
        {
            if let Some(value) = value {
                check_text(value).map_err(|reason| format!("`{name}`: {reason}"))?;
                push(name, value.clone());
            }
        }
        if let Some(pri) = self.pri {
            if !(1..=999_999).contains(&pri) {
                return Err(format!("`pri`: {pri} is not between 1 and 999999"));
            }
            push("pri", pri.to_string());
        }
        if let Some(title) = &self.title {
            check_title(title).map_err(|reason| format!("`title`: {reason}"))?;
            push("title", title.clone());
        }
        if self.rel.split(' ').any(|token| token == PATCH) && self.media_type.is_none() {
            return Err("`type`: a patch needs the media type of its format".to_owned());
        }
        Ok(Link {
            target,
            rel: self.rel.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
            params,
        })
    }

    /// Converts a stored link to the format of input files.
    pub fn of(link: &Link) -> Self {
        let text = |name: &str| link.param(name).map(str::to_owned);
        // A relative target is relative to the URIs of the set, but `href` to the resource.
        let href = if is_absolute(&link.target) {
            link.target.clone()
        } else {
            format!("/{}", link.target)
        };
        Self {
            rel: link.rel.clone(),
            href,
            hash: text("hash"),
            length: link.param("length").and_then(|value| value.parse().ok()),
            modified: text("modified"),
            path: text("path"),
            media_type: text("type"),
            encoding: text("encoding"),
            pri: link.param("pri").and_then(|value| value.parse().ok()),
            title: text("title"),
        }
    }
}

/// Validates the links of the resource with this key.
///
/// # Examples
/// ```
/// use abreast_source::links::{LinkRecord, read_links};
///
/// // Only the original Source has a `via` link.
/// let via = |href: &str| LinkRecord {
///     rel: "via".to_owned(),
///     href: href.to_owned(),
///     ..LinkRecord::default()
/// };
/// let records = [via("https://archive.example/7"), via("https://museum.example/7")];
/// assert!(read_links("7.tif", &records[..1]).is_ok());
/// assert!(read_links("7.tif", &records).unwrap_err().starts_with("link 2: a second `via`"));
/// ```
///
/// # Errors
/// The number of the first invalid link, and why it is invalid.
pub fn read_links(key: &str, records: &[LinkRecord]) -> Result<Vec<Link>, String> {
    if records.len() > MAX_LINKS {
        return Err(format!(
            "{} links; at most {MAX_LINKS} are kept of one resource",
            records.len()
        ));
    }
    let mut links: Vec<Link> = Vec::with_capacity(records.len());
    for (number, record) in records.iter().enumerate() {
        let link =
            record.to_link(key).map_err(|reason| format!("link {}: {reason}", number + 1))?;
        if link.has_rel("via") && links.iter().any(|other| other.has_rel("via")) {
            return Err(format!(
                "link {}: a second `via`; only the original Source is named [rs-core §14.8]",
                number + 1
            ));
        }
        if !links.contains(&link) {
            links.push(link);
        }
    }
    let bytes: usize = links.iter().map(bytes_of).sum();
    if bytes > MAX_LINK_BYTES {
        return Err(format!(
            "{bytes} bytes of links; at most {MAX_LINK_BYTES} are kept of one resource"
        ));
    }
    Ok(links)
}

/// Returns the length of all text in a link, in bytes.
pub(crate) fn bytes_of(link: &Link) -> usize {
    let params: usize = link.params.iter().map(|(name, value)| name.len() + value.len()).sum();
    link.target.len() + link.rel.len() + params
}

/// Converts a reference in a link of the resource `key` to the target that the log stores.
pub(crate) fn target_of(key: &str, href: &str) -> Result<String, String> {
    if href.is_empty() {
        return Err("it leads nowhere".to_owned());
    }
    if href.len() > MAX_URI_LENGTH {
        return Err(format!("it is longer than {MAX_URI_LENGTH} bytes"));
    }
    check_characters(href)?;
    if is_absolute(href) {
        return Ok(href.to_owned());
    }
    if is_absolute(key) {
        return abreast_webtypes::resolve(key, href).map_err(|error| error.to_string());
    }
    // The reference is relative to the folder of the resource, or to the top of the set.
    let (folder, reference) = match href.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => {
            return Err("it names another host without a scheme".to_owned());
        }
        Some(rest) => ("", rest),
        None => (key.rsplit_once('/').map_or("", |(folder, _)| folder), href),
    };
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in reference.split('/') {
        match segment {
            ".." if segments.pop().is_none() => return Err("it leads out of the set".to_owned()),
            "." | ".." => {}
            other => segments.push(other),
        }
    }
    let target = segments.join("/");
    // A target with a leading slash would be parsed as a reference from the top of the set.
    if target.is_empty() || target.starts_with('/') || target.contains(':') {
        return Err(format!("`{href}` names no resource of the set"));
    }
    Ok(target)
}

fn check_title(value: &str) -> Result<(), String> {
    if value.is_empty() || value.len() > MAX_TEXT {
        return Err(format!("its length is not between 1 and {MAX_TEXT} bytes"));
    }
    if value.contains(abreast_webtypes::is_control) {
        return Err("it has control characters".to_owned());
    }
    Ok(())
}

fn check_text(value: &str) -> Result<(), String> {
    if value.is_empty() || value.len() > MAX_TEXT {
        return Err(format!("its length is not between 1 and {MAX_TEXT} bytes"));
    }
    if value.chars().any(|character| !matches!(character, ' '..='~')) {
        return Err("it has characters other than those of ASCII".to_owned());
    }
    Ok(())
}

/// Checks that `uri` is an absolute URI of any scheme; does not normalize the URI.
///
/// # Examples
/// ```
/// use abreast_source::links::absolute_uri;
///
/// assert!(absolute_uri("urn:isbn:9780262510875").is_ok());
/// assert!(absolute_uri("items/7").is_err());
/// assert!(absolute_uri("https://repo.example/items/7#page=2").is_err());
/// ```
///
/// # Errors
/// Why the URI is invalid.
pub fn absolute_uri(uri: &str) -> Result<(), String> {
    check_characters(uri)?;
    if !is_absolute(uri) {
        return Err(format!("`{}` is not an absolute URI", abreast_webtypes::excerpt(uri)));
    }
    if uri.contains('#') {
        return Err("a resource's URI has no fragment".to_owned());
    }
    // Schemes with an authority need a host; other schemes only need text after the colon.
    let rest = uri.split_once(':').map_or("", |(_, rest)| rest);
    if matches!(rest, "" | "/" | "//") || rest.starts_with("///") {
        return Err(format!("`{}` names nothing", abreast_webtypes::excerpt(uri)));
    }
    Ok(())
}

fn check_characters(uri: &str) -> Result<(), String> {
    let sound = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    match uri.chars().find(|character| !u8::try_from(*character).is_ok_and(sound)) {
        Some(bad) => {
            Err(format!("`{}` cannot stand in a URI (help: percent-encode it)", bad.escape_debug()))
        }
        None => Ok(()),
    }
}

/// Converts stored links to published links, in which every target is an absolute URI.
pub fn published_links(links: &[Link], resources: &str) -> Vec<LinkRecord> {
    let published = |link: &Link| {
        let href = if is_absolute(&link.target) {
            link.target.clone()
        } else {
            format!("{resources}{}", link.target)
        };
        LinkRecord { href, ..LinkRecord::of(link) }
    };
    links.iter().map(published).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rel: &str, href: &str) -> LinkRecord {
        LinkRecord { rel: rel.into(), href: href.into(), ..LinkRecord::default() }
    }

    #[test]
    fn references_are_relative_to_the_resource_within_the_set() {
        for (key, href, target) in [
            ("a/b.pdf", "b.xml", "a/b.xml"),
            ("a/b.pdf", "../b.xml", "b.xml"),
            ("a/b.pdf", "/meta/b.xml", "meta/b.xml"),
            ("b.pdf", "./x/b.xml", "x/b.xml"),
            ("b.pdf", "https://example.org/x?y#z", "https://example.org/x?y#z"),
            ("https://example.org/d/x", "y", "https://example.org/d/y"),
            ("b.pdf", "gsiftp://grid.example.org/b", "gsiftp://grid.example.org/b"),
        ] {
            assert_eq!(target_of(key, href).as_deref(), Ok(target), "{key} {href}");
        }
        for (key, href) in [
            ("b.pdf", "../x"),
            ("b.pdf", "a b"),
            ("b.pdf", ""),
            ("b.pdf", "//host/x"),
            ("b.pdf", "a/..//x"),
            ("b.pdf", "ä"),
            ("b", "x:y/z\""),
        ] {
            assert!(target_of(key, href).is_err(), "{href}");
        }
    }

    #[test]
    fn a_stored_link_is_written_as_it_can_be_read_again() {
        let record = LinkRecord {
            hash: Some("md5:1584abdf8ebdc9802ac0c6a7402c03b6".into()),
            length: Some(8_876),
            modified: Some("2013-01-03T18:00:00Z".into()),
            path: Some("/x".into()),
            media_type: Some("text/html; charset=utf-8".into()),
            encoding: Some("gzip".into()),
            pri: Some(2),
            ..link("duplicate", "x")
        };
        let stored = record.to_link("d/a").unwrap();
        let again = LinkRecord::of(&stored);
        assert_eq!(again, LinkRecord { href: "/d/x".into(), ..record });
        assert_eq!(again.to_link("elsewhere/y").unwrap(), stored);
    }

    #[test]
    fn what_no_document_could_state_is_refused_by_its_name() {
        for (record, part) in [
            (LinkRecord { pri: Some(0), ..link("duplicate", "x") }, "`pri`"),
            (LinkRecord { pri: Some(1_000_000), ..link("duplicate", "x") }, "`pri`"),
            (LinkRecord { hash: Some("md5:xyz".into()), ..link("duplicate", "x") }, "`hash`"),
            (
                LinkRecord { modified: Some("yesterday".into()), ..link("duplicate", "x") },
                "`modified`",
            ),
            (LinkRecord { media_type: Some("a\nb".into()), ..link("duplicate", "x") }, "`type`"),
            (link(PATCH, "x"), "`type`: a patch"),
            (link("nonsense", "x"), "`rel`"),
        ] {
            let error = read_links("k", &[record]).unwrap_err();
            assert!(error.starts_with("link 1: ") && error.contains(part), "{error}");
        }
        let vias = [link("via", "https://a.example/"), link("via", "https://b.example/")];
        assert!(read_links("k", &vias).unwrap_err().contains("second `via`"));
        assert!(read_links("k", &vec![link("up", "x"); MAX_LINKS + 1]).is_err());
        let long = |number: usize| {
            link("up", &format!("https://example.org/{number}/{}", "x".repeat(1_000)))
        };
        let many: Vec<_> = (0..70).map(long).collect();
        assert!(read_links("k", &many).unwrap_err().contains("bytes of links"));
        assert_eq!(read_links("k", &many[..50]).unwrap().len(), 50);
    }
}
