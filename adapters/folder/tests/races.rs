//! Does anything leave the folder while parents are swapped for links? (thousands of races)

use abreast_folder::Folder;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn nothing_is_written_outside_while_a_parent_is_swapped_for_a_link() {
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let parent = place.path().join("parent");
    let aside = place.path().join("aside");
    std::fs::create_dir(&parent).unwrap();
    let folder = Folder::open(place.path()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(&parent, &aside).unwrap();
                symlink(outside.path(), &parent).unwrap();
                std::fs::remove_file(&parent).unwrap();
                std::fs::rename(&aside, &parent).unwrap();
            }
        });
        for _ in 0..10_000 {
            let Ok(dir) = folder.dir([b"parent".as_slice()]) else { continue };
            let Ok(mut file) = dir.create_new(b"temp") else { continue };
            file.write_all(b"x").unwrap();
            dir.rename(b"temp", &dir, b"final").unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}
