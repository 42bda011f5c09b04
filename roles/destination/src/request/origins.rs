//! The parts of a Source that are copies of other Sources, according to its responses.

use abreast_folder::CopyOf;
use abreast_net::{Reach, Response};
use abreast_webtypes::{parse_link_header, resolve};
use std::cell::RefCell;
use std::rc::Rc;
use url::Url;

/// The relation of a link to the origin of a copied resource [rs-core §14.8].
const RELATION: &str = "via";

/// Pairs from the responses of a run: the address at which the URIs of a part start, and an address
/// of the part's Source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Rc<RefCell<Vec<(String, String)>>>);

impl Origins {
    /// Adds the origins in the `Link` headers of a response.
    pub(crate) fn note(&self, response: &Response) {
        for value in response.values("link") {
            self.add(response.url(), &value);
        }
    }

    fn add(&self, url: &str, value: &str) {
        let mut known = self.0.borrow_mut();
        for link in parse_link_header(value).unwrap_or_default() {
            let Some(anchor) = link.anchor().filter(|_| link.has_rel(RELATION)) else { continue };
            let (Ok(part), Ok(source)) = (resolve(url, anchor), resolve(url, &link.target)) else {
                continue;
            };
            // A Source may describe its own parts only, and only with addresses that mean the same
            // host everywhere.
            let is_part =
                part.ends_with('/') && !part.contains(['?', '#']) && has_origin_of(&part, url);
            let is_usable = is_part && Reach::of(&source) >= Reach::of(url);
            let next = (part, source);
            if is_usable && known.len() < CopyOf::SOURCES_MAX && !known.contains(&next) {
                known.push(next);
            }
        }
    }

    /// The pairs of all responses so far.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        self.0.borrow().clone()
    }
}

fn has_origin_of(one: &str, other: &str) -> bool {
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    origin(one).is_some_and(|found| found.is_tuple() && Some(found) == origin(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_with_an_anchor_name_the_sources_of_parts() {
        let origins = Origins::default();
        for value in [
            "<http://a/>; rel=\"via\"; anchor=\"http://b/r/a/\", <c>; rel=VIA; anchor=\"/r/c/\"",
            "<http://a/>; rel=\"via\"; anchor=\"http://b/r/a/\"",
            "<http://a/>; rel=via",
            "<http://a/>; rel=up; anchor=\"http://b/r/x/\"",
            "<http://a/>; rel=via; anchor=\"http://b/r/x\"",
            // Not of this Source, or no folder.
            "<http://a/>; rel=via; anchor=\"http://c/r/x/\"",
            "<http://a/>; rel=via; anchor=\"https://b/r/x/\"",
            "<http://a/>; rel=via; anchor=\"http://b:81/r/x/\"",
            "<http://a/>; rel=via; anchor=\"http://b/r/?x/\"",
            "<http://a/>; rel=via; anchor=\"http://b/r/#x/\"",
            "<http://a/>; rel=via; anchor=\"urn:x/\"",
        ] {
            origins.add("http://b/list.xml", value);
        }
        let expected = [("http://b/r/a/", "http://a/"), ("http://b/r/c/", "http://b/c")];
        let expected = expected.map(|(part, source)| (part.to_owned(), source.to_owned()));
        assert_eq!(origins.all(), expected);
        for number in 0..100 {
            origins.add("http://b/", &format!("<x{number}>; rel=via; anchor=\"/r/\""));
        }
        assert_eq!(origins.all().len(), CopyOf::SOURCES_MAX);
    }

    #[test]
    fn an_address_of_another_machine_is_not_taken_for_one_here() {
        for (url, target, is_noted) in [
            ("http://b.example/", "http://127.0.0.1:8080/", false),
            ("http://b.example/", "http://localhost/", false),
            ("http://8.8.8.8/", "http://10.0.0.1/", false),
            ("http://10.0.0.2/", "http://127.0.0.1/", false),
            ("http://10.0.0.2/", "http://10.0.0.1/", true),
            ("http://127.0.0.1/", "http://127.0.0.1:8080/", true),
            ("http://localhost/", "http://10.0.0.1/", true),
            ("http://127.0.0.1/", "http://a.example/", true),
        ] {
            let origins = Origins::default();
            origins.add(url, &format!("<{target}>; rel=via; anchor=\"/r/\""));
            assert_eq!(origins.all().len(), usize::from(is_noted), "{url} {target}");
        }
    }
}
