//! The work of a column: it renders a history into the documents of its protocol.
//!
//! All columns have the same paths, so that a row can make documents fail independent of the
//! protocol: `/start` is the address of the Source, `/changes` the document with the pages of
//! changes or the newest page, `/p/N` a page, `/list` the document that leads to a snapshot,
//! `/snapshot` the bytes of the snapshot, and `/e/N` an entity.

use super::history::{Change, History, Kind, Target, Versions};
use crate::rdf::quads;
use abreast_destination::{NQuadsOptions, SinkOptions, SyncOptions};
use abreast_testkit::pages::Answer;
use std::path::Path;

pub(crate) const N_TRIPLES: &str = "application/n-triples";

/// The form of the entities of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Files,
    Statements,
}

/// A request for a document of a history.
pub(crate) struct Asked<'h> {
    pub(crate) history: &'h History,
    /// `http://` and the address of the server.
    pub(crate) base: &'h str,
    /// The path, with its query.
    pub(crate) target: &'h str,
}

impl Asked<'_> {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn entity(&self, entity: usize) -> String {
        format!("{}/e/{entity}", self.base)
    }

    /// The entity of a change in its entry.
    pub(crate) fn entity_of(&self, change: &Change) -> String {
        if change.kind == Kind::Nameless { String::new() } else { self.entity(change.entity) }
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// The URL of a page, or of the document with the first page.
    pub(crate) fn page_url(&self, target: Target, entry: &str) -> String {
        match target {
            Target::Page(number) => self.url(&format!("/p/{number}")),
            Target::Entry => self.url(entry),
        }
    }

    /// The path of the newest page.
    pub(crate) fn newest_path(&self) -> String {
        if self.history.is_loose {
            format!("/p/{}", self.history.newest().number)
        } else {
            "/changes".to_owned()
        }
    }

    /// The number of the page that is requested.
    pub(crate) fn page(&self) -> Option<i64> {
        self.path().strip_prefix("/p/")?.parse().ok()
    }
}

/// Renders a history into the documents of a protocol.
pub(crate) trait Rendered: Send + Sync {
    fn form(&self) -> Form;

    /// The document at a path; entities are not documents.
    fn document(&self, asked: &Asked<'_>) -> Option<Answer>;

    /// The path of the document that leads to all pages.
    fn list(&self) -> &'static str {
        "/changes"
    }

    /// The path of the newest page, if it is not that of its number.
    fn newest(&self) -> Option<&'static str> {
        None
    }

    /// The path of the bytes or of the list of a snapshot.
    fn snapshot(&self) -> Option<&'static str>;

    /// The response for a deleted entity.
    fn deleted(&self) -> Answer {
        Answer::status(404)
    }

    fn media_type(&self) -> &'static str {
        match self.form() {
            Form::Files => "text/plain",
            Form::Statements => N_TRIPLES,
        }
    }
}

/// The bytes of a version of an entity; all versions have the same length.
pub(crate) fn body(form: Form, iri: &str, version: u32) -> String {
    match form {
        Form::Files => format!("entity {iri}\nversion {version:04}\n"),
        Form::Statements => format!("<{iri}> <http://ns.example/version> \"{version:04}\" .\n"),
    }
}

/// A snapshot as statements.
pub(crate) fn statements(asked: &Asked<'_>) -> Answer {
    let versions = asked.history.snapshot.versions.iter();
    let lines =
        versions.map(|(entity, version)| body(Form::Statements, &asked.entity(*entity), *version));
    Answer::ok(lines.collect::<String>()).header("content-type", N_TRIPLES)
}

/// The sink of a copy.
pub(crate) fn prepare(form: Form, base: &str, options: &mut SyncOptions) {
    match form {
        Form::Files => options.base = Some(format!("{base}/")),
        Form::Statements => options.sink = SinkOptions::NQuads(NQuadsOptions::default()),
    }
}

/// The versions in a copy.
///
/// # Errors
/// The copy contains something else than one version of each entity.
pub(crate) fn kept(form: Form, folder: &Path) -> Result<Versions, String> {
    let mut kept = Versions::new();
    let mut add = |entity: &str, version: &str| {
        let wrong = || format!("the copy has version `{version}` of `{entity}`");
        let entity = entity.rsplit('/').next().and_then(|number| number.parse().ok());
        let version = version.trim().parse().map_err(|_| wrong())?;
        match kept.insert(entity.ok_or_else(wrong)?, version) {
            Some(other) => Err(format!("{}, and version {other} too", wrong())),
            None => Ok(()),
        }
    };
    if !folder.exists() {
        return Ok(kept);
    }
    match form {
        Form::Files => {
            for (path, bytes) in crate::copy::files(folder) {
                if let Some(entity) = path.strip_prefix("e/") {
                    let text = String::from_utf8_lossy(&bytes);
                    let version = text.split_once("\nversion ").map_or(&*text, |it| it.1);
                    add(entity, version)?;
                }
            }
        }
        Form::Statements => {
            for quad in quads(folder) {
                let (subject, object) = (quad.subject.to_string(), quad.object.to_string());
                add(subject.trim_matches(['<', '>']), object.trim_matches('"'))?;
            }
        }
    }
    Ok(kept)
}
