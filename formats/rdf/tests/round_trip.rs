//! What is written in any syntax reads back as the same graph.
#![allow(clippy::unwrap_used)]

mod graphs;

use abreast_rdf::{Prefixes, Syntax, WriteOptions, Writer, can_write, write};
use graphs::{canonical, graph_of};
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use proptest::prelude::*;
use std::fmt::Write as _;

fn iri() -> impl Strategy<Value = NamedNode> {
    let whole = prop_oneof![
        Just("http://example.org/a".to_owned()),
        Just("http://example.org/".to_owned()),
        Just("urn:x".to_owned()),
        Just("http://example.org/a/../b/./c?q=1&amp;x='y'#f".to_owned()),
        Just("http://example.org/é/日本".to_owned()),
        Just("http://www.w3.org/2004/02/skos/core#-x".to_owned()),
        "http://www\\.w3\\.org/2000/01/rdf-schema#[a-zA-Z0-9_.-]{0,6}",
        "http://www\\.w3\\.org/1999/02/22-rdf-syntax-ns#(type|first|rest|nil|li|_1|about|Description|value)",
        "http://example\\.org/[a-z0-9%._~:@!$&'()*+,;=/-]{0,12}",
    ];
    whole.prop_filter_map("an IRI", |iri| NamedNode::new(iri).ok())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\\x00-\\x20\"'\\\\<>&\\]\\[(){}#.;,^@é\u{2028}\u{fffe}\u{10ffff}]{0,12}",
        Just("]]>\r\n\t \"\"\"'''\\\\u0041 <!-- &amp; -->".to_owned()),
        "[+-]?[0-9]{0,3}\\.?[0-9]{0,3}",
        Just("true".to_owned()),
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    let datatype = prop_oneof![
        iri(),
        "http://www\\.w3\\.org/2001/XMLSchema#(string|integer|decimal|boolean|double)"
            .prop_map(NamedNode::new_unchecked),
        "http://www\\.w3\\.org/1999/02/22-rdf-syntax-ns#(XMLLiteral|JSON|HTML)"
            .prop_map(NamedNode::new_unchecked),
    ];
    prop_oneof![
        text().prop_map(Literal::new_simple_literal),
        (text(), "[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?").prop_filter_map(
            "a language",
            |(text, tag)| {
                // The checked constructor makes it lower case.
                Literal::new_language_tagged_literal(&text, &tag).ok()?;
                Some(Literal::new_language_tagged_literal_unchecked(text, tag))
            }
        ),
        (text(), datatype).prop_map(|(text, datatype)| Literal::new_typed_literal(text, datatype)),
    ]
}

fn blank() -> impl Strategy<Value = BlankNode> {
    "(b[0-5]|x6|0a|a-b|_|a\\.b|é)".prop_map(BlankNode::new_unchecked)
}

fn triple() -> impl Strategy<Value = Triple> {
    let subject = prop_oneof![
        iri().prop_map(NamedOrBlankNode::from),
        blank().prop_map(NamedOrBlankNode::from)
    ];
    let object = prop_oneof![
        iri().prop_map(Term::from),
        blank().prop_map(Term::from),
        literal().prop_map(Term::from)
    ];
    (subject, iri(), object).prop_map(|(subject, predicate, object)| Triple {
        subject,
        predicate,
        object,
    })
}

/// Lists and rows of blank nodes, which Turtle writes in its own way.
fn shaped() -> impl Strategy<Value = Vec<Triple>> {
    (0_usize..45, any::<bool>(), proptest::collection::vec(triple(), 0..4)).prop_map(
        |(length, is_list, mut triples)| {
            let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
            let iri = |name: &str| NamedNode::new_unchecked(format!("{rdf}{name}"));
            let node = |number: usize| BlankNode::new_unchecked(format!("l{number}"));
            let root = NamedNode::new_unchecked("http://example.org/a");
            triples.push(Triple::new(root, iri("value"), node(0)));
            for number in 0..length {
                let (rest, first) = if is_list { ("rest", "first") } else { ("next", "is") };
                triples.push(Triple::new(node(number), iri(first), node(number + 1_000)));
                let next: Term = if number + 1 == length && is_list {
                    iri("nil").into()
                } else {
                    node(number + 1).into()
                };
                triples.push(Triple::new(node(number), iri(rest), next));
            }
            triples
        },
    )
}

fn lines(triples: &[Triple]) -> String {
    let mut lines: Vec<String> = triples.iter().map(|triple| format!("{triple} .\n")).collect();
    lines.sort();
    lines.dedup();
    lines.concat()
}

fn reads_back(triples: &[Triple]) -> Result<(), TestCaseError> {
    let lines = lines(triples);
    let expected = canonical(&graph_of(Syntax::NTriples, lines.as_bytes()).unwrap());
    for syntax in Syntax::ALL {
        let mut document = Vec::new();
        let options = WriteOptions::default();
        let written = write(syntax, lines.as_bytes(), &options, &mut document);
        prop_assert_eq!(written.is_ok(), can_write(syntax, lines.as_bytes()).is_ok());
        if written.is_err() {
            prop_assert_eq!(syntax, Syntax::RdfXml);
            continue;
        }
        let text = String::from_utf8_lossy(&document);
        match graph_of(syntax, &document) {
            Ok(found) => {
                prop_assert_eq!(canonical(&found), expected.clone(), "{}: {}", syntax, text);
            }
            Err(error) => prop_assert!(false, "{syntax}: {error}\n{text}"),
        }
        let mut again = Vec::new();
        write(syntax, lines.as_bytes(), &options, &mut again).unwrap();
        prop_assert_eq!(document, again);
    }
    Ok(())
}

proptest! {
    // Comparing graphs is what takes the time.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_graph_reads_back(triples in proptest::collection::vec(triple(), 0..12)) {
        reads_back(&triples)?;
    }

    #[test]
    fn lists_and_rows_read_back(triples in shaped()) {
        reads_back(&triples)?;
    }

    #[test]
    fn many_descriptions_read_back(
        descriptions in proptest::collection::vec(proptest::collection::vec(triple(), 0..5), 0..4),
    ) {
        // Blank nodes of different descriptions are different nodes.
        let mut expected = String::new();
        for (number, triples) in descriptions.iter().enumerate() {
            for triple in triples {
                let mut triple = triple.clone();
                if let NamedOrBlankNode::BlankNode(node) = &triple.subject {
                    triple.subject = BlankNode::new_unchecked(format!("q{number}_{}", node.as_str())).into();
                }
                if let Term::BlankNode(node) = &triple.object {
                    triple.object = BlankNode::new_unchecked(format!("q{number}_{}", node.as_str())).into();
                }
                let _ = writeln!(expected, "{triple} .");
            }
        }
        let expected = canonical(&graph_of(Syntax::NTriples, expected.as_bytes()).unwrap());
        'syntaxes: for syntax in Syntax::ALL {
            let mut document = Vec::new();
            let options = WriteOptions::default();
            let mut writer = Writer::new(syntax, &options, &mut document);
            for triples in &descriptions {
                if writer.description(lines(triples).as_bytes()).is_err() {
                    prop_assert_eq!(syntax, Syntax::RdfXml);
                    continue 'syntaxes;
                }
            }
            writer.finish().unwrap();
            match graph_of(syntax, &document) {
                Ok(found) => prop_assert_eq!(canonical(&found), expected.clone(), "{}", syntax),
                Err(error) => prop_assert!(false, "{syntax}: {error}\n{}", String::from_utf8_lossy(&document)),
            }
        }
    }
}

const LINES: &str = "<http://e/a> <http://e/2> <http://e/o> .\n";

#[test]
fn rdf_xml_is_not_offered_where_it_cannot_be_written() {
    for lines in [
        LINES,
        "<http://e/a> <http://e/p> \"\\u0001\" .\n",
        "<http://e/a> <http://e/p> \"\u{ffff}\" .\n",
        "<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#li> \"v\" .\n",
        "<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#about> \"v\" .\n",
        "<http://e/a> <http://www.w3.org/2000/xmlns/p> \"v\" .\n",
    ] {
        assert!(can_write(Syntax::RdfXml, lines.as_bytes()).is_err(), "{lines}");
        for syntax in Syntax::ALL.into_iter().filter(|syntax| *syntax != Syntax::RdfXml) {
            assert_eq!(can_write(syntax, lines.as_bytes()), Ok(()));
        }
    }
    let error = can_write(Syntax::RdfXml, LINES.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "RDF/XML cannot carry the description: the predicate `http://e/2` does not end in an XML \
         name, or has a meaning of its own there"
    );
}

#[test]
fn documents_are_written_as_people_would() {
    let lines = "<http://e/a> <http://e/list> _:b1 .\n\
        <http://e/a> <http://e/p> \"2026\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
        <http://e/a> <http://e/p> \"x\"^^<http://e/t> .\n\
        <http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C> .\n\
        _:b1 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> \"1\" .\n\
        _:b1 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> .\n";
    let prefixes = Prefixes::default().with("e", "http://e/").unwrap();
    let options = WriteOptions::default().with_prefixes(prefixes);
    let written = |syntax| {
        let mut document = Vec::new();
        write(syntax, lines.as_bytes(), &options, &mut document).unwrap();
        String::from_utf8(document).unwrap()
    };
    assert_eq!(
        written(Syntax::Turtle),
        "@prefix e: <http://e/> .\n\n\
         e:a\n  a e:C ;\n  e:list (\n    \"1\"\n  ) ;\n  e:p 2026 ,\n    \"x\"^^e:t .\n"
    );
    assert_eq!(
        written(Syntax::RdfXml),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n  \
           <rdf:Description rdf:about=\"http://e/a\" xmlns:e=\"http://e/\">\n    \
             <e:list rdf:nodeID=\"b1\"/>\n    \
             <e:p rdf:datatype=\"http://www.w3.org/2001/XMLSchema#integer\">2026</e:p>\n    \
             <e:p rdf:datatype=\"http://e/t\">x</e:p>\n    \
             <rdf:type rdf:resource=\"http://e/C\"/>\n  \
           </rdf:Description>\n  \
           <rdf:Description rdf:nodeID=\"b1\">\n    \
             <rdf:first>1</rdf:first>\n    \
             <rdf:rest rdf:resource=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#nil\"/>\n  \
           </rdf:Description>\n\
         </rdf:RDF>\n"
    );
    assert_eq!(written(Syntax::NTriples), lines);
    assert_eq!(
        written(Syntax::JsonLd).lines().take(5).collect::<Vec<_>>(),
        [
            "[",
            "  {",
            "    \"@id\": \"http://e/a\",",
            "    \"@type\": [\"http://e/C\"],",
            "    \"http://e/list\": [{\"@id\": \"_:b1\"}],",
        ]
    );
}

#[test]
fn an_empty_description_is_an_empty_document() {
    for syntax in Syntax::ALL {
        let mut document = Vec::new();
        write(syntax, b"", &WriteOptions::default(), &mut document).unwrap();
        assert_eq!(graph_of(syntax, &document).unwrap().len(), 0, "{syntax}");
    }
}

#[test]
fn prefixes_that_cannot_be_are_refused() {
    for prefix in ["", "1a", "a:b", "a b", "xmlx", "ns7", "é", "rdf"] {
        assert!(Prefixes::default().with(prefix, "http://e/").is_err(), "{prefix}");
    }
    assert!(Prefixes::default().with("nsx", "http://e/").is_ok());
}
