//! `abreast demo`: publishes a folder, mirrors and synchronises it on this machine, and prints each
//! step.

use crate::command::args::DemoArgs;
use crate::command::serve::Running;
use crate::config::{File, ServeConfig, SetFile};
use crate::program::terminal::line;
use abreast_destination::{Event, SyncOptions};
use abreast_webtypes::{count, count_of};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Records in the collection.
const RECORDS: usize = 120;
/// How long a change may take until it is in the copy; it usually takes a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the demonstration; fails if the copy is not equal at any step.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    let temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
    let place = args.dir.clone().unwrap_or_else(|| temporary.path().to_owned());
    let (original, copy) = (place.join("museum"), place.join("copy"));
    ensure!(
        !original.exists() && !copy.exists(),
        "`{}` holds an earlier demo (help: remove it, or name another --dir)",
        place.display()
    );

    line("1. A museum has a folder of records: descriptions in JSON-LD, and small pictures.");
    make_collection(&original)?;
    line(&format!("   {} in {}", count_of(files(&original)?.len(), "file"), original.display()));

    line("2. It publishes the folder:  abreast serve museum");
    let source = serve(&original)?;
    line(&format!("   {} lists the resources and their changes for programs", source.base_url));

    line("3. A library copies it and follows:  abreast sync URL copy --follow");
    let follower = Follower::start(&source.base_url, &copy);
    let seconds = wait_until_equal(&original, &copy, &follower)?;
    line(&format!(
        "   {} copied and verified in {seconds:.1} s",
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
    let seconds = wait_until_equal(&original, &copy, &follower)?;
    line(&format!(
        "   the copy followed {seconds:.1} s later: one updated, one deleted, one created"
    ));

    line("5. A whole folder is renamed.");
    fs::rename(original.join("pictures"), original.join("images"))?;
    let seconds = wait_until_equal(&original, &copy, &follower)?;
    line(&format!("   the copy followed {seconds:.1} s later"));

    line("6. An audit compares copy and museum:  abreast audit URL copy --full");
    let mut audit = SyncOptions::new(source.base_url.clone(), &copy);
    audit.connections = 4;
    let options = abreast_destination::AuditOptions { sync: audit, full: true };
    let report = abreast_destination::audit(
        &options,
        &abreast_destination::Silent,
        &AtomicBool::new(false),
    )?;
    if report.exit_code != 0 {
        bail!(
            "the copy differs: {} different, {} missing, {} extra",
            report.updated,
            report.missing,
            report.extra
        );
    }
    line(&format!(
        "   equal: {}, each with the digest that the museum states",
        count(report.same, "file")
    ));

    if args.keep {
        let signals = crate::program::signals::Signals::listen()?;
        line("");
        line("Left running. Change a file in the first folder, and watch the second:");
        line(&format!("   published  {}", original.display()));
        line(&format!("   copy       {}", copy.display()));
        line(&format!(
            "   addresses  {0}  {0}.well-known/resourcesync  {0}museum/changelist.xml",
            source.base_url
        ));
        line("Ctrl-C ends it.");
        signals.wait_to_stop();
    }
    follower.stop()?;
    source.stop();
    line("Done. Next:  abreast serve FOLDER   and, anywhere else:   abreast sync URL FOLDER");
    Ok(ExitCode::SUCCESS)
}

fn serve(folder: &Path) -> Result<Running> {
    let set = SetFile {
        name: Some("museum".into()),
        title: Some("A museum's collection".into()),
        folder: folder.to_owned(),
        ..SetFile::default()
    };
    let file = File { listen: Some("127.0.0.1:0".into()), set: vec![set], ..File::default() };
    Running::start(ServeConfig::check(file)?)
}

/// The Destination, which follows the Source in a separate thread.
struct Follower {
    cancel: Arc<AtomicBool>,
    thread: JoinHandle<Result<abreast_destination::Summary, abreast_destination::Error>>,
}

impl Follower {
    fn start(url: &str, folder: &Path) -> Self {
        let mut options = SyncOptions::new(url, folder);
        // A second between polls suits a demonstration; the default of 30 suits the Web.
        options.interval = Duration::from_secs(1);
        let cancel = Arc::new(AtomicBool::new(false));
        let cancel_flag = Arc::clone(&cancel);
        let print_event = |event: &Event<'_>| {
            if let Event::Error(problem) = event {
                line(&format!("   ! {}: {} [{}]", problem.uri, problem.message, problem.code));
            }
        };
        let thread = std::thread::spawn(move || {
            abreast_destination::follow(&options, &print_event, &cancel_flag)
        });
        Self { cancel, thread }
    }

    fn stop(self) -> Result<()> {
        self.cancel.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.exit_code() == abreast_destination::ExitCode::Cancelled => {
                Ok(())
            }
            Ok(Err(error)) => Err(error).context("while following"),
            Err(_) => bail!("the following thread panicked"),
        }
    }
}

/// Waits until both folders hold the same bytes; returns the seconds it took.
fn wait_until_equal(original: &Path, copy: &Path, follower: &Follower) -> Result<f64> {
    let begun = Instant::now();
    loop {
        if copy.is_dir() && files(original)? == files(copy)? {
            return Ok(begun.elapsed().as_secs_f64());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "the copy was not equal after {} s",
            PATIENCE.as_secs()
        );
        ensure!(!follower.thread.is_finished(), "the following run ended early");
        std::thread::sleep(Duration::from_millis(100));
    }
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
