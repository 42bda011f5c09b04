//! Content that is put into a published folder, and content that is refused.

use crate::world::World;
use abreast_folder::Folder;
use abreast_source::IngestOptions;
use abreast_source::deposit::{Condition, Deposit, DepositError};
use std::sync::Arc;

#[test]
fn a_folder_made_while_a_file_arrives_is_in_its_way() {
    let world = World::begun();
    let deposit = Deposit::new(Arc::clone(&world.log), world.set, IngestOptions::default());
    let folder = Folder::open(&world.folder).unwrap();
    let absent = Condition { absent: true, ..Condition::default() };
    let present = Condition { present: true, ..Condition::default() };
    for (number, condition) in [Condition::default(), absent, present].into_iter().enumerate() {
        let name = format!("name{number}");
        let mut upload = deposit.begin(&folder, name.as_bytes()).unwrap();
        upload.write(b"x").unwrap();
        std::fs::create_dir(world.folder.join(&name)).unwrap();
        let refused = deposit.finish(
            &folder,
            upload,
            &condition,
            Box::new(|_| panic!("nothing is recorded")),
        );
        assert!(
            matches!(&refused, Err(DepositError::InTheWay(why)) if why.contains("folder")),
            "{condition:?}"
        );
        assert!(matches!(deposit.begin(&folder, name.as_bytes()), Err(DepositError::InTheWay(_))));
    }
    assert_eq!(std::fs::read_dir(&world.folder).unwrap().count(), 3, "nothing is left behind");
}

#[test]
fn a_file_for_a_folder_that_was_removed_meanwhile_is_refused() {
    let world = World::begun();
    let deposit = Deposit::new(Arc::clone(&world.log), world.set, IngestOptions::default());
    let folder = Folder::open(&world.folder).unwrap();
    let mut upload = deposit.begin(&folder, b"dir/name").unwrap();
    upload.write(b"x").unwrap();
    std::fs::remove_dir_all(world.folder.join("dir")).unwrap();
    let done = Box::new(|_| panic!("nothing is recorded"));
    let refused = deposit.finish(&folder, upload, &Condition::default(), done);
    assert!(
        matches!(refused, Err(DepositError::InTheWay(why)) if why.contains("removed meanwhile"))
    );
}
