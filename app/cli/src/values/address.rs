//! Addresses as arguments and settings: one rule for every command and for configuration files.

/// An http or https URL, as it is written.
pub(crate) fn http_url(text: &str) -> Result<String, String> {
    let checked = abreast_net::check_url(text).is_ok() && url::Url::parse(text).is_ok();
    checked.then(|| text.to_owned()).ok_or_else(|| match with_scheme(text) {
        Some(meant) => format!("expected an http or https URL; did you mean `{meant}`?"),
        None => "expected an http or https URL such as https://example.org/".to_owned(),
    })
}

/// Checks the address of a Source.
///
/// # Errors
/// It cannot be one.
pub(crate) fn check_source(text: &str) -> Result<(), abreast_destination::Error> {
    abreast_destination::check_url(text).map(drop).map_err(|error| match with_scheme(text) {
        Some(meant) => error.with_help(format!("did you mean `{meant}`?")),
        None => error,
    })
}

/// The address that was probably meant by a host, with a port or a domain, and a path.
pub(crate) fn with_scheme(text: &str) -> Option<String> {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let name = authority.trim_end_matches(|last: char| last.is_ascii_digit());
    let has_port = name.len() < authority.len() && name.ends_with(':');
    let is_host = has_port || authority == "localhost" || authority.contains('.');
    let is_path = text.starts_with(['.', '/', '~']) || is_url(text);
    let meant = format!("http://{text}");
    (is_host && !is_path && host(authority).is_ok() && http_url(&meant).is_ok()).then_some(meant)
}

/// Parses the common prefix of all published URLs.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let url = http_url(text)?;
    if url.contains(['?', '#']) {
        Err("expected a URL without query and fragment".to_owned())
    } else {
        Ok(url)
    }
}

/// Prefixes that everybody uses for the same vocabularies.
const PREFIXES: [(&str, &str); 12] = [
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("madsrdf", "http://www.loc.gov/mads/rdf/v1#"),
    ("bf", "http://id.loc.gov/ontologies/bibframe/"),
    ("schema", "https://schema.org/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("gndo", "https://d-nb.info/standards/elementset/gnd#"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
];
/// Schemes of IRIs that are names, without `//`.
const NAMES: [&str; 3] = ["urn", "tag", "info"];

/// The IRI of a property; a usual prefix stands for its vocabulary. A prefix that is not known is not
/// taken for a scheme: no statement would have such a property.
pub(crate) fn property(text: &str) -> Result<String, String> {
    let example = "expected an absolute IRI, for example http://purl.org/dc/terms/isReplacedBy";
    let Some((word, rest)) = text.split_once(':') else { return Err(example.to_owned()) };
    let mut iri = text.to_owned();
    if !rest.starts_with("//") {
        if let Some((_, vocabulary)) = PREFIXES.iter().find(|(prefix, _)| *prefix == word) {
            iri = format!("{vocabulary}{rest}");
        } else if !NAMES.contains(&word.to_ascii_lowercase().as_str()) {
            let known = PREFIXES.map(|(prefix, _)| prefix).join(", ");
            return Err(format!(
                "the prefix `{word}:` is not known: {example}; the prefixes that are known are {known}"
            ));
        }
    }
    if abreast_rdf::is_iri(&iri) && !rest.is_empty() { Ok(iri) } else { Err(example.to_owned()) }
}

/// The host of a URL, with its port where that is not the usual one.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let authority = url::Url::parse(&format!("http://{text}/")).ok();
    let is_host = authority
        .is_some_and(|url| url.path() == "/" && url.username().is_empty() && url.query().is_none())
        && !text.contains(['/', '@', '#'])
        && http_url(&format!("http://{text}/")).is_ok();
    if is_host {
        Ok(text.to_owned())
    } else {
        Err("expected a host such as files.example.org or files.example.org:8080".to_owned())
    }
}

/// Whether an argument is meant as a URL, right or wrong, and not as the path of a file.
pub(crate) fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.contains("://") || lower.starts_with("http:") || lower.starts_with("https:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_scheme_and_host() {
        for good in [
            "http://h",
            "https://h.example:8080/a?b=c",
            "HTTPS://H/",
            "http://[::1]:1/",
            "http://me:pw@h/",
        ] {
            assert_eq!(http_url(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "h",
            "h:80",
            "/h",
            "http:/h",
            "http:h",
            "http://",
            "http:///h",
            "http://a b/",
            "http://h:99999/",
            "ftp://h/",
        ] {
            assert!(http_url(bad).is_err() && base_url(bad).is_err(), "{bad}");
        }
        assert!(
            base_url("https://h/a/").is_ok()
                && base_url("https://h/?a").is_err()
                && base_url("https://h/#a").is_err()
        );
        assert!(
            is_url("http:/h") && is_url("ftp://h") && !is_url("./a.xml") && !is_url("localhost:80")
        );
    }

    #[test]
    fn an_address_without_a_scheme_is_proposed_with_one() {
        for (text, meant) in [
            ("127.0.0.1:8080/set", Some("http://127.0.0.1:8080/set")),
            ("localhost:8080", Some("http://localhost:8080")),
            ("localhost", Some("http://localhost")),
            ("example.org/x", Some("http://example.org/x")),
            ("[::1]:8080/", Some("http://[::1]:8080/")),
            ("me:secret@example.org/", None),
            ("papers", None),
            ("./example.org/x", None),
            ("/srv/example.org", None),
            ("urn:x", None),
            ("http:/example.org", None),
            ("ftp://example.org/", None),
            ("", None),
        ] {
            assert_eq!(with_scheme(text).as_deref(), meant, "{text}");
            let refused = http_url(text).unwrap_err();
            let checked = check_source(text).unwrap_err().to_string();
            match meant {
                Some(meant) => assert!(
                    refused.contains(&format!("`{meant}`"))
                        && checked.contains(&format!("`{meant}`")),
                    "{text}: {refused} {checked}"
                ),
                None => assert!(!refused.contains("did you mean"), "{text}: {refused}"),
            }
        }
    }

    #[test]
    fn a_property_is_an_iri_or_has_a_usual_prefix() {
        for (text, iri) in [
            ("skos:prefLabel", "http://www.w3.org/2004/02/skos/core#prefLabel"),
            ("dcterms:isReplacedBy", "http://purl.org/dc/terms/isReplacedBy"),
            ("http://ns.example/p", "http://ns.example/p"),
            ("urn:example:p", "urn:example:p"),
        ] {
            assert_eq!(property(text).as_deref(), Ok(iri));
        }
        for bad in ["", "label", "ex:label", "skos:", "skos:a b", "http://h/ p", "urn:"] {
            assert!(property(bad).unwrap_err().contains("http://purl.org/"), "{bad}");
        }
        assert!(property("ex:label").unwrap_err().contains("madsrdf"));
    }

    #[test]
    fn a_host_has_neither_scheme_nor_path() {
        for good in ["h", "h.example:8080", "[::1]:80", "127.0.0.1"] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for bad in ["", "http://h/", "h/", "h/a", "me@h", "h?a", "a b", "h:port"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }
}
