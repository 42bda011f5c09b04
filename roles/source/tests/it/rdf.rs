//! Sets of entities: the log contains each new state exactly, and no other changes.

use abreast_contents::Contents;
use abreast_core::contents::ContentStore;
use abreast_core::{Beginning, ChangeLog, KeyRange, Kind, NewSet, Position, SetId, SystemClock};
use abreast_rdf::{Canonical, DescriptionLimits, Entities, ReadOptions, Syntax};
use abreast_source::Private;
use abreast_source::origin::rdf::{
    Delta, EntityWriter, Import, RdfBytes, RdfError, RdfFolder, RdfInput, RdfOptions, RdfReport,
    RdfTarget, RdfWatch, apply, replace,
};
use abreast_statements::Error;
use abreast_store::SqliteLog;
use abreast_testkit::eventually;
use abreast_webtypes::Timestamp;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) struct Place {
    pub(crate) log: Arc<SqliteLog>,
    pub(crate) set: SetId,
    pub(crate) contents: Arc<dyn ContentStore>,
    pub(crate) options: RdfOptions,
    _temporary: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let log = Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
        let new = NewSet { slug: "set".into(), beginning: Beginning::Log, ..NewSet::default() };
        let set = log.open_set(&new).unwrap().id;
        let contents = Arc::new(Contents::open(&temporary.path().join("contents")).unwrap());
        let mut options = RdfOptions::new(temporary.path());
        options.sort.memory = 1 << 16;
        Self { log, set, contents, options, _temporary: temporary }
    }

    /// The set, described by the files of a folder.
    fn rdf_folder(&self, path: &std::path::Path) -> RdfFolder {
        RdfFolder {
            private: Private::default(),
            path: path.to_owned(),
            log: Arc::clone(&self.log) as _,
            set: self.set,
            contents: self.contents.clone(),
            options: self.options.clone(),
            record: None,
        }
    }

    fn read(&self, inputs: Vec<RdfInput>) -> Result<RdfReport, RdfError> {
        let target = RdfTarget {
            log: &*self.log,
            set: self.set,
            contents: &*self.contents,
            kept: None,
            options: &self.options,
        };
        replace(target, inputs.into_iter().map(Ok), Timestamp::from_micros(1))
    }

    pub(crate) fn replace(&self, syntax: Syntax, text: &str) -> Result<RdfReport, RdfError> {
        self.read(vec![input(syntax, text)])
    }

    /// The description of each entity, by its IRI.
    pub(crate) fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        self.log
            .scan(self.set, &KeyRange::default(), &mut |resource| {
                let id = resource.state.content.unwrap();
                let mut lines = String::new();
                self.contents.open_read(&id).unwrap().read_to_string(&mut lines).unwrap();
                assert_eq!(resource.state.length, Some(lines.len() as u64));
                state.insert(resource.key.clone(), lines);
                ControlFlow::Continue(())
            })
            .unwrap();
        state
    }

    pub(crate) fn changes(&self, after: u64) -> Vec<(Kind, String)> {
        let mut changes = Vec::new();
        self.log
            .read(self.set, Position(after), &mut |record| {
                changes.push((record.kind, record.key.clone()));
                ControlFlow::Continue(())
            })
            .unwrap();
        changes
    }
}

pub(crate) fn input(syntax: Syntax, text: &str) -> RdfInput {
    let bytes = RdfBytes::Stream(Box::new(std::io::Cursor::new(text.to_owned().into_bytes())));
    RdfInput { name: "input".into(), syntax, base: None, bytes }
}

fn file(text: &str) -> RdfInput {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let bytes = RdfBytes::File(file);
    RdfInput { name: "file".into(), syntax: Syntax::NTriples, base: None, bytes }
}

fn triples(text: &str) -> Vec<Triple> {
    let mut triples = Vec::new();
    abreast_rdf::read(Syntax::NTriples, text.as_bytes(), &ReadOptions::default(), &mut |quad| {
        triples.push(Triple::from(oxrdf::TripleRef::from(quad)));
        ControlFlow::Continue(())
    })
    .unwrap();
    triples
}

/// The expected descriptions of the entities in a text.
pub(crate) fn expected(text: &str) -> BTreeMap<String, String> {
    let triples = triples(text);
    let entities = Entities::new(triples.iter().map(Triple::as_ref));
    entities
        .descriptions(DescriptionLimits::default())
        .map(|description| {
            let description = description.unwrap();
            (description.entity, String::from_utf8(description.canonical.lines).unwrap())
        })
        .collect()
}

const TURTLE: &str = "
    @prefix : <http://id.example/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
    :b a skos:Concept ; skos:prefLabel 'B'@en, 'b' ; :in :a .
    :a a skos:Concept ; skos:note [ :text 'first' ; :by [ :name 'x' ] ], [ :text 'second' ] .
    <http://id.example/a#part> :of :a .";

#[test]
fn the_first_state_is_added_and_the_next_compared() {
    let place = Place::new();
    let report = place.replace(Syntax::Turtle, TURTLE).unwrap();
    assert_eq!((report.entities, report.created, report.unchanged), (3, 3, 0));
    let added: Vec<_> = place.changes(0).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(added, [Kind::Add; 3]);
    let mut labels = Vec::new();
    place
        .log
        .scan(place.set, &KeyRange::default(), &mut |resource| {
            let description = resource.state.description.clone().unwrap();
            let label = description.label().map(str::to_owned);
            labels.push((resource.key.clone(), description.types.len(), label));
            assert_eq!(resource.state.media_type.as_deref(), Some("application/n-triples"));
            let link = &resource.state.links[0];
            assert_eq!((link.rel.as_str(), &link.target), ("describes", &resource.key));
            ControlFlow::Continue(())
        })
        .unwrap();
    let iri = |name: &str| format!("http://id.example/{name}");
    assert_eq!(
        labels,
        [(iri("a"), 1, None), (iri("a#part"), 0, None), (iri("b"), 1, Some("b".to_owned()))]
    );
    let same = place.replace(Syntax::Turtle, TURTLE).unwrap();
    assert_eq!((same.entities, same.created, same.updated, same.unchanged), (3, 0, 0, 3));
    let changed = TURTLE.replace("'x'", "'y'").replace("<http://id.example/a#part>", ":c");
    let report = place.replace(Syntax::Turtle, &changed).unwrap();
    assert_eq!((report.created, report.updated, report.deleted, report.unchanged), (1, 1, 1, 1));
    let mut changes = place.changes(3);
    changes.sort_by(|one, two| one.1.cmp(&two.1));
    let expected = [(Kind::Update, "a"), (Kind::Delete, "a#part"), (Kind::Create, "c")];
    assert_eq!(changes, expected.map(|(kind, name)| (kind, iri(name))));
}

#[test]
fn wrong_input_records_nothing() {
    let place = Place::new();
    place.replace(Syntax::Turtle, TURTLE).unwrap();
    let wrong = "<http://a/1> <http://p> <http://a/2> .\n<http://a/2> <p> <http://a/2> .\n";
    for input in [input(Syntax::NTriples, wrong), file(wrong)] {
        let error = place.read(vec![input]).unwrap_err();
        assert!(matches!(error, RdfError::Statements(Error::Input { .. })), "{error:?}");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
    let good = "<http://a/1> <http://p> <http://a/2> .\n";
    let two = vec![input(Syntax::NTriples, good), input(Syntax::NTriples, wrong)];
    assert!(matches!(place.read(two), Err(RdfError::Statements(Error::Input { .. }))));
    assert_eq!(place.changes(3), []);
}

#[test]
fn invalid_statements_can_be_left_out() {
    let mut place = Place::new();
    place.options.sort.leave_out_invalid = true;
    let good = "<http://a/1> <http://p> <http://a/2> .\n";
    let wrong = format!("{good}<http://a/2> <p> <http://a/2> .\n<http://a/3> <http://p> <a b> .\n");
    let turtle = format!("{good}<http://a/2> <http://p> <http://a/|>, \"x\"@toolonglanguage .\n");
    for input in [input(Syntax::NTriples, &wrong), file(&wrong), input(Syntax::Turtle, &turtle)] {
        let report = place.read(vec![input]).unwrap();
        assert_eq!((report.invalid_statements, report.entities), (2, 1), "{report:?}");
    }
    assert_eq!(place.changes(0).len(), 1);
}

#[test]
fn the_deletion_of_most_of_a_set_needs_a_confirmation() {
    let mut place = Place::new();
    let all: Vec<_> = (0..40).map(|n| format!("<http://a/{n}> <http://p> \"{n}\" .\n")).collect();
    place.replace(Syntax::NTriples, &all.concat()).unwrap();
    let some = "<http://a/1> <http://p> \"other\" .\n";
    for text in ["", some] {
        let error = place.replace(Syntax::NTriples, text).unwrap_err();
        let RdfError::Deletions { held } = error else { panic!("{error:?}") };
        assert_eq!((held.of, held.missing), (40, if text.is_empty() { 40 } else { 39 }));
    }
    assert_eq!(place.changes(40), [], "nothing is recorded");
    place.options.confirm_deletions = true;
    assert_eq!(place.replace(Syntax::NTriples, some).unwrap().deleted, 39);
    assert_eq!(place.state(), expected(some));
}

#[test]
fn blank_nodes_of_none_and_of_several_entities_are_counted() {
    let place = Place::new();
    let text = "<http://a/1> <http://p> _:shared .\n<http://a/2> <http://p> _:shared .\n\
                _:shared <http://p> _:below .\n_:below <http://p> \"x\" .\n\
                _:root <http://p> _:leaf .\n_:leaf <http://p> <http://a/1> .\n";
    let report = place.replace(Syntax::NTriples, text).unwrap();
    assert_eq!(
        (report.entities, report.shared_blank_nodes, report.unreached_blank_nodes),
        (2, 2, 2)
    );
    assert_eq!(place.state(), expected(text), "each has a copy");
}

#[test]
fn blank_nodes_of_none_and_of_several_can_become_entities() {
    let mut place = Place::new();
    place.options.skolemize = Some("http://a".to_owned());
    let text = "<http://a/1> <http://p> _:shared .\n<http://a/2> <http://p> _:shared .\n\
                _:shared <http://p> _:below .\n_:below <http://p> \"x\" .\n\
                _:root <http://p> _:leaf .\n_:leaf <http://p> <http://a/1> .\n";
    let report = place.read(vec![file(text)]).unwrap();
    assert_eq!(
        (report.entities, report.shared_blank_nodes, report.unreached_blank_nodes),
        (4, 0, 0)
    );
    let keys: Vec<_> = place.state().into_keys().collect();
    let named = keys.iter().filter(|key| key.starts_with("http://a/.well-known/genid/"));
    assert_eq!(named.count(), 2, "{keys:?}");
    let other = text.replace("_:shared", "_:z").replace("_:root", "_:a");
    assert_eq!(place.replace(Syntax::NTriples, &other).unwrap().unchanged, 4);
    let changed = text.replace("\"x\"", "\"y\"");
    let report = place.replace(Syntax::NTriples, &changed).unwrap();
    assert_eq!((report.created, report.updated, report.deleted, report.unchanged), (1, 2, 1, 1));
    place.options.skolemize = Some("a".to_owned());
    assert!(place.replace(Syntax::NTriples, text).is_err());
}

#[test]
fn errors_of_temporary_files_name_folder_and_reason() {
    let mut place = Place::new();
    let missing = place.options.sort.temporary.join("missing");
    place.options.sort.temporary.clone_from(&missing);
    let error = place.replace(Syntax::Turtle, "<http://a/1> <http://p> 1 .").unwrap_err();
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("No such file"), "{reason}");
}

#[test]
fn files_that_were_read_last_are_not_read_again() {
    let place = Place::new();
    let folder = place.options.sort.temporary.join("files");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("a.nt");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(150));
    };
    let rdf = || RdfFolder {
        record: Some(place.options.sort.temporary.join("record")),
        ..place.rdf_folder(&folder)
    };
    let line = |value: &str| format!("<http://a/{value}> <http://p> \"{value}\" .\n");
    write("a.nt", line("1").as_bytes());
    assert_eq!(rdf().read().unwrap().created, 1);
    assert_eq!(
        rdf().read().unwrap(),
        RdfReport { entities: 1, unchanged: 1, ..RdfReport::default() }
    );
    write("b.nt", b"no statement\n");
    assert!(rdf().read().is_err(), "another file is read");
    std::fs::remove_file(folder.join("b.nt")).unwrap();
    assert_eq!(rdf().read().unwrap().statements, 0, "the files are those of before");
    // Changes that were recorded in the meantime are replaced.
    place.replace(Syntax::NTriples, &line("2")).unwrap();
    assert_eq!(rdf().read().unwrap().created, 1);
    let mut other = rdf();
    other.options.skolemize = Some("http://a".to_owned());
    assert_eq!(other.read().unwrap().statements, 1, "options that matter are compared");
    // On a busy machine, a reading may take so long that the file counts as complete.
    eventually("it was just written, and may still be", || {
        std::fs::write(&path, line("3")).unwrap();
        rdf().read().unwrap();
        rdf().read().unwrap().statements == 1
    });
}

/// Writes entities into a watched folder of RDF.
fn write_entities(folder: &std::path::Path, numbers: std::ops::Range<usize>, value: &str) {
    let line = |number| format!("<http://a/{number}> <http://p> \"{value}\" .\n");
    std::fs::write(folder.join("next"), numbers.map(line).collect::<String>()).unwrap();
    std::fs::rename(folder.join("next"), folder.join("a.nt")).unwrap();
}

#[test]
fn copies_of_the_set_itself_are_not_read() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let own = "http://h.example/set/capabilitylist.xml\n";
    let other = format!("http://other.example/\npart {} of/own\n", own.trim());
    for (name, of) in [("own", own), ("other", &other)] {
        std::fs::create_dir_all(folder.path().join(name).join(".abreast")).unwrap();
        std::fs::write(folder.path().join(name).join(".abreast/copy-of"), of).unwrap();
        write_entities(&folder.path().join(name), 0..1, name);
    }
    let part = folder.path().join("other/of/own");
    std::fs::create_dir_all(&part).unwrap();
    write_entities(&part, 0..1, "own");
    let private = Private::new(["http://h.example/".to_owned()]);
    RdfFolder { private, ..place.rdf_folder(folder.path()) }.read().unwrap();
    let state = place.state();
    assert!(state.values().all(|lines| !lines.contains("own")) && state.len() == 1, "{state:?}");
}

#[test]
fn a_file_that_is_being_written_is_not_read() {
    let place = Place::new();
    let folder = place.options.sort.temporary.join("files");
    std::fs::create_dir(&folder).unwrap();
    let rdf = || place.rdf_folder(&folder);
    let line = |number| format!("<http://a/{number}> <http://p> \"1\" .\n");
    let lines = |numbers: std::ops::Range<usize>| numbers.map(line).collect::<String>();
    let write = |text: &str, append: bool| {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).append(append).truncate(!append).create(true);
        let mut file = options.open(folder.join("a.nt")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let writer = write(&lines(0..12), false);
    assert!(matches!(rdf().read(), Err(RdfError::Unsettled(_))));
    let watch = RdfWatch::start(rdf()).unwrap();
    drop((write(&lines(12..20), true), writer));
    eventually("the whole file is read", || place.state().len() == 20);
    assert!(place.changes(0).iter().all(|(kind, _)| *kind == Kind::Add), "at once");
    // In a later change, no entity is deleted and created again.
    let writer = write(&lines(0..12), false);
    std::fs::write(folder.join("b.nt"), lines(20..21)).unwrap();
    drop((write(&lines(12..20), true), writer));
    eventually("the other file is read", || place.state().len() == 21);
    assert_eq!(place.changes(20), [(Kind::Create, "http://a/20".to_owned())]);
    drop(watch);
}

#[test]
fn while_deletions_are_held_the_rest_is_published() {
    let place = Place::new();
    let folder = place.options.sort.temporary.join("files");
    std::fs::create_dir(&folder).unwrap();
    write_entities(&folder, 0..40, "1");
    let watch = RdfWatch::start(place.rdf_folder(&folder)).unwrap();
    let has = |count: usize| place.state().len() == count;
    eventually("all are published", || has(40));
    // The entities from 20 on are replaced by others: the set does not become smaller.
    write_entities(&folder, 20..60, "1");
    eventually("they are followed", || has(40) && place.state().contains_key("http://a/59"));
    assert_eq!(watch.status().held(), None);
    // A set that becomes smaller in steps, each by less than half.
    write_entities(&folder, 20..45, "1");
    eventually("a part is deleted", || has(25));
    write_entities(&folder, 18..30, "2");
    eventually("the rest is held", || watch.status().held().is_some_and(|held| held.of == 40));
    eventually("others are changed and created", || {
        let state = place.state();
        state.len() == 27 && state["http://a/29"].contains("\"2\"")
    });
    watch.status().confirm_deletions();
    eventually("the deletions are recorded", || has(12));
}

#[test]
fn entities_that_are_too_large_are_left_out_and_counted() {
    let place = Place::new();
    let statement = |iri: &str, value: &str| format!("<{iri}> <http://p> \"{value}\" .\n");
    let long = format!("http://a/{}", "x".repeat(9_000));
    let mut large = String::new();
    for number in 0..3_000 {
        large += &statement("http://a/large", &format!("{number:05}{}", "y".repeat(6_000)));
    }
    let nested =
        format!("<http://a/nested> <http://p> _:b .\n{}", large.replace("<http://a/large>", "_:b"));
    let mut others = String::new();
    for number in 0..5_000 {
        others += &statement(&format!("http://a/{number}"), "1");
    }
    place.replace(Syntax::NTriples, &statement("http://a/large", "small")).unwrap();
    let all = format!("{others}{}{large}{nested}", statement(&long, "1"));
    let report = place.replace(Syntax::NTriples, &all).unwrap();
    assert_eq!((report.left_out, report.created, report.deleted), (3, 5_000, 0));
    let state = place.state();
    assert_eq!(state.len(), 5_001);
    assert_eq!(state["http://a/large"], statement("http://a/large", "small"));
    // A difference is recorded completely or not at all.
    for (iri, change) in [(&*long, "1"), ("http://a/large", &"z".repeat(11 << 20))] {
        let error = place.patch(&format!("A {}", statement(iri, change))).unwrap_err();
        assert!(error.is_of_input(), "{error}");
    }
    assert_eq!(place.state(), state);
}

#[test]
fn what_is_taken_from_a_description_fits_into_the_log() {
    let place = Place::new();
    let class = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
    let replaced = "<http://purl.org/dc/terms/isReplacedBy>";
    let replacements = (0..2_000)
        .map(|number| format!("<http://a/3> {replaced} <http://a/replacement/{number}> .\n"));
    let text = format!(
        "<http://a/1> {class} <http://t/short> .\n<http://a/1> {class} <http://t/{}> .\n\
         <http://a/2> <http://www.w3.org/2000/01/rdf-schema#label> \"{}\" .\n\
         <http://a/3> <http://www.w3.org/2002/07/owl#deprecated> \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> .\n{}",
        "t".repeat(20_000),
        "l".repeat(20_000),
        replacements.collect::<String>(),
    );
    let report = place.replace(Syntax::NTriples, &text).unwrap();
    assert_eq!((report.left_out, report.created), (0, 3));
    assert_eq!(place.state(), expected(&text));
    let known = place.log.resource(place.set, "http://a/1").unwrap().unwrap();
    assert_eq!(known.state.description.unwrap().types, ["http://t/short"]);
}

#[test]
fn equal_labels_of_two_inputs_are_two_blank_nodes() {
    let place = Place::new();
    let one = "<http://a/1> <http://p> _:x .\n_:x <http://p> \"one\" .\n";
    let two = "<http://a/2> <http://p> _:x .\n_:x <http://p> \"two\" .\n";
    place.read(vec![input(Syntax::NTriples, one), input(Syntax::NTriples, two)]).unwrap();
    let both = format!("{one}{}", two.replace("_:x", "_:y"));
    assert_eq!(place.state(), expected(&both));
}

#[test]
fn graphs_of_quads_are_read_as_one_unless_some_are_named() {
    let mut place = Place::new();
    let quads = "<http://a/1> <http://p> \"x\" <http://g/1> .\n<http://a/1> <http://p> \"y\" .\n\
                 <http://a/1> <http://p> \"x\" <http://g/2> .\n";
    place.replace(Syntax::NQuads, quads).unwrap();
    assert_eq!(
        place.state(),
        expected(
            "<http://a/1> <http://p> \"x\", \"y\" .\n"
                .replace(", ", " .\n<http://a/1> <http://p> ")
                .as_str()
        )
    );
    for (graphs, text) in [
        (vec!["http://g/2"], "<http://a/1> <http://p> \"x\" .\n"),
        (vec!["default"], "<http://a/1> <http://p> \"y\" .\n"),
        (
            vec!["http://g/1", "default"],
            "<http://a/1> <http://p> \"x\" .\n<http://a/1> <http://p> \"y\" .\n",
        ),
    ] {
        place.options.sort.graphs = graphs.into_iter().map(str::to_owned).collect();
        place.replace(Syntax::NQuads, quads).unwrap();
        assert_eq!(place.state(), expected(text));
    }
}

#[test]
fn an_input_in_another_spelling_changes_nothing() {
    let place = Place::new();
    let text = "<http://a/1> <http://p> \"\u{e9}\" .\n<http://a/1> <http://p> _:a .\n<http://a/\u{e9}> <http://p> \"x\"@en .\n\
                _:a <http://p> \"z\" .\n";
    place.replace(Syntax::NTriples, text).unwrap();
    let state = place.state();
    let other = "# a comment\n<http://a/1> <http://p> \"\\u00e9\"   .\n\n<http://a/1>\t<http://p> _:b1 .\n\
                 <http://a/\\u00E9> <http://p> \"x\"@en .\n_:b1 <http://p> \"z\"^^<http://www.w3.org/2001/XMLSchema#string> .\n";
    for again in [input(Syntax::NTriples, other), file(other), file(text)] {
        let report = place.read(vec![again]).unwrap();
        assert_eq!((report.unchanged, report.updated, report.created), (2, 0, 0));
    }
    assert_eq!(place.state(), state);
}

impl Place {
    pub(crate) fn apply(&self, deltas: Vec<Delta>, lenient: bool) -> Result<RdfReport, RdfError> {
        let target = RdfTarget {
            log: &*self.log,
            set: self.set,
            contents: &*self.contents,
            kept: None,
            options: &self.options,
        };
        apply(target, deltas.into_iter().map(Ok), lenient, Timestamp::from_micros(2))
    }

    fn patch(&self, text: &str) -> Result<RdfReport, RdfError> {
        self.apply(vec![Delta::Patch(input(Syntax::NQuads, text))], false)
    }
}

#[test]
fn a_delta_changes_only_the_entities_it_is_about() {
    let place = Place::new();
    place.replace(Syntax::Turtle, TURTLE).unwrap();
    let before = place.state();
    let report = place
        .patch(
            "TX .\nA <http://id.example/c> <http://p> _:x .\nA _:x <http://p> \"new\" .\n\
             D <http://id.example/a#part> <http://id.example/of> <http://id.example/a> .\n\
             D <http://id.example/b> <http://id.example/in> <http://id.example/a> .\n\
             A <http://id.example/b> <http://id.example/in> <http://id.example/c> <http://g> .\n\
             A <http://id.example/a> <http://p> \"gone\" .\nD <http://id.example/a> <http://p> \"gone\" .\nTC .\n",
        )
        .unwrap();
    assert_eq!((report.created, report.updated, report.deleted, report.unchanged), (1, 1, 1, 1));
    let after = place.state();
    let iri = |name: &str| format!("http://id.example/{name}");
    assert_eq!(after[&iri("a")], before[&iri("a")]);
    assert_eq!(
        after[&iri("b")],
        before[&iri("b")].replace("/in> <http://id.example/a>", "/in> <http://id.example/c>")
    );
    assert_eq!(
        after[&iri("c")],
        expected("<http://id.example/c> <http://p> _:x .\n_:x <http://p> \"new\" .\n")[&iri("c")]
    );
    assert!(!after.contains_key(&iri("a#part")));
    assert_eq!(place.changes(3).len(), 3);
    // Files of statements: their blank nodes are separate.
    let add = |text| Delta::Add(input(Syntax::Turtle, text));
    let more = "<http://id.example/c> <http://p> [ <http://p> 'more' ] .";
    let removed = Delta::Remove(input(
        Syntax::NTriples,
        "<http://id.example/b> <http://id.example/in> <http://id.example/c> .\n",
    ));
    place.apply(vec![removed, add(more), add(more)], false).unwrap();
    assert_eq!(place.state()[&iri("c")].matches("\"more\"").count(), 2);
    assert!(!place.state()[&iri("b")].contains("/in>"));
    // The next complete state is compared as usual.
    assert_eq!(place.replace(Syntax::Turtle, TURTLE).unwrap().unchanged, 1);
    assert_eq!(place.state(), before);
}

#[test]
fn a_delta_that_does_not_apply_records_nothing() {
    let place = Place::new();
    place.replace(Syntax::Turtle, TURTLE).unwrap();
    let good = "A <http://id.example/b> <http://p> \"x\" .\n";
    for (wrong, problem) in [
        ("D <http://id.example/b> <http://p> \"y\" .", "is not there"),
        ("D <http://id.example/a> <http://p> _:b .", "cannot be removed"),
        ("A _:b <http://p> \"y\" .", "belong to no entity"),
        ("X <http://id.example/a> <http://p> \"y\" .", "input"),
        ("A <http://id.example/b> <http://p> \"y\"", "input"),
    ] {
        let error = place.patch(&format!("{good}{wrong}\n")).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    assert!(place.patch(&format!("TX .\n{good}TC .\nTX .\n{good}")).is_err());
    assert_eq!(place.changes(3), []);
    let missing = format!("{good}D <http://id.example/b> <http://p> \"y\" .\n");
    let report = place.apply(vec![Delta::Patch(input(Syntax::NQuads, &missing))], true).unwrap();
    assert_eq!(report.updated, 1);
}

#[test]
fn language_tags_keep_their_case() {
    let place = Place::new();
    let line = |tag: &str| format!("<http://id.example/a> <http://p> \"x\"@{tag} .\n");
    place.replace(Syntax::NTriples, &line("en-GB")).unwrap();
    assert_eq!(place.state()["http://id.example/a"], line("en-GB"));
    // A tag in another letter case makes another description, which is a change.
    place.replace(Syntax::Turtle, &line("en-gb")).unwrap();
    assert_eq!(
        (&place.state()["http://id.example/a"], place.changes(1).len()),
        (&line("en-gb"), 1)
    );
    // A tag in another letter case removes the same statement; a statement with the exact tag is
    // removed first.
    let removed = |tag: &str| format!("D {}", line(tag));
    place.patch(&format!("A {}A {}", line("EN"), line("En"))).unwrap();
    place.patch(&removed("En")).unwrap();
    place.patch(&removed("eN")).unwrap();
    assert_eq!(place.state()["http://id.example/a"], line("en-gb"));
    assert!(place.patch(&removed("en")).is_err());
}

#[test]
fn aborted_transactions_of_a_delta_do_not_apply() {
    let place = Place::new();
    let row =
        |code: char, entity: char| format!("{code} <http://id.example/{entity}> <http://p> 'x'.\n");
    let (a, b, c, d) = (row('A', 'a'), row('A', 'b'), row('A', 'c'), row('D', 'a'));
    let report = place
        .patch(&format!(
            "TX .\n{a}{b}TC .\nTX .\n{c}{d}TA .\nTX .\nTA .\nTX .\n{c}TC .\nTX .\n{d}TA .\n"
        ))
        .unwrap();
    assert_eq!((report.created, report.entities), (3, 3));
    // Labels of blank nodes may have any characters.
    let blank = "A <http://id.example/d> <http://p> <_:a/b:1> .\nA <_:a/b:1> <http://p> <_:a> .";
    place.patch(blank).unwrap();
    let expected = expected("<http://id.example/d> <http://p> _:x .\n_:x <http://p> _:y .\n");
    assert_eq!(place.state()["http://id.example/d"], expected["http://id.example/d"]);
}

/// Statements about a few entities and blank nodes, as lines.
fn statements() -> impl Strategy<Value = Vec<String>> {
    let iri = prop::sample::select(vec![
        "<http://a/>",
        "<http://a/x>",
        "<http://a/x#1>",
        "<http://a/x/y>",
        "<http://a/x1>",
        "<http://a/xy>",
        "<http://a/\u{e9}>",
        "<urn:a>",
        "<urn:a:b>",
    ]);
    let blank = prop::sample::select(vec!["_:a", "_:b", "_:c", "_:d"]);
    let subject = prop_oneof![3 => iri.clone(), 1 => blank.clone()];
    let literal = prop::sample::select(vec!["\"x\"", "\"x _:a\"", "\"y\"@en", "\"> <a\""]);
    let object = prop_oneof![2 => iri, 2 => blank, 1 => literal];
    let predicate = prop::sample::select(vec!["<http://p/1>", "<http://p/2>"]);
    let line = (subject, predicate, object).prop_map(|(s, p, o)| format!("{s} {p} {o} .\n"));
    prop::collection::vec(line, 0..40)
}

/// The whole set as one graph, with blank nodes in place of the IRIs that represent them.
fn whole(state: &BTreeMap<String, String>) -> Canonical {
    let mut all = Vec::new();
    for (number, text) in state.values().enumerate() {
        let named = |iri: &str| {
            iri.strip_prefix("http://a/.well-known/genid/").map(|name| format!("g{name}"))
        };
        for mut triple in triples(text) {
            let own = |node: &BlankNode| format!("e{number}{}", node.as_str());
            let subject = match &triple.subject {
                NamedOrBlankNode::NamedNode(node) => named(node.as_str()),
                NamedOrBlankNode::BlankNode(node) => Some(own(node)),
            };
            let object = match &triple.object {
                Term::NamedNode(node) => named(node.as_str()),
                Term::BlankNode(node) => Some(own(node)),
                Term::Literal(_) => None,
            };
            if let Some(label) = subject {
                triple.subject = BlankNode::new(label).unwrap().into();
            }
            if let Some(label) = object {
                triple.object = BlankNode::new(label).unwrap().into();
            }
            all.push(triple);
        }
    }
    abreast_rdf::canonical(all.iter().map(Triple::as_ref))
}

#[test]
fn an_import_and_changes_of_one_entity_wait_for_each_other() {
    let place = Place::new();
    let log: Arc<dyn ChangeLog> = Arc::clone(&place.log) as _;
    let writer =
        Arc::new(EntityWriter::new(log, place.set, place.contents.clone(), &place.options));
    let changing = writer.change().unwrap();
    let import = {
        let writer = Arc::clone(&writer);
        std::thread::spawn(move || {
            writer.import(Import::State(input(Syntax::Turtle, TURTLE)), false).unwrap().created
        })
    };
    eventually("the import waits, and no other change begins", || writer.change().is_err());
    let refused =
        writer.put("http://a/1", b"<http://a/1> <http://p> \"1\" .\n", None, Box::new(|_| {}));
    assert!(matches!(refused, Err(RdfError::Importing)));
    assert_eq!(place.changes(0), []);
    drop(changing);
    assert_eq!(import.join().unwrap(), 3);
    assert!(writer.change().is_ok());
}

proptest! {
    // Each case makes contents durable several times, so the number of cases is low.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_state_follows_any_other(states in prop::collection::vec(statements(), 1..5), sorted: bool) {
        let mut place = Place::new();
        place.options.confirm_deletions = true;
        let mut before = BTreeMap::new();
        for mut lines in states {
            let position = place.log.head(place.set).unwrap().position.0;
            if sorted {
                lines.sort();
            }
            let text = lines.concat();
            let report = place.read(vec![file(&text)]).unwrap();
            let after = expected(&text);
            prop_assert_eq!(&place.state(), &after);
            let changed = |key: &String| before.get(key) != after.get(key);
            let mut keys: Vec<_> = before.keys().chain(after.keys()).filter(|key| changed(key)).cloned().collect();
            keys.sort();
            keys.dedup();
            let mut recorded: Vec<_> = place.changes(position).into_iter().map(|(_, key)| key).collect();
            recorded.sort();
            prop_assert_eq!(&recorded, &keys, "only what changed is recorded");
            prop_assert_eq!(report.entities as usize, after.len());
            // The same statements in another order, with other labels.
            lines.reverse();
            let again = lines.concat().replace("_:a", "_:z9").replace("_:b", "_:a");
            let position = place.log.head(place.set).unwrap().position.0;
            if report.unstable == 0 {
                place.replace(Syntax::NTriples, &again.replace("\"x _:z9\"", "\"x _:a\"")).unwrap();
                prop_assert_eq!(place.changes(position), []);
            }
            before = after;
        }
    }

    #[test]
    fn with_iris_for_blank_nodes_nothing_is_lost(lines in statements()) {
        let mut place = Place::new();
        place.options.skolemize = Some("http://a".to_owned());
        let text = lines.concat();
        let report = place.replace(Syntax::NTriples, &text).unwrap();
        prop_assert_eq!(report.shared_blank_nodes, 0);
        // Circles of blank nodes that no entity reaches are counted, and not published.
        prop_assume!(report.unreached_blank_nodes == 0 && report.unstable == 0);
        let all = triples(&text);
        let expected = abreast_rdf::canonical(all.iter().map(Triple::as_ref));
        prop_assert_eq!(whole(&place.state()).lines, expected.lines);
    }
}
