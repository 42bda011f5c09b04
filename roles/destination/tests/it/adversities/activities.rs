//! The columns of change feeds in Activity Streams: the two versions of Entity Metadata Management,
//! with the newest or the oldest change first, and IIIF Change Discovery.

use super::history::{Change, Kind, Page, Target, Toward};
use super::rendering::{Asked, Form, N_TRIPLES, Rendered, statements};
use abreast_testkit::pages::Answer;
use serde_json::{Value, json};

const JSON: &str = "application/activity+json";

/// The shape of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The form of the specifications: pages with links both ways, and an Entry Point with links to
    /// both ends.
    BothWays,
    /// The newest change first; `next` leads to older pages.
    NewestFirst,
    /// The oldest change first; `next` leads to newer pages, and nothing leads back.
    OldestFirst,
}

/// A provider of a change feed.
pub(crate) struct Activities {
    pub(crate) context: &'static str,
    /// The member with the time of an activity.
    pub(crate) date: &'static str,
    pub(crate) shape: Shape,
    pub(crate) form: Form,
    /// The Entry Point links to a full download.
    pub(crate) has_download: bool,
}

impl Activities {
    fn reference(asked: &Asked<'_>, target: Target) -> Value {
        json!({"id": asked.page_url(target, "/start"), "type": "OrderedCollectionPage"})
    }

    fn entry(&self, asked: &Asked<'_>) -> Value {
        let history = asked.history;
        let (newest, oldest) = (history.entry_newest(), history.entry_oldest());
        let first = if self.shape == Shape::NewestFirst { newest } else { oldest };
        let mut entry = json!({"@context": self.context, "id": asked.url("/start"),
            "type": "OrderedCollection", "first": Self::reference(asked, first)});
        if self.shape == Shape::BothWays {
            entry["last"] = Self::reference(asked, newest);
        }
        if self.has_download && !history.lacks_snapshot {
            let updated = history.span(history.snapshot.at);
            entry["url"] = json!([{"type": "Link", "href": asked.url("/snapshot"),
                "mediaType": N_TRIPLES, "updated": updated}]);
        }
        entry
    }

    fn activity(&self, asked: &Asked<'_>, change: &Change) -> Value {
        let iri = asked.entity_of(change);
        let kind = match change.kind {
            Kind::Created => "Create",
            Kind::Updated | Kind::Nameless => "Update",
            Kind::Deleted => "Delete",
            Kind::Unknown => "Sneeze",
        };
        let kind = if asked.history.is_foreign { "Sneeze" } else { kind };
        let is_file = self.form == Form::Files;
        let mut object =
            json!({"id": iri, "type": if is_file { "Manifest" } else { "http://ns.example/Term" }});
        if !is_file {
            object["url"] = json!([{"type": "Link", "href": iri, "mediaType": N_TRIPLES}]);
        }
        let mut activity = json!({"id": asked.url(&format!("/a/{}", change.id)), "type": kind,
            "object": object, self.date: asked.history.stamp(change.time)});
        if change.kind == Kind::Nameless {
            activity["object"] = json!({"type": "http://ns.example/Term"});
        }
        activity
    }

    fn page(&self, asked: &Asked<'_>, page: &Page) -> Value {
        let history = asked.history;
        let mut items: Vec<Value> =
            page.changes.iter().map(|change| self.activity(asked, change)).collect();
        if self.shape == Shape::NewestFirst {
            items.reverse();
        }
        let mut document = json!({"@context": self.context,
            "id": asked.url(&format!("/p/{}", page.number)), "type": "OrderedCollectionPage",
            "partOf": {"id": asked.url("/start"), "type": "OrderedCollection"},
            "orderedItems": items});
        let mut name = |name: &str, toward| {
            if let Some(target) = history.link(page.number, toward) {
                document[name] = Self::reference(asked, target);
            }
        };
        match self.shape {
            Shape::BothWays => {
                name("prev", Toward::Older);
                name("next", Toward::Newer);
            }
            Shape::NewestFirst => name("next", Toward::Older),
            Shape::OldestFirst => name("next", Toward::Newer),
        }
        document
    }
}

impl Rendered for Activities {
    fn form(&self) -> Form {
        self.form
    }

    fn list(&self) -> &'static str {
        "/start"
    }

    fn snapshot(&self) -> Option<&'static str> {
        self.has_download.then_some("/snapshot")
    }

    fn document(&self, asked: &Asked<'_>) -> Option<Answer> {
        let value = match asked.path() {
            "/start" => self.entry(asked),
            "/snapshot" if self.has_download => return Some(statements(asked)),
            _ => self.page(asked, &asked.history.served_page(asked.page()?)?),
        };
        Some(Answer::ok(value.to_string()).header("content-type", JSON))
    }
}
