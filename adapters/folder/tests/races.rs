//! No access leaves the folder while parent folders are swapped for links (thousands of races).

use abreast_folder::Folder;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn no_write_leaves_the_folder_when_a_parent_becomes_a_link() {
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

#[test]
fn nothing_outside_is_read_while_followed_links_are_swapped() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    std::fs::create_dir_all(root.join("shown")).unwrap();
    std::fs::create_dir_all(root.join(".hidden")).unwrap();
    std::fs::create_dir_all(place.path().join("outside")).unwrap();
    for (folder, content) in
        [("root/shown", "inside"), ("root/.hidden", "hidden"), ("outside", "secret")]
    {
        std::fs::write(place.path().join(folder).join("file"), content).unwrap();
    }
    let Ok(folder) = Folder::open(&root).unwrap().following_links(|name| !name.starts_with(b"."))
    else {
        println!("skipped: this system cannot follow links safely");
        return;
    };
    symlink("shown", root.join("link")).unwrap();
    let done = AtomicBool::new(false);
    let (mut read, mut wrong) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for target in ["../outside", "shown", ".hidden", "shown"].iter().cycle() {
                symlink(target, root.join(".new")).unwrap();
                std::fs::rename(root.join(".new"), root.join("link")).unwrap();
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for number in 0..10_000 {
            let opened = match number % 2 {
                0 => folder.open_file(b"link/file"),
                _ => folder.root().dir(b"link").and_then(|dir| dir.open_read(b"file")),
            };
            let Ok((file, _)) = opened else { continue };
            read += 1;
            wrong += u32::from(std::io::read_to_string(file).unwrap() != "inside");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(read > 0, "no link was followed");
    assert_eq!(wrong, 0, "of {read} answers");
}
