//! Page of one entity, with its statements, links to its other forms, and its changes.

use super::entity::{Entity, EntityChange, Form};
use crate::projection::pages::{escaped, page};
use crate::publish::PublishedSet;
use abreast_rdf::{Statement, TermText, statements};
use std::fmt::Write as _;

/// Statements that a page shows.
const SHOWN: usize = 1_000;
/// Statements that are shown of one change.
const SHOWN_OF_CHANGE: usize = 50;

/// Page of an entity for people.
pub(crate) fn entity_page(
    set: &PublishedSet,
    entity: &Entity,
    changes: &[EntityChange],
) -> Vec<u8> {
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
        main.push_str("<h2>Changes</h2>\n");
        for change in changes {
            let (time, url) = (change.time, escaped(&urls.memento(&entity.iri, change.time)));
            let _ = writeln!(main, "<h3><a href=\"{url}\"><time>{time}</time></a></h3>");
            write_change(change, &mut main);
        }
        let all = escaped(&urls.timemap(&entity.iri));
        let _ = writeln!(main, "<p><a href=\"{all}\">All kept descriptions</a></p>");
    }
    page(title, &links, &main).bytes
}

/// Writes the statements that a change removed and added.
fn write_change(change: &EntityChange, out: &mut String) {
    let what = match (change.was_there, change.is_there) {
        (false, true) => "created",
        (true, false) => "deleted",
        _ => "changed",
    };
    let Some(difference) = &change.difference else {
        let _ = writeln!(out, "<p>{what}; not both descriptions are kept, or they are long</p>");
        return;
    };
    let (removed, added) = difference.counts();
    let _ = writeln!(out, "<p>{what}; statements removed: {removed}, added: {added}</p>");
    if what == "created" || removed + added == 0 {
        return;
    }
    out.push_str("<table>\n<tbody>\n");
    let signed = [("\u{2212}", &difference.removed), ("+", &difference.added)];
    let all = signed
        .into_iter()
        .flat_map(|(sign, lines)| statements(lines).flatten().map(move |found| (sign, found)));
    for (sign, statement) in all.take(SHOWN_OF_CHANGE) {
        let _ = write!(out, "<tr><td>{sign}</td>");
        cells(&statement, out);
    }
    out.push_str("</tbody>\n</table>\n");
    if removed + added > SHOWN_OF_CHANGE {
        let _ = writeln!(out, "<p>The first {SHOWN_OF_CHANGE} of them.</p>");
    }
}

fn row(statement: &Statement<'_>, out: &mut String) {
    out.push_str("<tr>");
    cells(statement, out);
}

/// Writes the remaining cells of a row.
fn cells(statement: &Statement<'_>, out: &mut String) {
    for written in [statement.subject, statement.predicate, statement.object] {
        out.push_str("<td>");
        term(written, out);
        out.push_str("</td>");
    }
    out.push_str("</tr>\n");
}

fn term(written: &[u8], out: &mut String) {
    match TermText::parse(written) {
        // Only `http` and `https` are links: browsers can open them, and they cannot be scripts.
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
