//! The page of one entity: its statements, its other forms, its changes.

use super::about::{escaped, page};
use crate::entities::{Entity, Form};
use crate::publish::PublishedSet;
use abreast_rdf::{Statement, TermText, statements};
use std::fmt::Write as _;

/// Statements that a page shows.
const SHOWN: usize = 1_000;

/// The page of an entity.
pub(crate) fn entity_page(set: &PublishedSet, entity: &Entity) -> Vec<u8> {
    let description = entity.state.description.as_deref();
    let title = description.and_then(|found| found.label.as_deref()).unwrap_or(&entity.iri);
    let mut main =
        format!("<h1>{}</h1>\n<p><code>{}</code></p>\n", escaped(title), escaped(&entity.iri));
    let _ = writeln!(
        main,
        "<dl>\n<dt>Set</dt><dd><a href=\"{}\">{}</a></dd>\n<dt>Last change</dt><dd><time>{}</time></dd>\n</dl>",
        escaped(&set.urls.page()),
        escaped(&set.slug),
        entity.state.modified
    );
    main.push_str("<h2>Statements</h2>\n<table>\n<thead><tr><th scope=\"col\">Subject</th><th scope=\"col\">Predicate</th><th scope=\"col\">Object</th></tr></thead>\n<tbody>\n");
    let mut count = 0;
    for statement in statements(&entity.lines).flatten() {
        count += 1;
        if count <= SHOWN {
            row(&statement, &mut main);
        }
    }
    main.push_str("</tbody>\n</table>\n");
    if count > SHOWN {
        let _ = writeln!(main, "<p>The first {SHOWN} of {count} statements.</p>");
    }
    let address = set.urls.naming().uri(&entity.iri);
    main.push_str("<h2>Other forms</h2>\n<ul>\n");
    let mut links = String::new();
    for form in entity.forms().into_iter().filter(|form| *form != Form::Page) {
        let (url, media_type) =
            (escaped(&format!("{address}?syntax={}", form.name())), form.media_type());
        let _ =
            writeln!(main, "<li><a href=\"{url}\" type=\"{media_type}\">{}</a></li>", form.title());
        let _ = writeln!(links, "<link rel=\"alternate\" type=\"{media_type}\" href=\"{url}\">");
    }
    main.push_str("</ul>\n");
    if let Some(urls) = &set.versions {
        let _ = writeln!(
            main,
            "<h2>Changes</h2>\n<p><a href=\"{}\">Earlier descriptions</a></p>",
            escaped(&urls.timemap(&entity.iri))
        );
    }
    page(title, &links, &main).bytes
}

fn row(statement: &Statement<'_>, out: &mut String) {
    out.push_str("<tr>");
    for written in [statement.subject, statement.predicate, statement.object] {
        out.push_str("<td>");
        term(written, out);
        out.push_str("</td>");
    }
    out.push_str("</tr>\n");
}

fn term(written: &[u8], out: &mut String) {
    match TermText::parse(written) {
        // Only these lead somewhere in a browser, and none of them can be a script.
        Some(TermText::Iri(iri)) if iri.starts_with("http://") || iri.starts_with("https://") => {
            let iri = escaped(&iri);
            let _ = write!(out, "<a href=\"{iri}\">{iri}</a>");
        }
        Some(TermText::Iri(iri)) => out.push_str(&escaped(&iri)),
        Some(TermText::Blank(label)) => {
            let _ = write!(out, "_:{}", escaped(label));
        }
        Some(TermText::Literal { value, language, datatype }) => {
            out.push_str(&escaped(&value));
            if let Some(language) = language {
                let _ = write!(out, " <small>@{}</small>", escaped(language));
            } else if let Some(datatype) = datatype {
                let _ = write!(out, " <small>{}</small>", escaped(&datatype));
            }
        }
        None => out.push_str(&escaped(&String::from_utf8_lossy(written))),
    }
}
