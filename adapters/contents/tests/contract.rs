//! The contract of stores of contents, run by the folder: with contents that are files, packed
//! ones, and packed ones whose segments and index change all the time.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Contents, Limits};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore;
use abreast_core::testing::{ContentStores, content_store_contract};
use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

struct Folders {
    limits: Limits,
    folder: TempDir,
}

impl Folders {
    fn path(&self) -> PathBuf {
        self.folder.path().join("contents")
    }

    fn open(&self) -> Arc<dyn ContentStore> {
        Arc::new(Contents::open_with(&self.path(), self.limits).unwrap())
    }
}

impl ContentStores for Folders {
    fn create(&mut self) -> Arc<dyn ContentStore> {
        self.folder = tempfile::tempdir().unwrap();
        self.open()
    }

    fn reopen(&mut self, store: Arc<dyn ContentStore>) -> Arc<dyn ContentStore> {
        drop(store);
        self.open()
    }

    fn share(&mut self) -> Option<Arc<dyn ContentStore>> {
        None
    }

    fn damage(&mut self, id: &ContentId) {
        let name = id.to_string();
        let file = self.path().join(&name[..2]).join(&name[2..]);
        if file.exists() {
            let mut bytes = fs::read(&file).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::remove_file(&file).unwrap();
            fs::write(&file, bytes).unwrap();
            return;
        }
        // The bytes are the last of the newest segment.
        let segment = fs::read_dir(self.path().join("packed"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
            .max()
            .unwrap();
        let mut bytes = fs::read(&segment).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&segment, bytes).unwrap();
    }

    fn pass_grace(&mut self) {}

    fn file(&mut self, bytes: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.into()
    }
}

fn check(limits: Limits) {
    content_store_contract(&mut Folders { limits, folder: tempfile::tempdir().unwrap() });
}

#[test]
fn a_folder_of_packed_contents_holds_the_contract() {
    check(Limits::default());
}

#[test]
fn a_folder_of_files_holds_the_contract() {
    let mut limits = Limits::default();
    limits.packed_bytes = 0;
    check(limits);
}

#[test]
fn a_folder_that_is_compacted_all_the_time_holds_the_contract() {
    let mut limits = Limits::default();
    (limits.packed_bytes, limits.segment_bytes, limits.unindexed, limits.garbage_bytes) =
        (3_000, 5_000, 4, 0);
    check(limits);
}
