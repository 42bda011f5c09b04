//! RDF/XML: each construct with the smallest document that shows it, and what is refused.
#![allow(clippy::unwrap_used)]

mod graphs;

use abreast_rdf::{ReadError, ReadOptions, Syntax, read};
use graphs::{canonical, graph_of, statements};
use std::fmt::Write as _;
use std::ops::ControlFlow;

const HEAD: &str = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
    xmlns:e='http://e/' xml:base='http://e/doc'>";

fn document(inside: &str) -> String {
    format!("{HEAD}{inside}</rdf:RDF>")
}

/// The statements inside, with `e:` for `http://e/` and `r:` for that of RDF.
#[track_caller]
fn same(inside: &str, expected: &str) {
    let expected = expected
        .replace("<r:", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#")
        .replace("<e:", "<http://e/");
    let found = graph_of(Syntax::RdfXml, document(inside).as_bytes()).unwrap();
    let expected = graph_of(Syntax::NTriples, expected.as_bytes()).unwrap();
    assert_eq!(canonical(&found), canonical(&expected), "{inside}");
}

#[track_caller]
fn refused(document: &str) -> (String, u64, u64) {
    let read = read(Syntax::RdfXml, document.as_bytes(), &ReadOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    let Err(ReadError::Syntax(error)) = read else { panic!("{document}: {read:?}") };
    (error.code().to_owned(), error.line(), error.column())
}

#[test]
fn nodes_are_named_typed_and_nested() {
    same(
        "<rdf:Description rdf:about='a'><e:p rdf:resource='#b'/></rdf:Description>",
        "<e:a> <e:p> <e:doc#b> .",
    );
    same("<e:C rdf:ID='x'/>", "<e:doc#x> <r:type> <e:C> .");
    same(
        "<e:C rdf:about=''><e:p><e:D rdf:nodeID='n.'/></e:p><e:q rdf:nodeID='n.'/></e:C>",
        "<e:doc> <r:type> <e:C> .\n<e:doc> <e:p> _:n .\n_:n <r:type> <e:D> .\n<e:doc> <e:q> _:n .",
    );
    same("<rdf:Description rdf:about='http://e/a/../b' e:p='v'/>", "<e:a/../b> <e:p> \"v\" .");
}

#[test]
fn attributes_state_properties_and_types() {
    same(
        "<rdf:Description rdf:about='a' rdf:type='C' e:p='v' xml:lang='DE' e:q=' '/>",
        "<e:a> <r:type> <e:C> .\n<e:a> <e:p> \"v\"@DE .\n<e:a> <e:q> \" \"@DE .",
    );
    same(
        "<rdf:Description rdf:about='a'><e:p e:q='v' rdf:type='C'/></rdf:Description>",
        "<e:a> <e:p> _:x .\n_:x <e:q> \"v\" .\n_:x <r:type> <e:C> .",
    );
    same(
        "<rdf:Description rdf:about='a'><e:p rdf:resource='b' e:q='v'></e:p></rdf:Description>",
        "<e:a> <e:p> <e:b> .\n<e:b> <e:q> \"v\" .",
    );
}

#[test]
fn literals_have_languages_and_datatypes() {
    same(
        "<rdf:Description rdf:about='a' xml:lang='en'><e:p>x &amp; <![CDATA[<y>]]></e:p>\
         <e:p xml:lang=''>x</e:p><e:p/><e:q rdf:datatype='http://e/t'> 1&#13;</e:q></rdf:Description>",
        "<e:a> <e:p> \"x & <y>\"@en .\n<e:a> <e:p> \"x\" .\n<e:a> <e:p> \"\"@en .\n\
         <e:a> <e:q> \" 1\\r\"^^<e:t> .",
    );
}

#[test]
fn members_are_numbered_for_each_node() {
    same(
        "<rdf:Seq rdf:about='a'><rdf:li>1</rdf:li><rdf:_7>7</rdf:_7><rdf:li rdf:parseType='Resource'>\
         <rdf:li>in</rdf:li></rdf:li></rdf:Seq>",
        "<e:a> <r:type> <r:Seq> .\n<e:a> <r:_1> \"1\" .\n<e:a> <r:_7> \"7\" .\n<e:a> <r:_2> _:x .\n\
         _:x <r:_1> \"in\" .",
    );
}

#[test]
fn collections_become_lists() {
    same(
        "<rdf:Description rdf:about='a'><e:p rdf:parseType='Collection'>\
         <rdf:Description rdf:about='b'/><e:C/></e:p><e:q rdf:parseType='Collection'/></rdf:Description>",
        "<e:a> <e:p> _:1 .\n_:1 <r:first> <e:b> .\n_:1 <r:rest> _:2 .\n_:2 <r:first> _:3 .\n\
         _:3 <r:type> <e:C> .\n_:2 <r:rest> <r:nil> .\n<e:a> <e:q> <r:nil> .",
    );
}

#[test]
fn statements_with_an_id_are_described() {
    same(
        "<rdf:Description rdf:about='a'><e:p rdf:ID='s'>v</e:p></rdf:Description>",
        "<e:a> <e:p> \"v\" .\n<e:doc#s> <r:type> <r:Statement> .\n<e:doc#s> <r:subject> <e:a> .\n\
         <e:doc#s> <r:predicate> <e:p> .\n<e:doc#s> <r:object> \"v\" .",
    );
}

#[test]
fn xml_literals_keep_their_namespaces() {
    same(
        "<rdf:Description rdf:about='a' xmlns='urn:d' xmlns:k='urn:k'><e:p rdf:parseType='Literal'>a &lt; \
         <b z:c='&quot;' d='' xmlns:z='urn:z'><k:i/><!-- n --></b><?t d?></e:p></rdf:Description>",
        "<e:a> <e:p> \"a &lt; <b xmlns=\\\"urn:d\\\" xmlns:z=\\\"urn:z\\\" d=\\\"\\\" z:c=\\\"&quot;\\\">\
         <k:i xmlns:k=\\\"urn:k\\\"></k:i><!-- n --></b><?t d?>\"^^<r:XMLLiteral> .",
    );
    same(
        "<rdf:Description rdf:about='a'><e:p rdf:parseType='other'/></rdf:Description>",
        "<e:a> <e:p> \"\"^^<r:XMLLiteral> .",
    );
}

#[test]
fn the_root_may_be_a_node() {
    let document = "<e:C xmlns:e='http://e/' xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
        rdf:about='http://e/a'/>";
    assert_eq!(graph_of(Syntax::RdfXml, document.as_bytes()).unwrap().len(), 1);
}

#[test]
fn flat_entities_are_replaced() {
    let document = "<?xml version=\"1.0\"?>\n<!DOCTYPE rdf:RDF [\n  <!-- as ontology editors write -->\n  \
        <!ENTITY ex \"http://s.example/\" >\n  <!ENTITY q 'a&amp;b'>\n]>\n<rdf:RDF \
        xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:ex=\"&ex;\">\
        <rdf:Description rdf:about=\"&ex;a\"><ex:p>&q;&ex;</ex:p></rdf:Description></rdf:RDF>";
    assert_eq!(
        statements(Syntax::RdfXml, document.as_bytes()).unwrap(),
        ["<http://s.example/a> <http://s.example/p> \"a&bhttp://s.example/\""]
    );
}

#[test]
fn other_doctypes_are_refused() {
    for inside in [
        "<!DOCTYPE a SYSTEM 'file:///etc/hostname'>",
        "<!DOCTYPE a PUBLIC 'p' 's' []>",
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>",
        "<!DOCTYPE a [<!ENTITY % x 'y'> %x;]>",
        "<!DOCTYPE a [<!ENTITY b 'ha'><!ENTITY c '&b;&b;'>]>",
        "<!DOCTYPE a [<!ENTITY b '<e:C/>'>]>",
        "<!DOCTYPE a [<!ENTITY b '&#60;e:C/>'>]>",
        "<!DOCTYPE a [<!ATTLIST a b CDATA 'c'>]>",
        "<!DOCTYPE a [%x;]>",
    ] {
        assert_eq!(refused(&format!("{inside}{}", document(""))).0, "xml.doctype", "{inside}");
    }
}

#[test]
fn entities_do_not_make_documents_huge() {
    let mut document = format!("<!DOCTYPE a [<!ENTITY b '{}'>]>{HEAD}", "x".repeat(1_000));
    for number in 0..100 {
        let _ = write!(document, "<e:C e:p{number}='{}'/>", "&b;".repeat(100));
    }
    document.push_str("</rdf:RDF>");
    assert_eq!(refused(&document).0, "xml.doctype");
}

#[test]
fn what_the_grammar_excludes_is_refused() {
    for inside in [
        "<rdf:Description rdf:aboutEach='a'/>",
        "<rdf:Description rdf:aboutEachPrefix='a'/>",
        "<rdf:Description rdf:bagID='a'/>",
        "<rdf:Description rdf:about='a' rdf:ID='b'/>",
        "<rdf:Description rdf:nodeID='a' rdf:ID='b'/>",
        "<rdf:Description rdf:ID='1a'/>",
        "<rdf:Description rdf:nodeID='a:b'/>",
        "<rdf:Description rdf:ID='a'/><rdf:Description rdf:ID='a'/>",
        "<rdf:Description rdf:li='a'/>",
        "<rdf:Description rdf:resource='a'/>",
        "<rdf:Description p='a'/>",
        "<rdf:Description xml:lang='not a tag'/>",
        "<rdf:li/>",
        "<rdf:ID/>",
        "<C/>",
        "text",
        "<rdf:RDF/>",
        "<e:C><rdf:Description/></e:C>",
        "<e:C><e:p rdf:about='a'/></e:C>",
        "<e:C><e:p rdf:resource='a' rdf:nodeID='b'/></e:C>",
        "<e:C><e:p rdf:resource='a'>text</e:p></e:C>",
        "<e:C><e:p rdf:resource='a'><e:D/></e:p></e:C>",
        "<e:C><e:p rdf:parseType='Resource' rdf:resource='a'/></e:C>",
        "<e:C><e:p rdf:parseType='Literal' rdf:datatype='a'/></e:C>",
        "<e:C><e:p rdf:datatype='a'><e:D/></e:p></e:C>",
        "<e:C><e:p rdf:datatype='a' e:q='b'/></e:C>",
        "<e:C><e:p>text<e:D/></e:p></e:C>",
        "<e:C><e:p><e:D/>text</e:p></e:C>",
        "<e:C><e:p><e:D/><e:D/></e:p></e:C>",
        "<e:C>text<e:p/></e:C>",
        "<e:C><e:p rdf:parseType='Collection'>text</e:p></e:C>",
        "<rdf:Description rdf:about='http://e/a b'/>",
        "<e:C",
        "<e:C>",
        "<x:C/>",
    ] {
        refused(&document(inside));
    }
}

#[test]
fn faults_have_a_place_and_a_help() {
    assert_eq!(refused(&document("\n <rdf:li/>")), ("rdf.syntax".to_owned(), 2, 2));
    let relative = "<rdf:Description rdf:about='a' \
        xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>";
    assert_eq!(refused(relative), ("rdf.iri".to_owned(), 1, 1));
    let deep = document(&"<e:C><e:p>".repeat(200));
    assert_eq!(refused(&deep).0, "xml.depth");
}
