//! A flipped bit of a folder of contents is found, or means nothing.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Condition, Contents, ErrorKind, Limits, View};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore as _;
use abreast_testkit::{Random, bits, folder};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Flips of one run; ABREAST_TEST_FLIPS asks for more.
const FLIPS: u64 = 300;
const CONTENTS: u64 = 150;

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.packed_bytes, limits.segment_bytes, limits.unindexed, limits.garbage_bytes) =
        (1_000, 20_000, 40, 1_000);
    limits
}

fn body(number: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(25) { 3_000 } else { 40 + number % 9 * 60 };
    number.to_le_bytes().iter().copied().cycle().take(length as usize).collect()
}

fn id(number: u64) -> ContentId {
    ContentId(*blake3::hash(&body(number)).as_bytes())
}

/// Every seventh content was removed again.
fn is_kept(number: u64) -> bool {
    !number.is_multiple_of(7)
}

fn write(path: &Path) {
    let contents = Contents::open_with(path, limits()).unwrap();
    for number in 0..CONTENTS {
        let _ = contents.put_bytes(&body(number)).unwrap();
    }
    for number in (0..CONTENTS).filter(|number| !is_kept(*number)) {
        contents.remove(&id(number)).unwrap();
    }
}

/// The files that have bits.
fn files(folder: &Path) -> Vec<PathBuf> {
    folder::paths(folder)
        .into_iter()
        .filter(|path| path.is_file() && fs::metadata(path).unwrap().len() > 0)
        .collect()
}

/// Contents that are not as they were kept, as `check` finds them; `None`: the index is.
fn found(path: &Path) -> Option<Vec<(u64, Condition)>> {
    let view = match View::open(path) {
        Ok(view) => view,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            return None;
        }
    };
    let kept = (0..CONTENTS).filter(|number| is_kept(*number));
    let examined = kept.map(|number| (number, view.examine(&id(number)).unwrap()));
    Some(examined.filter(|(_, condition)| *condition != Condition::Whole).collect())
}

#[test]
fn a_flipped_bit_is_found_or_means_nothing() {
    let flips = bits::flips(FLIPS);
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    write(&original);
    assert_eq!(found(&original), Some(Vec::new()));
    let files = files(&original);
    let total: u64 = files.iter().map(|path| fs::metadata(path).unwrap().len() * 8).sum();
    let mut random = Random::new(0x1234_5678_9abc_def1);
    let (mut of_index, mut of_contents) = (0, 0);
    for _ in 0..flips {
        let (mut bit, mut file) = (random.below(total), 0);
        while bit >= fs::metadata(&files[file]).unwrap().len() * 8 {
            bit -= fs::metadata(&files[file]).unwrap().len() * 8;
            file += 1;
        }
        let place = folder::in_memory();
        let path = place.path().join("contents");
        folder::copy(&original, &path);
        let flipped = path.join(files[file].strip_prefix(&original).unwrap());
        let mut bytes = fs::read(&flipped).unwrap();
        bits::flip(&mut bytes, bit);
        fs::remove_file(&flipped).unwrap();
        fs::write(&flipped, &bytes).unwrap();
        let context = format!("bit {bit} of {}", flipped.display());
        let damaged = found(&path);
        assert!(fs::read(&flipped).unwrap() == bytes, "{context}: a check changes nothing");
        match &damaged {
            None => of_index += 1,
            Some(damaged) => of_contents += damaged.len(),
        }
        let damaged = damaged.unwrap_or_default();
        assert!(damaged.len() <= 1, "{context}: {damaged:?}");
        // Whoever keeps contents here gives out no other bytes, and has all that are not damaged,
        // then and after compaction.
        let contents = Contents::open_with(&path, limits()).unwrap();
        for round in 0..2 {
            for number in (0..CONTENTS).filter(|number| is_kept(*number)) {
                let mut bytes = Vec::new();
                let read = contents.open_read(&id(number)).and_then(|mut content| {
                    content
                        .read_to_end(&mut bytes)
                        .map_err(|error| abreast_contents::Error::of_read(&id(number), error))
                });
                let of_bytes = damaged.iter().any(|(one, condition)| {
                    *one == number && *condition != Condition::RecordDamaged
                });
                match read {
                    Ok(_) => {
                        assert!(bytes == body(number), "{context}, round {round}: {number}");
                    }
                    Err(error) => assert!(of_bytes, "{context}, round {round}: {number}: {error}"),
                }
            }
            contents.compact().unwrap();
        }
        for (number, condition) in &damaged {
            if *condition == Condition::RecordDamaged {
                contents.rewrite(&id(*number)).unwrap();
            } else {
                contents.remove(&id(*number)).unwrap();
                let _ = contents.put_bytes(&body(*number)).unwrap();
            }
        }
        drop(contents);
        assert_eq!(found(&path), Some(Vec::new()), "{context}: repaired");
    }
    println!("of {flips} flips {of_contents} were found in contents and {of_index} in the index");
    assert!(of_contents > flips as usize / 4 && of_index > 0);
}
