//! The document of a resource: its syntax, and its statements about the resource.

use crate::report::failure::Failure;
use crate::report::sinks::Graph;
use crate::sink::Body;
use crate::sink::outcome::Notice;
use crate::sink::rdf_rules::{RdfRules, message};
use abreast_rdf::sparql::Reach;
use abreast_rdf::{
    LeftOut, ReadLimits, ReadOptions, StatementError, Syntax, blank_skolems, canonical_lines,
    is_skolem_iri, skolem_root, write_statement,
};
use abreast_store::mirror::{Pending, Task};
use abreast_webtypes::{count, excerpt};
use memchr::memchr;
use oxrdf::{GraphNameRef, NamedNode, NamedOrBlankNodeRef, QuadRef};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek as _};
use std::ops::ControlFlow;

/// Length of the digest of a description, in bytes.
pub(super) const DIGEST_BYTES: usize = 16;
/// Maximum length of the statements of a resource, in bytes of N-Triples.
const BYTES_MAX: usize = 16 << 20;
/// Maximum number of statements of a resource.
const STATEMENTS_MAX: usize = 100_000;

/// The stored statements of a resource.
#[derive(Debug)]
pub(super) struct Description {
    /// Canonical N-Triples.
    pub(super) lines: Vec<u8>,
    pub(super) digest: [u8; DIGEST_BYTES],
    /// The entity that is described, if its IRI is not the listed URI.
    pub(super) entity: Option<NamedNode>,
    /// The reach of the blank nodes of the description.
    pub(super) reach: Reach,
    pub(super) notices: Vec<Notice>,
}

/// The digest of canonical lines.
pub(super) fn digest_of(lines: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&blake3::hash(lines).as_bytes()[..DIGEST_BYTES]);
    digest
}

/// Reads the statements of a document about its resource. If there are none, and the resource was
/// requested at its own URI, the document may describe a single other entity.
pub(super) fn describe(
    task: &Task,
    body: &mut Body<'_>,
    graph: &Graph,
) -> Result<Description, Failure> {
    let item = &task.pending;
    let root = super::iri(&item.uri)?;
    if is_description(item, body) {
        return described(&root, body.bytes);
    }
    let sent = body.media_type.as_deref();
    let addresses = [item.href(), item.uri.as_str()];
    let syntax = syntax_of(sent, item.accept(), addresses).ok_or_else(|| not_rdf(sent))?;
    let mut statements = Statements::new(graph, &root, body.rdf);
    statements.by_address = item.href() == item.uri;
    let file = body.file.as_mut().map(|temporary| &mut temporary.file);
    let base = body.address.as_deref().unwrap_or_else(|| item.href());
    statements.read_sent(syntax, body.bytes, file, base)?;
    body.rdf.described(&item.uri, statements.left_out.as_ref());
    let described = statements.describe()?;
    if syntax.is_doubtful && described.lines.is_empty() {
        return Err(syntax.is_none("states nothing"));
    }
    Ok(described)
}

/// Whether the bytes are already a description made by [`describe`]: from a list or from a
/// response.
fn is_description(item: &Pending, body: &Body<'_>) -> bool {
    let is_lines = body.media_type.as_deref() == Some(Syntax::NTriples.media_type());
    body.file.is_none() && is_lines && (item.body.is_some() || item.describes())
}

/// The description that canonical lines are.
fn described(root: &NamedNode, lines: &[u8]) -> Result<Description, Failure> {
    let has_blank = memchr::memmem::find(lines, b" _:").is_some();
    let reach = if has_blank { Reach::of(lines, root.as_str()) } else { Ok(Reach::default()) };
    let reach = reach.map_err(|error| not_lines(&error))?;
    let (digest, lines) = (digest_of(lines), lines.to_vec());
    Ok(Description { lines, digest, entity: None, reach, notices: Vec::new() })
}

/// The syntax of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentSyntax {
    syntax: Syntax,
    /// The media type is `text/plain`, which was the type of N-Triples
    /// [sdshare §Recommended Resource Representation Formats] and is the type of error messages,
    /// pages and other texts. Such a response is accepted only if it contains statements: a text of
    /// comments is not the description of a resource without statements.
    is_doubtful: bool,
}

impl SentSyntax {
    fn is_none(self, why: &str) -> Failure {
        let (name, media_type) = (self.syntax.name(), self.syntax.media_type());
        let message = format!(
            "it is text/plain, and as {name} it {why}\n  help: if it is {name}, the server has to send it as {media_type}; until then the \
             copy keeps what it has"
        );
        Failure::refused("rdf.type", message)
    }
}

/// The syntax according to the received media type; if that is vague, according to the requested
/// media type, or the ends of the addresses. `None` if the document is not RDF.
pub(crate) fn syntax_of(
    sent: Option<&str>,
    asked: Option<&str>,
    addresses: [&str; 2],
) -> Option<SentSyntax> {
    let sure = |syntax| SentSyntax { syntax, is_doubtful: false };
    if let Some(syntax) = sent.and_then(Syntax::of_media_type) {
        return Some(sure(syntax));
    }
    let asked_for = asked.and_then(Syntax::of_media_type).or_else(|| json_ld_of(sent?, asked?));
    let named = addresses.into_iter().find_map(syntax_of_name);
    if let Some(syntax) = asked_for.or(named).filter(|_| is_vague(sent)) {
        let is_doubtful = named.is_none() && sent.is_some_and(is_plain);
        return Some(SentSyntax { syntax, is_doubtful });
    }
    // As SDShare calls N-Triples.
    let is_plain = sent.or(asked).is_some_and(is_plain);
    is_plain.then_some(SentSyntax { syntax: Syntax::NTriples, is_doubtful: true })
}

/// JSON-LD with the media type of JSON, if JSON-LD was among the requested types.
fn json_ld_of(sent: &str, asked: &str) -> Option<Syntax> {
    let is_asked =
        asked.split(',').any(|asked| Syntax::of_media_type(essence(asked)) == Some(Syntax::JsonLd));
    let is_json = essence(sent).eq_ignore_ascii_case("application/json");
    (is_json && is_asked).then_some(Syntax::JsonLd)
}

/// The syntax by the end of an address.
fn syntax_of_name(url: &str) -> Option<Syntax> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let found = Syntax::of_file_name(path.rsplit('/').next().unwrap_or_default())?;
    found.compression.is_none().then_some(found.syntax)
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn is_plain(media_type: &str) -> bool {
    essence(media_type).eq_ignore_ascii_case("text/plain")
}

/// Canonical N-Triples, and the notices about them.
pub(crate) type Lines = (Vec<u8>, Vec<Notice>);

/// The description of an item in a response from an address; `None` if the response contains no
/// statements.
pub(crate) fn describe_answer(
    item: &Pending,
    syntax: SentSyntax,
    (bytes, file): (&[u8], Option<&mut File>),
    address: &str,
    rdf: &RdfRules,
) -> Result<Option<Lines>, Failure> {
    let root = super::iri(&item.uri)?;
    let mut statements = Statements::new(&Graph::Default, &root, rdf);
    statements.is_fragment = true;
    let is_blank = file.is_none() && bytes.iter().all(u8::is_ascii_whitespace);
    statements.read_sent(syntax, bytes, file, address)?;
    rdf.described(&item.uri, statements.left_out.as_ref());
    if statements.count == 0 && statements.others == 0 && statements.left_out.is_none() {
        if syntax.is_doubtful && !is_blank {
            return Err(syntax.is_none("states nothing"));
        }
        return Ok(None);
    }
    statements.describe().map(|described| Some((described.lines, described.notices)))
}

/// Whether a response that is not RDF has a requested type that is not RDF either, unlike the page
/// of a server under maintenance, or of a login.
pub(crate) fn is_as_asked(sent: Option<&str>, asked: Option<&str>) -> bool {
    let Some(asked) = asked else { return false };
    let mut types = asked.split(',').map(essence);
    let has_rdf = types.clone().any(|asked| Syntax::of_sdshare_media_type(asked).is_some());
    let is_sent = |asked: &str| sent.is_some_and(|sent| essence(sent).eq_ignore_ascii_case(asked));
    !has_rdf && (is_vague(sent) || types.any(is_sent))
}

/// The failure for a response that is not RDF.
pub(crate) fn not_rdf(media_type: Option<&str>) -> Failure {
    let what = match media_type {
        Some(media_type) => format!("it is {}, which is not RDF", excerpt(essence(media_type))),
        None => "the answer has no Content-Type, so it is not read as RDF".to_owned(),
    };
    let message = format!(
        "{what}; the copy keeps what it has\n  help: exclude it by a filter; RDF is read as N-Triples, N-Quads, Turtle, TriG, RDF/XML and \
         JSON-LD"
    );
    Failure::refused("rdf.type", message)
}

/// Whether a media type does not show the syntax.
fn is_vague(media_type: Option<&str>) -> bool {
    const VAGUE: [&str; 5] = [
        "application/octet-stream",
        "application/xml",
        "text/xml",
        "application/json",
        "text/plain",
    ];
    media_type
        .is_none_or(|text| VAGUE.iter().any(|vague| essence(text).eq_ignore_ascii_case(vague)))
}

/// The statements of a document.
struct Statements<'a> {
    graph: &'a Graph,
    root: &'a NamedNode,
    /// The collected lines of N-Triples.
    kept: Vec<u8>,
    count: usize,
    /// Whether there are statements about the resource.
    has_own: bool,
    has_blank: bool,
    /// Whether there are statements about an IRI that replaces a blank node.
    has_skolem: bool,
    /// Number of statements that are not about the resource.
    others: u64,
    by_address: bool,
    /// The document describes only this resource, so all its statements are stored.
    is_fragment: bool,
    /// The single other entity with statements, if there is exactly one so far.
    other: Option<NamedNode>,
    has_several: bool,
    /// The statements about the other entity.
    of_other: Vec<u8>,
    rdf: &'a RdfRules,
    /// The invalid statements that were left out, if that is allowed.
    left_out: Option<LeftOut>,
}

impl<'a> Statements<'a> {
    fn new(graph: &'a Graph, root: &'a NamedNode, rdf: &'a RdfRules) -> Self {
        Self {
            graph,
            root,
            kept: Vec::new(),
            count: 0,
            has_own: false,
            has_blank: false,
            has_skolem: false,
            others: 0,
            by_address: false,
            is_fragment: false,
            other: None,
            has_several: false,
            of_other: Vec::new(),
            rdf,
            left_out: None,
        }
    }

    /// Reads the response of a server, from `file` if the body is in a file.
    fn read_sent(
        &mut self,
        sent: SentSyntax,
        bytes: &[u8],
        file: Option<&mut File>,
        base: &str,
    ) -> Result<(), Failure> {
        let read = match file {
            Some(file) => {
                file.rewind()?;
                self.read(sent.syntax, BufReader::new(file), base)
            }
            None => self.read(sent.syntax, bytes, base),
        };
        read.map_err(|failure| match failure.code {
            "body.read" => failure,
            _ if failure.refused || !sent.is_doubtful => failure,
            _ => sent.is_none(&format!("cannot be read: {}", failure.message)),
        })
    }

    fn read(&mut self, syntax: Syntax, input: impl Read, base: &str) -> Result<(), Failure> {
        // Statements about other entities are only counted.
        let mut limits = ReadLimits::in_memory();
        limits.expansion.most = u64::MAX;
        let mut options =
            ReadOptions::default().with_limits(limits).with_contexts(self.rdf.contexts.clone());
        let left_out = self.rdf.left_out();
        options.left_out.clone_from(&left_out);
        if NamedNode::new(base).is_ok() {
            options = options.with_base(base);
        }
        let mut is_over = false;
        self.left_out = None;
        let read = abreast_rdf::read(syntax, input, &options, &mut |quad| {
            let is_about = match quad.subject {
                NamedOrBlankNodeRef::NamedNode(node) => {
                    let is_own = *self.graph == Graph::OfResource || node == self.root.as_ref();
                    self.has_own |= is_own && quad.graph_name == GraphNameRef::DefaultGraph;
                    // The node is a part, if the resource refers to it.
                    let is_skolem = !is_own && is_skolem_iri(node.as_str());
                    self.has_skolem |= is_skolem;
                    is_own || is_skolem
                }
                NamedOrBlankNodeRef::BlankNode(_) => {
                    self.has_blank = true;
                    true
                }
            };
            if !is_about || quad.graph_name != GraphNameRef::DefaultGraph {
                self.others += 1;
                self.note_other(quad);
                is_over = self.of_other.len() > BYTES_MAX;
                return if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            write_statement(quad.into(), &mut self.kept);
            self.count += 1;
            is_over = self.kept.len() > BYTES_MAX || self.count > STATEMENTS_MAX;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.left_out = left_out.filter(|left_out| left_out.count() > 0);
        if is_over {
            let message = format!(
                "its description is larger than {} MiB or {STATEMENTS_MAX} statements",
                BYTES_MAX >> 20
            );
            return Err(Failure::refused("rdf.size", message));
        }
        read.map_err(|error| match error.syntax().map_or("body.read", |fault| fault.code()) {
            code @ "rdf.size" => Failure::refused(code, error.to_string()),
            code @ "jsonld.context" => {
                let message = error.to_string();
                let what = message.lines().next().unwrap_or_default();
                let help = "keep the context in a file, and name it: `--context URL=FILE`";
                Failure::new(code, format!("{what}\n  help: {help}"))
            }
            code => Failure::new(code, error.to_string()),
        })
    }

    fn note_other(&mut self, quad: QuadRef<'_>) {
        let node = match quad.subject {
            NamedOrBlankNodeRef::NamedNode(node)
                if quad.graph_name == GraphNameRef::DefaultGraph =>
            {
                node
            }
            _ => return self.has_several = true,
        };
        self.has_several |= self.other.as_ref().is_some_and(|other| other.as_ref() != node);
        if self.other.is_none() {
            self.other = Some(node.into_owned());
        }
        if self.by_address && !self.has_own && !self.has_several {
            write_statement(quad.into(), &mut self.of_other);
        }
    }

    /// The canonical description. Statements about other entities are not stored, because a
    /// document about one resource must not change another resource.
    fn describe(mut self) -> Result<Description, Failure> {
        let mut entity = None;
        if !self.has_own && !self.has_several && self.by_address {
            let of_other = std::mem::take(&mut self.of_other);
            entity = self.other.take();
            let count = memchr::memchr_iter(b'\n', &of_other).count();
            self.kept.extend(of_other);
            self.count += count;
            self.others -= count as u64;
            if entity.is_none() {
                entity = skolem_root(&self.kept).and_then(|iri| NamedNode::new(iri).ok());
            }
        }
        if self.has_skolem {
            let iri = entity.as_ref().unwrap_or(self.root).as_str();
            self.kept = blank_skolems(&self.kept, iri).map_err(|error| not_lines(&error))?;
            self.has_blank = true;
        }
        if *self.graph != Graph::OfResource && self.has_blank {
            let all = self.count;
            (self.kept, self.count) = closure(&self.kept);
            self.others += (all - self.count) as u64;
        }
        if let Some(left_out) = self.left_out.as_ref().filter(|_| self.kept.is_empty()) {
            let message = format!(
                "nothing valid is stated about it; {}\n  help: the server has to correct it; until then the copy keeps what it has",
                message(left_out)
            );
            return Err(Failure::refused("rdf.invalid", message));
        }
        if self.kept.is_empty() && self.others > 0 {
            let help = if self.is_fragment {
                "the server has to correct the fragment; until then the copy keeps what it has"
            } else {
                "with `--graph resource` each document is kept whole, in a graph of its own"
            };
            let message = format!(
                "it has {}, and nothing about <{}>\n  help: {help}",
                count(self.others, "statement"),
                self.root.as_str()
            );
            return Err(Failure::refused("rdf.subject", message));
        }
        let mut notices = Vec::new();
        if let Some(left_out) = &self.left_out {
            notices.push(Notice::new("rdf.invalid", message(left_out)));
        }
        if self.others > 0 {
            let message = format!(
                "statements about other resources, or in named graphs, which are not kept: {}",
                self.others
            );
            notices.push(Notice::new("rdf.others", message));
        }
        let lines = canonical_lines(&self.kept).map_err(|error| not_lines(&error))?.lines;
        let reach = if self.has_blank {
            Reach::of(&lines, entity.as_ref().unwrap_or(self.root).as_str())
        } else {
            Ok(Reach::default())
        };
        let reach = reach.map_err(|error| not_lines(&error))?;
        Ok(Description { digest: digest_of(&lines), lines, entity, reach, notices })
    }
}

fn not_lines(error: &StatementError) -> Failure {
    Failure::new("rdf.syntax", error.to_string())
}

/// The lines about an IRI, and about each blank node that they refer to; and their number.
fn closure(lines: &[u8]) -> (Vec<u8>, usize) {
    let mut by_blank: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    let mut waiting = Vec::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        match subject_of(line) {
            subject if subject.starts_with(b"_:") => {
                by_blank.entry(subject).or_default().push(line);
            }
            _ => waiting.push(line),
        }
    }
    let (mut kept, mut count) = (Vec::with_capacity(lines.len()), 0);
    while let Some(line) = waiting.pop() {
        kept.extend_from_slice(line);
        count += 1;
        if let Some(more) = object_blank(line).and_then(|label| by_blank.remove(label)) {
            waiting.extend(more);
        }
    }
    (kept, count)
}

/// The subject of a line.
fn subject_of(line: &[u8]) -> &[u8] {
    &line[..memchr(b' ', line).unwrap_or(line.len())]
}

/// The blank node that is the object of a line. Neither subject nor predicate has a space in it.
fn object_blank(line: &[u8]) -> Option<&[u8]> {
    let predicate = &line[memchr(b' ', line)? + 1..];
    let object = &predicate[memchr(b' ', predicate)? + 1..];
    object.starts_with(b"_:").then(|| subject_of(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str, graph: &Graph) -> Result<Description, Failure> {
        let root = NamedNode::new("http://h/a").unwrap();
        let rdf = RdfRules::default();
        let mut statements = Statements::new(graph, &root, &rdf);
        statements.read(Syntax::Turtle, text.as_bytes(), "http://h/a.ttl")?;
        statements.describe()
    }

    #[test]
    fn a_description_is_what_is_reached_by_blank_nodes() {
        let text = "PREFIX : <http://h/> :a :p _:x, :b . _:x :p _:y . _:y :p _:x . _:z :p :a .\n\
                    :b :p _:y .";
        let found = described(text, &Graph::Default).unwrap();
        let lines = String::from_utf8(found.lines).unwrap();
        assert_eq!(lines.lines().count(), 4, "{lines}");
        assert!(!lines.contains("<http://h/b> <http://h/p>"), "{lines}");
        assert_eq!((found.notices.len(), found.notices[0].code), (1, "rdf.others"));
        assert!(found.notices[0].message.ends_with(": 2"), "{}", found.notices[0].message);
        let whole = described(text, &Graph::OfResource).unwrap();
        assert_eq!(memchr::memchr_iter(b'\n', &whole.lines).count(), 6);
        assert!(whole.notices.is_empty());
    }

    #[test]
    fn a_document_about_something_else_is_refused() {
        let failure = described("<http://h/b> <http://h/p> 1 .", &Graph::Default).unwrap_err();
        assert_eq!((failure.code, failure.refused), ("rdf.subject", true));
        assert!(failure.message.contains("help:"));
        let empty = described("", &Graph::Default).unwrap();
        assert_eq!((empty.lines.len(), empty.digest), (0, digest_of(b"")));
    }

    #[test]
    fn an_address_may_be_that_of_a_document_about_one_entity() {
        let of = |text: &str| {
            let root = NamedNode::new("http://h/a").unwrap();
            let rdf = RdfRules::default();
            let mut statements = Statements::new(&Graph::Default, &root, &rdf);
            statements.by_address = true;
            statements.read(Syntax::Turtle, text.as_bytes(), "http://h/a").unwrap();
            statements
                .describe()
                .map(|found| (String::from_utf8(found.lines).unwrap(), found.notices.len()))
        };
        let (lines, notices) =
            of("_:x <http://h/p> 1 . <http://h/b> <http://h/p> _:x, 2 .").unwrap();
        assert_eq!((lines.lines().count(), notices), (3, 0), "{lines}");
        assert_eq!(
            of("<http://h/b> <http://h/p> 1 . <http://h/c> <http://h/p> 1 .").unwrap_err().code,
            "rdf.subject"
        );
        let (lines, notices) =
            of("<http://h/b> <http://h/p> 1 . <http://h/a> <http://h/p> 2 .").unwrap();
        assert_eq!((lines.lines().count(), notices), (1, 1), "{lines}");
        assert!(lines.starts_with("<http://h/a>"));
    }

    #[test]
    fn nothing_of_a_broken_document_is_kept() {
        let text = "<http://h/a> <http://h/p> 1 . <http://h/a> <bad iri> 2 .";
        assert_eq!(described(text, &Graph::Default).unwrap_err().code, "rdf.iri");
    }

    #[test]
    fn the_syntax_is_the_media_types_or_else_the_names() {
        let (turtle, plain) = ("text/turtle; charset=utf-8", "Text/Plain; charset=utf-8");
        let several = "application/n-triples, application/ld+json;q=0.7";
        for (sent, asked, href, expected) in [
            (Some(turtle), None, "http://h/a.nt", Some((Syntax::Turtle, false))),
            (Some("application/xml"), None, "http://h/a.rdf?x=1.nt", Some((Syntax::RdfXml, false))),
            (None, None, "http://h/a.jsonld#a", Some((Syntax::JsonLd, false))),
            (None, Some(turtle), "http://h/a.nt", Some((Syntax::Turtle, false))),
            (Some("text/html"), Some(turtle), "http://h/a.nt", None),
            (Some("application/octet-stream"), None, "http://h/a", None),
            (Some(plain), None, "http://h/a.nt", Some((Syntax::NTriples, false))),
            (Some(plain), None, "http://h/a.ttl", Some((Syntax::Turtle, false))),
            (Some(plain), None, "http://h/a", Some((Syntax::NTriples, true))),
            (Some(plain), Some(plain), "http://h/a?b.nt", Some((Syntax::NTriples, true))),
            (Some(plain), Some(turtle), "http://h/a", Some((Syntax::Turtle, true))),
            (None, Some(plain), "http://h/a", Some((Syntax::NTriples, true))),
            (Some("application/json"), Some(several), "http://h/a", Some((Syntax::JsonLd, false))),
            (Some("application/json"), Some(turtle), "http://h/a", Some((Syntax::Turtle, false))),
            (Some("application/json"), None, "http://h/a", None),
            (None, None, "http://h/a", None),
        ] {
            let found = syntax_of(sent, asked, [href, "http://h/x"]);
            let found = found.map(|found| (found.syntax, found.is_doubtful));
            assert_eq!(found, expected, "{sent:?} {asked:?} {href}");
        }
    }
}
