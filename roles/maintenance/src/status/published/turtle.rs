//! The state of copies as RDF: each copy is a dataset of a catalogue (DCAT 3), with its origin and times
//! (PROV-O), measurements (DQV) and the result of the last audit (EARL 1.0).

use super::copies::{PublishedCopy, PublishedStatus};
use crate::status::report::AuditStatus;
use abreast_rdf::{Prefixes, Syntax, WriteOptions, write};
use abreast_webtypes::{count, encode_segment};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNodeRef};
use std::fmt::Write as _;
use std::io;

/// In place of the document's own address, which is not known. It is left out when the document is written, so that
/// references are relative.
const HERE: &str = "urn:abreast:here";

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
const ADMS: &str = "http://www.w3.org/ns/adms#";
const DCAT: &str = "http://www.w3.org/ns/dcat#";
const DCTERMS: &str = "http://purl.org/dc/terms/";
const DQV: &str = "http://www.w3.org/ns/dqv#";
const EARL: &str = "http://www.w3.org/ns/earl#";
const PROV: &str = "http://www.w3.org/ns/prov#";
const UNIT: &str = "http://purl.org/linked-data/sdmx/2009/attribute#unitMeasure";
const SECOND: &str = "http://qudt.org/vocab/unit/SEC";
/// Own terms, which no vocabulary has: metrics, states, the audit as a test, and the time since which a copy is stalled.
const OWN: &str = "urn:abreast:status:";

/// Writes the document with the statements about each copy.
///
/// # Errors
/// The statements cannot be written.
pub(super) fn text(status: &PublishedStatus) -> io::Result<Vec<u8>> {
    let mut lines = Lines::default();
    let here = iri(HERE);
    lines.add(&here, &iri(&format!("{RDF}type")), &iri(&format!("{DCAT}Catalog")));
    lines.add(&here, &iri(&format!("{DCTERMS}modified")), &date(&status.time));
    for copy in &status.copies {
        lines.copy(&here, copy);
    }
    let prefixes = Prefixes::default().with("dqv", DQV).and_then(|more| more.with("earl", EARL));
    let prefixes = prefixes.and_then(|more| more.with("adms", ADMS)).map_err(io::Error::other)?;
    let options = WriteOptions::default().with_prefixes(prefixes);
    let mut out = Vec::new();
    write(Syntax::Turtle, lines.text.as_bytes(), &options, &mut out).map_err(io::Error::other)?;
    let out = String::from_utf8(out).map_err(io::Error::other)?;
    Ok(out.replace(&format!("<{HERE}"), "<").into_bytes())
}

/// Lines of N-Triples.
#[derive(Default)]
struct Lines {
    text: String,
    nodes: usize,
}

impl Lines {
    fn add(&mut self, subject: &str, predicate: &str, object: &str) {
        let _ = writeln!(self.text, "{subject} {predicate} {object} .");
    }

    /// A new blank node.
    fn node(&mut self) -> String {
        self.nodes += 1;
        format!("_:n{}", self.nodes)
    }

    fn copy(&mut self, here: &str, copy: &PublishedCopy) {
        let mut own = format!("{HERE}#");
        encode_segment(copy.name.as_bytes(), &mut own);
        let own = iri(&own);
        let of = |space: &str, name: &str| iri(&format!("{space}{name}"));
        self.add(here, &of(DCAT, "dataset"), &own);
        self.add(&own, &of(RDF, "type"), &of(DCAT, "Dataset"));
        self.add(&own, &of(DCTERMS, "title"), &Literal::from(copy.name.as_str()).to_string());
        if let Some(source) = copy.source.as_deref().and_then(valid_iri) {
            self.add(&own, &of(DCTERMS, "source"), &source);
            self.add(&own, &of(PROV, "wasDerivedFrom"), &source);
        }
        let state = copy.state.replace(' ', "-");
        self.add(&own, &of(ADMS, "status"), &of(OWN, &state));
        for (predicate, time) in [
            (of(PROV, "generatedAtTime"), &copy.last_success),
            (of(DCTERMS, "modified"), &copy.last_change),
            (of(OWN, "stalled-since"), &copy.stalled_since),
        ] {
            if let Some(time) = time {
                self.add(&own, &predicate, &date(time));
            }
        }
        let extent = self.node();
        self.add(&own, &of(DCTERMS, "extent"), &extent);
        self.add(&extent, &of(RDF, "type"), &of(DCTERMS, "SizeOrDuration"));
        self.add(&extent, &of(RDF, "value"), &number(copy.resources));
        let more = if copy.resources_more { "more than " } else { "" };
        let label = format!("{more}{}", count(copy.resources, "resource"));
        self.add(&extent, &of(RDFS, "label"), &Literal::from(label).to_string());
        self.measured(&own, "complete", &Literal::from(copy.complete).to_string(), None);
        if let Some(seconds) = copy.behind_seconds {
            self.measured(&own, "lag", &number(seconds), Some(SECOND));
        }
        for (name, value) in [
            ("pending", copy.pending),
            ("failed", copy.failed),
            ("held-deletions", copy.held_deletions),
        ] {
            self.measured(&own, name, &number(value), None);
        }
        if let Some(audit) = &copy.last_audit {
            self.audit(&own, audit);
        }
    }

    fn measured(&mut self, copy: &str, metric: &str, value: &str, unit: Option<&str>) {
        let of = |name: &str| iri(&format!("{DQV}{name}"));
        let node = self.node();
        self.add(copy, &of("hasQualityMeasurement"), &node);
        self.add(&node, &iri(&format!("{RDF}type")), &of("QualityMeasurement"));
        self.add(&node, &of("isMeasurementOf"), &iri(&format!("{OWN}{metric}")));
        self.add(&node, &of("value"), value);
        if let Some(unit) = unit {
            self.add(&node, &iri(UNIT), &iri(unit));
        }
    }

    fn audit(&mut self, copy: &str, audit: &AuditStatus) {
        let of = |space: &str, name: &str| iri(&format!("{space}{name}"));
        let outcome = match audit.result.as_str() {
            "equal" => "passed",
            "different" => "failed",
            _ => "cantTell",
        };
        let (assertion, result) = (self.node(), self.node());
        self.add(&assertion, &of(RDF, "type"), &of(EARL, "Assertion"));
        self.add(&assertion, &of(EARL, "subject"), copy);
        self.add(&assertion, &of(EARL, "test"), &of(OWN, "audit"));
        self.add(&assertion, &of(EARL, "mode"), &of(EARL, "automatic"));
        self.add(&assertion, &of(EARL, "result"), &result);
        self.add(&result, &of(RDF, "type"), &of(EARL, "TestResult"));
        self.add(&result, &of(EARL, "outcome"), &of(EARL, outcome));
        self.add(&result, &of(DCTERMS, "date"), &date(&audit.time));
        let AuditStatus { same, different, missing, extra, unverified, .. } = audit;
        let text = format!(
            "{same} same, {different} different, {missing} missing, {extra} extra, {unverified} not compared"
        );
        self.add(&result, &of(DCTERMS, "description"), &Literal::from(text).to_string());
    }
}

fn iri(text: &str) -> String {
    NamedNodeRef::new_unchecked(text).to_string()
}

/// A URL as an IRI; `None` if it is not one after the characters that no IRI has are escaped.
fn valid_iri(url: &str) -> Option<String> {
    let mut text = String::with_capacity(url.len());
    for character in url.chars() {
        match character {
            '<' | '>' | '"' | '{' | '}' | '|' | '^' | '`' | '\\' | '\0'..=' ' => {
                let _ = write!(text, "%{:02X}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    oxrdf::NamedNode::new(&text).ok().map(|node| node.to_string())
}

fn number(value: u64) -> String {
    Literal::new_typed_literal(value.to_string(), xsd::INTEGER).to_string()
}

fn date(text: &str) -> String {
    Literal::new_typed_literal(text, xsd::DATE_TIME).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_odd_characters_is_one_iri() {
        let odd = "http://h/<script>\"{x}|y^`\\ z";
        let escaped = "<http://h/%3Cscript%3E%22%7Bx%7D%7Cy%5E%60%5C%20z>";
        assert_eq!(valid_iri(odd).as_deref(), Some(escaped));
        assert_eq!(valid_iri("not a URL"), None);
        assert_eq!(valid_iri("http://h/é").as_deref(), Some("<http://h/é>"));
    }
}
