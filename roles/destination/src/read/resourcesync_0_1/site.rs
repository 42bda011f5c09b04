//! Links to documents of ResourceSync 0.1 in pages, headers, host-meta and robots.txt
//! [rs-0.1 §7].

use crate::read::SourceSet;
use crate::read::resourcesync::links::is_html;
use crate::read::sets::name_of;
use crate::report::error::{Error, ExitCode, line_of};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::pieces::{Answered, Asked, receive, unasked};
use crate::request::requests::Requests;
use abreast_resourcesync::v0_1::{LinkKind, links_in_host_meta, links_in_html};
use abreast_webtypes::{parse_link_header, resolve, robots_sitemaps};
use url::Url;

/// Maximum length of a page that is searched, in bytes.
const PAGE_BYTES_MAX: usize = 256 << 10;
/// Maximum number of links in one page.
const LINKS_MAX: usize = 1_000;
/// The address of a host's description of itself (RFC 6415).
const HOST_META: &str = "/.well-known/host-meta";
const HOST_META_JSON: &str = "/.well-known/host-meta.json";

/// Links to documents of 0.1, in the order of a page.
type Links = Vec<(LinkKind, String)>;

/// The documents of 0.1 that an address leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The first document of each set, and the way to it, for the user.
    pub(super) sets: Vec<(SourceSet, String)>,
    /// Whether the documents are parts of a single dump.
    pub(super) is_dump: bool,
}

impl Found {
    pub(crate) fn add(&mut self, url: String, route: String) {
        if self.sets.iter().all(|(set, _)| set.url != url) {
            self.sets.push((SourceSet { name: name_of(&url).to_owned(), url }, route));
        }
    }

    pub(super) fn all(&self) -> Vec<SourceSet> {
        self.sets.iter().map(|(set, _)| set.clone()).collect()
    }
}

/// The documents of 0.1 that the page or the site at the given address leads to: all of the best kind
/// that the first such place links to. `tried` takes a line for each other place.
pub(crate) fn find(
    requests: &Requests<'_>,
    options: &SyncOptions,
    tried: &mut Vec<String>,
) -> Result<Option<Found>, Error> {
    let url = &options.url;
    let mut places = vec![url.clone()];
    if let Ok(parsed) = Url::parse(url)
        && parsed.path() == "/"
    {
        let well_known = [HOST_META, HOST_META_JSON].iter();
        places.extend(well_known.filter_map(|place| parsed.join(place).ok().map(String::from)));
    }
    for place in places {
        let (links, why) = links_at(requests, options, &place)?;
        tried.extend(why.filter(|_| links.is_empty()));
        if let Some(best) = links.iter().map(|(kind, _)| *kind).min() {
            let mut found = Found { is_dump: best == LinkKind::Dump, ..Found::default() };
            for (_, url) in links.into_iter().filter(|(kind, _)| *kind == best) {
                let route = format!("{place} links to {url}, a document of ResourceSync 0.1");
                found.add(url, route);
            }
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The Sitemaps of the site of an address; with `own`, first the Sitemaps in the response of the
/// address itself.
pub(super) fn sitemaps(
    requests: &Requests<'_>,
    options: &SyncOptions,
    address: &str,
    own: bool,
) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    let Ok(address) = Url::parse(address) else { return Ok(found) };
    let of_host = ["/robots.txt", HOST_META, HOST_META_JSON];
    for place in own.then_some("").into_iter().chain(of_host) {
        let Ok(place) = address.join(place) else { continue };
        let (links, _) = links_at(requests, options, place.as_str())?;
        for (kind, url) in links {
            if kind == LinkKind::Sitemap && !found.contains(&url) {
                found.push(url);
            }
        }
    }
    Ok(found)
}

/// The links of a page, if it can be read, and the reason why some may be missing.
fn links_at(
    requests: &Requests<'_>,
    options: &SyncOptions,
    url: &str,
) -> Result<(Links, Option<String>), Error> {
    let page = match fetch(requests, url) {
        Ok(page) => page,
        Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
        // The document is optional.
        Err(error) => return Ok((Vec::new(), Some(line_of(url, &error)))),
    };
    let mut admission = Admission::new(&options.url, &options.allow_hosts, options.allow_downgrade);
    let mut why = format!("{url}: it links to no document of ResourceSync 0.1");
    let (own, mut links) = ([url, page.url.as_str()], page.links());
    links.retain_mut(|(_, href)| {
        let Ok(target) = resolve(&page.url, href.trim()) else { return false };
        let refusal = admission.check(&target).err();
        if let Some(refusal) = refusal {
            let reason = refusal.message().lines().next().unwrap_or_default();
            why = format!("{url}: it links to {target}: {reason}");
        }
        *href = target;
        refusal.is_none() && !own.contains(&href.as_str())
    });
    Ok((links, Some(why)))
}

/// A page, as received from the server.
struct Page {
    url: String,
    /// The values of its `Link` headers.
    headers: Vec<String>,
    body: Vec<u8>,
}

fn fetch(requests: &Requests<'_>, url: &str) -> Result<Page, Error> {
    let asked = Asked::begin(url, PAGE_BYTES_MAX, u64::MAX);
    let mut received = receive(requests, &asked)?.ok_or_else(|| unasked(url))?;
    let body = received.first_bytes(PAGE_BYTES_MAX)?;
    let Answered { url, links, .. } = received.answered;
    Ok(Page { url, headers: links, body })
}

impl Page {
    /// Links to documents of 0.1, in the order of the page.
    fn links(&self) -> Links {
        let mut found: Vec<_> = self.headers.iter().flat_map(|value| in_header(value)).collect();
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        if is_html(self.body.trim_ascii_start()) {
            found.extend(links_in_html(&self.body));
        } else if path.ends_with("/robots.txt") {
            found.extend(
                robots_sitemaps(&self.body).into_iter().map(|url| (LinkKind::Sitemap, url)),
            );
        } else {
            found.extend(links_in_host_meta(&self.body));
        }
        found.truncate(LINKS_MAX);
        found
    }
}

/// Links to documents of 0.1 in a `Link` header.
pub(crate) fn in_header(value: &str) -> Links {
    let links = parse_link_header(value).unwrap_or_default().into_iter();
    links
        .filter(|link| link.anchor().is_none())
        .filter_map(|link| Some((LinkKind::of(&link.rel)?, link.target)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_are_found_wherever_a_site_names_them() {
        let page = |url: &str, body: &str| {
            let (url, body) = (url.to_owned(), body.as_bytes().to_vec());
            Page { url, headers: Vec::new(), body }.links()
        };
        let sitemap = |href: &str| (LinkKind::Sitemap, href.to_owned());
        let html = "<!DOCTYPE html><link rel=sitemap href=/s.xml>";
        assert_eq!(page("http://h/", html), [sitemap("/s.xml")]);
        let json = r#"{"links":[{"rel":"sitemap","href":"/s.xml"}]}"#;
        assert_eq!(page("http://h/host-meta.json", json), [sitemap("/s.xml")]);
        let robots = page("http://h/robots.txt", "Sitemap: http://h/s.xml\n");
        assert_eq!(robots, [sitemap("http://h/s.xml")]);
        let header =
            "</c.xml>; rel=\"current http://www.openarchives.org/rs/changeset\", </x>; rel=next";
        assert_eq!(in_header(header), [(LinkKind::CurrentChangeSet, "/c.xml".to_owned())]);
    }

    proptest! {
        #[test]
        fn no_page_panics(body: Vec<u8>, header: String) {
            let headers = vec![header];
            Page { url: "http://h/".to_owned(), headers, body }.links();
        }
    }
}
