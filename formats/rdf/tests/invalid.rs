//! Statements that cannot be used, and language tags: the same in every syntax.

use abreast_rdf::{LeftOut, ReadError, ReadOptions, Statement, Syntax, read, write_statement};
use std::ops::ControlFlow;

const SYNTAXES: [Syntax; 6] = [
    Syntax::NTriples,
    Syntax::NQuads,
    Syntax::Turtle,
    Syntax::TriG,
    Syntax::RdfXml,
    Syntax::JsonLd,
];

/// The object of the second statement.
#[derive(Clone, Copy)]
enum Object<'a> {
    Iri(&'a str),
    Tagged(&'a str),
    Typed(&'a str),
}

/// A document of three statements.
fn document(syntax: Syntax, object: Object<'_>) -> String {
    let (a, p, b) = ("http://h/a", "http://h/p", "http://h/b");
    match syntax {
        Syntax::JsonLd => {
            let object = match object {
                Object::Tagged(tag) => format!(r#"{{"@value": "x", "@language": "{tag}"}}"#),
                Object::Iri(iri) => format!(r#"{{"@id": "{iri}"}}"#),
                Object::Typed(iri) => format!(r#"{{"@type": "{iri}", "@value": "x"}}"#),
            };
            // What no context maps is no statement.
            let note = r#"{"http://h/q": [{"@value": "x", "@language": "E_N"}, {"@id": "a b"},
                {"@type": "a b", "@value": "x"}]}"#;
            format!(
                r#"[{{"@id": "{a}", "note": {note}, "{p}": [{{"@id": "{b}"}}, {object}, "1"]}}]"#
            )
        }
        Syntax::RdfXml => {
            let object = match object {
                Object::Tagged(tag) => format!("<h:p xml:lang='{tag}'>x</h:p>"),
                Object::Iri(iri) => format!("<h:p r:resource='{iri}'/>"),
                Object::Typed(iri) => format!("<h:p r:datatype='{iri}'>x</h:p>"),
            };
            format!(
                "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:h='http://h/'>\
                 <r:Description r:about='{a}'><h:p r:resource='{b}'/>{object}<h:p>1</h:p></r:Description></r:RDF>"
            )
        }
        Syntax::Turtle | Syntax::TriG => {
            let object = match object {
                Object::Tagged(tag) => format!("'''x''' # comment\n@{tag}"),
                Object::Iri(iri) => format!("<{iri}>"),
                Object::Typed(iri) => format!("\"x\"^^<{iri}>"),
            };
            format!("<{a}> <{p}> <{b}>, {object}, '1' .\n")
        }
        _ => {
            let object = match object {
                Object::Tagged(tag) => format!("\"x\"@{tag}"),
                Object::Iri(iri) => format!("<{iri}>"),
                Object::Typed(iri) => format!("\"x\"^^<{iri}>"),
            };
            format!("<{a}> <{p}> <{b}> .\n<{a}> <{p}> {object} .\n<{a}> <{p}> \"1\" .\n")
        }
    }
}

/// The statements of a document as lines.
fn lines(syntax: Syntax, text: &str, left_out: Option<LeftOut>) -> Result<String, ReadError> {
    let mut options = ReadOptions::default().with_base("http://h/base");
    options.left_out = left_out;
    let mut lines = Vec::new();
    read(syntax, text.as_bytes(), &options, &mut |quad| {
        write_statement(quad.into(), &mut lines);
        ControlFlow::Continue(())
    })?;
    Ok(String::from_utf8(lines).expect("lines are UTF-8"))
}

#[test]
fn every_syntax_refuses_and_leaves_out_the_same() {
    let cases = [
        (Object::Iri("http://h/a|b"), "`http://h/a|b` is not an IRI"),
        (Object::Iri("http://h:port/"), "`http://h:port/` is not an IRI"),
        (Object::Typed("http://h/a|b"), "`http://h/a|b` is not an IRI"),
        (Object::Tagged("en_US"), "`en_US` is not a language tag"),
        (Object::Tagged("toolonglanguage"), "`toolonglanguage` is not a language tag"),
        (Object::Tagged("1en"), "`1en` is not a language tag"),
        (Object::Tagged("en-"), "`en-` is not a language tag"),
        (Object::Tagged("en--US"), "`en--US` is not a language tag"),
        (Object::Tagged("en-GB-oed-toolonglanguage"), "is not a language tag"),
        (Object::Tagged("fran\u{e7}ais"), "`fran\u{e7}ais` is not a language tag"),
    ];
    for syntax in SYNTAXES {
        for (object, named) in cases {
            let text = document(syntax, object);
            let left_out = LeftOut::default();
            let used = lines(syntax, &text, Some(left_out.of("d"))).unwrap();
            let case = format!("{syntax:?} {text} {:?}", left_out.first());
            assert_eq!((used.lines().count(), left_out.count()), (2, 1), "{case}");
            let by_line = matches!(syntax, Syntax::NTriples | Syntax::NQuads);
            let expected = if by_line { "d: line 2" } else { named };
            assert!(left_out.first()[0].contains(expected), "{case}");
            let error = lines(syntax, &text, None).unwrap_err();
            let fault = error.syntax().unwrap();
            assert!(fault.code().starts_with("rdf."), "{case}: {error}");
            if matches!(object, Object::Tagged(_)) {
                assert!(fault.message().ends_with(named), "{case}: {error}");
                assert_eq!(fault.code(), "rdf.language", "{case}: {error}");
            }
            if syntax == Syntax::JsonLd {
                assert!(fault.message().contains("<http://h/a> <http://h/p> "), "{error}");
                assert!(fault.message().contains(named), "{error}");
            }
        }
    }
}

#[test]
fn language_tags_are_read_as_they_are_written() {
    for syntax in SYNTAXES {
        for tag in ["en-GB", "DE", "zh-Hans-CN", "en"] {
            for left_out in [None, Some(LeftOut::default())] {
                let text = document(syntax, Object::Tagged(tag));
                let lines = lines(syntax, &text, left_out).unwrap();
                assert_eq!(lines.lines().count(), 3, "{syntax:?} {lines}");
                let line = lines.lines().nth(1).unwrap();
                assert!(line.ends_with(&format!(" \"x\"@{tag} .")), "{syntax:?} {line}");
                let triple = Statement::parse(line.as_bytes()).unwrap().to_triple().unwrap();
                let mut again = Vec::new();
                write_statement(triple.as_ref(), &mut again);
                assert_eq!(String::from_utf8(again).unwrap().trim_end(), line);
            }
        }
    }
}

/// Tags wherever literals may be, among strings and comments that look like them.
#[test]
fn each_tag_is_put_back_into_its_own_literal() {
    let turtle = "@prefix e: <http://e/> . # \"@NO\n\
        e:a e:p \"1\"@EN, '2'@en, \"\"\"3\"@NO \"\"\" @De-AT, \"\" @FR , ''@fr ; \
        e:q [ e:r \"4\"@Es ; e:s ( \"5\"@PT '6' \"7\"@pt [ e:t '8'@It ] ) ], \"9@NO\", \"a\\\"@NO\" .\n\
        ( \"b\"@NL ) e:u \"c\"^^e:d, \"d\"@X-y.\n";
    let expected = [
        ("1", "EN"),
        ("2", "en"),
        ("3\\\"@NO ", "De-AT"),
        ("", "FR"),
        ("", "fr"),
        ("4", "Es"),
        ("5", "PT"),
        ("7", "pt"),
        ("8", "It"),
        ("b", "NL"),
        ("d", "X-y"),
    ];
    for syntax in [Syntax::Turtle, Syntax::TriG] {
        for left_out in [None, Some(LeftOut::default())] {
            let lines = lines(syntax, turtle, left_out).unwrap();
            for (value, tag) in expected {
                assert!(lines.contains(&format!(" \"{value}\"@{tag} .\n")), "{value} {lines}");
            }
            let tagged = lines.matches("\"@").count() - lines.matches("\\\"@").count();
            assert_eq!(tagged, expected.len(), "{lines}");
        }
    }
    let graph = "<http://e/a> <http://e/p> \"x\"@EN-gb<http://e/g>.\n\
                 <http://e/a> <http://e/p> \"x\"@EN _:g .\n<http://e/a> <http://e/p> \"x\"@FR_:g .\n";
    for left_out in [None, Some(LeftOut::default())] {
        let lines = lines(Syntax::NQuads, graph, left_out).unwrap();
        let tags: Vec<_> = lines.lines().map(|line| line.rsplit('@').next().unwrap()).collect();
        assert_eq!(tags, ["EN-gb .", "EN .", "FR ."]);
    }
}

#[test]
fn tags_of_json_ld_with_the_same_text_are_apart() {
    let json = r#"{"@context": {"@language": "DE", "m": {"@id": "http://e/m", "@container": "@language"}},
        "@id": "http://e/a", "http://e/p": ["x", {"@value": "x", "@language": "de"}, {"@id": "_:b", "http://e/p": "x"}],
        "m": {"en-GB": ["y", "z"], "EN": "w"}, "_:q": {"@id": "http://e/c", "http://e/p": {"@value": "v", "@language": "FR"}}}"#;
    let lines = lines(Syntax::JsonLd, json, None).unwrap();
    for part in ["\"x\"@DE .", "\"x\"@de .", "\"y\"@en-GB .", "\"z\"@en-GB .", "\"w\"@EN ."] {
        assert!(lines.contains(part), "{part} {lines}");
    }
    assert_eq!(lines.matches("\"x\"@DE .").count(), 2, "{lines}");
}

/// What is about a named node is never dropped without notice, also behind or inside a key that no context maps.
#[test]
fn named_nodes_of_unmapped_keys_hide_no_fault() {
    let bad = r#""http://h/z": {"@id": "http://h/a b"}"#;
    for (before, count) in [
        (r#""_links": {"self": {"@id": "http://h/a"}}"#, 1),
        (r#""_links": {"@id": "http://h/a"}, "http://h/y": {"@id": "http://h/b"}"#, 1),
        (r#""_x": {"@id": "http://h/b", "http://h/q": {"@id": "c d"}}"#, 2),
    ] {
        let text = format!(r#"{{"@id": "http://h/a", {before}, {bad}}}"#);
        let error = lines(Syntax::JsonLd, &text, None).unwrap_err();
        assert!(error.to_string().contains("is not an IRI"), "{error}");
        let left_out = LeftOut::default();
        lines(Syntax::JsonLd, &text, Some(left_out.of("d"))).unwrap();
        assert_eq!(left_out.count(), count, "{text}");
    }
}

/// A tag ends where the grammar ends it: what follows without white space is another term, or refused.
#[test]
fn what_follows_a_tag_is_not_part_of_it() {
    let text =
        "@prefix : <http://e/> . <http://e/a> <http://e/p> (\"x\"@EN+1 \"y\"@de-DE\"z\"@FR:b) .";
    for syntax in [Syntax::Turtle, Syntax::TriG] {
        for left_out in [None, Some(LeftOut::default())] {
            let lines = lines(syntax, text, left_out.clone()).unwrap();
            for part in ["\"x\"@EN .", "\"y\"@de-DE .", "\"z\"@FR .", "<http://e/b> ."] {
                assert!(lines.contains(part), "{part} {lines}");
            }
            assert!(left_out.is_none_or(|left_out| left_out.count() == 0));
        }
        let strict = lines(syntax, &text.replace("@FR:b", "@FR1"), None).unwrap();
        assert!(strict.contains("\"z\"@FR ."), "{strict}");
        let odd = text.replace("@FR:b", "@FR\u{e9}:b");
        assert!(lines(syntax, &odd, Some(LeftOut::default())).is_err());
    }
}

/// What refuses the document as a whole is named first: the option would not help.
#[test]
fn the_option_is_named_only_where_it_helps() {
    let value = r#""http://h/p": {"@type": "http://h/a b", "@value": "x"}"#;
    for (text, is_helped) in [
        (format!(r#"{{"@id": "http://h/a", {value}}}"#), true),
        (format!(r#"{{"@id": "http://h/a", {value}, "http://h/q": {{"@id": 1}}}}"#), false),
        (
            r#"{"@context": {"t": {"@id": "http://h/t", "@type": "http://h/a b"}}, "@id": "http://h/a", "t": "x"}"#
                .to_owned(),
            false,
        ),
    ] {
        let strict = lines(Syntax::JsonLd, &text, None).unwrap_err();
        let help = strict.syntax().unwrap().help().unwrap_or_default();
        assert_eq!(help.contains("--leave-out-invalid"), is_helped, "{text} {strict}");
        let lenient = lines(Syntax::JsonLd, &text, Some(LeftOut::default()));
        assert_eq!(lenient.is_ok(), is_helped, "{text} {lenient:?}");
    }
}

#[test]
fn the_base_of_documents_without_one_is_not_shown() {
    let shown = |text: &str, left_out: Option<LeftOut>| {
        let mut options = ReadOptions::default();
        options.left_out.clone_from(&left_out);
        let read = read(Syntax::JsonLd, text.as_bytes(), &options, &mut |quad| {
            assert!(!quad.to_string().contains("no-base"), "{quad}");
            ControlFlow::Continue(())
        });
        let error = read.err().map(|error| error.to_string());
        format!("{error:?} {:?}", left_out.map(|left_out| left_out.first()))
    };
    for (text, named) in [
        (r#"{"@id": "x y", "http://h/p": "1"}"#, "`x y`"),
        (r#"{"@id": "x", "http://h/p": "1"}"#, "`x`"),
        (r#"{"@id": "//x", "http://h/p": "1"}"#, "`//x`"),
        (r#"{"@id": "//x y", "http://h/p": "1"}"#, "`//x y`"),
        (r#"{"http://h/p": {"@id": "/x|y"}}"#, "`x|y`"),
        (r#"{"http://h/p": {"@type": "x y", "@value": "1"}}"#, "`x y`"),
        (r#"{"@context": "x.jsonld", "http://h/p": "1"}"#, "`x.jsonld`"),
        (r#"{"@context": {"@import": "x.jsonld"}, "http://h/p": "1"}"#, "x.jsonld"),
        (r#"{"@context": {"@base": "x y"}, "@id": "", "http://h/p": "1"}"#, "x y"),
    ] {
        for left_out in [None, Some(LeftOut::default())] {
            let shown = shown(text, left_out);
            assert!(!shown.contains("no-base") && !shown.contains("//document"), "{text} {shown}");
            assert!(shown.contains(named), "{text} {shown}");
        }
    }
}

#[test]
fn a_context_that_leads_to_itself_is_named() {
    for (one, other) in [("http://h/1", "http://h/x"), ("http://h/2", "http://h/1"), ("1", "x")] {
        let context = |iri: &str| format!(r#"{{"@context": ["{iri}", {{}}]}}"#);
        let contexts = abreast_rdf::Contexts::none()
            .with("http://h/1", &context(one))
            .with("http://h/2", &context(other));
        let options = ReadOptions::default().with_contexts(contexts);
        let text = r#"{"@context": "http://h/1", "http://h/p": "1"}"#;
        let read =
            read(Syntax::JsonLd, text.as_bytes(), &options, &mut |_| ControlFlow::Continue(()));
        let error = read.unwrap_err();
        assert!(error.to_string().contains("the context `http://h/"), "{error}");
        assert!(error.to_string().contains("refers to itself"), "{error}");
        assert!(error.syntax().unwrap().help().is_some());
    }
}
