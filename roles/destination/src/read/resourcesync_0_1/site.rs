//! Links to documents of ResourceSync 0.1 in pages, headers, host-meta and robots.txt
//! [rs-0.1 §7].

use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::read::SourceSet;
use crate::read::resourcesync::links::{in_robots, is_html};
use crate::read::sets::name_of;
use crate::requests::{Begun, Requests, net_error};
use abreast_resourcesync::v0_1::{CHANGE_SET, DUMP};
use abreast_webtypes::xml::{Reader, Token};
use abreast_webtypes::{HtmlTags, parse_link_header, resolve};
use serde::Deserialize;
use url::Url;

/// Longest page that is searched.
const PAGE_BYTES_MAX: usize = 256 << 10;
/// Most links of one page.
const LINKS_MAX: usize = 1_000;
/// Where a host describes itself (RFC 6415).
const HOST_META: &str = "/.well-known/host-meta";
const HOST_META_JSON: &str = "/.well-known/host-meta.json";
const XRD: &[&str] = &["http://docs.oasis-open.org/ns/xri/xrd-1.0"];

/// What a link leads to, the best to begin with first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Sitemap,
    CurrentChangeSet,
    ChangeSet,
    Dump,
}

impl Kind {
    fn of(rels: &str) -> Option<Self> {
        let has =
            |rel: &str| rels.split_ascii_whitespace().any(|token| token.eq_ignore_ascii_case(rel));
        match () {
            () if has("sitemap") => Some(Self::Sitemap),
            () if has(CHANGE_SET) && has("current") => Some(Self::CurrentChangeSet),
            () if has(CHANGE_SET) && !has("prev") => Some(Self::ChangeSet),
            () if has(DUMP) => Some(Self::Dump),
            () => None,
        }
    }
}

/// The documents of 0.1 that an address leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Of each set the document to begin with, and the way there, for the user.
    pub(super) sets: Vec<(SourceSet, String)>,
    /// They are the parts of one dump.
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
/// that the first such place links to.
pub(crate) fn find(requests: &Requests<'_>, options: &SyncOptions) -> Result<Option<Found>, Error> {
    let url = &options.url;
    let mut places = vec![url.clone()];
    if let Ok(parsed) = Url::parse(url)
        && parsed.path() == "/"
    {
        let well_known = [HOST_META, HOST_META_JSON].iter();
        places.extend(well_known.filter_map(|place| parsed.join(place).ok().map(String::from)));
    }
    for place in places {
        let links = links_at(requests, options, &place)?;
        if let Some(best) = links.iter().map(|(kind, _)| *kind).min() {
            let mut found = Found { is_dump: best == Kind::Dump, ..Found::default() };
            for (_, url) in links.into_iter().filter(|(kind, _)| *kind == best) {
                let route = format!("{place} links to {url}, a document of ResourceSync 0.1");
                found.add(url, route);
            }
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The Sitemaps that the site of an address names.
pub(super) fn sitemaps(
    requests: &Requests<'_>,
    options: &SyncOptions,
    address: &str,
) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    let Ok(address) = Url::parse(address) else { return Ok(found) };
    for place in ["/robots.txt", HOST_META, HOST_META_JSON] {
        let Ok(place) = address.join(place) else { continue };
        let links = links_at(requests, options, place.as_str())?.into_iter();
        for (kind, url) in links {
            if kind == Kind::Sitemap && !found.contains(&url) {
                found.push(url);
            }
        }
    }
    Ok(found)
}

/// The links of a page, if it can be read.
fn links_at(
    requests: &Requests<'_>,
    options: &SyncOptions,
    url: &str,
) -> Result<Vec<(Kind, String)>, Error> {
    let page = match fetch(requests, url) {
        Ok(page) => page,
        Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
        // What may be there need not be.
        Err(_) => return Ok(Vec::new()),
    };
    let mut admission = Admission::new(&options.url, &options.allow_hosts, options.allow_downgrade);
    let links = page.links().into_iter().filter_map(|(kind, href)| {
        let url = resolve(&page.url, href.trim()).ok()?;
        admission.check(&url).is_ok().then_some((kind, url))
    });
    Ok(links.collect())
}

/// A page as it answered.
struct Page {
    url: String,
    /// The values of its `Link` headers.
    headers: Vec<String>,
    body: Vec<u8>,
}

fn fetch(requests: &Requests<'_>, url: &str) -> Result<Page, Error> {
    let request = requests.request(url);
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let Begun { mut response, begin } = requests.begin(&request).await?;
        let headers = response.headers().get_all("link").iter();
        let headers = headers.filter_map(|value| value.to_str().ok().map(str::to_owned)).collect();
        let mut page = Page { url: response.url().to_owned(), headers, body: begin };
        while page.body.len() < PAGE_BYTES_MAX
            && let Some(chunk) = response.chunk().await?
        {
            page.body.extend_from_slice(&chunk);
        }
        page.body.truncate(PAGE_BYTES_MAX);
        Ok(page)
    });
    requests.run(work)?.map_err(net_error)
}

impl Page {
    /// Links to documents of 0.1, in the order of the page.
    fn links(&self) -> Vec<(Kind, String)> {
        let mut found: Vec<_> = self.headers.iter().flat_map(|value| in_header(value)).collect();
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        if is_html(self.body.trim_ascii_start()) {
            found.extend(in_html(&self.body));
        } else if path.ends_with("/robots.txt") {
            found.extend(in_robots(&self.body).into_iter().map(|url| (Kind::Sitemap, url)));
        } else if self.body.trim_ascii_start().starts_with(b"{") {
            found.extend(in_json(&self.body));
        } else {
            found.extend(in_xrd(&self.body));
        }
        found.truncate(LINKS_MAX);
        found
    }
}

fn in_header(value: &str) -> Vec<(Kind, String)> {
    let links = parse_link_header(value).unwrap_or_default().into_iter();
    links
        .filter(|link| link.anchor().is_none())
        .filter_map(|link| Some((Kind::of(&link.rel)?, link.target)))
        .collect()
}

fn in_html(page: &[u8]) -> Vec<(Kind, String)> {
    let text = String::from_utf8_lossy(page);
    let head =
        HtmlTags::new(&text).take_while(|tag| !matches!(tag.name.as_str(), "body" | "/head"));
    head.filter(|tag| tag.name == "link")
        .filter_map(|tag| Some((Kind::of(&tag.value("rel")?)?, tag.value("href")?.into_owned())))
        .collect()
}

/// Links of host-meta in JSON (RFC 6415).
fn in_json(body: &[u8]) -> Vec<(Kind, String)> {
    #[derive(Deserialize)]
    struct HostMeta {
        #[serde(default)]
        links: Vec<JsonLink>,
    }
    #[derive(Deserialize)]
    struct JsonLink {
        #[serde(default)]
        rel: String,
        href: Option<String>,
    }
    let Ok(HostMeta { links }) = serde_json::from_slice(body) else { return Vec::new() };
    links.into_iter().filter_map(|link| Some((Kind::of(&link.rel)?, link.href?))).collect()
}

/// Links of host-meta in XML (RFC 6415).
fn in_xrd(body: &[u8]) -> Vec<(Kind, String)> {
    let (mut reader, mut found) = (Reader::new(XRD), Vec::new());
    reader.push(body);
    reader.finish();
    loop {
        match reader.next() {
            Ok(Token::Start(element)) if element.local() == "Link" => {
                let kind = element.attribute("rel").and_then(|rel| Kind::of(&rel));
                if let (Some(kind), Some(href)) = (kind, element.attribute("href")) {
                    found.push((kind, href.into_owned()));
                }
            }
            Ok(Token::Done | Token::NeedInput) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CURRENT: &str = "current http://www.openarchives.org/rs/changeset";

    fn page(url: &str, body: &str) -> Page {
        let body = body.as_bytes().to_vec();
        Page { url: url.to_owned(), headers: Vec::new(), body }
    }

    #[test]
    fn links_are_found_wherever_a_site_names_them() {
        let change_set = (Kind::CurrentChangeSet, "/c.xml".to_owned());
        let html = format!(
            "<!DOCTYPE html><head><link rel=\"{CURRENT}\" href=/c.xml><link rel='prev {CHANGE_SET}' href=/no>\
             <link rel=sitemap href=/s.xml></head><body><link rel=\"{CURRENT}\" href=/no>"
        );
        assert_eq!(
            page("http://h/", &html).links(),
            [change_set.clone(), (Kind::Sitemap, "/s.xml".into())]
        );
        let xrd = format!(
            "<XRD xmlns='{}'><Subject>h</Subject><Link rel='{DUMP}' href='/d.zip'/><Link rel='{CURRENT}' href='/c.xml'/></XRD>",
            XRD[0]
        );
        let dump = (Kind::Dump, "/d.zip".to_owned());
        assert_eq!(page("http://h/", &xrd).links(), [dump, change_set.clone()]);
        let json = format!(
            "{{\"links\":[{{\"rel\":\"{CURRENT}\",\"href\":\"/c.xml\"}},{{\"rel\":\"lrdd\",\"template\":\"x\"}}]}}"
        );
        assert_eq!(page("http://h/", &json).links(), std::slice::from_ref(&change_set));
        let robots = page("http://h/robots.txt", "Sitemap: http://h/s.xml\n").links();
        assert_eq!(robots, [(Kind::Sitemap, "http://h/s.xml".to_owned())]);
        let header = format!("</c.xml>; rel=\"{CURRENT}\", </x>; rel=next");
        assert_eq!(in_header(&header), [change_set]);
    }

    proptest! {
        #[test]
        fn no_page_panics(body: Vec<u8>, header: String) {
            let headers = vec![header];
            Page { url: "http://h/".to_owned(), headers, body }.links();
        }
    }
}
