//! Tables of labels.

use crate::contract::{Kept, contract_with, kills};
use crate::copy::{Copy, Ran};
use crate::emm_source::{EmmSource, Habits};
use crate::source::Source;
use abreast_destination::{LabelsOptions, SinkOptions};
use abreast_store::labels::{LabelRow, LabelTable};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const TEXT: &str = "http://ns.example/text";
const VALUE: &str = "http://ns.example/value";

fn table_in(place: &Path, name: &str, predicate: &str) -> LabelsOptions {
    LabelsOptions {
        path: place.join(name),
        is_csv: name == "labels.csv",
        predicates: vec![predicate.to_owned()],
        languages: Vec::new(),
    }
}

fn options_of(copy: &Copy) -> &LabelsOptions {
    match &copy.options.sink {
        SinkOptions::Labels(options) => options,
        other => panic!("{other:?}"),
    }
}

fn rows(copy: &Copy) -> Vec<LabelRow> {
    let mut rows = Vec::new();
    let table = LabelTable::open(&options_of(copy).path).unwrap();
    table
        .each::<abreast_core::LogError>(&mut |row| {
            rows.push(row.clone());
            Ok(())
        })
        .unwrap();
    rows
}

/// The documents that a source has, made again of their labels; the table has the beginning of a long one.
fn documents<'r>(source: &Source, rows: impl Iterator<Item = (&'r str, &'r str)>) -> Kept {
    let document = |(uri, label): (&str, &str)| {
        let uri = uri.replacen("http://id.example/", "http://", 1);
        let path = uri.strip_prefix(&source.server.base).unwrap().to_owned();
        let made = (source.form)(&uri, label);
        let begin = made.find(label).map_or("", |at| &made[..at + label.len()]).as_bytes();
        let is_cut = |document: &&Vec<u8>| label.len() == 8 << 10 && document.starts_with(begin);
        let document = source.kept.get(&path).filter(is_cut).cloned();
        (path, document.unwrap_or_else(|| made.into_bytes()))
    };
    rows.map(document).collect()
}

pub(crate) fn in_database(copy: &Copy, source: &Source) -> Kept {
    // A contract's copy may be of another kind at its end.
    let rows = rows(copy);
    documents(source, rows.iter().map(|row| (row.uri.as_str(), row.label.as_str())))
}

pub(crate) fn in_csv(copy: &Copy, source: &Source) -> Kept {
    let text = std::fs::read_to_string(&options_of(copy).path).unwrap();
    let mut lines = text.split_terminator("\r\n");
    assert_eq!(lines.next(), Some("uri,label,lang,deprecated,replaced_by,changed"));
    let cells: Vec<_> = lines.map(|line| line.split(',').collect::<Vec<_>>()).collect();
    assert!(cells.is_sorted());
    documents(source, cells.iter().map(|cells| (cells[0], cells[1])))
}

pub(crate) fn database(place: &Path) -> SinkOptions {
    SinkOptions::Labels(table_in(place, "labels.db", TEXT))
}

pub(crate) fn csv(place: &Path) -> SinkOptions {
    SinkOptions::Labels(table_in(place, "labels.csv", TEXT))
}

#[test]
fn tables_of_labels_keep_the_contract() {
    contract_with(Source::of_statements(), &database, in_database);
    contract_with(Source::of_addresses(), &database, in_database);
    contract_with(Source::of_statements(), &csv, in_csv);
}

#[test]
fn tables_of_labels_recover_from_kills() {
    kills::killed_with(Source::of_statements, &database, in_database);
    kills::killed_with(Source::of_addresses, &database, in_database);
    kills::killed_twice_with(Source::of_statements(), &database, in_database);
    kills::killed_with(Source::of_statements, &csv, in_csv);
}

fn copy_of(source: &EmmSource) -> Copy {
    let mut copy = Copy::of(source.url());
    let table = table_in(copy.place.path(), "labels.db", VALUE);
    copy.options.sink = SinkOptions::Labels(table);
    copy
}

/// Numbers of entities, with their labels and replacements where they are deprecated.
fn found(copy: &Copy) -> Vec<(String, String, Option<String>)> {
    let number = |iri: &str| iri.rsplit('/').next().unwrap_or_default().to_owned();
    let row = |row: LabelRow| {
        let by = row.replaced_by.as_deref().map(number).unwrap_or_default();
        (number(&row.uri), row.label, row.deprecated.then_some(by))
    };
    rows(copy).into_iter().map(row).collect()
}

fn row(number: &str, label: &str, deprecated: Option<&str>) -> (String, String, Option<String>) {
    (number.to_owned(), label.to_owned(), deprecated.map(str::to_owned))
}

#[test]
fn deprecated_entities_stay_in_the_table() {
    let source = EmmSource::start(Habits::default());
    for number in 0..4 {
        source.put(number, "first");
    }
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    assert!(rows(&copy).iter().all(|row| row.changed.is_some() && !row.deprecated));
    // By the feed alone; by the description alone; by both.
    source.record(0, "Deprecate");
    let (first, second) = (source.iri(1), source.iri(2));
    let add = |number: usize, statement: String| {
        source.data().entities.get_mut(&number).unwrap().push_str(&statement);
    };
    add(1, format!("<{first}> <http://purl.org/dc/terms/isReplacedBy> <{second}> .\n"));
    source.record(1, "Update");
    let owl = format!(
        "<{second}> <http://www.w3.org/2002/07/owl#deprecated> \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> .\n"
    );
    add(2, owl);
    source.record(2, "Deprecate");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("resource.deprecated")), (0, 2), "{:?}", ran.reported);
    let first = [
        row("0", "first", Some("")),
        row("1", "first", Some("2")),
        row("2", "first", Some("")),
        row("3", "first", None),
    ];
    assert_eq!(found(&copy), first);
    assert_eq!(copy.audit(true).exit_code, 0);
    // An update ends the mark of the feed; the mark of the description was deleted with its
    // statement.
    source.put(0, "second");
    source.put(2, "second");
    source.delete(1);
    assert_eq!(copy.try_run().exit(), 0);
    let second = [row("0", "second", None), row("2", "second", None), row("3", "first", None)];
    assert_eq!(found(&copy), second);
    // In one run as in two.
    source.record(3, "Deprecate");
    source.put(3, "second");
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(found(&copy)[2], row("3", "second", None));
    source.record_with(0, "Deprecate", json!({}));
    source.delete(0);
    source.put(0, "new");
    assert_eq!(copy.try_run().exit(), 0);
}

#[test]
fn a_table_that_follows_changes_is_the_same_as_a_fresh_one() {
    let source = EmmSource::start(Habits::default());
    for number in 0..4 {
        source.put(number, "first");
    }
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    source.record(0, "Deprecate");
    source.record(1, "Update");
    source.record(2, "Deprecate");
    assert_eq!(copy.try_run().exit(), 0);
    source.wait_days(1);
    // Neither has other bytes.
    source.record(0, "Update");
    source.record(1, "Update");
    assert_eq!(copy.try_run().exit(), 0);
    let fresh = copy_of(&source);
    assert_eq!(fresh.try_run().exit(), 0);
    assert_eq!(rows(&copy), rows(&fresh));
    assert_eq!(found(&copy)[0], row("0", "first", None));
}

#[test]
fn entities_of_a_download_have_the_times_that_pages_show() {
    for has_prev in [true, false] {
        let source = EmmSource::start(Habits { has_prev, ..Habits::default() });
        for number in 0..9 {
            source.put(number, "first");
        }
        // In the download, and on its last page.
        source.put(7, "second");
        source.put(8, "second");
        source.wait_days(1);
        source.make_download();
        source.put(0, "second");
        let copy = copy_of(&source);
        let times = |copy: &Copy| -> Vec<Option<String>> {
            rows(copy).into_iter().map(|row| row.changed).collect()
        };
        source.server.take_log();
        assert_eq!(copy.try_run().exit(), 0);
        let asked = source.server.take_log();
        let entities = asked.iter().filter(|path| path.contains("/id/")).count();
        assert_eq!(entities, 1, "those of the download are not fetched: {asked:?}");
        let stated = |number: usize| {
            let data = source.data();
            let last = data.changes.iter().rev().find(|change| change.number == number);
            last.map(|change| abreast_webtypes::Timestamp::from_seconds(change.time).to_string())
        };
        // A feed that leads from its first page on only is read whole.
        let is_known = |number: &usize| !has_prev || [0, 7, 8].contains(number);
        let expected: Vec<_> =
            (0..9).map(|number| Some(number).filter(is_known).and_then(stated)).collect();
        assert_eq!(times(&copy), expected);
        assert_eq!(copy.audit(true).exit_code, 0);
        let mut copy = copy;
        copy.options.baseline = true;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?}", ran.items);
        assert_eq!(times(&copy), expected);
    }
}

#[test]
fn a_table_that_was_lost_is_made_again() {
    let source = EmmSource::start(Habits::default());
    for number in 0..4 {
        source.put(number, "first");
    }
    source.wait_days(1);
    source.make_download();
    let mut copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let before = found(&copy);
    let path = options_of(&copy).path.clone();
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
    }
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(found(&copy), before);
    // Only the database is lost.
    std::fs::remove_dir_all(copy.folder()).unwrap();
    source.delete(3);
    source.make_download();
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(found(&copy), before[..3]);
    // Labels are chosen in another way.
    let SinkOptions::Labels(options) = &mut copy.options.sink else { panic!() };
    options.predicates = vec!["http://ns.example/none".to_owned()];
    assert_eq!(copy.try_run().exit(), 0);
    assert!(found(&copy).iter().all(|(_, label, _)| label.is_empty()));
    assert_eq!(found(&copy).len(), 3);
    assert_eq!(copy.audit(false).exit_code, 0);
    // Another copy.
    let mut other = copy_of(&source);
    other.options.sink = copy.options.sink.clone();
    assert_eq!(other.try_run().code(), "labels.other");
}

#[test]
fn a_table_is_the_same_by_each_spelling_of_its_path() {
    for name in ["labels.db", "labels.csv"] {
        let source = EmmSource::start(Habits::default());
        for number in 0..3 {
            source.put(number, "first");
        }
        let mut copy = copy_of(&source);
        let place = copy.place.path().to_owned();
        copy.options.sink = SinkOptions::Labels(table_in(&place, name, VALUE));
        assert_eq!(copy.try_run().exit(), 0);
        std::fs::create_dir(place.join("other")).unwrap();
        std::os::unix::fs::symlink(&place, place.join("link")).unwrap();
        for folder in [".", "other/..", "link"] {
            let other = table_in(&place.join(folder), name, VALUE);
            copy.options.sink = SinkOptions::Labels(other.clone());
            source.server.take_log();
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{folder}: {:?}", ran.reported);
            // Only what changed in the last second is requested again.
            let mut asked = source.server.take_log();
            asked.retain(|line| line.contains("/id/"));
            assert_eq!(asked, ["/id/2.nt"], "{folder}");
            assert_eq!(copy.audit(true).exit_code, 0);
            // No other copy can use it by another name.
            let mut second = copy_of(&source);
            second.options.sink = SinkOptions::Labels(other);
            assert_eq!(second.try_run().code(), "labels.other", "{folder}");
        }
    }
}

#[test]
fn an_audit_leaves_a_database_of_others_as_it_is() {
    let source = EmmSource::start(Habits::default());
    source.put(0, "first");
    let mut copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let other = copy.place.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let options = table_in(&other, "labels.db", VALUE);
    // A database of another program, with a journal as most have it; and a file that is not a
    // database.
    let mut database = std::fs::read(copy.folder().join(".abreast/mirror.db")).unwrap();
    database[18..20].fill(1);
    for bytes in [database, b"text".repeat(2_000)] {
        std::fs::write(&options.path, &bytes).unwrap();
        copy.options.sink = SinkOptions::Labels(options.clone());
        let audited = Ran::audit(&copy.options, true);
        assert_eq!(audited.code(), "labels.file", "{:?}", audited.reported);
        assert!(crate::copy::files(&other) == [("labels.db".to_owned(), bytes)].into());
    }
}

#[test]
fn a_table_in_csv_keeps_its_mode() {
    let source = EmmSource::start(Habits::default());
    source.put(0, "first");
    let mut copy = copy_of(&source);
    let place = copy.place.path().to_owned();
    copy.options.sink = SinkOptions::Labels(table_in(&place, "labels.csv", VALUE));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let (path, usual) = (place.join("labels.csv"), place.join("usual"));
    std::fs::write(&usual, "").unwrap();
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(mode(&path), mode(&usual), "as the umask permits");
    for (wanted, value) in [(0o600, "second"), (0o664, "third"), (0o444, "fourth")] {
        std::fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
        source.put(0, value);
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(mode(&path), wanted);
        assert!(std::fs::read_to_string(&path).unwrap().contains(value));
    }
}

#[test]
fn files_that_are_not_rdf_have_no_labels() {
    let mut source = Source::new();
    source.set("/a.txt", "text");
    source.snapshot();
    let copy = Copy::kept_in(&source, database);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("rdf.type")), (3, 1), "{:?}", ran.reported);
    assert!(ran.reported.iter().any(|problem| problem.message.contains("help:")));
}

#[test]
fn a_file_in_csv_of_others_is_left_as_it_is() {
    let source = EmmSource::start(Habits::default());
    source.put(0, "first");
    let mut copy = copy_of(&source);
    let path = copy.place.path().join("labels.csv");
    copy.options.sink = SinkOptions::Labels(table_in(copy.place.path(), "labels.csv", VALUE));
    std::fs::write(&path, "my,own,table\n").unwrap();
    for _ in 0..2 {
        assert_eq!(copy.try_run().code(), "labels.other");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my,own,table\n");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(copy.try_run().exit(), 0);
    assert!(std::fs::read_to_string(&path).unwrap().contains("first"));
}

#[test]
fn a_file_in_csv_that_was_altered_is_found_and_written_again() {
    for has_download in [false, true] {
        let source = EmmSource::start(Habits::default());
        for number in 0..4 {
            source.put(number, "first");
        }
        if has_download {
            source.wait_days(1);
            source.make_download();
        }
        let mut copy = copy_of(&source);
        let path = copy.place.path().join("labels.csv");
        copy.options.sink = SinkOptions::Labels(table_in(copy.place.path(), "labels.csv", VALUE));
        copy.options.baseline = true;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.has("local.missing")), (0, false), "{:?}", ran.reported);
        let whole = std::fs::read_to_string(&path).unwrap();
        assert_eq!(copy.audit(false).exit_code, 0);
        let cut = whole[..whole.len() / 2].to_owned();
        let other = whole.replacen("first", "other", 1);
        let more = format!("{whole}http://h/a,a,,0,,\r\n");
        for (text, full) in [
            (Some(cut.clone()), false),
            (Some(cut), true),
            (Some(other), false),
            (Some(more), true),
            (Some(String::new()), false),
            (None, false),
        ] {
            match &text {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let audited = Ran::audit(&copy.options, full);
            let report = audited.result.as_ref().unwrap();
            let counts = (report.updated, report.missing, report.same, report.exit_code);
            let is_there = u64::from(text.is_some());
            assert_eq!(counts, (is_there, 1 - is_there, 4, 1), "{text:?}");
            assert_eq!(audited.items[0].path, path.display().to_string());
            let ran = copy.try_run();
            let code = if text.is_some() { "local.altered" } else { "local.missing" };
            assert_eq!((ran.exit(), ran.count(code)), (0, 1), "{text:?}: {:?}", ran.reported);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
            assert_eq!(copy.audit(full).exit_code, 0);
        }
        assert!(copy.try_run().reported.is_empty());
    }
}

#[test]
fn a_missing_folder_is_found_before_anything_is_requested() {
    let source = EmmSource::start(Habits::default());
    source.put(0, "first");
    for (name, dry_run) in [("labels.csv", false), ("labels.csv", true), ("labels.db", true)] {
        let mut copy = copy_of(&source);
        let place = copy.place.path().join("none");
        copy.options.sink = SinkOptions::Labels(table_in(&place, name, VALUE));
        copy.options.dry_run = dry_run;
        source.server.take_log();
        let ran = copy.try_run();
        assert_eq!((ran.code(), ran.exit()), ("labels.file", 13), "{name} {dry_run}");
        let error = ran.result.err().unwrap();
        assert!(error.to_string().contains("there is no folder"), "{error}");
        assert_eq!(source.server.take_log(), [""; 0]);
        assert!(!copy.folder().exists());
        std::fs::create_dir(&place).unwrap();
        assert_eq!(copy.try_run().exit(), 0);
    }
}

#[test]
fn a_table_without_any_label_is_reported() {
    let source = EmmSource::start(Habits::default());
    for number in 0..2 {
        source.put(number, "first");
    }
    let mut copy = copy_of(&source);
    let set = |copy: &mut Copy, predicate: &str| {
        let table = table_in(copy.place.path(), "labels.db", predicate);
        copy.options.sink = SinkOptions::Labels(table);
    };
    set(&mut copy, "skos:prefLabel");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("labels.none")), (0, 1), "{:?}", ran.reported);
    assert!(ran.reported[0].message.contains("skos:prefLabel"));
    // Once for the stored entities.
    assert!(!copy.try_run().has("labels.none"));
    set(&mut copy, VALUE);
    assert!(!copy.try_run().has("labels.none"));
}

#[test]
fn a_database_that_is_a_link_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (table, other) = (place.path().join("labels.db"), place.path().join("other.db"));
    std::os::unix::fs::symlink(&other, &table).unwrap();
    let error = LabelTable::open(&table).err().unwrap().to_string();
    assert!(error.contains("symbolic link") && !other.exists(), "{error}");
    std::fs::remove_file(&table).unwrap();
    LabelTable::open(&table).unwrap();
}
