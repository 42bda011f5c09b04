//! Challenge pages: the answers of bot walls to programs, in place of the requested resource.

use http::HeaderMap;

/// Bytes of a web page that are searched for a challenge; the known pages have their marks in the head.
pub(crate) const SEARCHED: usize = 16 << 10;

/// Header fields that only answers with a challenge have, and a part of their value; the product.
const HEADERS: [(&str, &str, &str); 4] = [
    ("cf-mitigated", "challenge", "Cloudflare"),
    ("x-amzn-waf-action", "", "AWS WAF"),
    ("x-vercel-mitigated", "challenge", "Vercel"),
    ("x-datadome", "protected", "DataDome"),
];

/// Parts of the pages that are sent with status 200, and the product.
const PAGES: [(&str, &str); 8] = [
    ("/.within.website/x/cmd/anubis/", "Anubis"),
    ("id=\"anubis_challenge\"", "Anubis"),
    ("/cdn-cgi/challenge-platform/", "Cloudflare"),
    ("window._cf_chl_opt", "Cloudflare"),
    ("/.well-known/.git.gammaspectra.live/git/go-away/", "go-away"),
    ("/_Incapsula_Resource?", "Imperva"),
    ("captcha-delivery.com/c.js", "DataDome"),
    ("haproxy-protection", "haproxy-protection"),
];

/// The product whose challenge these header fields belong to.
pub(crate) fn in_headers(headers: &HeaderMap) -> Option<&'static str> {
    HEADERS.iter().find_map(|(name, part, product)| {
        let value = headers.get(*name)?.to_str().ok()?.to_ascii_lowercase();
        value.contains(part).then_some(*product)
    })
}

/// The product whose challenge page begins with these bytes.
pub(crate) fn in_page(begin: &[u8]) -> Option<&'static str> {
    let has = |mark: &str| memchr::memmem::find(begin, mark.as_bytes()).is_some();
    PAGES.iter().find_map(|(mark, product)| has(mark).then_some(*product))
}

/// Whether a media type is that of web pages.
pub(crate) fn is_page_type(headers: &HeaderMap) -> bool {
    let value = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let name = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    name.eq_ignore_ascii_case("text/html") || name.eq_ignore_ascii_case("application/xhtml+xml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn challenges_are_recognised_and_other_pages_are_not() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        for (name, value, product) in [
            ("cf-mitigated", "challenge", Some("Cloudflare")),
            ("cf-ray", "8a1-FRA", None),
            ("x-amzn-waf-action", "captcha", Some("AWS WAF")),
            ("x-vercel-mitigated", "deny", None),
            ("x-datadome", "protected", Some("DataDome")),
        ] {
            assert_eq!(in_headers(&headers(name, value)), product, "{name}: {value}");
        }
        for (page, product) in [
            ("<script id=\"anubis_challenge\" type=\"application/json\">", Some("Anubis")),
            ("<script src='/cdn-cgi/challenge-platform/h/b'>", Some("Cloudflare")),
            ("<p>Anubis is a jackal.</p>", None),
            ("", None),
        ] {
            assert_eq!(in_page(page.as_bytes()), product, "{page}");
        }
        assert!(is_page_type(&headers("content-type", "Text/HTML; charset=utf-8")));
        assert!(!is_page_type(&headers("content-type", "application/xml")));
    }
}
