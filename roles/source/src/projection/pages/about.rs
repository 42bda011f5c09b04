//! HTML pages for people about a Source and its sets, the targets of `describedby` links [rs-core
//! §8, §9].
//!
//! The pages are plain HTML without scripts, styles or external resources. All text of users is
//! escaped. A policy in the page forbids everything else, so that it applies even if a web server
//! does not send the header. HTML link discovery starts at these pages [rs-core §6.3.2].

use crate::SetState;
use crate::projection::sdshare::newest_snapshot;
use crate::publish::publisher::Publisher;
use crate::publish::{About, PublishError, PublishedSet, Rendered};
use abreast_core::Head;
use abreast_webtypes::{Link, visible_lines};
use std::fmt::Write as _;
use std::sync::Arc;

/// Content-Type of these pages.
pub const HTML: &str = "text/html; charset=utf-8";

/// Content security policy of these pages, which forbids scripts, styles and all loading.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Page of the Source with its sets.
pub(super) fn source_page(publisher: &Publisher) -> Result<Rendered, PublishError> {
    let mut links = String::new();
    let mut rows = String::new();
    for set in publisher.sets() {
        let about = &set.about;
        let capability_list = escaped(&set.urls.capability_list());
        let _ = writeln!(links, "<link rel=\"resourcesync\" href=\"{capability_list}\">");
        let mut documents = format!("<a href=\"{capability_list}\">Capability List</a>");
        for link in of_projections(publisher, set) {
            if let Some(title) = link.param("title") {
                let (href, title) = (escaped(&link.target), escaped(title));
                let _ = write!(documents, ", <a href=\"{href}\">{title}</a>");
            }
        }
        let head = publisher.log().head(set.id)?;
        let last_change =
            if head.importing { String::new() } else { format!("<time>{}</time>", head.time) };
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th><td>{}</td><td>{last_change}</td><td>{documents}</td></tr>",
            escaped(&set.urls.page()),
            escaped(about.title(set)),
            resources(publisher, set, &head)?,
        );
    }
    let urls = publisher.urls();
    let main = format!(
        "<h1>Published collections</h1>\n\
         <table>\n<caption>Sets of resources</caption>\n\
         <thead><tr><th scope=\"col\">Set</th><th scope=\"col\">Resources</th><th scope=\"col\">Last change</th><th scope=\"col\">Documents</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n\
         <p>These collections are published over ResourceSync: programs find everything from the\n\
         <a href=\"{}\">Source Description</a>.</p>\n\
         <h2>How to mirror them</h2>\n<pre><code>abreast sync {} FOLDER{}</code></pre>\n",
        escaped(&urls.source_description()),
        escaped(urls.base()),
        // A Source with several sets requires an option that chooses sets.
        if publisher.sets().len() > 1 { " --all-sets" } else { "" },
    );
    Ok(page("Published collections", &links, &main))
}

/// Page of one set, for people.
pub(super) fn set_page(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
) -> Result<Rendered, PublishError> {
    let about = &set.about;
    let head = publisher.log().head(set.id)?;
    let title = about.title(set);
    let capability_list = escaped(&set.urls.capability_list());
    let mut main = format!("<h1>{}</h1>\n", escaped(title));
    let description = about.description.as_deref().unwrap_or_default();
    for paragraph in description.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
        let _ = writeln!(main, "<p>{}</p>", escaped(paragraph));
    }
    main.push_str("<dl>\n");
    let mut term = |name: &str, html: &str| {
        let _ = writeln!(main, "<dt>{name}</dt><dd>{html}</dd>");
    };
    term("Resources", &resources(publisher, set, &head)?);
    if !head.importing {
        term("Last change", &format!("<time>{}</time>", head.time));
    }
    if let Some(licence) = &about.licence {
        term("Licence", &linked(licence, " rel=\"license\""));
    }
    if let Some(contact) = &about.contact {
        term("Contact", &linked(contact, ""));
    }
    main.push_str("</dl>\n<h2>Addresses</h2>\n<ul>\n");
    let has_dumps = set.has_dumps();
    let archives =
        set.archive_kinds().into_iter().map(|kind| (kind.title(), set.urls.archive(kind)));
    let more = [
        has_dumps.resources.then(|| ("Resource Dump", set.urls.resource_dump())),
        has_dumps.changes.then(|| ("Change Dump", set.urls.change_dump())),
    ];
    let first = [
        ("Capability List", set.urls.capability_list()),
        ("Resource List", set.urls.resource_list()),
        ("Change List", set.urls.change_list()),
    ];
    let of_projections = of_projections(publisher, set);
    let titled =
        of_projections.iter().filter_map(|link| Some((link.param("title")?, link.target.clone())));
    let last = [
        ("Source Description", publisher.urls().source_description()),
        ("All sets", publisher.urls().page()),
    ];
    for (name, url) in first
        .into_iter()
        .chain(more.into_iter().flatten())
        .chain(archives)
        .chain(titled)
        .chain(last)
    {
        let url = escaped(&url);
        let _ = writeln!(main, "<li>{name}: <a href=\"{url}\">{url}</a></li>");
    }
    if let Some((time, files)) = newest_snapshot(set) {
        for (url, media_type) in files {
            let url = escaped(&url);
            let _ = writeln!(
                main,
                "<li>Full download with all changes until <time>{time}</time>, {media_type}: <a href=\"{url}\">{url}</a></li>"
            );
        }
    }
    let _ = write!(
        main,
        "</ul>\n<p>The addresses of resources begin with <code>{resources}</code>.</p>\n\
         <h2>How to mirror it</h2>\n<pre><code>abreast sync {capability_list} FOLDER</code></pre>\n\
         <p>or with the reference client, first the whole, then what changed:</p>\n\
         <pre><code>resync-sync --baseline --delete --hash md5 --sitemap {list} {resources}=FOLDER\n\
         resync-sync --incremental --delete --sitemap {list} --changelist-uri {} {resources}=FOLDER</code></pre>\n",
        escaped(&set.urls.change_list()),
        // The reference client finds the time of the last run by the URL of the list.
        list = escaped(&set.urls.resource_list()),
        resources = escaped(set.urls.resources().trim_end_matches('/')),
    );
    let mut links = format!("<link rel=\"resourcesync\" href=\"{capability_list}\">\n");
    for link in &of_projections {
        let (rel, href) = (escaped(&link.rel), escaped(&link.target));
        let _ = write!(links, "<link rel=\"{rel}\" href=\"{href}\"");
        if let Some(media_type) = link.param("type") {
            let _ = write!(links, " type=\"{}\"", escaped(media_type));
        }
        links.push_str(">\n");
    }
    Ok(page(title, &links, &main))
}

/// Links of other protocols for the page of a set.
fn of_projections(publisher: &Publisher, set: &Arc<PublishedSet>) -> Vec<Link> {
    publisher.projections().flat_map(|projection| projection.page_links(set)).collect()
}

pub(crate) fn page(title: &str, links: &str, main: &str) -> Rendered {
    // A policy in a page cannot restrict framing; the HTTP header does that.
    let policy = CONTENT_SECURITY_POLICY.replace("; frame-ancestors 'none'", "");
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{}</title>\n{links}</head>\n<body>\n<main>\n{main}</main>\n</body>\n</html>\n",
        escaped(title)
    );
    Rendered { bytes: text.into_bytes(), content_type: HTML }
}

/// Number of resources in a set; during the first scan, the state of the set.
fn resources(
    publisher: &Publisher,
    set: &PublishedSet,
    head: &Head,
) -> Result<String, PublishError> {
    if !head.importing {
        return Ok(head.resources.to_string());
    }
    Ok(match SetState::of(&**publisher.log(), set)? {
        SetState::Reading => "being read".to_owned(),
        state => state.name().to_owned(),
    })
}

/// Writes text as a link if it is the URL of a page or a mail address. Links with other schemes
/// could run scripts or start programs.
fn linked(text: &str, attributes: &str) -> String {
    let shown = escaped(text);
    let plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if plain && (text.starts_with("https://") || text.starts_with("http://")) {
        format!("<a{attributes} href=\"{shown}\">{shown}</a>")
    } else if plain && text.contains('@') && !text.contains([':', '?']) {
        format!("<a href=\"mailto:{shown}\">{shown}</a>")
    } else {
        shown
    }
}

/// Escapes text for a page. Markup and characters that change the direction of text are shown as
/// visible characters.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible_lines(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

impl About {
    pub(crate) fn title<'a>(&'a self, set: &'a PublishedSet) -> &'a str {
        if self.title.is_empty() { &set.slug } else { &self.title }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_and_mail_addresses_become_links() {
        assert_eq!(
            linked("https://x.org/a", " rel=\"license\""),
            "<a rel=\"license\" href=\"https://x.org/a\">https://x.org/a</a>"
        );
        assert_eq!(linked("a@x.org", ""), "<a href=\"mailto:a@x.org\">a@x.org</a>");
        for text in [
            "CC0 1.0",
            "javascript:alert(1)//@",
            "data:text/html,x@y",
            "mailto:a@x.org?bcc=b",
            "https://x y",
        ] {
            assert!(!linked(text, "").contains("href"), "{text}");
        }
        assert_eq!(linked("<b>'\"&", ""), "&lt;b&gt;&#39;&quot;&amp;");
        assert_eq!(escaped("a\u{202e}b\u{1b}[2J\nc"), "a\\u202eb\\u001b[2J\nc");
    }
}
