//! Descriptions of sets for catalogues and search engines: DCAT [dcat3 §6.6] in RDF, and
//! schema.org in pages.

use super::documents::{documents, of_projections};
use super::paths::{Form, SetPage};
use super::set_view::SetView;
use super::shell::{is_web, name_of};
use crate::projection::routes::Route as _;
use crate::publish::{PublishError, PublishedSet, Publisher, Rendered};
use abreast_rdf::{WriteOptions, is_iri, write, write_statement};
use abreast_webtypes::visible_lines;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{LiteralRef, NamedNodeRef, TermRef, TripleRef};
use serde_json::json;
use std::sync::Arc;

/// A term of a vocabulary.
macro_rules! term {
    (dcat $name:literal) => {
        NamedNodeRef::new_unchecked(concat!("http://www.w3.org/ns/dcat#", $name))
    };
    (dct $name:literal) => {
        NamedNodeRef::new_unchecked(concat!("http://purl.org/dc/terms/", $name))
    };
    (foaf $name:literal) => {
        NamedNodeRef::new_unchecked(concat!("http://xmlns.com/foaf/0.1/", $name))
    };
}

/// Statements about one resource.
struct About<'s> {
    subject: &'s str,
    lines: &'s mut Vec<u8>,
}

impl About<'_> {
    fn add<'t>(&mut self, predicate: NamedNodeRef<'t>, object: impl Into<TermRef<'t>>) {
        let subject = NamedNodeRef::new_unchecked(self.subject);
        write_statement(TripleRef::new(subject, predicate, object.into()), self.lines);
    }

    /// Adds a link; texts that are not IRIs are left out.
    fn link(&mut self, predicate: NamedNodeRef<'_>, iri: &str) {
        if is_iri(iri) {
            self.add(predicate, NamedNodeRef::new_unchecked(iri));
        }
    }

    fn text(&mut self, predicate: NamedNodeRef<'_>, text: &str) {
        self.add(predicate, LiteralRef::new_simple_literal(text));
    }
}

/// IRI of a set as a dataset.
fn iri_of(set: &PublishedSet) -> String {
    format!("{}#dataset", set.urls.page())
}

/// Description of all sets.
pub(super) fn catalog(publisher: &Publisher, form: Form) -> Result<Rendered, PublishError> {
    let (mut lines, base) = (Vec::new(), publisher.urls().base());
    let subject = format!("{base}#catalog");
    let mut about = About { subject: &subject, lines: &mut lines };
    about.link(rdf::TYPE, term!(dcat "Catalog").as_str());
    about.text(term!(dct "title"), name_of(publisher.institution()));
    about.link(term!(foaf "homepage"), base);
    for set in publisher.sets() {
        about.link(term!(dcat "dataset"), &iri_of(set));
    }
    link_institution(publisher, &subject, &mut lines);
    for set in publisher.sets() {
        describe(publisher, set, &mut lines)?;
    }
    describe_institution(publisher, &mut lines);
    rendered(&lines, form)
}

/// Description of one set.
pub(super) fn dataset(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
    form: Form,
) -> Result<Rendered, PublishError> {
    let mut lines = Vec::new();
    describe(publisher, set, &mut lines)?;
    describe_institution(publisher, &mut lines);
    rendered(&lines, form)
}

fn rendered(lines: &[u8], form: Form) -> Result<Rendered, PublishError> {
    let mut bytes = Vec::with_capacity(lines.len());
    write(form.0, lines, &WriteOptions::default(), &mut bytes)
        .map_err(|error| PublishError::Cache(std::io::Error::other(error)))?;
    Ok(Rendered { bytes, content_type: form.0.media_type() })
}

/// IRI of the institution.
fn agent_of(publisher: &Publisher) -> String {
    format!("{}#publisher", publisher.urls().base())
}

/// Adds the institution as publisher of a catalogue or dataset.
fn link_institution(publisher: &Publisher, subject: &str, lines: &mut Vec<u8>) {
    if !publisher.institution().name.is_empty() {
        About { subject, lines }.link(term!(dct "publisher"), &agent_of(publisher));
    }
}

/// Adds the description of the institution, once in a document.
fn describe_institution(publisher: &Publisher, lines: &mut Vec<u8>) {
    let institution = publisher.institution();
    if institution.name.is_empty() {
        return;
    }
    let agent = agent_of(publisher);
    let mut about = About { subject: &agent, lines };
    about.link(rdf::TYPE, term!(foaf "Agent").as_str());
    about.text(term!(foaf "name"), &institution.name);
    if let Some(url) = &institution.url {
        about.link(term!(foaf "homepage"), url);
    }
}

fn describe(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
    lines: &mut Vec<u8>,
) -> Result<(), PublishError> {
    let subject = iri_of(set);
    let mut about = About { subject: &subject, lines };
    about.link(rdf::TYPE, term!(dcat "Dataset").as_str());
    about.text(term!(dct "title"), set.about.title(set));
    about.text(term!(dct "identifier"), &set.slug);
    about.link(term!(dcat "landingPage"), &set.urls.page());
    if let Some(description) = &set.about.description {
        about.text(term!(dct "description"), description);
    }
    match set.about.licence.as_deref() {
        Some(licence) if is_web(licence) => about.link(term!(dct "license"), licence),
        Some(licence) => about.text(term!(dct "rights"), licence),
        None => {}
    }
    let head = publisher.log().head(set.id)?;
    if !head.importing {
        let modified = head.time.to_string();
        about.add(term!(dct "modified"), LiteralRef::new_typed_literal(&modified, xsd::DATE_TIME));
    }
    let documents = documents(publisher, set, &of_projections(publisher, set));
    let distribution = |number: usize| format!("{}#distribution-{number}", set.urls.page());
    for number in 0..documents.len() {
        about.link(term!(dcat "distribution"), &distribution(number));
    }
    for (number, document) in documents.iter().enumerate() {
        let subject = distribution(number);
        let mut about = About { subject: &subject, lines };
        about.link(rdf::TYPE, term!(dcat "Distribution").as_str());
        about.text(term!(dct "title"), &document.name);
        about.link(term!(dcat "accessURL"), &document.url);
    }
    link_institution(publisher, &subject, lines);
    Ok(())
}

/// The set as a `Dataset` of schema.org in JSON-LD, which search engines read in pages.
pub(super) fn schema_org(publisher: &Publisher, set: &PublishedSet, view: &SetView<'_>) -> String {
    let institution = publisher.institution();
    let mut dataset = json!({
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "@id": iri_of(set),
        "name": view.title,
        "url": view.page,
        "identifier": set.slug,
        // The vocabulary has this as a required property.
        "description": set.about.description.as_deref().unwrap_or(view.title),
        "distribution": [{
            "@type": "DataDownload",
            "name": "ResourceSync",
            "contentUrl": set.urls.resource_list(),
            "encodingFormat": "application/xml",
        }, {
            "@type": "DataDownload",
            "name": "Changes",
            "contentUrl": SetPage::Feed.url(&set.urls),
            "encodingFormat": "application/atom+xml",
        }],
    });
    if let Some(licence) = &set.about.licence {
        dataset["license"] = json!(licence);
    }
    if let Some(time) = &view.changed {
        dataset["dateModified"] = json!(time.0.0.to_string());
    }
    if !institution.name.is_empty() {
        dataset["creator"] = json!({"@type": "Organization", "name": institution.name});
        if let Some(url) = &institution.url {
            dataset["creator"]["url"] = json!(url);
        }
    }
    // `</script>` in a text must not end the element; escapes of the page are escapes of JSON too.
    visible_lines(&dataset.to_string()).replace('<', "\\u003c")
}
