//! Parts of packages and resources: responses that do not continue them.

use crate::copy::{Copy, files};
use crate::dump_source::{DumpSource, packages, resources, stopped_within};
use crate::source::Source;
use abreast_destination::check::{CopyPlace, check_copy, repair_copy};
use abreast_store::integrity::Findings;
use abreast_testkit::documents::document;
use abreast_testkit::pages::{Answer, Server};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Answers to a request for the rest of `body`, from its half.
fn odd_answers(body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let (half, total) = (body.len() / 2, body.len());
    let last = total - 1;
    let answer = |status: &str, headers: String, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let (part, rest) = ("206 Partial Content", &body[half..]);
    let tag = "etag: \"v1\"\r\n";
    let range = |range: String| format!("content-range: {range}\r\n");
    let exact = range(format!("bytes {half}-{last}/{total}"));
    vec![
        (
            "no total",
            answer(part, format!("{tag}{}", range(format!("bytes {half}-{last}/*"))), rest),
        ),
        (
            "unit",
            answer(part, format!("{tag}{}", range(format!("Bytes {half}-{last}/{total}"))), rest),
        ),
        (
            "earlier",
            answer(part, format!("{tag}{}", range(format!("bytes 0-{last}/{total}"))), body),
        ),
        (
            "later",
            answer(
                part,
                format!("{tag}{}", range(format!("bytes {last}-{last}/{total}"))),
                &body[last..],
            ),
        ),
        ("no tag", answer(part, exact.clone(), rest)),
        ("other tag", answer(part, format!("etag: \"v2\"\r\n{exact}"), rest)),
        ("no range", answer(part, tag.to_owned(), rest)),
        ("a part as the whole", answer("200 OK", format!("{tag}{exact}"), rest)),
        (
            "416",
            answer("416 Range Not Satisfiable", format!("content-range: bytes */{total}\r\n"), b""),
        ),
    ]
}

/// The first transfer of a file breaks off at its half, and the next request gets this answer.
fn cut_then(server: &Server, path: &'static str, body: &[u8], odd: Vec<u8>) {
    let head = format!("HTTP/1.1 200 OK\r\netag: \"v1\"\r\ncontent-length: {}\r\n\r\n", body.len());
    let cut = [head.as_bytes(), &body[..body.len() / 2]].concat();
    let asked = AtomicUsize::new(0);
    server.put(path, Answer::ok(body).header("etag", "\"v1\""));
    server.handler(move |asked_for, _| {
        let number = if asked_for == path { asked.fetch_add(1, Ordering::SeqCst) } else { 9 };
        match number {
            0 => Some(Answer::raw(cut.clone())),
            1 => Some(Answer::raw(odd.clone())),
            _ => None,
        }
    });
}

#[test]
fn packages_are_received_whole_whatever_answers_for_the_rest() {
    let all = resources(400);
    let names: Vec<_> = odd_answers(&[0; 4]).into_iter().map(|(name, _)| name).collect();
    for (number, name) in names.into_iter().enumerate() {
        for is_listed in [true, false] {
            let mut source = DumpSource::new();
            let package = source.package(&all, false);
            source.list(&all);
            source.server.body("/one.zip", package.clone());
            if is_listed {
                source.dump(&["/one.zip"]);
            } else {
                source.dump_with(&["/one.zip"], |_, _| "type=\"application/zip\"".to_owned());
            }
            cut_then(
                &source.server,
                "/one.zip",
                &package,
                odd_answers(&package).swap_remove(number).1,
            );
            let mut copy = Copy::of(source.url());
            copy.options.dumps = abreast_destination::Dumps::Always;
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.summary().created), (0, 400), "{name}: {:?}", ran.reported);
            assert!(ran.codes.is_empty(), "{name}, listed: {is_listed}: {:?}", ran.reported);
        }
    }
}

#[test]
fn large_resources_are_received_whatever_answers_for_the_rest() {
    let body: String = "0123456789abcdef".repeat(600_000);
    let names: Vec<_> = odd_answers(&[0; 4]).into_iter().map(|(name, _)| name).collect();
    for (number, name) in names.into_iter().enumerate() {
        for is_listed in [true, false] {
            let mut source = Source::new();
            source.set("/large", &body);
            if is_listed {
                source.snapshot();
            } else {
                let entry = format!("<url><loc>{}</loc></url>", source.server.url("/large"));
                let attributes = format!("capability=\"resourcelist\" at=\"{}\"", source.now());
                source.server.body("/resourcelist.xml", document("urlset", &attributes, &entry));
            }
            let bytes = body.as_bytes();
            cut_then(&source.server, "/large", bytes, odd_answers(bytes).swap_remove(number).1);
            let copy = Copy::of(source.url());
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.summary().created), (0, 1), "{name}: {:?}", ran.reported);
            let length = std::fs::metadata(copy.folder().join("large")).unwrap().len();
            assert_eq!(length, bytes.len() as u64, "{name}, listed: {is_listed}");
        }
    }
}

#[test]
fn a_package_of_unlisted_length_is_requested_once_in_a_run() {
    let mut source = DumpSource::new();
    let all = resources(400);
    let package = source.package(&all, false);
    source.server.put("/one.zip", Answer::ok(package).header("etag", "\"v1\""));
    source.dump_with(&["/one.zip"], |_, _| "type=\"application/zip\"".to_owned());
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!((ran.exit(), files(copy.folder()).len()), (0, 400), "{:?}", ran.reported);
    let asked = source.server.take_log().iter().filter(|path| *path == "/one.zip").count();
    assert_eq!(asked, 1);
    // A run that is stopped leaves the package, and the next run asks for its last byte.
    let always = || {
        let mut copy = Copy::of(source.url());
        copy.options.dumps = abreast_destination::Dumps::Always;
        copy
    };
    let copy = stopped_within((100, 400), always, |copy| copy);
    assert_eq!(packages(&copy), 2);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), files(copy.folder()).len()), (0, 400), "{:?}", ran.reported);
    let asked = source.server.take_log().iter().filter(|path| *path == "/one.zip").count();
    assert_eq!((asked, ran.summary().bytes < 20_000), (1, true), "{}", ran.summary().bytes);
}

#[test]
fn parts_stay_where_they_are_continued_and_nowhere_else() {
    let body = "0123456789abcdef".repeat(1_000_000).into_bytes();
    let head = "HTTP/1.1 200 OK\r\netag: \"v1\"\r\n";
    let half = &body[..body.len() / 2 + 2_000_000];
    let cut = format!("{head}content-length: {}\r\n\r\n", body.len());
    // A piece without a length: the response is not valid HTTP.
    let broken = format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n", half.len());
    for (name, first, end, is_kept) in
        [("cut", cut, &b""[..], true), ("broken", broken, &b"\r\nno length\r\n"[..], false)]
    {
        let source = Source::new();
        let entry = format!("<url><loc>{}</loc></url>", source.server.url("/large"));
        let attributes = format!("capability=\"resourcelist\" at=\"{}\"", source.now());
        source.server.body("/resourcelist.xml", document("urlset", &attributes, &entry));
        source.server.put("/large", Answer::ok(body.clone()).header("etag", "\"v1\""));
        let (answer, asked) = ([first.as_bytes(), half, end].concat(), AtomicUsize::new(0));
        source.server.handler(move |path, _| match path {
            "/large" if asked.fetch_add(1, Ordering::SeqCst) == 0 => {
                Some(Answer::raw(answer.clone()))
            }
            "/large" => Some(Answer::status(503)),
            _ => None,
        });
        let mut copy = Copy::of(source.url());
        copy.options.net.retries = 1;
        assert_eq!(copy.try_run().exit(), 3, "{name}");
        let parts = || files(copy.folder()).len();
        assert_eq!(parts(), usize::from(is_kept), "{name}");
        let place = CopyPlace::find(copy.folder()).unwrap();
        let mut findings = Findings::default();
        check_copy(
            &place,
            &|_| true,
            &mut findings,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        let leftovers = findings.list().iter().filter(|finding| finding.rule == "copy.leftover");
        assert_eq!(leftovers.count(), 0, "{name}: {findings:?}");
        repair_copy(
            &place,
            &|_| true,
            false,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        assert_eq!(parts(), usize::from(is_kept), "{name}");
        source.server.handler(|_, _| None);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{name}: {:?}", ran.reported);
        let rest = if is_kept { body.len() - half.len() } else { body.len() };
        let received = ran.summary().bytes as usize;
        assert!((rest..rest + 100_000).contains(&received), "{name}: {received} {rest}");
    }
}
