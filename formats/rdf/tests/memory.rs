//! Small documents that would become large: refused before they take much memory.

use abreast_rdf::{DescriptionLimits, Entities, ReadLimits, ReadOptions, Syntax, read};
use peak_alloc::PeakAlloc;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Most bytes of memory for a document below its limit of size.
const MOST: usize = 128 << 20;

/// Tests measure the memory of the process, so one runs at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The memory at its highest while it ran, in bytes.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work();
    (result, MEMORY.peak_usage().saturating_sub(before))
}

/// Reads a document into memory; the code of its refusal.
fn collected(syntax: Syntax, document: &str) -> Result<Entities, &'static str> {
    let options = ReadOptions::default()
        .with_base(format!("http://example.org/{}/", "b".repeat(2_000)))
        .with_limits(ReadLimits::in_memory());
    let mut entities = Entities::default();
    read(syntax, document.as_bytes(), &options, &mut |quad| {
        entities.add(quad.into());
        ControlFlow::Continue(())
    })
    .map_err(|error| error.syntax().map_or("io", |fault| fault.code()))?;
    Ok(entities)
}

/// `count` parts, each made of its number.
fn parts(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        let _ = write!(all, "{}", part(number));
        all
    })
}

#[test]
fn documents_that_expand_are_refused_in_little_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let long = format!("http://example.org/{}", "x".repeat(100_000));
    let json = |context: &str, body: &str| format!(r#"{{"@context":{{{context}}},{body}}}"#);
    let keys = |count| parts(count, |number| format!(r#","k{number}":1"#));
    let documents = [
        (
            "a long prefix in Turtle",
            Syntax::Turtle,
            format!("@prefix p: <{long}> .\n")
                + &parts(20_000, |number| format!("p:{number} p:p p:o .\n")),
        ),
        (
            "a long prefix in TriG",
            Syntax::TriG,
            format!("@prefix p: <{long}> .\np:g {{\n")
                + &parts(20_000, |number| format!("p:{number} p:p p:o .\n"))
                + "}",
        ),
        (
            "a list of short items in Turtle",
            Syntax::Turtle,
            format!("<http://e/{}> <http://p> ", "s".repeat(10_000))
                + &parts(500_000, |number| format!("{number},"))
                + "1 .",
        ),
        (
            "a long namespace in RDF/XML",
            Syntax::RdfXml,
            format!(
                r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="{long}">"#
            ) + &parts(20_000, |number| format!(r#"<p:T rdf:about="http://e/{number}"/>"#))
                + "</rdf:RDF>",
        ),
        (
            "a long base in RDF/XML",
            Syntax::RdfXml,
            format!(
                r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xml:base="{long}/">"#
            ) + &parts(20_000, |number| format!(r#"<rdf:Bag rdf:about="{number}"/>"#))
                + "</rdf:RDF>",
        ),
        (
            "a long vocabulary in JSON-LD",
            Syntax::JsonLd,
            json(
                &format!(r#""@vocab":"{long}""#),
                &format!(r#""@id":"http://e/1"{}"#, keys(20_000)),
            ),
        ),
        (
            "a long prefix in JSON-LD",
            Syntax::JsonLd,
            json(
                &format!(r#""p":"{long}/""#),
                &format!(
                    r#""@id":"http://e/1","http://p":[{}1]"#,
                    parts(20_000, |number| format!(r#"{{"@id":"p:{number}"}},"#))
                ),
            ),
        ),
        (
            "types with a long vocabulary in JSON-LD",
            Syntax::JsonLd,
            json(
                &format!(r#""@vocab":"{long}""#),
                &format!(
                    r#""@id":"http://e/1","@type":[{}"t"]"#,
                    parts(20_000, |number| format!(r#""t{number}","#))
                ),
            ),
        ),
        (
            "terms with long IRIs in JSON-LD",
            Syntax::JsonLd,
            json(
                &(format!(r#""p":"{long}/""#)
                    + &parts(20_000, |number| format!(r#","t{number}":"p:{number}""#))),
                r#""@id":"http://e/1","t1":1"#,
            ),
        ),
        (
            "a language in JSON-LD",
            Syntax::JsonLd,
            json(
                r#""@vocab":"http://e/","@language":"en""#,
                &format!(r#""@id":"http://e/1","v":[{}"x"]"#, r#""x","#.repeat(300_000)),
            ),
        ),
        (
            "a list of empty nodes in JSON-LD",
            Syntax::JsonLd,
            json(
                r#""@vocab":"http://e/""#,
                &format!(r#""@id":"http://e/1","v":{{"@list":[{}{{}}]}}"#, "{},".repeat(1_000_000)),
            ),
        ),
        (
            "empty nodes in JSON-LD",
            Syntax::JsonLd,
            json(
                r#""@vocab":"http://e/""#,
                &format!(r#""@id":"http://e/1","v":[{}{{}}]"#, "{},".repeat(1_000_000)),
            ),
        ),
        (
            "nodes in a graph of JSON-LD",
            Syntax::JsonLd,
            json(
                r#""@vocab":"http://e/""#,
                &format!(r#""@graph":[{}{{}}]"#, r#"{"v":1},"#.repeat(500_000)),
            ),
        ),
    ];
    for (name, syntax, document) in documents {
        let (result, memory) = peak(|| collected(syntax, &document));
        let code = result.err();
        println!(
            "{name}: {} KiB of document, {} MiB, {code:?}",
            document.len() >> 10,
            memory >> 20
        );
        assert!(memory < MOST, "{name}: {} MiB", memory >> 20);
    }
}

#[test]
fn what_entities_share_is_bounded() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // 200 entities that lead to one tree of 1.5 MB.
    let tree =
        parts(5_000, |number| format!("_:n <http://p/{number}> \"{}\" .\n", "x".repeat(250)));
    let document = parts(200, |number| format!("<http://e/{number}> <http://p> _:n .\n")) + &tree;
    let ((described, refused), memory) = peak(|| {
        let entities = collected(Syntax::NTriples, &document).unwrap();
        let descriptions: Vec<_> = entities.descriptions(DescriptionLimits::default()).collect();
        let refused = descriptions.iter().filter(|description| description.is_err()).count();
        (descriptions.len() - refused, refused)
    });
    assert!(described > 10 && refused > 100 && memory < MOST, "{described}, {refused}, {memory}");
}

#[test]
fn arrays_of_ordinary_nodes_are_read_whatever_their_length() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let terms = parts(60, |number| {
        format!(r#""t{number}":"http://vocabulary.example.org/a-name-of-usual-length/t{number}","#)
    });
    let node = |number: usize| {
        let texts = parts(10, |key| format!(r#","t{key}":"a text of the node {number}""#));
        format!(r#"{{"@context":{{{terms}"x":"t1"}},"@id":"http://e/{number}"{texts}}},"#)
    };
    let document = format!("[{}{{}}]", parts(3_000, node));
    let (result, memory) = peak(|| {
        let options = ReadOptions::default().with_base(format!("http://e/{}", "b".repeat(2_000)));
        let mut statements = 0;
        read(Syntax::JsonLd, document.as_bytes(), &options, &mut |_| {
            statements += 1;
            ControlFlow::Continue(())
        })
        .map(|()| statements)
    });
    assert_eq!(result.unwrap(), 30_000);
    assert!(memory < MOST, "{} MiB of {}", memory >> 20, document.len() >> 20);
}
