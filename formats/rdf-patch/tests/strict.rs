//! The strict reader and the writer: each row, and each rule about where it may be.
#![allow(clippy::unwrap_used)]

use oxrdf::{BlankNode, GraphName, Literal, NamedNode, Quad, Term};
use rdf_patch::{
    Chain, ChainError, Change, Header, Patch, ReadLimits, ReadOptions, Reader, Row, WriteError,
    Writer,
};

fn iri(text: &str) -> NamedNode {
    NamedNode::new(text).unwrap()
}

fn rows(text: &str) -> Vec<Row> {
    Reader::new(text.as_bytes(), ReadOptions::default()).collect::<Result<_, _>>().unwrap()
}

/// Code, line and column of the fault.
fn fault(text: &[u8], options: ReadOptions) -> (&'static str, u64, u64) {
    let error = Reader::new(text, options).find_map(Result::err).expect("a fault");
    let finding = error.syntax().expect("a fault in the patch");
    (finding.code(), finding.line(), finding.column())
}

const S: &str = "<http://e/s> <http://e/p>";

fn added(object: &str) -> Term {
    let text = format!("TX .\nA {S} {object} .\nTC .\n");
    match rows(&text).swap_remove(1) {
        Row::Change(Change::Add(quad)) => quad.object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_row_is_read() {
    let text = "# comment\n\nH id <uuid:1> .\nH \"a word\" \"value\"@en . # more\nTX .\r\n\
        PA rdf <http://e/rdf#> .\nPA \"\" \"http://e/\" .\nPD \"old\" .\n\
        A <http://e/s>\t<http://e/p> \"x . # <\" .\nD  _:b <http://e/p> <_:c d:1> <http://e/g> .\nTC .\n\
        TX .\nTA .\n";
    // A label cannot have a space.
    let text = text.replace("<_:c d:1>", "<_:c:d/1>");
    let quad = |subject: oxrdf::NamedOrBlankNode, object: Term, graph: GraphName| {
        Quad::new(subject, iri("http://e/p"), object, graph)
    };
    let expected = [
        Row::Header { word: "id".to_owned(), value: iri("uuid:1").into() },
        Row::Header {
            word: "a word".to_owned(),
            value: Literal::new_language_tagged_literal("value", "en").unwrap().into(),
        },
        Row::Begin,
        Row::Change(Change::AddPrefix {
            prefix: "rdf".to_owned(),
            iri: "http://e/rdf#".to_owned(),
        }),
        Row::Change(Change::AddPrefix { prefix: String::new(), iri: "http://e/".to_owned() }),
        Row::Change(Change::RemovePrefix { prefix: "old".to_owned() }),
        Row::Change(Change::Add(quad(
            iri("http://e/s").into(),
            Literal::from("x . # <").into(),
            GraphName::DefaultGraph,
        ))),
        Row::Change(Change::Remove(quad(
            BlankNode::new("b").unwrap().into(),
            BlankNode::new_unchecked("c:d/1").into(),
            iri("http://e/g").into(),
        ))),
        Row::Commit,
        Row::Begin,
        Row::Abort,
    ];
    assert_eq!(rows(&text), expected);
    assert_eq!(rows(&format!("\u{FEFF}{text}")), expected);
    assert_eq!(rows(text.trim_end()), expected);
}

#[test]
fn terms_are_those_of_n_quads() {
    assert_eq!(added("\"\""), Literal::from("").into());
    assert_eq!(
        added(r#""\t\b\n\r\f\"\'\\\u00e9\U0001F600""#),
        Literal::from("\t\u{8}\n\r\u{C}\"'\\é😀").into()
    );
    assert_eq!(added(r"<http://e/\u00e9>"), iri("http://e/é").into());
    assert_eq!(
        added("\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
        Literal::new_typed_literal("1", oxrdf::vocab::xsd::INTEGER).into()
    );
    assert_eq!(added("_:a.b"), BlankNode::new("a.b").unwrap().into());
    assert_eq!(
        added("<uuid:0686c69d-8f89-4496-acb5-744f0157a8db>"),
        iri("uuid:0686c69d-8f89-4496-acb5-744f0157a8db").into()
    );
}

#[test]
fn wrong_rows_are_refused_with_their_place() {
    for (row, code, column) in [
        ("X .", "patch.row", 1),
        ("a <http://e/s> .", "patch.row", 1),
        (".", "patch.row", 1),
        ("A", "patch.lines", 2),
        ("A .", "patch.term", 3),
        ("A <http://e/s> <http://e/p> .", "patch.term", 29),
        ("A <http://e/s> <http://e/p> <http://e/o>", "patch.lines", 41),
        ("A <http://e/s> <http://e/p> <http://e/o> <http://e/g> <http://e/h> .", "patch.row", 55),
        ("A \"s\" <http://e/p> <http://e/o> .", "patch.term", 3),
        ("A <http://e/s> _:p <http://e/o> .", "patch.term", 16),
        ("A <http://e/s> <http://e/p> <http://e/o> \"g\" .", "patch.term", 42),
        ("A <http://e/s> <p> <http://e/o> .", "patch.iri", 16),
        ("A <http://e/s> <http://e/p> <http://e/a b> .", "patch.iri", 29),
        ("A <http://e/s> <http://e/p> <http://e/\\n> .", "patch.iri", 30),
        ("A <http://e/s> <http://e/p> <http://e/{> .", "patch.iri", 29),
        ("A <http://e/s> <http://e/p> <http://e/o .", "patch.iri", 29),
        ("A <http://e/s> <http://e/p> << <a:> <a:> <a:> >> .", "patch.term", 29),
        ("A <http://e/s> <http://e/p> <_:> .", "patch.blank", 29),
        ("A <http://e/s> <http://e/p> _:-é .", "patch.blank", 29),
        ("A <http://e/s> <http://e/p> \"é\\x\" .", "patch.string", 30),
        ("A <http://e/s> <http://e/p> \"\\uD800\" .", "patch.string", 30),
        ("A <http://e/s> <http://e/p> \"é .", "patch.string", 29),
        ("A <http://e/s> <http://e/p> \"é\"@ .", "patch.language", 32),
        ("A <http://e/s> <http://e/p> \"é\"@e_n .", "patch.language", 32),
        ("A <http://e/s> <http://e/p> \"é\"^<a:> .", "patch.term", 32),
        ("A <http://e/s> <http://e/p> \"é\"^^\"x\" .", "patch.term", 34),
        ("H .", "patch.header", 3),
        ("H id .", "patch.term", 6),
        ("PA .", "patch.prefix", 4),
        ("PA \"a b\" <http://e/> .", "patch.prefix", 4),
        ("PA p \"e\" .", "patch.iri", 6),
        ("PA p _:b .", "patch.iri", 6),
        ("PD .", "patch.prefix", 4),
        ("TX <http://e/s> .", "patch.row", 4),
    ] {
        let text = if row.starts_with('H') { row.to_owned() } else { format!("TX .\n{row}") };
        let line = if row.starts_with('H') { 1 } else { 2 };
        let found = fault(format!("{text}\nTC .\n").as_bytes(), ReadOptions::default());
        assert_eq!(found, (code, line, column), "{row}");
    }
    for bytes in
        [&b"A <http://e/\xFF> "[..], b"A _:\xFF ", b"A <http://e/s> <http://e/p> \"\xFF\" "]
    {
        let text = [b"TX .\n", bytes, b".\nTC .\n"].concat();
        assert_eq!(fault(&text, ReadOptions::default()).0, "patch.encoding");
    }
}

#[test]
fn what_only_the_lenient_reader_accepts_is_refused() {
    for (row, code) in [
        ("A <http://e/s> <http://e/p> 'x' .", "patch.quotes"),
        ("A <http://e/s> <http://e/p> \"\"\"x\"\"\" .", "patch.quotes"),
        ("A <http://e/s> <http://e/p> 1816 .", "patch.number"),
        ("A <http://e/s> <http://e/p> true .", "patch.number"),
        ("A <http://e/s> <http://e/p> ex:o .", "patch.prefix"),
        ("A <http://e/s> <http://e/p> <http://e/o>.", "patch.dot"),
        ("A <http://e/s> <http://e/p>\n<http://e/o> .", "patch.lines"),
        ("PD x . PD y .", "patch.lines"),
        ("PD x: .", "patch.prefix"),
        ("TC.", "patch.dot"),
        ("Segment .", "patch.row"),
    ] {
        let text = format!("TX .\n{row}\nTC .\n");
        assert_eq!(fault(text.as_bytes(), ReadOptions::default()).0, code, "{row}");
    }
    assert_eq!(fault(b"TB .\n", ReadOptions::default()).0, "patch.keyword");
    assert_eq!(fault(b"PD x .\n", ReadOptions::default()).0, "patch.transaction");
    assert_eq!(fault(b"TX .\nTC .\nH a <b:> .\n", ReadOptions::default()), ("patch.header", 3, 1));
    // Other words may have any letter case; only the lenient reader takes `ID` for `id`.
    assert_eq!(Patch::from_slice(b"H ID <uuid:1> .\n").unwrap().header.id(), None);
}

#[test]
fn transactions_neither_nest_nor_end_without_a_beginning() {
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        for (text, line, code) in [
            ("TX .\nTX .\n", 2, "patch.transaction"),
            ("TC .\n", 1, "patch.transaction"),
            ("TA .\n", 1, "patch.transaction"),
            ("TX .\nTC .\nTC .\n", 3, "patch.transaction"),
            ("TX .\nTC .\nPD x .\n", 3, "patch.transaction"),
            ("PD x .\nTC .\n", 2, "patch.transaction"),
            ("A <a:> <b:> <c:> .\nTX .\n", 2, "patch.transaction"),
            ("TX .\nH a <b:> .\n", 2, "patch.header"),
            ("TX .\n", 2, "patch.commit"),
            ("TX .\nPD x .\n", 3, "patch.commit"),
            ("TX .\nTC .\nTX .\nPD x .", 4, "patch.commit"),
        ] {
            let (found, at, _) = fault(text.as_bytes(), options);
            // Where the first change is wrong already, the strict reader stops there.
            if options.lenient || !text.starts_with(['A', 'P']) {
                assert_eq!((found, at), (code, line), "{text}");
            }
        }
    }
}

#[test]
fn only_committed_transactions_are_returned() {
    let torn = "TX .\nA <http://e/s> <http://e/p> \"1\" .\nTC .\nTX .\nA <http://e/s> <http://e/p> \"2\" .\nTA .\n\
        TX .\nA <http://e/s> <http://e/p> \"3\" .\n";
    let mut reader = Reader::new(torn.as_bytes(), ReadOptions::default());
    assert_eq!(reader.next_transaction().unwrap().unwrap().len(), 1);
    let error = reader.next_transaction().unwrap_err();
    assert_eq!(error.syntax().unwrap().code(), "patch.commit");
    assert_eq!(reader.next_transaction().unwrap(), None);
    assert!(Patch::from_slice(torn.as_bytes()).is_err());
    let whole = Patch::from_slice(format!("{torn}TA .\n").as_bytes()).unwrap();
    assert_eq!(whole.transactions.len(), 1);
    assert!(Patch::from_slice(b"").unwrap().transactions.is_empty());
}

#[test]
fn limits_are_kept() {
    let limits = |change: fn(&mut ReadLimits)| {
        let mut limits = ReadLimits::default();
        change(&mut limits);
        ReadOptions::lenient().with_limits(limits)
    };
    let row_length = limits(|limits| limits.row_length = 30);
    for long in ["TX .\nPA x <http://example.org/a/b/c> .\n", "H x \"", "A '''"] {
        let text = format!("{long}{}", "x".repeat(200_000));
        assert_eq!(fault(text.as_bytes(), row_length).0, "patch.size");
    }
    let spaces = format!("{}TX .\n# {}\nTC .\n", " ".repeat(200_000), "c".repeat(200_000));
    assert!(Reader::new(spaces.as_bytes(), row_length).all(|row| row.is_ok()));
    assert_eq!(
        fault(b"TX .\nPD x .\nPD x .\nTC .\n", limits(|limits| limits.rows = 2)),
        ("patch.size", 3, 1)
    );
    assert_eq!(
        fault(b"H a <b:> .\nH a <b:> .\n", limits(|limits| limits.headers = 1)),
        ("patch.size", 2, 1)
    );
    let mut reader = Reader::new(
        &b"TX .\nPD x .\nPD x .\nTC .\n"[..],
        limits(|limits| limits.transaction_rows = 1),
    );
    assert_eq!(reader.next_transaction().unwrap_err().syntax().unwrap().code(), "patch.size");
}

/// An input that ends with an error.
struct Broken<'a>(&'a [u8]);

impl std::io::Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match std::io::Read::read(&mut self.0, buffer)? {
            0 => Err(std::io::ErrorKind::ConnectionReset.into()),
            length => Ok(length),
        }
    }
}

#[test]
fn a_broken_input_is_no_end() {
    let mut reader = Reader::new(Broken(b"H id <a:> .\nTX .\n"), ReadOptions::default());
    let error = reader.find_map(Result::err).unwrap();
    assert!(error.syntax().is_none());
    assert!(reader.next().is_none());
}

#[test]
fn the_writer_refuses_rows_in_the_wrong_place() {
    let begun = || {
        let mut writer = Writer::new(Vec::new());
        writer.begin().unwrap();
        writer
    };
    let order = |result: Result<(), WriteError>| matches!(result, Err(WriteError::Order(_)));
    let prefix = Change::RemovePrefix { prefix: "x".to_owned() };
    assert!(order(begun().begin()));
    assert!(order(begun().header("id", iri("a:").as_ref().into())));
    assert!(order(Writer::new(Vec::new()).commit()));
    assert!(order(Writer::new(Vec::new()).abort()));
    assert!(order(Writer::new(Vec::new()).change(&prefix)));
    assert!(order(Writer::new(Vec::new()).add_line(b"<a:> <b:> <c:> .")));
    assert!(order(begun().finish().map(drop)));
    assert!(Writer::new(Vec::new()).header("", iri("a:").as_ref().into()).is_err());
    let wrong = BlankNode::new_unchecked("a>b");
    let quad = Quad::new(iri("a:"), iri("b:"), wrong, GraphName::DefaultGraph);
    let mut writer = begun();
    assert!(matches!(writer.add(quad.as_ref()), Err(WriteError::Text(_))));
    // Nothing of the row that failed is left.
    writer.commit().unwrap();
    assert_eq!(writer.finish().unwrap(), b"TX .\nTC .\n");
}

#[test]
fn terms_that_are_not_checked_end_no_row() {
    let hostile = NamedNode::new_unchecked("http://e/> .\nTA .");
    let quad = Quad::new(hostile.clone(), hostile.clone(), Literal::from("\" .\nTA ."), hostile);
    let mut writer = Writer::new(Vec::new());
    writer.begin().unwrap();
    writer.add(quad.as_ref()).unwrap();
    writer.commit().unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn a_chain_takes_only_the_next_patch() {
    let header = |rows: &[(&str, &str)]| {
        let mut header = Header::default();
        for (word, value) in rows {
            match NamedNode::new(*value) {
                Ok(node) => header.push(*word, node),
                Err(_) => header.push(*word, Literal::from(*value)),
            }
        }
        header
    };
    let mut chain = Chain::default();
    for (rows, error) in [
        (&[][..], ChainError::NoId),
        (&[("id", "text")], ChainError::NoId),
        (&[("prev", "uuid:1")], ChainError::NoId),
        (&[("id", "uuid:1"), ("id", "uuid:2")], ChainError::Twice("id")),
        (&[("id", "uuid:1"), ("prev", "uuid:2"), ("prev", "uuid:2")], ChainError::Twice("prev")),
        (&[("id", "uuid:1"), ("prev", "text")], ChainError::PrevTerm),
        (&[("id", "uuid:1"), ("prev", "uuid:1")], ChainError::Itself("uuid:1".to_owned())),
        (
            &[("id", "uuid:2"), ("prev", "uuid:1")],
            ChainError::Prev { prev: Some("uuid:1".to_owned()), head: None },
        ),
    ] {
        assert_eq!(chain.append(&header(rows)), Err(error), "{rows:?}");
    }
    chain.append(&header(&[("id", "uuid:1")])).unwrap();
    let again = chain.append(&header(&[("id", "uuid:2")])).unwrap_err();
    assert_eq!(again.to_string(), "there is no `H prev`, and the last patch is <uuid:1>");
    chain.append(&header(&[("id", "uuid:2"), ("prev", "uuid:1")])).unwrap();
    assert_eq!(chain, Chain::new(Some("uuid:2".to_owned())));
}

/// In the words of the other syntaxes.
#[test]
fn a_wrong_language_tag_is_named() {
    for tag in ["en_US", "fran\u{e7}ais", "en-", "toolonglanguage"] {
        let text = format!("TX .\nA <http://e/s> <http://e/p> \"x\"@{tag} .\nTC .\n");
        let mut rows = Reader::new(text.as_bytes(), ReadOptions::default());
        let error = rows.find_map(Result::err).unwrap();
        let expected = format!("`{tag}` is not a language tag");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
