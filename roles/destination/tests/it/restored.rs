//! Targets that were lost, emptied or restored from a backup: runs detect that the content is not
//! their own result.

use crate::contract::{SinkCase, seen, sinks};
use crate::copy::{self, Copy, Ran};
use crate::rdf::{endpoint, in_endpoint};
use crate::source::Source;
use abreast_destination::SinkOptions;
use abreast_destination::check::{CopyPlace, repair_copy};
use oxigraph::model::Quad;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The content of a target at some time.
#[derive(Clone, Debug, Default)]
struct Backup {
    files: BTreeMap<PathBuf, Vec<u8>>,
    quads: Vec<Quad>,
}

/// The files of a target, without the files of the copy's state.
fn files_of(copy: &Copy) -> BTreeMap<PathBuf, Vec<u8>> {
    let below = |folder: &Path| {
        let files = copy::files(folder).into_iter();
        files.map(|(name, bytes)| (folder.join(name), bytes)).collect::<BTreeMap<_, _>>()
    };
    match &copy.options.sink {
        SinkOptions::Folder | SinkOptions::Warc(_) | SinkOptions::NQuads(_) => {
            let mut files = below(copy.folder());
            if copy.options.state.is_some() {
                let marker = copy.folder().join(".abreast/owner");
                files.extend(std::fs::read(&marker).map(|bytes| (marker, bytes)));
            }
            files
        }
        #[cfg(feature = "s3")]
        SinkOptions::Objects(_) => below(&copy.place.path().join("store")),
        SinkOptions::Labels(labels) => std::fs::read_dir(labels.path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("/labels."))
            .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
            .collect(),
        _ => BTreeMap::new(),
    }
}

impl Backup {
    fn of(copy: &Copy) -> Self {
        Self { files: files_of(copy), quads: endpoint().store.iter().map(Result::unwrap).collect() }
    }

    fn restore(&self, copy: &Copy) {
        for path in files_of(copy).keys() {
            std::fs::remove_file(path).unwrap();
        }
        for (path, bytes) in &self.files {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        endpoint().store.clear().unwrap();
        self.quads.iter().for_each(|quad| endpoint().store.insert(quad).unwrap());
    }
}

/// The sinks whose content can be read. A receiver of SDShare Push cannot be read.
fn readable() -> impl Iterator<Item = SinkCase> {
    sinks().into_iter().filter(|case| case.name != "receiver")
}

/// A copy that was updated for some time.
fn begun(case: &SinkCase) -> (Source, Copy) {
    // A folder of files with the state in it is restored together with the state.
    begun_with(case, case.name == "folder")
}

fn begun_with(case: &SinkCase, is_elsewhere: bool) -> (Source, Copy) {
    let mut source = (case.source)();
    for path in ["/a", "/b", "/c"] {
        source.set(path, "1");
    }
    source.snapshot();
    let mut copy = Copy::kept_in(&source, case.sink);
    if is_elsewhere {
        copy.options.state = Some(copy.place.path().join("state"));
    }
    assert_eq!(copy.run().created, 3, "{}", case.name);
    source.set("/b", "2");
    assert_eq!(copy.run().updated, 1, "{}", case.name);
    (source, copy)
}

/// Runs until the copy equals the Source, by the solutions in the help texts.
fn until_equal(case: &SinkCase, copy: &mut Copy, source: &mut Source, what: &str) -> Vec<String> {
    let ran = copy.try_run();
    let mut codes = ran.codes.clone();
    if let Err(error) = ran.result {
        assert!(["warc.damaged", "nquads.damaged"].contains(&error.code()), "{what}: {error}");
        assert!(error.help().unwrap().contains("abreast repair"), "{what}: {error}");
        codes.push(error.code().to_owned());
        let place = CopyPlace::find(copy.folder()).unwrap();
        repair_copy(
            &place,
            &|_| true,
            false,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        assert_eq!(copy.try_run().exit(), 0, "{what}");
    }
    assert_eq!(seen(&(case.read)(copy, source)), seen(&source.kept), "{what}");
    assert_eq!(copy.audit(true).exit_code, 0, "{what}");
    let again = copy.try_run();
    assert_eq!((again.exit(), again.codes), (0, Vec::new()), "{what}: once");
    source.set("/later", "1");
    copy.run();
    assert_eq!(seen(&(case.read)(copy, source)), seen(&source.kept), "{what}");
    codes
}

/// Whether this was reported.
fn is_named(codes: &[String]) -> bool {
    let named = ["local.restored", "local.altered", "warc.damaged", "nquads.damaged"];
    codes.iter().any(|code| named.contains(&code.as_str()))
}

#[test]
fn a_target_that_was_emptied_is_noticed() {
    // A folder without its marker is refused: `own_files.rs`.
    for case in readable().filter(|case| case.name != "folder") {
        let (mut source, mut copy) = begun(&case);
        let what = case.name;
        Backup::default().restore(&copy);
        let codes = until_equal(&case, &mut copy, &mut source, what);
        assert!(is_named(&codes), "{what}: {codes:?}");
    }
}

#[test]
fn a_target_that_was_restored_is_noticed() {
    type Change = fn(&mut Source);
    let changes: [(&str, Change); 3] = [
        ("created", |source| source.set("/d", "1")),
        ("updated", |source| source.set("/a", "2")),
        ("deleted", |source| source.delete("/c")),
    ];
    for (case, (change, apply)) in readable().flat_map(|case| changes.map(|change| (case, change)))
    {
        let what = format!("{}, then {change}", case.name);
        let (mut source, mut copy) = begun(&case);
        let backup = Backup::of(&copy);
        apply(&mut source);
        assert_eq!(copy.run().exit_code, 0, "{what}");
        backup.restore(&copy);
        if change == "deleted" && case.name == "warc" {
            // The record of the deletion is lost, which is an error until it is repaired.
            assert_eq!(copy.try_run().code(), "warc.damaged");
            continue;
        }
        let has_rows_of_all =
            !matches!(case.name, "folder" | "objects" | "oxigraph" | "endpoint" | "graph store");
        if change == "deleted" && !has_rows_of_all {
            // The returned resources are not in a list for comparisons: the run reports that once.
            let Ran { result, codes, reported, .. } = copy.try_run();
            assert_eq!(
                (result.unwrap().exit_code, codes),
                (0, vec!["local.restored".to_owned()]),
                "{what}"
            );
            assert!(reported[0].message.contains("deleted"), "{what}: {reported:?}");
            assert!(copy.try_run().codes.is_empty(), "{what}");
            continue;
        }
        let codes = until_equal(&case, &mut copy, &mut source, &what);
        assert!(is_named(&codes), "{what}: {codes:?}");
    }
}

#[test]
fn a_target_restored_with_its_state_is_brought_up_to_date() {
    for case in readable().filter(|case| ["folder", "warc", "nquads"].contains(&case.name)) {
        for is_elsewhere in [false, true] {
            let (mut source, copy) = begun_with(&case, is_elsewhere);
            let what = format!("{}, elsewhere: {is_elsewhere}", case.name);
            let place = copy.place.path().to_owned();
            let backup = everything(&place);
            source.set("/a", "3");
            source.delete("/b");
            source.set("/d", "1");
            copy.run();
            std::fs::remove_dir_all(&place).unwrap();
            for (path, bytes) in backup {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 0, "{what}: {:?}", ran.codes);
            assert!(!ran.has("local.restored"), "{what}: {:?}", ran.reported);
            assert_eq!(seen(&(case.read)(&copy, &source)), seen(&source.kept), "{what}");
        }
    }
}

#[test]
fn a_target_several_versions_back_is_noticed() {
    for (case, versions) in readable().flat_map(|case| [2, 5].map(|versions| (case, versions))) {
        let what = format!("{}, {versions} versions back", case.name);
        let (mut source, mut copy) = begun(&case);
        let backup = Backup::of(&copy);
        for version in 0..versions {
            source.set("/a", &format!("version {version}"));
            assert_eq!(copy.run().updated, 1, "{what}");
        }
        backup.restore(&copy);
        let codes = until_equal(&case, &mut copy, &mut source, &what);
        assert!(is_named(&codes), "{what}: {codes:?}");
    }
}

/// Every file, including files of states.
fn everything(place: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![place.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                all.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    all
}

#[test]
fn what_others_store_in_a_service_is_not_taken_for_a_backup() {
    for case in readable().filter(|case| ["oxigraph", "endpoint"].contains(&case.name)) {
        let (source, copy) = begun(&case);
        let uri = source.server.url("/b");
        endpoint().update(&format!("INSERT DATA {{ <{uri}> <http://ns.example/own> 1 }}"));
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.codes), (0, Vec::new()), "{}", case.name);
        assert_eq!(endpoint().store.len().unwrap(), 4, "{}", case.name);
    }
}

#[test]
fn an_endpoint_that_does_not_answer_is_not_taken_for_emptied() {
    use abreast_testkit::endpoint::Fault;
    let case = readable().find(|case| case.name == "endpoint").unwrap();
    let (source, copy) = begun(&case);
    endpoint().judge_queries(|_| Some(Fault::Status(503)));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.codes), (0, Vec::new()));
    endpoint().judge_queries(|_| None);
    assert_eq!(seen(&in_endpoint(&copy, &source)), seen(&source.kept));
}
