//! A request for a page, and the content of a page.

use crate::report::SiteReport;
use crate::samples::Samples;
use abreast_maintenance::CopyStatus;
use abreast_server::{AdminPath, Site};
use askama::Template;
use std::borrow::Cow;

/// The sources of the pages, besides the site.
pub struct Sources {
    /// The report on the server.
    pub report: SiteReport,
    /// Figures of the last 24 hours.
    pub samples: Samples,
    /// The last lines of the log, the oldest first.
    pub log: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// The copies that programs on this machine make and that the configuration lists.
    pub copies: Box<dyn Fn() -> Vec<CopyStatus> + Send + Sync>,
}

/// A request for a page, and the sources of its content.
pub(crate) struct Request<'r> {
    pub(crate) site: &'r Site,
    pub(crate) sources: &'r Sources,
    /// The relative address of `/admin/`.
    pub(crate) root: String,
    query: &'r str,
}

impl<'r> Request<'r> {
    pub(crate) fn new(site: &'r Site, sources: &'r Sources, path: &AdminPath<'r>) -> Self {
        Self { site, sources, root: path.root(), query: path.query }
    }

    /// A field of the query.
    pub(crate) fn field(&self, name: &str) -> Option<Cow<'r, str>> {
        let mut fields = url::form_urlencoded::parse(self.query.as_bytes());
        fields.find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// A field of the query that is a number, otherwise 0.
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.field(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The text about the form that led to this page.
    pub(crate) fn done(&self) -> Option<&'static str> {
        Some(match &*self.field("done")? {
            "scan" => "The scan has been requested.",
            "dump" => "The dumps have been requested.",
            "release" => "The deletions are confirmed, and are being recorded.",
            "retry" => "A waiting delivery is attempted now.",
            "end" => "The target has ended.",
            _ => return None,
        })
    }
}

/// The content of a page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// The part of the pages that the page belongs to.
    pub(crate) tab: &'static str,
    /// HTML.
    pub(crate) content: String,
}

/// The content of a template. Rendering into memory succeeds.
pub(crate) fn rendered(template: &impl Template) -> String {
    template.render().unwrap_or_default()
}
