//! Backups that earlier versions made are restored.

use crate::world::abreast;
use abreast_contents::{Condition, View};
use abreast_testkit::{folder, run};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// Made by the last version that kept each content as a file, with `abreast serve --versions all`
/// and `abreast backup`: three resources, three changes, six contents, of which one has 96,001
/// bytes.
const FORMAT_1: &[u8] = include_bytes!("../fixtures/backup_format_1.zip");

pub(crate) fn unpack(to: &Path) {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(FORMAT_1)).unwrap();
    for number in 0..archive.len() {
        let mut file = archive.by_index(number).unwrap();
        let path = to.join(file.enclosed_name().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn code(words: &[&str], paths: &[&Path]) -> (Option<i32>, String) {
    let output = run(abreast().args(&words[..1]).args(paths).args(&words[1..]));
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), text)
}

#[test]
fn backup_with_a_file_for_each_content_is_restored() {
    let place = tempfile::tempdir().unwrap();
    let (backups, data) = (place.path().join("backups"), place.path().join("data"));
    unpack(&backups);
    let (done, text) = code(&["restore", "--verbose"], &[&backups, &data]);
    assert!(done == Some(0) && text.contains("set set: 3 resources, up to position 3"), "{text}");
    for line in ["migrating the database to a newer schema", "the database is migrated"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (done, text) = code(&["check", "--read-data"], &[&data]);
    assert!(done == Some(0) && text.contains("kept contents: 6, 6 read"), "{text}");
    let view = View::open(&data.join("contents")).unwrap();
    let mut texts = BTreeSet::new();
    view.visit(&mut |id, length| {
        assert_eq!(view.examine(&id).unwrap(), Condition::Whole);
        let mut bytes = Vec::new();
        view.open_read(&id).unwrap().read_to_end(&mut bytes)?;
        assert_eq!(bytes.len() as u64, length);
        texts.insert(String::from_utf8(bytes).unwrap().chars().take(16).collect::<String>());
        Ok(())
    })
    .unwrap();
    let expected = [
        "first text of 1\n",
        "first text of 2\n",
        "first text of 3\n",
        "second text of 1",
        "third text of 1\n",
    ];
    assert_eq!(
        texts,
        expected.iter().chain(&["a large content "]).map(|text| (*text).to_owned()).collect()
    );
    let packed = folder::paths(&data.join("contents/packed"));
    assert!(
        packed.iter().any(|path| path.extension().is_some_and(|extension| extension == "segment")),
        "{packed:?}"
    );

    // The next backup is made in the same folder as the earlier ones, and is restored too.
    let (done, text) = code(&["backup"], &[&data, &backups]);
    assert!(done == Some(0) && text.contains("0 contents copied"), "{text}");
    let again = place.path().join("again");
    let (done, text) = code(&["restore"], &[&backups, &again]);
    assert_eq!(done, Some(0), "{text}");
    let (done, text) = code(&["check", "--read-data"], &[&again]);
    assert!(done == Some(0) && text.contains("kept contents: 6, 6 read"), "{text}");
}

#[test]
fn damaged_backup_of_an_earlier_version_is_not_restored() {
    let place = tempfile::tempdir().unwrap();
    let (backups, data) = (place.path().join("backups"), place.path().join("data"));
    unpack(&backups);
    let contents = folder::paths(&backups.join("contents"));
    let one = contents.iter().find(|path| path.is_file()).unwrap();
    let mut bytes = fs::read(one).unwrap();
    bytes[3] ^= 1;
    fs::write(one, &bytes).unwrap();
    let (done, text) = code(&["restore"], &[&backups, &data]);
    assert!(done == Some(1) && text.contains("is missing or damaged in the backup"), "{text}");
    fs::remove_file(one).unwrap();
    let (done, text) = code(&["restore"], &[&backups, &data]);
    assert!(done == Some(1) && text.contains("is missing or damaged in the backup"), "{text}");
    assert!(!data.exists(), "nothing is written");
}
