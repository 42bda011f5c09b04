//! The parts of a Source that are copies of other Sources, as its answers name them.

use abreast_folder::CopyOf;
use abreast_net::Response;
use abreast_webtypes::{parse_link_header, resolve};
use std::cell::RefCell;
use std::rc::Rc;

/// The relation of a link to the origin of what was copied [rs-core §14.8].
const RELATION: &str = "via";

/// What the answers of a run named: the address that the resources of a part begin with, and an address of its Source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Rc<RefCell<Vec<(String, String)>>>);

impl Origins {
    /// Notes the links of an answer.
    pub(crate) fn note(&self, response: &Response) {
        let values = response.headers().get_all("link").iter();
        for value in values.filter_map(|value| value.to_str().ok()) {
            self.add(response.url(), value);
        }
    }

    fn add(&self, url: &str, value: &str) {
        let mut known = self.0.borrow_mut();
        for link in parse_link_header(value).unwrap_or_default() {
            let Some(anchor) = link.anchor().filter(|_| link.has_rel(RELATION)) else { continue };
            let (Ok(part), Ok(source)) = (resolve(url, anchor), resolve(url, &link.target)) else {
                continue;
            };
            let next = (part, source);
            if known.len() < CopyOf::SOURCES_MAX && next.0.ends_with('/') && !known.contains(&next)
            {
                known.push(next);
            }
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        self.0.borrow().clone()
    }
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
}
