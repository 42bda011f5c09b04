//! The columns of ResourceSync 1.1: Change Lists in an index or in a chain, and dumps.

use super::history::{Change, History, Kind, Page, Toward, Versions};
use super::rendering::{Asked, Form, Rendered, body};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{capability_list, document};
use abreast_testkit::pages::Answer;
use abreast_testkit::zip::Zip;
use std::fmt::Write as _;

/// How the changes are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Change Lists, and an index of all.
    Index,
    /// Change Lists, each with a link to the previous list.
    Chain,
    /// Packages only.
    Dumps,
}

/// A Source of ResourceSync 1.1.
pub(crate) struct ResourceSync {
    pub(crate) shape: Shape,
    /// The topic of changes in the Capability List; none if empty.
    pub(crate) topic: &'static str,
}

/// A link from the top of a document.
fn link(rel: &str, url: &str) -> String {
    format!("<rs:ln rel=\"{rel}\" href=\"{url}\"/>\n")
}

/// Length and digest of a version of an entity, as attributes.
fn facts(history: &History, body: &str) -> String {
    let (digest, length) = (md5_hex(body), body.len());
    if history.has_digests {
        format!("hash=\"md5:{digest}\" length=\"{length}\"")
    } else {
        String::new()
    }
}

/// A change as an entry of a Change List, a manifest or a notification.
fn entry(asked: &Asked<'_>, change: &Change, path: &str) -> String {
    let (loc, history) = (asked.entity_of(change), asked.history);
    let facts = match change.kind {
        Kind::Deleted => String::new(),
        _ => facts(history, &body(Form::Files, &loc, change.version)),
    };
    let lastmod = history
        .lastmod
        .map_or_else(String::new, |time| format!("<lastmod>{}</lastmod>", history.stamp(time)));
    let (word, time) = (change.kind.word(), history.stamp(change.time));
    format!(
        "<url><loc>{loc}</loc>{lastmod}<rs:md change=\"{word}\" datetime=\"{time}\" {facts}{path}/></url>\n"
    )
}

fn entries(asked: &Asked<'_>, changes: &[Change]) -> String {
    changes.iter().map(|change| entry(asked, change, "")).collect()
}

/// `from` and `until` of a page, as attributes.
fn span(history: &History, page: &Page) -> String {
    let until = page.until.map(|until| format!(" until=\"{}\"", history.span(until)));
    format!("from=\"{}\"{}", history.span(page.from), until.unwrap_or_default())
}

/// The notification of changes between two times [rs-change-notification §4].
pub(crate) fn notification(asked: &Asked<'_>, changes: &[Change], from: i64, until: i64) -> String {
    let (from, until) = (asked.history.span(from), asked.history.span(until));
    let head = format!("capability=\"change-notification\" from=\"{from}\" until=\"{until}\"");
    document("urlset", &head, &entries(asked, changes))
}

impl ResourceSync {
    fn capability_list(&self, asked: &Asked<'_>) -> String {
        let history = asked.history;
        let is_dumps = self.shape == Shape::Dumps;
        let changes = asked.newest_path();
        let changes = if is_dumps { changes.replace("/p/", "/changes/") } else { changes };
        let (list, change_list) =
            if is_dumps { ("resourcedump", "changedump") } else { ("resourcelist", "changelist") };
        let mut offered = vec![(change_list, asked.url(&changes))];
        if !history.lacks_snapshot {
            offered.push((list, asked.url("/list")));
        }
        let text = capability_list(offered);
        if self.topic.is_empty() {
            return text;
        }
        let topic = format!(
            "<url><loc>{}</loc>{}<rs:md capability=\"change-notification\"/></url>\n</urlset>",
            asked.url("/topic"),
            self.topic.replace("BASE", asked.base)
        );
        text.replace("</urlset>", &topic)
    }

    fn index(asked: &Asked<'_>) -> String {
        let history = asked.history;
        let mut members = String::new();
        if history.index_names_itself {
            let _ = writeln!(members, "<sitemap><loc>{}</loc></sitemap>", asked.url("/changes"));
        }
        for page in history.pages.iter().filter(|page| page.is_named) {
            let (loc, span) = (asked.url(&format!("/p/{}", page.number)), span(history, page));
            let _ = writeln!(members, "<sitemap><loc>{loc}</loc><rs:md {span}/></sitemap>");
        }
        let from = history.span(history.pages[0].from);
        document("sitemapindex", &format!("capability=\"changelist\" from=\"{from}\""), &members)
    }

    fn change_list(&self, asked: &Asked<'_>, page: &Page) -> String {
        let history = asked.history;
        let head = format!("capability=\"changelist\" {}", span(history, page));
        let links = match history.link(page.number, Toward::Older) {
            Some(target) if self.shape == Shape::Chain => {
                link("prev", &asked.page_url(target, "/changes"))
            }
            _ => String::new(),
        };
        let list = document("urlset", &head, &entries(asked, &page.changes));
        list.replacen("<rs:md ", &format!("{links}<rs:md "), 1)
    }

    fn change_dump(asked: &Asked<'_>, only: Option<i64>) -> String {
        let history = asked.history;
        let mut packages = String::new();
        let is_wanted = |page: &&Page| page.is_named && only.is_none_or(|it| it == page.number);
        let mut from = history.pages[0].from;
        let mut until = None;
        for page in history.pages.iter().filter(is_wanted) {
            if only.is_some() {
                (from, until) = (page.from, page.until);
            }
            let package = package(asked, page);
            let (loc, span) = (asked.url(&format!("/p/{}", page.number)), span(history, page));
            let (hash, length) = (md5_hex(&package), package.len());
            let _ = writeln!(
                packages,
                "<url><loc>{loc}</loc><rs:md type=\"application/zip\" hash=\"md5:{hash}\" length=\"{length}\" {span}/></url>"
            );
        }
        if history.index_names_itself {
            let _ = writeln!(packages, "<url><loc>{}</loc></url>", asked.url("/changes"));
        }
        let until = until.map(|until| format!(" until=\"{}\"", history.span(until)));
        let until = until.unwrap_or_default();
        let head = format!("capability=\"changedump\" from=\"{}\"{until}", history.span(from));
        document("urlset", &head, &packages)
    }

    fn list(&self, asked: &Asked<'_>) -> String {
        let history = asked.history;
        let at = history.span(history.snapshot.at);
        if self.shape == Shape::Dumps {
            let package = whole_package(asked);
            let (hash, length) = (md5_hex(&package), package.len());
            let entry = format!(
                "<url><loc>{}</loc><rs:md type=\"application/zip\" hash=\"md5:{hash}\" length=\"{length}\"/></url>\n",
                asked.url("/snapshot")
            );
            return document("urlset", &format!("capability=\"resourcedump\" at=\"{at}\""), &entry);
        }
        let entries = listed(asked, &history.snapshot.versions, false);
        document("urlset", &format!("capability=\"resourcelist\" at=\"{at}\""), &entries)
    }
}

/// Resources as entries of a Resource List, or of the manifest of a package.
fn listed(asked: &Asked<'_>, versions: &Versions, has_paths: bool) -> String {
    let history = asked.history;
    let entry = |(entity, version): (&usize, &u32)| {
        let loc = asked.entity(*entity);
        let lastmod = history.lastmod(history.snapshot.modified.get(entity).copied());
        let facts = facts(history, &body(Form::Files, &loc, *version));
        let path = if has_paths { format!(" path=\"/{entity}\"") } else { String::new() };
        format!("<url><loc>{loc}</loc><lastmod>{lastmod}</lastmod><rs:md {facts}{path}/></url>\n")
    };
    versions.iter().map(entry).collect()
}

/// The package of the snapshot.
fn whole_package(asked: &Asked<'_>) -> Vec<u8> {
    let snapshot = &asked.history.snapshot;
    let mut zip = Zip::new();
    for (entity, version) in &snapshot.versions {
        let body = body(Form::Files, &asked.entity(*entity), *version);
        zip.add(&entity.to_string(), body.as_bytes());
    }
    let at = asked.history.span(snapshot.at);
    let head = format!("capability=\"resourcedump-manifest\" at=\"{at}\"");
    let manifest = document("urlset", &head, &listed(asked, &snapshot.versions, true));
    zip.add("manifest.xml", manifest.as_bytes());
    zip.finish()
}

/// The package of a page of changes.
fn package(asked: &Asked<'_>, page: &Page) -> Vec<u8> {
    let (mut zip, mut manifested) = (Zip::new(), String::new());
    for change in &page.changes {
        if change.kind == Kind::Deleted {
            manifested.push_str(&entry(asked, change, ""));
            continue;
        }
        manifested.push_str(&entry(asked, change, &format!(" path=\"/{}\"", change.id)));
        let body = body(Form::Files, &asked.entity(change.entity), change.version);
        zip.add(&change.id.to_string(), body.as_bytes());
    }
    let head = format!("capability=\"changedump-manifest\" {}", span(asked.history, page));
    zip.add("manifest.xml", document("urlset", &head, &manifested).as_bytes());
    zip.finish()
}

impl Rendered for ResourceSync {
    fn form(&self) -> Form {
        Form::Files
    }

    fn newest(&self) -> Option<&'static str> {
        (self.shape == Shape::Chain).then_some("/changes")
    }

    fn snapshot(&self) -> Option<&'static str> {
        Some(if self.shape == Shape::Dumps { "/snapshot" } else { "/list" })
    }

    fn document(&self, asked: &Asked<'_>) -> Option<Answer> {
        let history = asked.history;
        let text = match asked.path() {
            "/start" => self.capability_list(asked),
            "/list" if history.lacks_snapshot => return None,
            "/list" => self.list(asked),
            "/snapshot" if self.shape == Shape::Dumps => {
                return Some(Answer::ok(whole_package(asked)));
            }
            "/topic" => return Some(Answer::ok("")),
            "/changes" => match self.shape {
                Shape::Index => Self::index(asked),
                Shape::Dumps => Self::change_dump(asked, None),
                Shape::Chain => self.change_list(asked, &history.served_newest()?),
            },
            path => {
                if let Some(number) = path.strip_prefix("/changes/") {
                    let number: i64 = number.parse().ok()?;
                    history.page(number)?;
                    return Some(Answer::ok(Self::change_dump(asked, Some(number))));
                }
                let page = history.served_page(asked.page()?)?;
                if self.shape == Shape::Dumps {
                    return Some(Answer::ok(package(asked, &page)));
                }
                self.change_list(asked, &page)
            }
        };
        Some(Answer::ok(text).header("content-type", "application/xml"))
    }
}
