//! A segment that ends too early, at any byte: what is before its end is there, the rest is missing
//! and can be put again. With an index that names more than the segment has, and without one. And a
//! folder belongs to one process.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Condition, Contents, ErrorKind, Limits, View};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore as _;
use abreast_testkit::{folder, run};
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

const CONTENTS: u64 = 5;
/// Bytes of a record before its content. A segment has half as many before its first record.
const RECORD: u64 = 48;
const SEGMENT: u64 = 24;

fn body(number: u64) -> Vec<u8> {
    vec![number as u8; 2 + number as usize * 3]
}

fn id(number: u64) -> ContentId {
    ContentId(*blake3::hash(&body(number)).as_bytes())
}

/// The end of a content in the segment.
fn end(number: u64) -> u64 {
    SEGMENT + (0..=number).map(|number| RECORD + body(number).len() as u64).sum::<u64>()
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.unindexed, limits.garbage_bytes) = (2, 0);
    limits
}

fn read(contents: &Contents, number: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match contents.open_read(&id(number)) {
        Ok(mut content) => content.read_to_end(&mut bytes).map(|_| Some(bytes)).unwrap(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            None
        }
    }
}

#[test]
fn segment_cut_off_at_any_byte_loses_only_what_is_behind() {
    let place = folder::in_memory();
    let original = place.path().join("original");
    let contents = Contents::open_with(&original, limits()).unwrap();
    for number in 0..CONTENTS {
        let _ = contents.put_bytes(&body(number)).unwrap();
    }
    drop(contents);
    let segment = Path::new("packed/0000000001.segment");
    let length = fs::metadata(original.join(segment)).unwrap().len();
    assert_eq!(length, end(CONTENTS - 1));
    let without = (0..length).step_by(3).map(|length| (length, false));
    for (length, has_index) in (0..length).map(|length| (length, true)).chain(without) {
        let context = format!("{length} bytes, with index: {has_index}");
        let path = place.path().join("cut");
        folder::copy(&original, &path);
        File::options().write(true).open(path.join(segment)).unwrap().set_len(length).unwrap();
        if !has_index {
            for run in folder::paths(&path.join("packed")) {
                if run.extension().is_some_and(|extension| extension == "index") {
                    fs::remove_file(run).unwrap();
                }
            }
        }
        let whole = (0..CONTENTS).filter(|number| end(*number) <= length).count() as u64;
        let view = View::open(&path).unwrap();
        let mut listed = 0;
        view.visit(&mut |id, length| {
            assert_eq!(view.length(&id).unwrap(), Some(length), "{context}");
            listed += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(listed, whole, "{context}");
        for number in 0..CONTENTS {
            let expected = if number < whole { Condition::Whole } else { Condition::Missing };
            assert_eq!(view.examine(&id(number)).unwrap(), expected, "{context}: {number}");
        }
        let contents = Contents::open_with(&path, limits()).unwrap();
        for number in 0..CONTENTS {
            assert_eq!(
                read(&contents, number),
                (number < whole).then(|| body(number)),
                "{context}: {number}"
            );
            let _ = contents.put_bytes(&body(number)).unwrap();
        }
        contents.sync().unwrap();
        drop(contents);
        let contents = Contents::open_with(&path, limits()).unwrap();
        let mut all = 0;
        for first in 0..=255 {
            contents
                .visit(first, &mut |_| {
                    all += 1;
                    ControlFlow::Continue(())
                })
                .unwrap();
        }
        assert_eq!(all, CONTENTS, "{context}");
        // What is left of the segment goes when its contents go.
        for number in 0..CONTENTS {
            assert_eq!(read(&contents, number), Some(body(number)), "{context}: {number}");
            assert!(contents.remove(&id(number)).unwrap());
        }
        contents.compact().unwrap();
        drop(contents);
        fs::remove_dir_all(&path).unwrap();
    }
}

const HELD: &str = "ABREAST_CONTENTS_HELD";

#[test]
fn second_process() {
    let Some(path) = std::env::var_os(HELD) else { return };
    let error = Contents::open(Path::new(&path)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(View::open(Path::new(&path)).unwrap().examine(&id(1)).unwrap(), Condition::Whole);
}

#[test]
fn a_second_process_reads_the_folder_and_cannot_write_it() {
    if std::env::var_os(HELD).is_some() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("contents");
    let contents = Contents::open(&path).unwrap();
    let _ = contents.put_bytes(&body(1)).unwrap();
    let before = folder::paths(&path);
    let mut second = Command::new(std::env::current_exe().unwrap());
    let output = run(second.args(["--exact", "second_process", "--nocapture"]).env(HELD, &path));
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(folder::paths(&path), before, "nothing was made or removed");
    assert_eq!(read(&contents, 1), Some(body(1)));
}
