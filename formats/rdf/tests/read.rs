//! What `read` accepts and refuses in each syntax, and the limits.
#![allow(clippy::unwrap_used)]

mod graphs;

use abreast_rdf::{
    Contexts, ReadError, ReadLimits, ReadOptions, Syntax, read, read_lines, write_statement,
};
use graphs::{graph_of, statements};
use std::fmt::Write as _;
use std::ops::ControlFlow;

fn fault(syntax: Syntax, document: impl AsRef<[u8]>, options: &ReadOptions) -> (String, u64, u64) {
    let read = read(syntax, document.as_ref(), options, &mut |_| ControlFlow::Continue(()));
    let Err(ReadError::Syntax(error)) = read else { panic!("{read:?}") };
    (error.code().to_owned(), error.line(), error.column())
}

fn refused(syntax: Syntax, document: impl AsRef<[u8]>) -> (String, u64, u64) {
    fault(syntax, document, &ReadOptions::default())
}

#[test]
fn every_syntax_reads_the_same_statement() {
    for (syntax, document) in [
        (Syntax::NTriples, "<http://e/a> <http://e/p> \"v\"@EN .\n"),
        (Syntax::NQuads, "<http://e/a> <http://e/p> \"v\"@EN .\n"),
        (Syntax::Turtle, "@prefix e: <http://e/> .\ne:a e:p 'v'@EN ."),
        (Syntax::TriG, "@prefix e: <http://e/> . { e:a e:p 'v'@EN }"),
        (
            Syntax::RdfXml,
            "<rdf:Description xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
             xmlns:e='http://e/' rdf:about='http://e/a'><e:p xml:lang='EN'>v</e:p></rdf:Description>",
        ),
        (
            Syntax::JsonLd,
            r#"{"@id": "http://e/a", "http://e/p": {"@value": "v", "@language": "EN"}}"#,
        ),
    ] {
        for mark in ["", "\u{feff}"] {
            let seen = statements(syntax, format!("{mark}{document}").as_bytes()).unwrap();
            assert_eq!(seen, ["<http://e/a> <http://e/p> \"v\"@EN"], "{syntax}");
        }
    }
}

#[test]
fn bad_iris_are_refused_with_their_place() {
    for (text, column) in [
        ("<http://e/a b> <http://e/p> \"v\" .", 1),
        ("<rel> <http://e/p> \"v\" .", 1),
        ("<http://e/a> <http://e/p> <http://e/\\uD800> .", 37),
    ] {
        let (code, line, at) = refused(Syntax::NTriples, format!("# first\r\n\n{text}\n"));
        assert_eq!((line, at), (3, column), "{text} {code}");
    }
    assert_eq!(refused(Syntax::Turtle, "<a> <b> <c> ."), ("rdf.iri".to_owned(), 1, 1));
    // Characters of names that no IRI may have.
    for name in ["\u{fffd}", "\u{1fffe}", "\u{e01ef}"] {
        let text = format!("@prefix e: <http://e/> . e:{name} e:p e:o .");
        assert_eq!(refused(Syntax::Turtle, text).0, "rdf.iri");
    }
}

#[test]
fn places_are_right_far_into_a_document() {
    for (line_end, lines) in [("\n", 20_000), ("\r\n", 20_000), ("\r", 20_000)] {
        let good = format!("<http://example.org/a> <http://example.org/p> \"v\" .{line_end}");
        let document = format!("{}  oops{line_end}{}", good.repeat(lines), good.repeat(10));
        let (_, line, column) = refused(Syntax::NTriples, document);
        assert_eq!((line, column), (lines as u64 + 1, 3), "{line_end:?}");
    }
}

#[test]
fn input_in_small_pieces_reads_the_same() {
    struct Pieces<'a>(&'a [u8]);
    impl std::io::Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(3);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }
    let line = "<http://e/a> <http://e/p> \"é\\u00e9 \u{10ffff}\" .\n";
    for syntax in [Syntax::NTriples, Syntax::NQuads, Syntax::Turtle, Syntax::TriG] {
        let document = line.repeat(20_000);
        let mut seen = 0;
        read(syntax, Pieces(document.as_bytes()), &ReadOptions::default(), &mut |_| {
            seen += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, 20_000, "{syntax}");
    }
}

#[test]
fn a_document_cut_short_is_refused() {
    for (syntax, document) in [
        (Syntax::NTriples, "<http://e/a> <http://e/p> \"v\" .\n<http://e/a> <http"),
        (Syntax::NTriples, "<http://e/a> <http://e/p> \"v\""),
        (Syntax::Turtle, "<http://e/a> <http://e/p> \"v\" , "),
        (Syntax::TriG, "<http://e/g> { <http://e/a> <http://e/p> \"v\" . "),
        (Syntax::JsonLd, r#"{"@id": "http://e/a", "http://e/p": "v""#),
        (Syntax::RdfXml, ""),
    ] {
        refused(syntax, document);
    }
}

#[test]
fn blank_nodes_of_numbered_documents_are_apart() {
    let options = ReadOptions::default().with_document(7);
    let mut seen = Vec::new();
    read(Syntax::NQuads, &b"_:a <http://e/p> _:b _:g .\n"[..], &options, &mut |quad| {
        seen.push(quad.to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, ["_:d7_a <http://e/p> _:d7_b _:d7_g"]);
}

#[test]
fn reading_ends_when_the_visitor_breaks() {
    for (syntax, document) in [
        (Syntax::NTriples, "<http://e/a> <http://e/p> 'not read'".to_owned()),
        (Syntax::Turtle, "<http://e/a> <http://e/p> 'v' . oops".to_owned()),
    ] {
        let document = format!("<http://e/a> <http://e/p> \"v\" .\n{document}");
        read(syntax, document.as_bytes(), &ReadOptions::default(), &mut |_| ControlFlow::Break(()))
            .unwrap();
    }
}

#[test]
fn relative_iris_need_a_base() {
    let options = ReadOptions::default().with_base("http://e/dir/doc");
    for (syntax, document) in [
        (Syntax::Turtle, "<a> <p> <../b> ."),
        (Syntax::TriG, "<a> <p> <../b> ."),
        (Syntax::JsonLd, r#"{"@id": "a", "http://e/dir/p": {"@id": "../b"}}"#),
    ] {
        let mut seen = Vec::new();
        read(syntax, document.as_bytes(), &options, &mut |quad| {
            seen.push(quad.to_string());
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, ["<http://e/dir/a> <http://e/dir/p> <http://e/b>"], "{syntax}");
    }
    let options = ReadOptions::default().with_base("dir");
    assert_eq!(fault(Syntax::Turtle, "", &options).0, "rdf.iri");
}

#[test]
fn relative_iris_of_json_ld_are_refused_without_a_base() {
    for (document, place) in [
        (r#"{"@id": "a", "http://e/p": "v"}"#, (1, 9)),
        // Resolved, it is not what is written.
        (r#"{"@id": "http://e/a", "http://e/p": {"@id": "../b"}}"#, (0, 0)),
        (r#"{"@id": "http://e/a", "http://e/p": {"@id": "//b/c"}}"#, (1, 45)),
        (r#"{"@id": "http://e/a", "@type": "Person"}"#, (1, 32)),
        (r#"{"@id": "g", "@graph": [{"@id": "http://e/a", "http://e/p": "v"}]}"#, (1, 9)),
    ] {
        let (code, line, column) = refused(Syntax::JsonLd, document);
        assert_eq!((code.as_str(), (line, column)), ("rdf.iri", place), "{document}");
    }
    let document =
        r#"{"@context": {"@base": "http://e/"}, "@id": "a", "http://e/p": "v", "note": 1}"#;
    let mut seen = Vec::new();
    read(Syntax::JsonLd, document.as_bytes(), &ReadOptions::default(), &mut |quad| {
        seen.push(quad.to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, ["<http://e/a> <http://e/p> \"v\""]);
}

#[test]
fn long_tokens_and_deep_nesting_are_refused() {
    let mut limits = ReadLimits::default();
    limits.token_length = 300 << 10;
    limits.depth = 20;
    limits.json_ld_length = 400 << 10;
    let options = ReadOptions::default().with_limits(limits);
    let long = "x".repeat(301 << 10);
    let triple = format!("<http://e/a> <http://e/p> \"{long}\" .\n");
    for syntax in [Syntax::NTriples, Syntax::NQuads, Syntax::Turtle, Syntax::TriG] {
        assert_eq!(fault(syntax, &triple, &options).0, "rdf.size", "{syntax}");
    }
    let xml = format!("<e:C xmlns:e='http://e/'><e:p>{long}</e:p></e:C>");
    assert_eq!(fault(Syntax::RdfXml, xml, &options).0, "xml.size");
    let json = format!("[{}]", " ".repeat(500 << 10));
    assert_eq!(fault(Syntax::JsonLd, json, &options).0, "rdf.size");

    let deep = format!("<http://e/a> <http://e/p>\n{}", "[ <http://e/p> ".repeat(21));
    assert_eq!(fault(Syntax::Turtle, deep, &options), ("rdf.depth".to_owned(), 2, 301));
    assert_eq!(fault(Syntax::JsonLd, "[".repeat(600), &options).0, "rdf.depth");
    // Brackets in strings, IRIs, comments and escapes are text.
    let flat = "# [[[[[[[[[[[[[[[[[[[[[[[[\n<http://e/a(((((((((((((((((((((((> <http://e/p> \
        \"[[[[[[[[[[[[[[[[[[[[[[[[\", '''[[[[''[[[[[[[[[[[[[[[[[[[[\\'''', \"\", '[' .\n\
        @prefix e: <http://e/> . e:a\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\(\\( e:p e:b .";
    read(Syntax::Turtle, flat.as_bytes(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
}

#[test]
fn long_tokens_in_short_reads_take_linear_time() {
    let long = "x".repeat(8 << 20);
    let document = format!("<http://e/a> <http://e/p> \"{long}\" .\n");
    for syntax in [Syntax::NTriples, Syntax::Turtle] {
        let reader = std::io::BufReader::with_capacity(512, document.as_bytes());
        let mut seen = 0;
        read(syntax, reader, &ReadOptions::default(), &mut |_| {
            seen += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, 1);
    }
}

#[test]
fn json_ld_contexts_come_from_the_list_only() {
    let document = "{\n  \"@context\": \"http://169.254.169.254/latest/meta-data\",\n  \"a\": 1}";
    let error = fault(Syntax::JsonLd, document, &ReadOptions::default());
    assert_eq!(error, ("jsonld.context".to_owned(), 2, 16));

    let contexts =
        Contexts::none().with("https://e/c", r#"{"@context": {"name": "http://e/name"}}"#);
    let options = ReadOptions::default().with_contexts(contexts);
    let document = r#"{"@context": "https://e/c", "@id": "http://e/a", "name": "A"}"#;
    let mut seen = Vec::new();
    read(Syntax::JsonLd, document.as_bytes(), &options, &mut |quad| {
        seen.push(quad.to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, ["<http://e/a> <http://e/name> \"A\""]);
}

#[test]
fn contexts_as_deep_as_allowed_fit_the_stack_of_a_thread() {
    let mut chain = String::from("\"t0\": \"http://e/\"");
    for number in 1..64 {
        let _ = write!(chain, ", \"t{number}\": {{\"@id\": \"t{}:x\"}}", number - 1);
    }
    let mut nested = String::from("{\"a\": \"http://e/\"}");
    for _ in 0..60 {
        nested = format!("{{\"a\": {{\"@id\": \"http://e/a\", \"@context\": {nested}}}}}");
    }
    for context in [format!("{{{chain}}}"), nested] {
        let document = format!("{{\"@context\": {context}, \"@id\": \"http://e/a\", \"a\": 1}}");
        let _ = statements(Syntax::JsonLd, document.as_bytes());
    }
    let mut long = String::from("\"t0\": \"http://e/\"");
    for number in 1..10_000 {
        let _ = write!(long, ", \"t{number}\": {{\"@id\": \"t{}:x\"}}", number - 1);
    }
    assert_eq!(refused(Syntax::JsonLd, format!("{{\"@context\": {{{long}}}}}")).0, "rdf.depth");
}

#[test]
fn activity_streams_is_a_bundled_context() {
    let document = r#"{"@context": "https://www.w3.org/ns/activitystreams", "id": "http://e/a",
        "type": "Update", "object": "http://e/o", "endTime": "2026-01-01T00:00:00Z"}"#;
    let found = graph_of(Syntax::JsonLd, document.as_bytes()).unwrap();
    let expected = graph_of(
        Syntax::Turtle,
        b"@prefix as: <https://www.w3.org/ns/activitystreams#> .
          <http://e/a> a as:Update ; as:object <http://e/o> ;
            as:endTime '2026-01-01T00:00:00Z'^^<http://www.w3.org/2001/XMLSchema#dateTime> .",
    )
    .unwrap();
    assert_eq!(graphs::canonical(&found), graphs::canonical(&expected));
}

#[test]
fn linked_art_and_iiif_presentation_2_are_bundled() {
    let linked_art = r#"{"@context": "https://linked.art/ns/v1/linked-art.json", "id": "http://e/o",
        "type": "HumanMadeObject", "_label": "Vase",
        "produced_by": {"type": "Production", "timespan": {"type": "TimeSpan", "begin_of_the_begin": "1780-01-01T00:00:00Z"}}}"#;
    let found = statements(Syntax::JsonLd, linked_art.as_bytes()).unwrap().join("\n");
    for part in [
        "<http://e/o> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.cidoc-crm.org/cidoc-crm/E22_Human-Made_Object>",
        "<http://e/o> <http://www.w3.org/2000/01/rdf-schema#label> \"Vase\"",
        "<http://www.cidoc-crm.org/cidoc-crm/P82a_begin_of_the_begin> \"1780-01-01T00:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let manifest = r#"{"@context": "http://iiif.io/api/presentation/2/context.json", "@id": "http://e/m",
        "@type": "sc:Manifest", "label": "Book"}"#;
    let found = statements(Syntax::JsonLd, manifest.as_bytes()).unwrap().join("\n");
    assert!(found.contains("<http://iiif.io/api/presentation/2#Manifest>"), "{found}");
    let options = ReadOptions::default().with_contexts(Contexts::of_protocols());
    let (code, _, _) = fault(Syntax::JsonLd, linked_art, &options);
    assert_eq!(code, "jsonld.context");
    let own = Contexts::bundled().with(
        "https://linked.art/ns/v1/linked-art.json",
        r#"{"@context": {"id": "@id", "_label": "http://e/label"}}"#,
    );
    let mut seen = Vec::new();
    let options = ReadOptions::default().with_contexts(own);
    read(Syntax::JsonLd, linked_art.as_bytes(), &options, &mut |quad| {
        seen.push(quad.to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, ["<http://e/o> <http://e/label> \"Vase\""]);
}

/// What `read` visits, as lines; or the place and code of the fault.
fn lines_of(text: &[u8], options: &ReadOptions, as_lines: bool) -> (Vec<Vec<u8>>, Option<String>) {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let done = if as_lines {
        read_lines(text, options, &mut |line| {
            lines.push([line, b"\n"].concat());
            ControlFlow::Continue(())
        })
    } else {
        read(Syntax::NTriples, text, options, &mut |quad| {
            let mut line = Vec::new();
            write_statement(quad.into(), &mut line);
            lines.push(line);
            ControlFlow::Continue(())
        })
    };
    (lines, done.err().map(|error| error.to_string()))
}

#[test]
fn lines_are_those_of_the_statements_that_are_read() {
    let plain = "<http://h/a> <http://h/p> \"1\"@en .\n";
    let parts = [
        plain,
        "<http://h/a> <http://h/p> _:x .\n",
        "_:x.y <http://h/p> _:x .\n",
        "_:x <http://h/p> \"_:y\" .\n",
        "# a comment\n",
        "\n",
        "<http://h/a>\t<http://h/p>  \"\\u00e9 \u{e9}\"@EN.\n",
        "<http://h/a> <http://h/p> \"\u{e9}\" .\r\n",
        "<http://h/\u{e9}> <http://h/p> <http://h/b> . # behind it\n",
    ];
    let all = format!("\u{feff}{}", parts.concat()).into_bytes();
    let many = parts.concat().repeat(900).into_bytes();
    let open = many.strip_suffix(b"\n").unwrap().to_vec();
    let wrong =
        [many.as_slice(), plain.as_bytes(), b"<http://h/a> <p> \"2\" .\n", plain.as_bytes()]
            .concat();
    assert!(many.len() > 3 << 16, "several buffers");
    for text in [all, many, open, wrong, Vec::new()] {
        for options in [ReadOptions::default(), ReadOptions::default().with_document(7)] {
            assert!(lines_of(&text, &options, true) == lines_of(&text, &options, false));
        }
    }
    let (lines, fault) =
        lines_of(b"<http://h/a> <http://h/p> 1 .\n", &ReadOptions::default(), true);
    assert!(lines.is_empty() && fault.is_some());
}

#[test]
fn numbers_and_type_maps_of_json_ld_that_are_not_read_as_such() {
    let number = |text: &str| {
        let document = format!(r#"{{"@id": "http://e/a", "http://e/p": {text}}}"#);
        statements(Syntax::JsonLd, document.as_bytes()).unwrap().remove(0)
    };
    // The standard has integers up to 10^21.
    assert!(
        number("99999999999999999999")
            .ends_with("99999999999999999999\"^^<http://www.w3.org/2001/XMLSchema#integer>")
    );
    assert!(
        number("100000000000000000000")
            .ends_with("1.0E20\"^^<http://www.w3.org/2001/XMLSchema#double>")
    );
    let map = |node: &str| {
        format!(
            r#"{{"@context": {{"m": {{"@id": "http://e/m", "@container": "@type"}}}}, "@id": "http://e/a", "m": {{"http://e/T": {node}}}}}"#
        )
    };
    assert_eq!(statements(Syntax::JsonLd, map("{}").as_bytes()).unwrap().len(), 2);
    let document = map(r#"{"@id": "http://e/b"}"#);
    let read = read(Syntax::JsonLd, document.as_bytes(), &ReadOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    let Err(ReadError::Syntax(error)) = read else { panic!("{read:?}") };
    assert!(error.help().unwrap().contains("maps of types"), "{error:?}");
}
