//! The promises of a folder of kept bytes, each checked for contents that are files, for packed
//! ones, and for packed ones whose segments and index change all the time.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Condition, Contents, Error, ErrorKind, Limits, View};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore as _;
use abreast_testkit::Random;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    contents: Contents,
    limits: Limits,
}

/// No content is packed, except the empty one.
fn files() -> Limits {
    let mut limits = Limits::default();
    limits.packed_bytes = 0;
    limits
}

/// Segments of a few contents, an index of many files.
fn tiny() -> Limits {
    let mut limits = Limits::default();
    (limits.packed_bytes, limits.segment_bytes, limits.unindexed, limits.garbage_bytes) =
        (3_000, 5_000, 4, 0);
    limits
}

/// Checks a promise in each way that contents are kept.
fn each(check: fn(Place)) {
    for limits in [files(), Limits::default(), tiny()] {
        check(Place::new(limits));
    }
}

impl Place {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::open_with(&folder.path().join("contents"), limits).unwrap();
        Self { folder, contents, limits }
    }

    /// Closed, and opened again.
    fn reopen(self) -> Self {
        let Self { folder, contents, limits } = self;
        drop(contents);
        Self {
            contents: Contents::open_with(&folder.path().join("contents"), limits).unwrap(),
            folder,
            limits,
        }
    }

    fn path(&self, id: &ContentId) -> PathBuf {
        let name = id.to_string();
        self.folder.path().join("contents").join(&name[..2]).join(&name[2..])
    }

    fn read(&self, id: &ContentId) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.contents.open_read(id).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn all(&self) -> BTreeSet<ContentId> {
        let mut all = BTreeSet::new();
        for first in 0..=255 {
            self.contents
                .visit(first, &mut |id| {
                    assert!(all.insert(id));
                    ControlFlow::Continue(())
                })
                .unwrap();
        }
        all
    }

    /// Files that are left once nothing is being written: also not in the background, where parts
    /// of the index are merged.
    fn temporaries(&self) -> usize {
        self.contents.compact().unwrap();
        fs::read_dir(self.folder.path().join("contents/tmp")).unwrap().count()
    }

    fn file(&self, bytes: &[u8]) -> File {
        let path = self.folder.path().join("original");
        fs::write(&path, bytes).unwrap();
        File::open(path).unwrap()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the callback")]
fn never(_: &[u8]) -> io::Result<()> {
    Ok(())
}

#[test]
fn equal_bytes_are_kept_once_however_they_come() {
    each(|place| {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        let one = place.contents.put_bytes(&bytes).unwrap();
        let two = place.contents.put_reader(&mut bytes.as_slice(), u64::MAX).unwrap();
        let mut seen = Vec::new();
        let file = place.file(&bytes);
        let mut see = |part: &[u8]| {
            seen.extend_from_slice(part);
            Ok(())
        };
        let three = place.contents.put_file(file.as_fd(), u64::MAX, &mut see).unwrap();
        assert_eq!((one.id(), one.length()), (two.id(), 1_000_000));
        assert_eq!(one.id(), three.id());
        assert_eq!(one.id().as_bytes(), blake3::hash(&bytes).as_bytes());
        assert!(seen == bytes, "all bytes are shown once");
        assert_eq!(place.all(), BTreeSet::from([one.id()]));
        assert!(place.read(&one.id()) == bytes);
        assert_eq!(
            (place.contents.length(&one.id()).unwrap(), place.temporaries()),
            (Some(1_000_000), 0)
        );
        place.contents.sync().unwrap();
    });
}

#[test]
fn a_copy_does_not_follow_its_original() {
    each(|place| {
        let kept = place.contents.put_file(place.file(b"before").as_fd(), 100, &mut never).unwrap();
        fs::write(place.folder.path().join("original"), "after!").unwrap();
        assert_eq!(place.read(&kept.id()), b"before");
    });
}

#[test]
fn too_long_or_unreadable_contents_leave_nothing() {
    each(|place| {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("on purpose"))
            }
        }
        let kind =
            |result: Result<abreast_contents::PinnedContent, Error>| result.unwrap_err().kind();
        assert_eq!(
            kind(place.contents.put_reader(&mut b"12345".as_slice(), 4)),
            ErrorKind::TooLong
        );
        assert_eq!(
            kind(place.contents.put_file(place.file(b"12345").as_fd(), 4, &mut never)),
            ErrorKind::TooLong
        );
        assert_eq!(kind(place.contents.put_reader(&mut Broken, 4)), ErrorKind::Input);
        let mut stop = |_: &[u8]| Err(io::Error::other("stopped"));
        assert_eq!(
            kind(place.contents.put_file(place.file(b"12345").as_fd(), 9, &mut stop)),
            ErrorKind::Input
        );
        assert_eq!((place.all().len(), place.temporaries()), (0, 0));
        let _ = place.contents.put_reader(&mut b"1234".as_slice(), 4).unwrap();
    });
}

#[test]
fn pinned_bytes_stay_and_others_go_unless_needed() {
    each(|place| {
        let contents = &place.contents;
        let kept = contents.put_bytes(b"x").unwrap();
        let (id, second) = (kept.id(), contents.hold(&kept.id()).unwrap().unwrap());
        assert_eq!((second.id(), second.length()), (id, 1));
        drop(kept);
        assert!(!contents.remove(&id).unwrap(), "still pinned");
        let asked = contents.remove_unless(&id, &mut || panic!("a pin is known without asking"));
        assert!(!asked.unwrap());
        drop(second);
        assert!(!contents.remove_unless(&id, &mut || true).unwrap(), "a row needs it");
        assert!(contents.contains(&id).unwrap());
        let mut open = contents.open_read(&id).unwrap();
        assert!(contents.remove(&id).unwrap());
        assert!(!contents.remove(&id).unwrap(), "nothing is left");
        assert!(!contents.contains(&id).unwrap());
        assert_eq!(contents.open_read(&id).unwrap_err().kind(), ErrorKind::NotFound);
        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x", "who reads it reads on");
        assert!(contents.hold(&id).unwrap().is_none(), "what is not kept is not held");
        assert_eq!(contents.put_bytes(b"x").unwrap().id(), id);
        assert_eq!(place.read(&id), b"x");
    });
}

#[test]
fn a_damaged_copy_is_replaced_by_the_next_put() {
    let place = Place::new(files());
    let kept = place.contents.put_bytes(b"whole").unwrap();
    fs::remove_file(place.path(&kept.id())).unwrap();
    fs::write(place.path(&kept.id()), "who").unwrap();
    let _again = place.contents.put_bytes(b"whole").unwrap();
    assert_eq!(place.read(&kept.id()), b"whole");
}

#[test]
fn links_are_not_followed() {
    let place = Place::new(files());
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("secret");
    fs::write(&target, "secret").unwrap();
    let id = ContentId(*blake3::hash(b"x").as_bytes());
    let path = place.path(&id);
    symlink(outside.path(), path.parent().unwrap()).unwrap();
    assert_eq!(place.contents.put_bytes(b"x").unwrap_err().kind(), ErrorKind::Foreign);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "nothing was written there");
    fs::remove_file(path.parent().unwrap()).unwrap();
    fs::create_dir(path.parent().unwrap()).unwrap();
    symlink(&target, &path).unwrap();
    assert_eq!(place.contents.open_read(&id).unwrap_err().kind(), ErrorKind::Foreign);
    assert_eq!(place.contents.put_bytes(b"x").unwrap_err().kind(), ErrorKind::Foreign);
    assert_eq!(fs::read_to_string(&target).unwrap(), "secret");
}

#[test]
fn partial_writes_of_a_killed_process_are_removed() {
    let place = Place::new(files());
    let id = place.contents.put_bytes(b"x").unwrap().id();
    let Place { folder, contents, limits } = place;
    let path = folder.path().join("contents");
    assert_eq!(Contents::open(&path).unwrap_err().kind(), ErrorKind::Busy);
    drop(contents);
    fs::write(path.join("tmp/0"), "half").unwrap();
    fs::write(path.join("a note"), "not ours").unwrap();
    let place = Place { contents: Contents::open_with(&path, limits).unwrap(), folder, limits };
    assert_eq!((place.temporaries(), place.all()), (0, BTreeSet::from([id])));
    let _ = place.contents.put_bytes(b"y").unwrap();
    assert!(Path::new(&path).join("a note").exists());
}

#[test]
fn threads_put_and_remove_the_same_bytes_without_loss() {
    each(|place| {
        let contents = &place.contents;
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    for round in 0..200_u64 {
                        let bytes = vec![(round % 5) as u8; 2_000];
                        let kept = contents.put_bytes(&bytes).unwrap();
                        contents.sync().unwrap();
                        let mut read = Vec::new();
                        contents.open_read(&kept.id()).unwrap().read_to_end(&mut read).unwrap();
                        assert!(read == bytes, "thread {thread}, round {round}");
                        let id = kept.id();
                        drop(kept);
                        contents.remove(&id).unwrap();
                    }
                });
            }
        });
        assert_eq!((place.all().len(), place.temporaries()), (0, 0));
    });
}

#[test]
fn a_failed_sync_stops_writes_until_the_store_is_reopened() {
    let place = Place::new(files());
    let kept = place.contents.put_bytes(b"x").unwrap();
    let part = place.path(&kept.id()).parent().unwrap().to_owned();
    fs::rename(&part, place.folder.path().join("aside")).unwrap();
    fs::write(&part, "no folder").unwrap();
    assert!(place.contents.sync().is_err());
    let kind = |result: Result<abreast_contents::PinnedContent, Error>| result.unwrap_err().kind();
    assert_eq!(kind(place.contents.put_bytes(b"y")), ErrorKind::Untrusted);
    assert_eq!(kind(place.contents.put_reader(&mut b"y".as_slice(), 9)), ErrorKind::Untrusted);
    assert_eq!(
        place.contents.sync().unwrap_err().kind(),
        ErrorKind::Untrusted,
        "it is not tried again"
    );
    let place = place.reopen();
    let _ = place.contents.put_bytes(b"y").unwrap();
    place.contents.sync().unwrap();
}

#[test]
fn small_contents_share_files_and_large_ones_have_their_own() {
    let place = Place::new(Limits::default());
    let largest = usize::try_from(Limits::default().packed_bytes).unwrap();
    for length in [0, 1, largest - 1, largest, largest + 1, 2 * largest] {
        let bytes = vec![7; length];
        let kept = place.contents.put_bytes(&bytes).unwrap();
        let other = place.contents.put_reader(&mut bytes.as_slice(), u64::MAX).unwrap();
        let third =
            place.contents.put_file(place.file(&bytes).as_fd(), u64::MAX, &mut never).unwrap();
        assert_eq!((kept.id(), kept.length()), (other.id(), other.length()));
        assert_eq!((kept.id(), kept.length()), (third.id(), third.length()));
        assert_eq!(place.path(&kept.id()).exists(), length > largest, "{length} bytes");
        assert_eq!(
            place.contents.open_read(&kept.id()).unwrap().file().is_some(),
            length > largest
        );
        assert!(place.read(&kept.id()) == bytes);
    }
    let place = place.reopen();
    assert_eq!(place.all().len(), 6);
}

#[test]
fn small_contents_that_are_files_are_read_and_removed() {
    let place = Place::new(files());
    let ids: Vec<ContentId> =
        (0..50_u8).map(|one| place.contents.put_bytes(&[one; 9]).unwrap().id()).collect();
    let place = Place { limits: Limits::default(), ..place }.reopen();
    for (one, id) in ids.iter().enumerate() {
        assert_eq!(place.read(id), [one as u8; 9]);
        assert_eq!(place.contents.length(id).unwrap(), Some(9));
    }
    let again = place.contents.put_bytes(&[3; 9]).unwrap();
    assert_eq!(place.all(), ids.iter().copied().collect(), "it is kept once");
    drop(again);
    for id in &ids {
        assert!(place.contents.remove(id).unwrap());
        assert!(!place.path(id).exists());
    }
    assert_eq!(place.all().len(), 0);
}

#[test]
fn contents_are_the_same_after_reopening() {
    each(|mut place| {
        let mut expected = BTreeSet::new();
        let mut random = Random::new(7);
        for round in 0..400_u64 {
            let number = random.below(256);
            let bytes = vec![number as u8; 20 + number as usize * 11];
            let id = ContentId(*blake3::hash(&bytes).as_bytes());
            if random.below(4) == 0 {
                assert_eq!(
                    place.contents.remove(&id).unwrap(),
                    expected.remove(&id),
                    "round {round}"
                );
            } else {
                assert_eq!(place.contents.put_bytes(&bytes).unwrap().id(), id);
                expected.insert(id);
            }
            match round % 40 {
                7 => place.contents.sync().unwrap(),
                19 => place.contents.compact().unwrap(),
                33 => place = place.reopen(),
                _ => {}
            }
            if round % 20 == 0 {
                assert_eq!(place.all(), expected, "round {round}");
            }
        }
        for id in &expected {
            let bytes = place.read(id);
            assert_eq!(blake3::hash(&bytes).as_bytes(), id.as_bytes());
        }
        assert_eq!(place.reopen().all(), expected);
    });
}

#[test]
fn a_damaged_packed_content_is_replaced_by_the_next_put() {
    let place = Place::new(Limits::default());
    let kept = place.contents.put_bytes(b"whole").unwrap();
    let other = place.contents.put_bytes(b"another").unwrap();
    let path = place.folder.path().join("contents/packed/0000000001.segment");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|part| part == b"whole").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = place.contents.open_read(&kept.id()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("help:"), "{error}");
    let _again = place.contents.put_bytes(b"whole").unwrap();
    assert_eq!(place.read(&kept.id()), b"whole");
    assert_eq!(place.reopen().read(&other.id()), b"another");
}

#[test]
fn a_damaged_or_missing_index_is_rebuilt() {
    let place = Place::new(tiny());
    let ids: Vec<ContentId> =
        (0..90_u8).map(|one| place.contents.put_bytes(&[one; 200]).unwrap().id()).collect();
    place.contents.sync().unwrap();
    let Place { folder, contents, limits } = place;
    drop(contents);
    let runs = || {
        let names = fs::read_dir(folder.path().join("contents/packed"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut runs: Vec<PathBuf> =
            names.filter(|path| path.extension().unwrap() == "index").collect();
        runs.sort();
        runs
    };
    for round in 0..4 {
        let runs = runs();
        match round {
            0 => fs::remove_file(&runs[0]).unwrap(),
            1 => fs::remove_file(runs.last().unwrap()).unwrap(),
            2 => File::options().write(true).open(&runs[0]).unwrap().set_len(100).unwrap(),
            _ => {
                let mut bytes = fs::read(&runs[0]).unwrap();
                bytes[50] ^= 8;
                fs::write(&runs[0], bytes).unwrap();
            }
        }
        let contents = Contents::open_with(&folder.path().join("contents"), limits).unwrap();
        for (one, id) in ids.iter().enumerate() {
            let mut bytes = Vec::new();
            contents.open_read(id).unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, [one as u8; 200], "round {round}");
        }
    }
}

#[test]
fn compaction_frees_space_while_contents_are_read_and_put() {
    let mut limits = tiny();
    (limits.segment_bytes, limits.unindexed) = (100_000, 300);
    let place = Place::new(limits);
    let body = |number: u64| number.to_le_bytes().repeat(100);
    let ids: Vec<ContentId> =
        (0..2_000).map(|number| place.contents.put_bytes(&body(number)).unwrap().id()).collect();
    let (kept, gone): (Vec<_>, Vec<_>) =
        ids.iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let contents = &place.contents;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                for (number, id) in &kept {
                    let mut bytes = Vec::new();
                    contents.open_read(id).unwrap().read_to_end(&mut bytes).unwrap();
                    assert!(bytes == body(*number as u64), "{number}");
                }
            }
        });
        scope.spawn(|| {
            for number in 2_000..3_000 {
                let id = contents.put_bytes(&body(number)).unwrap().id();
                assert!(contents.contains(&id).unwrap());
            }
        });
        for (_, id) in &gone {
            assert!(contents.remove(id).unwrap());
        }
        contents.compact().unwrap();
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    contents.compact().unwrap();
    contents.sync().unwrap();
    assert_eq!(place.all().len(), 2_000);
    let on_disk: u64 = fs::read_dir(place.folder.path().join("contents/packed"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(on_disk * 10 < 2_000 * 800 * 13, "{on_disk} bytes for 1,600,000");
}

#[test]
fn another_process_sees_all_contents_during_compaction() {
    let place = Place::new(tiny());
    let body = |number: u32| number.to_le_bytes().repeat(1 + number as usize % 90);
    let stay: Vec<ContentId> =
        (0..60).map(|number| place.contents.put_bytes(&body(number)).unwrap().id()).collect();
    place.contents.sync().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 60..900 {
                let id = place.contents.put_bytes(&body(number)).unwrap().id();
                if number % 4 > 0 {
                    place.contents.remove(&id).unwrap();
                }
                if number % 25 == 0 {
                    place.contents.compact().unwrap();
                }
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut views = 0;
        while views < 3 || !done.load(std::sync::atomic::Ordering::SeqCst) {
            let view = View::open(&place.folder.path().join("contents")).unwrap();
            let mut seen = BTreeSet::new();
            view.visit(&mut |id, length| {
                assert_eq!(view.length(&id).unwrap(), Some(length));
                assert!(seen.insert(id));
                Ok(())
            })
            .unwrap();
            for id in &stay {
                assert!(seen.contains(id), "view {views}");
                assert_eq!(view.examine(id).unwrap(), Condition::Whole, "view {views}");
            }
            views += 1;
        }
    });
    assert!(
        View::open(&place.folder.path().join("nothing"))
            .unwrap()
            .length(&stay[0])
            .unwrap()
            .is_none()
    );
}

#[test]
fn contents_of_a_lost_segment_are_missing_and_put_again() {
    let place = Place::new(Limits::default());
    let ids: Vec<ContentId> =
        (0..20_u8).map(|one| place.contents.put_bytes(&[one; 99]).unwrap().id()).collect();
    let Place { folder, contents, limits } = place;
    drop(contents);
    let packed = folder.path().join("contents/packed");
    fs::remove_file(packed.join("0000000001.segment")).unwrap();
    let place = Place {
        contents: Contents::open_with(&folder.path().join("contents"), limits).unwrap(),
        folder,
        limits,
    };
    assert_eq!(place.all(), BTreeSet::new());
    for (one, id) in ids.iter().enumerate() {
        assert_eq!(place.contents.open_read(id).unwrap_err().kind(), ErrorKind::NotFound);
        let _ = place.contents.put_bytes(&[one as u8; 99]).unwrap();
    }
    assert!(!packed.join("0000000001.segment").exists(), "no number is used twice");
    let place = place.reopen();
    for (one, id) in ids.iter().enumerate() {
        assert_eq!(place.read(id), [one as u8; 99]);
    }
}

#[test]
fn intact_bytes_replace_a_damaged_content() {
    type Put = fn(&Contents, &[u8]) -> ContentId;
    let puts: [Put; 3] = [
        |contents, bytes| contents.put_bytes(bytes).unwrap().id(),
        |contents, mut bytes| contents.put_reader(&mut bytes, u64::MAX).unwrap().id(),
        |contents, bytes| {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, bytes).unwrap();
            contents.put_file(file.as_fd(), u64::MAX, &mut |_| Ok(())).unwrap().id()
        },
    ];
    for limits in [files(), Limits::default(), tiny()] {
        for put in puts {
            for length in [1_000, 200_000] {
                let place = Place::new(limits);
                let bytes: Vec<u8> = (0..length).map(|number| (number % 251) as u8).collect();
                let id = put(&place.contents, &bytes);
                place.contents.sync().unwrap();
                for path in abreast_testkit::folder::paths(&place.folder.path().join("contents")) {
                    let mut kept = fs::read(&path).unwrap_or_default();
                    if kept.len() >= length {
                        let middle = kept.len() - length / 2;
                        kept[middle] ^= 1;
                        fs::remove_file(&path).unwrap();
                        fs::write(&path, kept).unwrap();
                    }
                }
                // What is open was deleted.
                let place = place.reopen();
                assert_eq!(put(&place.contents, &bytes), id);
                place.contents.sync().unwrap();
                assert!(place.read(&id) == bytes);
                let place = place.reopen();
                assert!(place.read(&id) == bytes);
            }
        }
    }
}
