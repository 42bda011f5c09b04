//! Lines of a robots.txt.

/// The lines of a robots.txt, as fields in lower case and values without comments. A single `\r`
/// ends a line too [rfc9309 §2.2], and a byte order mark at the start is not part of a field.
///
/// # Examples
/// ```
/// use abreast_webtypes::robots_fields;
///
/// let text = "User-Agent: *\nDisallow: /reading-room # members only\n";
/// let disallowed: Vec<_> = robots_fields(text).filter(|(name, _)| name == "disallow").collect();
/// assert_eq!(disallowed, [("disallow".to_owned(), "/reading-room")]);
/// ```
pub fn robots_fields(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.trim_start_matches('\u{feff}').split(['\r', '\n']).filter_map(|line| {
        let (name, value) = line.split('#').next()?.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim()))
    })
}

/// The targets of the `Sitemap` lines of a robots.txt.
///
/// ```
/// let text = b"User-agent: *\nSitemap: https://example.org/sitemap.xml # all";
/// assert_eq!(abreast_webtypes::robots_sitemaps(text), ["https://example.org/sitemap.xml"]);
/// ```
pub fn robots_sitemaps(text: &[u8]) -> Vec<String> {
    robots_fields(&String::from_utf8_lossy(text))
        .filter(|(name, value)| name == "sitemap" && !value.is_empty())
        .map(|(_, value)| value.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sitemaps_are_found_whatever_ends_a_line() {
        assert_eq!(
            robots_sitemaps(b"User-agent: *\nSITEMAP : http://h/s.xml\nSitemap:\n# Sitemap: no\n"),
            ["http://h/s.xml"]
        );
        for end in ["\n", "\r", "\r\n"] {
            let lines = ["\u{feff}Sitemap: /one", "sitemap: /two # the new one", "#Sitemap: /no"];
            assert_eq!(robots_sitemaps(lines.join(end).as_bytes()), ["/one", "/two"], "{end:?}");
        }
        assert!(robots_sitemaps(b"\xff\xfe\x00: \xff\rsitemap").is_empty());
    }
}
