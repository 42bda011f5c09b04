//! The lenient reader, on the shapes of patches that others write.
#![allow(clippy::unwrap_used)]

use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term};
use rdf_patch::{Change, Patch, ReadOptions, Reader};

fn read(text: &str) -> (Patch, Vec<String>) {
    let (patch, findings) = Patch::read(text.as_bytes(), &ReadOptions::lenient()).unwrap();
    let findings = findings
        .iter()
        .map(|finding| {
            assert!(finding.help().is_some(), "{finding}");
            format!("{}:{} {}", finding.line(), finding.column(), finding.code())
        })
        .collect();
    (patch, findings)
}

/// The changes as strict rows.
fn rows(patch: &Patch) -> Vec<String> {
    let text = patch.to_text().unwrap();
    text.lines()
        .filter(|row| !row.starts_with('H') && !row.starts_with('T'))
        .map(str::to_owned)
        .collect()
}

fn object(text: &str) -> (Term, Vec<String>) {
    let (patch, findings) =
        read(&format!("TX .\nPA ex <http://e/> .\nA <a:> <b:> {text} .\nTC .\n"));
    match &patch.transactions[0][1] {
        Change::Add(quad) => (quad.object.clone(), findings),
        other => panic!("{other:?}"),
    }
}

#[test]
fn strict_patches_have_no_findings() {
    let text = "H id <uuid:1> .\nH prev <uuid:0> .\nTX .\nPA \"ex\" \"http://e/\" .\nA <a:> <b:> <_:c> <d:> .\nTC .\n";
    let (patch, findings) = read(text);
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(patch, Patch::from_slice(text.as_bytes()).unwrap());
}

// The shapes of the test files of RDF Delta.

#[test]
fn old_keywords_and_glued_dots_are_read() {
    let (patch, findings) = read(
        "H id <uuid:77> .\nH parent <uuid:76> .\nTB .\nA <http://e/tea> <http://e/kind> \"green\" <http://e/g> .\nTC.\n",
    );
    assert_eq!(findings, ["3:1 patch.keyword", "5:3 patch.dot"]);
    assert_eq!(patch.header.id(), Some("uuid:77"));
    assert_eq!(patch.header.iri("parent"), Some("uuid:76"));
    assert_eq!(rows(&patch), ["A <http://e/tea> <http://e/kind> \"green\" <http://e/g> ."]);
}

#[test]
fn headers_in_capital_letters_are_read() {
    let (patch, findings) =
        read("# as a tool wrote it\nH ID   <uuid:2> .\nH PREV <uuid:1> .\nTX .\nTC .\n");
    assert_eq!(findings, ["2:3 patch.header", "3:3 patch.header"]);
    assert_eq!((patch.header.id(), patch.header.prev()), (Some("uuid:2"), Some("uuid:1")));
    assert_eq!(read("H Title \"x\" .").0.header.text("Title"), Some("x"));
}

#[test]
fn numbers_and_labels_in_brackets_are_read() {
    let (patch, findings) = read(
        "H ID <uuid:3> .\nTB .\nPA \"\" \"http://e/\" .\nA <http://e/tea> <http://e/year> 1773 .\n\
         A <http://e/tea> <http://e/box> <_:f00d> .\nTC .\n",
    );
    assert_eq!(findings, ["1:3 patch.header", "2:1 patch.keyword", "4:34 patch.number"]);
    assert_eq!(
        rows(&patch),
        [
            "PA \"\" <http://e/> .",
            "A <http://e/tea> <http://e/year> \"1773\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
            "A <http://e/tea> <http://e/box> <_:f00d> ."
        ]
    );
}

#[test]
fn headers_without_a_dot_are_read() {
    for end in ["\n", " \r\n", "\n\n# a comment\n"] {
        let text = format!("H id <uuid:2> .\nH prev <uuid:1>{end}TX .\nA <a:> <b:> <c:> .\nTC .\n");
        let (patch, findings) = read(&text);
        assert_eq!(findings, ["2:16 patch.dot"], "{text}");
        assert_eq!((patch.header.prev(), patch.transactions.len()), (Some("uuid:1"), 1));
        assert!(Patch::from_slice(text.as_bytes()).is_err());
    }
}

#[test]
fn prefixes_before_the_transaction_are_its_first_changes() {
    let rows_of = |text: &str| {
        let (patch, findings) = read(text);
        assert_eq!(findings[0], "1:1 patch.transaction", "{text}");
        (patch.transactions.len(), rows(&patch))
    };
    let prefixes = "PA ex <http://e/> .\nPD x .\n";
    let all = ["PA \"ex\" <http://e/> .", "PD \"x\" .", "A <http://e/a> <b:> <c:> ."];
    for (transaction, expected) in [
        ("H id <uuid:2> .\nTX .\nA ex:a <b:> <c:> .\nTC .\n", &all[..]),
        ("A ex:a <b:> <c:> .\n", &all),
        ("", &all[..2]),
    ] {
        let expected = expected.iter().map(ToString::to_string).collect();
        assert_eq!(rows_of(&format!("{prefixes}{transaction}")), (1, expected), "{transaction}");
    }
}

#[test]
fn segments_have_no_effect() {
    let (patch, findings) = read("TX .\nSegment .\nPD x .\nTC .\nSegment .\n");
    assert_eq!(findings, ["2:1 patch.keyword", "5:1 patch.keyword"]);
    assert_eq!(patch.transactions, [[Change::RemovePrefix { prefix: "x".to_owned() }]]);
}

// The shapes of the examples in the draft of EMM 0.1.

#[test]
fn indented_rows_with_single_quotes_are_one_transaction() {
    let text = "A <https://repo.example/entity/green_tea>\n         <https://voc.example/label> 'green tea'@en.\n     \
        A <https://repo.example/entity/green_tea>\n         <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept>.\n     \
        A <https://repo.example/entity/green_tea>\n         <https://voc.example/narrower>\n         <https://repo.example/entity/sencha>.";
    let (patch, findings) = read(text);
    assert_eq!(
        findings,
        [
            "1:42 patch.lines",
            "2:38 patch.quotes",
            "2:52 patch.dot",
            "1:1 patch.transaction",
            "3:47 patch.lines",
            "4:105 patch.dot",
            "5:47 patch.lines",
            "7:46 patch.dot"
        ]
    );
    assert_eq!(patch.transactions.len(), 1);
    assert_eq!(
        rows(&patch),
        [
            "A <https://repo.example/entity/green_tea> <https://voc.example/label> \"green tea\"@en .",
            "A <https://repo.example/entity/green_tea> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .",
            "A <https://repo.example/entity/green_tea> <https://voc.example/narrower> <https://repo.example/entity/sencha> ."
        ]
    );
}

#[test]
fn additions_before_removals_keep_their_order() {
    let (patch, _) = read("A <a:> <l:> 'Tea'@en.\n     D <a:> <l:> 'tea'@en.");
    assert_eq!(rows(&patch), ["A <a:> <l:> \"Tea\"@en .", "D <a:> <l:> \"tea\"@en ."]);
    // Schemes are never made equal.
    let (patch, _) = read("D <http://r.example/a> <l:> 'x'.\nD <https://r.example/a> <l:> 'x'.");
    assert_ne!(patch.transactions[0][0], patch.transactions[0][1]);
}

#[test]
fn strings_of_turtle_are_read() {
    for (text, value, codes) in [
        ("'it is \"so\"'", "it is \"so\"", 1),
        ("'\\'\\n'", "'\n", 1),
        ("\"\"\"two\nlines \"\"quoted\" \\\"\"\"\"", "two\nlines \"\"quoted\" \"", 1),
        ("'''a'b''c'''", "a'b''c", 2),
        ("''", "", 1),
    ] {
        let (term, findings) = object(text);
        assert_eq!(term, Literal::from(value).into(), "{text}");
        assert_eq!(findings.len(), codes, "{text}: {findings:?}");
    }
    // As it is written.
    let tagged = Literal::new_language_tagged_literal_unchecked("x", "en-GB");
    assert_eq!(object("'''x'''@en-GB").0, tagged.into());
}

#[test]
fn numbers_and_truth_values_get_their_datatype() {
    for (text, datatype) in [
        ("1816", xsd::INTEGER),
        ("-5", xsd::INTEGER),
        ("+0.50", xsd::DECIMAL),
        ("1e9", xsd::DOUBLE),
        ("-1.5E-3", xsd::DOUBLE),
        ("true", xsd::BOOLEAN),
    ] {
        let (term, findings) = object(text);
        assert_eq!(term, Literal::new_typed_literal(text, datatype).into());
        assert_eq!(findings, ["3:13 patch.number"]);
    }
}

#[test]
fn prefixed_names_need_a_declaration() {
    let iri = |text: &str| Term::from(NamedNode::new(text).unwrap());
    assert_eq!(object("ex:a").0, iri("http://e/a"));
    assert_eq!(object("ex:").0, iri("http://e/"));
    assert_eq!(object(r"ex:a\~b").0, iri("http://e/a~b"));
    let one = Literal::new_typed_literal("1", NamedNode::new("http://e/int").unwrap());
    assert_eq!(object("\"1\"^^ex:int").0, one.into());
}

#[test]
fn what_cannot_be_guessed_is_refused() {
    for (text, code) in [
        ("A <a:> <b:> ex:a .", "patch.prefix"),
        ("A <a:> <b:> 1816a .", "patch.term"),
        ("A <a:> <b:> 1-2 .", "patch.term"),
        ("A <a:> <b:> word .", "patch.term"),
        ("A <a:> <b:> 'x\ny' .", "patch.string"),
        ("A <a:> <b:> '''x'' .", "patch.string"),
        ("A <a:> <b:> <c:>\n", "patch.row"),
        ("A <a:> <b:> <c:>\nA <a:> <b:> <d:> .\n", "patch.term"),
        ("A <a:> <b:>", "patch.row"),
        ("A <a:> <b:> 'x'^^", "patch.row"),
    ] {
        let error = Reader::new(text.as_bytes(), ReadOptions::lenient()).find_map(Result::err);
        assert_eq!(error.unwrap().syntax().unwrap().code(), code, "{text}");
    }
}

#[test]
fn findings_are_counted_and_few_are_kept() {
    let text = "A <a:> <b:> <c:>.\n".repeat(1_000);
    let mut reader = Reader::new(text.as_bytes(), ReadOptions::lenient());
    assert_eq!(reader.by_ref().flatten().count(), 1_002);
    assert_eq!((reader.findings().len(), reader.finding_count()), (100, 1_001));
}

#[test]
fn several_rows_on_a_line_are_read() {
    let (patch, findings) = read("TX . PD x . TC .");
    assert_eq!((patch.transactions.len(), findings.len()), (1, 2));
}
