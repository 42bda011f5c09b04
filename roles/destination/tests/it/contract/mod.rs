//! The contract of every sink: one sequence of changes, run with all sinks.

pub(crate) mod kills;
mod processes;

use crate::copy::{self, Copy, Ran};
use crate::source::Source;
use crate::{labels, rdf};
use abreast_destination::{MaxDelete, Mode, SinkOptions, WarcOptions};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) type Kept = BTreeMap<String, Vec<u8>>;

/// Bytes by path, for a comparison with the Source.
pub(crate) type Reader = fn(&Copy, &Source) -> Kept;

/// A sink as the tables of tests have it.
#[derive(Clone, Copy)]
pub(crate) struct SinkCase {
    pub(crate) name: &'static str,
    /// A Source of resources that the sink can store.
    pub(crate) source: fn() -> Source,
    /// An empty one, in a place.
    pub(crate) sink: fn(&Path) -> SinkOptions,
    pub(crate) read: Reader,
}

/// Every sink whose content can be read back.
pub(crate) fn sinks() -> Vec<SinkCase> {
    let case = |name, source, sink, read| SinkCase { name, source, sink, read };
    vec![
        case("folder", Source::new, |_| SinkOptions::Folder, files),
        case("warc", Source::new, crate::sinks::warc, crate::sinks::archived),
        #[cfg(feature = "s3")]
        case("objects", Source::new, crate::objects::local, crate::objects::stored),
        case("nquads", Source::of_statements, rdf::nquads, rdf::in_files),
        case("labels in SQLite", Source::of_statements, labels::database, labels::in_database),
        case("labels in CSV", Source::of_statements, labels::csv, labels::in_csv),
        case("oxigraph", Source::of_statements, rdf::oxigraph, rdf::in_endpoint),
        case("endpoint", Source::of_statements, rdf::sparql, rdf::in_endpoint),
        case("graph store", Source::of_statements, rdf::graph_store, rdf::in_endpoint),
        case("receiver", Source::of_statements, rdf::receiver, rdf::in_receiver),
    ]
}

/// The output of a failing test, instead of all bytes.
pub(crate) fn seen(kept: &Kept) -> Vec<String> {
    kept.iter().map(|(path, body)| format!("{path} {} {}", body.len(), md5_hex(body))).collect()
}

/// Every file in the copy's folder.
pub(crate) fn files(copy: &Copy, _: &Source) -> Kept {
    copy::files(copy.folder())
        .into_iter()
        .map(|(path, bytes)| (format!("/{path}"), bytes))
        .collect()
}

/// The obligations of every sink: equal to its Source after each run, cheap when nothing has
/// changed, verified or not at all, and no deletions above the limit.
pub(crate) fn contract(sink: fn(&Path) -> SinkOptions, reader: Reader) {
    contract_with(Source::new(), &sink, reader);
}

/// The same with another Source.
pub(crate) fn contract_with(
    mut source: Source,
    sink: &dyn Fn(&Path) -> SinkOptions,
    reader: Reader,
) {
    let large = "0123456789abcdef".repeat(200_000);
    let text = "the same bytes under two names. ".repeat(20);
    for (path, body) in [
        ("/a.txt", "one"),
        ("/dir/b.txt", &text),
        ("/dir/c.txt", &text),
        ("/empty", ""),
        ("/large.bin", &large),
    ] {
        source.set(path, body);
    }
    source.snapshot();
    let copy = Copy::kept_in(&source, sink);
    let first = copy.run();
    assert_eq!((first.mode, first.created, first.exit_code), (Mode::Baseline, 5, 0));
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));
    assert_eq!(copy.audit(false).exit_code, 0);
    assert_eq!((copy.audit(true).exit_code, copy.audit(true).same), (0, 5));

    source.server.take_log();
    let second = copy.run();
    assert_eq!((second.created, second.updated, second.deleted), (0, 0, 0));
    assert!(source.server.take_log().len() <= 2);

    source.set("/a.txt", "two");
    source.set("/new.txt", "new");
    source.delete("/dir/b.txt");
    let third = copy.run();
    assert_eq!(
        (third.mode, third.created, third.updated, third.deleted),
        (Mode::Incremental, 1, 1, 1)
    );
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));
    assert_eq!(copy.audit(true).exit_code, 0);

    // Back under its old name, with the bytes of another.
    source.set("/dir/b.txt", &text);
    assert_eq!(copy.run().created, 1);
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));

    // Bytes that differ from the list are never stored, and the old bytes are retained.
    source.set("/a.txt", "three");
    source.server.body("/a.txt", "other");
    let Ran { result, codes, .. } = copy.try_run();
    assert_eq!(result.unwrap().exit_code, 3);
    assert!(codes.contains(&"fixity.mismatch".to_owned()), "{codes:?}");
    let before = source.serve("/a.txt", "two");
    assert_eq!(reader(&copy, &source).get("/a.txt").unwrap(), before.as_bytes());
    let report = copy.audit(true);
    assert_eq!((report.updated, report.missing, report.extra, report.exit_code), (1, 0, 0, 1));
    source.serve("/a.txt", "three");
    assert_eq!(copy.run().exit_code, 0);

    // Nothing is deleted if there are more deletions than allowed.
    source.delete("/a.txt");
    source.delete("/dir/c.txt");
    let mut held = Copy { place: tempfile::tempdir().unwrap(), options: copy.options.clone() };
    held.options.max_delete = MaxDelete::Count(1);
    let summary = held.run();
    assert_eq!((summary.deleted, summary.held, summary.exit_code), (0, 2, 7));
    assert_eq!(reader(&copy, &source).len(), source.kept.len() + 2);
    assert_eq!(copy.run().deleted, 2);
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));

    // A comparison with the whole list finds nothing to do.
    source.snapshot();
    held.options.max_delete = MaxDelete::Default;
    held.options.baseline = true;
    let compared = held.run();
    assert_eq!((compared.created, compared.updated, compared.deleted), (0, 0, 0));
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));

    // If no digest is listed, the server's answer that nothing has changed is accepted, and the
    // same bytes are not stored twice.
    let entry = format!("<url><loc>{}</loc></url>\n", source.server.url("/plain.txt"));
    source.serve("/plain.txt", "plain");
    let attributes = format!("capability=\"resourcelist\" at=\"{}\"", source.now());
    source.server.body("/resourcelist.xml", document("urlset", &attributes, &entry));
    held.options.max_delete = MaxDelete::Percent(100.0);
    assert_eq!(held.run().unverified, 1);
    let before = reader(&copy, &source);
    let again = held.run();
    assert_eq!((again.created, again.updated, again.unchanged), (0, 0, 1));
    assert_eq!(seen(&reader(&copy, &source)), seen(&before));

    // A dry run changes nothing.
    source.set("/dry.txt", "dry");
    held.options.baseline = false;
    held.options.dry_run = true;
    held.run();
    assert_eq!(seen(&reader(&copy, &source)), seen(&before));

    let other = if held.options.sink == SinkOptions::Folder {
        SinkOptions::Warc(WarcOptions::default())
    } else {
        SinkOptions::Folder
    };
    held.options.sink = other;
    held.options.dry_run = false;
    let result = held.try_run().result;
    assert_eq!(result.unwrap_err().code(), "sink.kind");
}

/// A Source with some files.
pub(crate) fn some(count: usize) -> Source {
    let mut source = Source::new();
    for number in 0..count {
        source.set(&format!("/f{number:03}"), &format!("file {number} {}", "x".repeat(number)));
    }
    source.snapshot();
    source
}
