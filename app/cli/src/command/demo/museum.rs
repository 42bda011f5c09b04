//! The demonstration with files: a museum's folder of records and pictures.

use super::parts::{Follower, audit, end, new_folder, serve, sync};
use crate::config::SetFile;
use crate::program::terminal::line;
use abreast_destination::SyncOptions;
use abreast_webtypes::count_of;
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Records in the collection.
const RECORDS: usize = 120;

/// Runs the demonstration in `place`; fails if the copy is not equal at any step.
pub(super) fn run(place: &Path, is_kept: bool) -> Result<ExitCode> {
    let [original, copy, second] =
        ["museum", "copy", "copy-of-feed"].map(|it| new_folder(place, it));
    let (original, copy, second) = (original?, copy?, second?);

    line("1. A museum has a folder of records: descriptions in JSON-LD, and small pictures.");
    make_collection(&original)?;
    line(&format!("   {} in {}", count_of(files(&original)?.len(), "file"), original.display()));

    line("2. It publishes the folder:  abreast serve museum");
    let source = serve(SetFile {
        name: Some("museum".into()),
        title: Some("A museum's collection".into()),
        folder: original.clone(),
        ..SetFile::default()
    })?;
    let url = source.base_url.clone();
    line(&format!("   {url} lists the resources and their changes for programs"));

    line("3. A library copies it and follows:  abreast sync URL copy --follow");
    let follower = Follower::start(SyncOptions::new(&*url, &copy))?;
    let wait_until_equal =
        || follower.wait_until(|| Ok(copy.is_dir() && files(&original)? == files(&copy)?));
    let seconds = wait_until_equal()?;
    line(&format!(
        "   {} copied and verified in {seconds:.1} s; the museum's hub pushes changes from now on",
        count_of(files(&copy)?.len(), "file")
    ));

    line(
        "4. The museum changes its records: a description is corrected, a picture is taken down, a new record is added.",
    );
    fs::write(
        original.join("objects/0007.jsonld"),
        record(7, "Beaker with a lid, silver gilt, about 1560"),
    )?;
    fs::remove_file(original.join("pictures/0003.svg"))?;
    fs::write(
        original.join("objects/0999 – a new find.jsonld"),
        record(999, "Amphora, found this morning"),
    )?;
    let seconds = wait_until_equal()?;
    line(&format!(
        "   pushed: the copy followed {seconds:.1} s later: one updated, one deleted, one created"
    ));

    line("5. A whole folder is renamed.");
    fs::rename(original.join("pictures"), original.join("images"))?;
    let seconds = wait_until_equal()?;
    line(&format!("   pushed: the copy followed {seconds:.1} s later"));

    line(
        "6. An aggregator reads another protocol of the same log, IIIF Change Discovery:  abreast sync URL/museum/iiif copy-of-feed",
    );
    sync(&SyncOptions::new(format!("{url}museum/iiif"), &second))?;
    ensure!(files(&second)? == files(&original)?, "the copy of the change feed differs");
    line(&format!("   {} copied; both copies are equal", count_of(files(&second)?.len(), "file")));

    line("7. An audit compares copy and museum:  abreast audit URL copy --full");
    let same = audit(SyncOptions::new(&*url, &copy), "file")?;
    line(&format!("   equal: {same}, each with the digest that the museum lists"));

    let kept = is_kept.then(|| {
        [
            format!("published  {}", original.display()),
            format!("copy       {}", copy.display()),
            format!(
                "addresses  {url}  {url}.well-known/resourcesync  {url}museum/changelist.xml  {url}museum/iiif"
            ),
        ]
    });
    let next = "abreast serve FOLDER   and, anywhere else:   abreast sync URL FOLDER;   abreast demo --rdf";
    end(source, follower, kept.as_ref().map(<[_; 3]>::as_slice), next)?;
    Ok(ExitCode::SUCCESS)
}

/// All visible files in a folder and its subfolders, with their bytes. The folder may change during
/// the call.
fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let cannot_list = || format!("cannot list `{}`", next.display());
        let entries = match fs::read_dir(&next) {
            // The copy removed a folder since its parent was listed.
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) && next != folder => {
                continue;
            }
            entries => entries.with_context(cannot_list)?,
        };
        for entry in entries {
            let entry = entry.with_context(cannot_list)?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                continue;
            }
            match fs::read(&path) {
                Ok(bytes) => drop(found.insert(path.strip_prefix(folder)?.to_owned(), bytes)),
                // Removed or replaced since the folder was listed.
                Err(error) if matches!(error.kind(), NotFound | NotADirectory | IsADirectory) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
                }
            }
        }
    }
    Ok(found)
}

fn make_collection(folder: &Path) -> Result<()> {
    const THINGS: [&str; 6] = [
        "Beaker",
        "Astrolabe",
        "Self-portrait",
        "Herbarium sheet",
        "Map of the harbour",
        "Viola da gamba",
    ];
    fs::create_dir_all(folder.join("objects"))?;
    fs::create_dir_all(folder.join("pictures"))?;
    fs::write(folder.join("README.txt"), "Records of a small museum. Free to copy.\n")?;
    for number in 1..=RECORDS {
        let title = format!("{}, inventory number {number}", THINGS[number % THINGS.len()]);
        fs::write(folder.join(format!("objects/{number:04}.jsonld")), record(number, &title))?;
        let hue = number * 37 % 360;
        let picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 60 40\"><rect width=\"60\" height=\"40\" \
             fill=\"hsl({hue} 60% 70%)\"/><text x=\"4\" y=\"24\">{number}</text></svg>\n"
        );
        fs::write(folder.join(format!("pictures/{number:04}.svg")), picture)?;
    }
    Ok(())
}

fn record(number: usize, title: &str) -> String {
    format!(
        "{{\n  \"@context\": \"https://linked.art/ns/v1/linked-art.json\",\n  \"id\": \"https://example.org/object/{number}\",\n  \
         \"type\": \"HumanMadeObject\",\n  \"_label\": \"{title}\"\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn folders_that_vanish_while_listed_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("stays"), "here").unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for number in 0..20 {
                        let folder = place.path().join(format!("{number}"));
                        fs::create_dir(&folder).unwrap();
                        fs::write(folder.join("file"), "bytes").unwrap();
                        fs::remove_dir_all(&folder).unwrap();
                    }
                }
            });
            let listed: Vec<_> = (0..2000).map(|_| files(place.path())).collect();
            done.store(true, Ordering::Relaxed);
            for found in listed {
                assert_eq!(found.unwrap()[Path::new("stays")], b"here");
            }
        });
    }
}
