//! What does a folder of kept bytes promise?
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Contents, Error, ErrorKind};
use abreast_core::ContentId;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    contents: Contents,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::open(&folder.path().join("contents")).unwrap();
        Self { folder, contents }
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

    fn temporaries(&self) -> usize {
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
    let place = Place::new();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    let one = place.contents.put_bytes(&bytes).unwrap();
    let two = place.contents.put_reader(&mut bytes.as_slice(), u64::MAX).unwrap();
    let mut seen = Vec::new();
    let file = place.file(&bytes);
    let mut see = |part: &[u8]| {
        seen.extend_from_slice(part);
        Ok(())
    };
    let three = place.contents.put_file(&file, u64::MAX, &mut see).unwrap();
    assert_eq!((one.id(), one.length()), (two.id(), 1_000_000));
    assert_eq!(one.id(), three.id());
    assert_eq!(one.id().as_bytes(), blake3::hash(&bytes).as_bytes());
    assert!(seen == bytes, "all bytes are shown once");
    assert_eq!(place.all(), BTreeSet::from([one.id()]));
    assert!(place.read(&one.id()) == bytes);
    assert_eq!((place.contents.length(&one.id()).unwrap(), place.temporaries()), (Some(1_000_000), 0));
    place.contents.sync().unwrap();
}

#[test]
fn a_copy_does_not_follow_its_original() {
    let place = Place::new();
    let kept = place.contents.put_file(&place.file(b"before"), 100, &mut never).unwrap();
    fs::write(place.folder.path().join("original"), "after!").unwrap();
    assert_eq!(place.read(&kept.id()), b"before");
}

#[test]
fn what_is_too_long_or_cannot_be_read_leaves_nothing() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("on purpose"))
        }
    }
    let place = Place::new();
    let kind = |result: Result<abreast_contents::Kept, Error>| result.unwrap_err().kind();
    assert_eq!(kind(place.contents.put_reader(&mut b"12345".as_slice(), 4)), ErrorKind::TooLong);
    assert_eq!(kind(place.contents.put_file(&place.file(b"12345"), 4, &mut never)), ErrorKind::TooLong);
    assert_eq!(kind(place.contents.put_reader(&mut Broken, 4)), ErrorKind::Input);
    let mut stop = |_: &[u8]| Err(io::Error::other("stopped"));
    assert_eq!(kind(place.contents.put_file(&place.file(b"12345"), 9, &mut stop)), ErrorKind::Input);
    assert_eq!((place.all().len(), place.temporaries()), (0, 0));
    let _ = place.contents.put_reader(&mut b"1234".as_slice(), 4).unwrap();
}

#[test]
fn pinned_bytes_stay_and_others_go_unless_needed() {
    let place = Place::new();
    let contents = &place.contents;
    let kept = contents.put_bytes(b"x").unwrap();
    let (id, second) = (kept.id(), contents.hold(&kept.id()).unwrap().unwrap());
    assert_eq!((second.id(), second.length()), (id, 1));
    drop(kept);
    assert!(!contents.remove(&id).unwrap(), "still pinned");
    let asked = contents.remove_unless(&id, || -> Result<bool, Error> { panic!("a pin is known without asking") });
    assert!(!asked.unwrap());
    drop(second);
    assert!(!contents.remove_unless(&id, || Ok::<_, Error>(true)).unwrap(), "a row needs it");
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
}

#[test]
fn a_damaged_copy_is_replaced_by_the_next_put() {
    let place = Place::new();
    let kept = place.contents.put_bytes(b"whole").unwrap();
    fs::remove_file(place.path(&kept.id())).unwrap();
    fs::write(place.path(&kept.id()), "who").unwrap();
    let _again = place.contents.put_bytes(b"whole").unwrap();
    assert_eq!(place.read(&kept.id()), b"whole");
}

#[test]
fn links_are_not_followed() {
    let place = Place::new();
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
fn what_a_killed_process_was_writing_is_removed_and_the_rest_stays() {
    let place = Place::new();
    let id = place.contents.put_bytes(b"x").unwrap().id();
    let Place { folder, contents } = place;
    let path = folder.path().join("contents");
    assert_eq!(Contents::open(&path).unwrap_err().kind(), ErrorKind::Busy);
    drop(contents);
    fs::write(path.join("tmp/0"), "half").unwrap();
    fs::write(path.join("a note"), "not ours").unwrap();
    let place = Place { contents: Contents::open(&path).unwrap(), folder };
    assert_eq!((place.temporaries(), place.all()), (0, BTreeSet::from([id])));
    let _ = place.contents.put_bytes(b"y").unwrap();
    assert!(Path::new(&path).join("a note").exists());
}

#[test]
fn many_threads_put_and_remove_the_same_bytes_without_losing_any() {
    let place = Place::new();
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
}

#[test]
fn after_a_sync_that_failed_nothing_is_accepted_until_it_is_opened_again() {
    let place = Place::new();
    let kept = place.contents.put_bytes(b"x").unwrap();
    let part = place.path(&kept.id()).parent().unwrap().to_owned();
    fs::rename(&part, place.folder.path().join("aside")).unwrap();
    fs::write(&part, "no folder").unwrap();
    assert!(place.contents.sync().is_err());
    let kind = |result: Result<abreast_contents::Kept, Error>| result.unwrap_err().kind();
    assert_eq!(kind(place.contents.put_bytes(b"y")), ErrorKind::Untrusted);
    assert_eq!(kind(place.contents.put_reader(&mut b"y".as_slice(), 9)), ErrorKind::Untrusted);
    assert_eq!(place.contents.sync().unwrap_err().kind(), ErrorKind::Untrusted, "it is not tried again");
    let Place { folder, contents } = place;
    drop(contents);
    let contents = Contents::open(&folder.path().join("contents")).unwrap();
    let _ = contents.put_bytes(b"y").unwrap();
    contents.sync().unwrap();
}
