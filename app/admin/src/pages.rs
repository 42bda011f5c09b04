//! The choice of a page, and the frame of all pages.

use crate::request::{Request, Sources, rendered};
use crate::{deliveries, log, overview, set};
use abreast_core::LogError;
use abreast_server::{AdminPath, Administration, Site};
use abreast_source::projection::pages::{Shell, framed};
use askama::Template;
use percent_encoding::percent_decode_str;

/// The pages for the administrators of a server.
pub struct AdminPages(Sources);

impl AdminPages {
    /// Pages whose content comes from these sources.
    pub const fn new(sources: Sources) -> Self {
        Self(sources)
    }
}

#[derive(Template)]
#[template(path = "frame.html")]
struct Frame<'p> {
    title: &'p str,
    root: &'p str,
    tab: &'p str,
    has_hub: bool,
    done: Option<&'static str>,
    content: &'p str,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn<'p> {
    failure: Option<&'p str>,
    has_tokens: bool,
    is_encrypted: bool,
}

impl Administration for AdminPages {
    fn page(&self, site: &Site, path: &AdminPath<'_>) -> Result<Option<String>, LogError> {
        let request = Request::new(site, &self.0, path);
        let (kind, name) = path.path.split_once('/').unwrap_or((path.path, ""));
        let name = percent_decode_str(name).decode_utf8_lossy();
        let page = match (kind, &*name) {
            ("", "") => Some(overview::page(&request)?),
            ("log", "") => Some(log::page(&request)),
            ("deliveries", "") => deliveries::topics(&request)?,
            ("topics" | "targets", id) => match (id.parse(), kind) {
                (Ok(id), "topics") => deliveries::topic(&request, id)?,
                (Ok(id), _) => deliveries::target(&request, id)?,
                (Err(_), _) => None,
            },
            ("sets", "") => Some(overview::sets(&request)?),
            ("sets", slug) => set::page(&request, slug)?,
            _ => None,
        };
        let Some(page) = page else { return Ok(None) };
        let frame = Frame {
            title: &page.title,
            root: &request.root,
            tab: page.tab,
            has_hub: site.hub.is_some(),
            done: request.done(),
            content: &page.content,
        };
        let shell = Shell::of(&page.title, &site.publisher);
        Ok(Some(framed(shell, &rendered(&frame))))
    }

    fn sign_in_page(&self, site: &Site, failure: Option<&str>) -> String {
        let base = site.publisher.urls().base();
        let page = SignIn {
            failure,
            has_tokens: site.has_tokens(),
            is_encrypted: base.starts_with("https:"),
        };
        framed(Shell::of("Sign in", &site.publisher), &rendered(&page))
    }
}
