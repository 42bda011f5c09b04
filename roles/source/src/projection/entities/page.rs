//! Page of an entity, with its statements, links to its other forms, and its changes.

use super::entity::{Entity, EntityChange, Form};
use crate::projection::pages::{Shell, Time, is_web, page, page_url};
use crate::publish::{PublishError, PublishedSet, Publisher, Reader};
use abreast_rdf::{Prefixes, Statement, TermText, deprecation, entity_labels, statements};
use askama::Template;
use askama::filters::Safe;
use std::collections::HashMap;

/// Statements that a page shows.
const SHOWN: usize = 300;
/// Statements that are shown of one change.
const SHOWN_OF_CHANGE: usize = 50;
/// Related entities whose labels are read for a page.
const LABELS: usize = 200;

/// A term of a statement, for templates.
#[derive(Clone)]
enum Term {
    Link { url: String, text: String, language: Option<String>, iri: String },
    Text(String),
    Literal { value: String, language: Option<String>, datatype: Option<String> },
}

/// The statements about a subject.
struct Subject {
    /// `None` for the entity itself.
    name: Option<String>,
    properties: Vec<Property>,
}

struct Property {
    predicate: Term,
    objects: Vec<Term>,
}

struct FormLink {
    url: String,
    media_type: &'static str,
    title: &'static str,
}

struct Change {
    url: String,
    time: Safe<Time>,
    what: String,
    lines: Vec<ChangedLine>,
    is_cut: bool,
}

struct ChangedLine {
    class: &'static str,
    sign: &'static str,
    terms: Vec<Term>,
}

#[derive(Template)]
#[template(path = "entity.html")]
struct EntityTemplate<'p> {
    shell: Shell<'p>,
    iri: &'p str,
    address: String,
    language: Option<&'p str>,
    modified: Safe<Time>,
    is_deprecated: bool,
    instead: Vec<Term>,
    subjects: Vec<Subject>,
    count: usize,
    shown: usize,
    forms: Vec<FormLink>,
    timemap: Option<String>,
    changes: Vec<Change>,
}

/// Page of an entity, for a reader.
pub(super) fn entity_page(
    publisher: &Publisher,
    set: &PublishedSet,
    entity: &Entity,
    changes: &[EntityChange],
    reader: &Reader,
) -> Result<Vec<u8>, PublishError> {
    let mut terms = Terms::new(publisher, set, reader);
    let iri = &entity.iri;
    // The log has fewer labels, and one only of an entity that an earlier program recorded.
    let labels = entity_labels(&entity.lines, iri, &set.feeds().label_predicates, &[]);
    let label = set.about.best(&labels, reader.languages());
    let title = label.map_or(iri, |label| &label.text);
    let address = set.urls.naming().uri(iri);
    let forms = entity.forms().into_iter().filter(|form| *form != Form::Page);
    let form = |form: Form| FormLink {
        url: format!("{address}?syntax={}", form.name()),
        media_type: form.media_type(),
        title: form.title(),
    };
    let (subjects, count) = subjects(&mut terms, entity);
    let deprecation = deprecation(&entity.lines, iri);
    let template = EntityTemplate {
        shell: Shell::of(title, publisher).below(set.about.title(set), set.urls.page()),
        iri,
        language: label.map(|label| label.language.as_str()).filter(|tag| !tag.is_empty()),
        modified: Time::of(entity.state.modified),
        is_deprecated: deprecation.is_some(),
        instead: deprecation
            .map(|found| found.replaced_by.iter().map(|iri| terms.iri(iri)).collect())
            .unwrap_or_default(),
        subjects,
        count,
        shown: SHOWN,
        forms: forms.map(form).collect(),
        timemap: set.versions.as_ref().map(|urls| urls.timemap(iri)),
        changes: changes.iter().map(|change| changed(&mut terms, set, iri, change)).collect(),
        address,
    };
    Ok(page(&template)?.bytes)
}

/// The first statements by subject and predicate, in their order, and the number of all.
fn subjects(terms: &mut Terms<'_>, entity: &Entity) -> (Vec<Subject>, usize) {
    let mut subjects: Vec<(Vec<u8>, Subject)> = Vec::new();
    let own = format!("<{}>", entity.iri);
    let (mut count, mut last) = (0, Vec::new());
    for statement in statements(&entity.lines).flatten() {
        count += 1;
        if count > SHOWN {
            continue;
        }
        if subjects.last().is_none_or(|(subject, _)| subject != statement.subject) {
            let name = (statement.subject != own.as_bytes()).then(|| {
                match TermText::parse(statement.subject) {
                    Some(TermText::Blank(label)) => format!("_:{label}"),
                    Some(TermText::Iri(iri)) => iri.into_owned(),
                    _ => String::new(),
                }
            });
            subjects.push((statement.subject.to_vec(), Subject { name, properties: Vec::new() }));
            last.clear();
        }
        let Some((_, subject)) = subjects.last_mut() else { continue };
        if last != statement.predicate {
            let predicate = terms.of(statement.predicate);
            subject.properties.push(Property { predicate, objects: Vec::new() });
            last = statement.predicate.to_vec();
        }
        if let Some(property) = subject.properties.last_mut() {
            property.objects.push(terms.of(statement.object));
        }
    }
    // The entity itself is first.
    subjects.sort_by_key(|(_, subject)| subject.name.is_some());
    (subjects.into_iter().map(|(_, subject)| subject).collect(), count)
}

/// The statements that a change removed and added.
fn changed(terms: &mut Terms<'_>, set: &PublishedSet, iri: &str, change: &EntityChange) -> Change {
    let what = match (change.was_there, change.is_there) {
        (false, true) => "created",
        (true, false) => "deleted",
        _ => "changed",
    };
    let url = set.versions.as_ref().map(|urls| urls.memento(iri, change.time)).unwrap_or_default();
    let mut shown = Change {
        url,
        time: Time::of(change.time),
        what: format!("{what}; not both descriptions are kept, or they are long"),
        lines: Vec::new(),
        is_cut: false,
    };
    let Some(difference) = &change.difference else { return shown };
    let (removed, added) = difference.counts();
    shown.what = format!("{what}; statements removed: {removed}, added: {added}");
    if what == "created" {
        return shown;
    }
    shown.is_cut = removed + added > SHOWN_OF_CHANGE;
    let signed = [("minus", "\u{2212}", &difference.removed), ("plus", "+", &difference.added)];
    let all = signed.into_iter().flat_map(|(class, sign, lines)| {
        statements(lines).flatten().map(move |found| (class, sign, found))
    });
    shown.lines = all
        .take(SHOWN_OF_CHANGE)
        .map(|(class, sign, Statement { subject, predicate, object, .. })| ChangedLine {
            class,
            sign,
            terms: [subject, predicate, object].into_iter().map(|term| terms.of(term)).collect(),
        })
        .collect();
    shown
}

/// Turns terms into links and texts. Labels of entities of this Source are read once.
struct Terms<'p> {
    publisher: &'p Publisher,
    set: &'p PublishedSet,
    prefixes: Prefixes,
    reader: &'p Reader,
    /// Each entity that was searched.
    known: HashMap<String, Option<Related>>,
}

/// An entity of this Source.
#[derive(Clone)]
struct Related {
    url: String,
    label: Option<String>,
    /// Language of the label, if it is known.
    language: Option<String>,
}

impl<'p> Terms<'p> {
    fn new(publisher: &'p Publisher, set: &'p PublishedSet, reader: &'p Reader) -> Self {
        Self { publisher, set, prefixes: Prefixes::default(), reader, known: HashMap::new() }
    }

    fn of(&mut self, written: &[u8]) -> Term {
        match TermText::parse(written) {
            Some(TermText::Iri(iri)) => self.iri(&iri),
            Some(TermText::Blank(label)) => Term::Link {
                url: format!("#_:{label}"),
                text: format!("_:{label}"),
                language: None,
                iri: format!("_:{label}"),
            },
            Some(TermText::Literal { value, language, datatype }) => Term::Literal {
                value: value.into_owned(),
                language: language.map(str::to_owned),
                datatype: datatype.map(|iri| self.short(&iri)),
            },
            None => Term::Text(String::from_utf8_lossy(written).into_owned()),
        }
    }

    fn iri(&mut self, iri: &str) -> Term {
        let found = self.entity(iri);
        // Only `http` and `https` are links: browsers can open them, and they cannot be scripts.
        match found {
            Some(Related { url, label, language }) => Term::Link {
                url,
                text: label.unwrap_or_else(|| iri.to_owned()),
                language,
                iri: iri.to_owned(),
            },
            None if is_web(iri) => Term::Link {
                url: iri.to_owned(),
                text: self.short(iri),
                language: None,
                iri: iri.to_owned(),
            },
            None => Term::Text(iri.to_owned()),
        }
    }

    fn short(&self, iri: &str) -> String {
        self.prefixes.short(iri).unwrap_or_else(|| iri.to_owned())
    }

    /// An entity of this Source, in this set or in another one.
    fn entity(&mut self, iri: &str) -> Option<Related> {
        if let Some(known) = self.known.get(iri) {
            return known.clone();
        }
        // Terms of vocabularies are not entities of a set in general.
        if self.known.len() >= LABELS || self.prefixes.short(iri).is_some() {
            return None;
        }
        let others = self.publisher.sets().iter().map(|set| &**set);
        let others =
            others.filter(|set| set.id != self.set.id && set.urls.naming().names_entities());
        let found = [self.set].into_iter().chain(others).find_map(|set| {
            // The page shows the IRI if the store cannot be read.
            let found = self.publisher.log().resource(set.id, iri).ok()??;
            Some((set, found.state))
        });
        let found = found.map(|(set, state)| {
            let label = set.about.label(state.description.as_deref(), self.reader.languages());
            Related {
                url: page_url(set, iri, self.reader),
                label: label.map(|label| label.text.clone()),
                language: label.map(|label| label.language.clone()).filter(|tag| !tag.is_empty()),
            }
        });
        self.known.insert(iri.to_owned(), found.clone());
        found
    }
}
