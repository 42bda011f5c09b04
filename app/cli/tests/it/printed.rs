//! Commands that the program prints: each is run as it was printed.

use crate::world::{Source, abreast};
use abreast_testkit::folder::{assert_equal, files, same};
use abreast_testkit::http::{Server, send};
use abreast_testkit::{Running, eventually, eventually_ok, run};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs a printed command in a folder by a shell that finds `abreast`; the text of both streams.
fn pasted(command: &str, place: &Path) -> Result<String, String> {
    let programs = place.join("programs");
    if !programs.exists() {
        fs::create_dir(&programs).unwrap();
        symlink(env!("CARGO_BIN_EXE_abreast"), programs.join("abreast")).unwrap();
        if let Some(resync) = std::env::var_os("ABREAST_TEST_RESYNC_SYNC") {
            symlink(resync, programs.join("resync-sync")).unwrap();
        }
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let output = run(shell.args(["-c", command]).current_dir(place).env("PATH", path));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // The reference client ends with 0 even after fatal errors.
    if output.status.success() && !text.contains("FatalError") {
        Ok(text)
    } else {
        Err(format!("`{command}` {:?}: {text}", output.status.code()))
    }
}

/// The commands in the code of a page.
fn in_page(page: &[u8]) -> Vec<String> {
    let page = String::from_utf8_lossy(page).into_owned();
    let code = page.split("<pre tabindex=\"0\"><code>").skip(1);
    let code = code.map(|rest| rest.split("</code>").next().unwrap());
    code.flat_map(str::lines)
        .map(|line| line.replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\""))
        .collect()
}

/// Two folders and the configuration that publishes them.
fn two_sets(place: &Path) -> (Vec<PathBuf>, PathBuf) {
    let folders: Vec<PathBuf> = ["papers", "maps"].map(|name| place.join(name)).into();
    let mut config = format!("data = \"{}\"\n", place.join("store").display());
    for folder in &folders {
        fs::create_dir(folder).unwrap();
        for number in 0..3 {
            fs::write(folder.join(format!("{number}.txt")), format!("{number}")).unwrap();
        }
        let _ = writeln!(config, "[[set]]\nfolder = \"{}\"\ndebounce = \"30ms\"", folder.display());
    }
    let path = place.join("abreast.toml");
    fs::write(&path, config).unwrap();
    (folders, path)
}

#[test]
fn commands_of_pages_and_of_serve_copy_everything() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let (folders, config) = two_sets(place);
    let source = Source::start_config(config.to_str().unwrap());
    let root = in_page(&source.get("/").unwrap());
    assert_eq!(root.len(), 1, "{root:?}");
    for (number, command) in [&root[0], source.hint()].into_iter().enumerate() {
        let copy = format!("all{number}");
        pasted(&command.replace("FOLDER", &copy), place).unwrap();
        for folder in &folders {
            assert_equal(folder, &place.join(&copy).join(folder.file_name().unwrap()));
        }
    }
    let has_resync = std::env::var_os("ABREAST_TEST_RESYNC_SYNC").is_some();
    for folder in &folders {
        let slug = folder.file_name().unwrap().to_str().unwrap();
        let commands = in_page(&source.get(&format!("/{slug}/about.html")).unwrap());
        let mut endless = 0;
        for command in &commands {
            let is_of_resync = command.starts_with("resync-sync");
            if is_of_resync && !has_resync {
                abreast_testkit::skipped(
                    "printed: resync-sync",
                    "ABREAST_TEST_RESYNC_SYNC is not set",
                );
                continue;
            }
            let copy = slug_copy(slug, if is_of_resync { "resync" } else { "own" });
            let command = command.replace("FOLDER", &copy);
            let copy = place.join(copy);
            if command.contains("--changelist-uri") {
                fs::write(folder.join("new.txt"), "new").unwrap();
                let list = format!("/{slug}/changelist.xml");
                eventually("the change is listed", || {
                    let list = source.get(&list);
                    list.is_some_and(|list| String::from_utf8_lossy(&list).contains("new.txt"))
                });
            }
            let is_endless = ["--follow", "subscribe", "event-stream"];
            if is_endless.iter().any(|word| command.contains(word)) {
                endless += 1;
                let before = fs::read(copy.join("added.txt")).ok();
                pasted_until(&command, place, &folder.join("added.txt"), |text| {
                    let is_copied = || fs::read(copy.join("added.txt")).ok() != before;
                    if command.contains("--follow") {
                        is_copied()
                    } else {
                        text.contains("added.txt")
                    }
                });
                continue;
            }
            pasted(&command, place).unwrap();
            if command.contains("sync") {
                assert_equal(folder, &copy);
            }
        }
        assert_eq!((commands.len(), endless), (9, 3), "{commands:?}");
    }
    let page = format!("curl --silent --header 'Accept: text/html' {}api/v1", source.url());
    let commands = in_page(pasted(&page, place).unwrap().as_bytes());
    for command in commands.iter().filter(|command| !command.contains("TOKEN")) {
        let text = pasted(command, place).unwrap();
        assert!(text.contains("\"papers\"") || text.contains("\"changes\""), "{command}: {text}");
    }
    assert_eq!(commands.len(), 4, "{commands:?}");
}

/// Runs a printed command that does not end, changes a file until the output or the copy shows it,
/// and stops the command.
fn pasted_until(command: &str, place: &Path, file: &Path, is_done: impl Fn(&str) -> bool) {
    let output = place.join("output");
    let path = format!("{}:{}", place.join("programs").display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {command}")]).current_dir(place).env("PATH", path);
    let _running = Running::start(shell.stdout(fs::File::create(&output).unwrap()));
    let mut number = 0;
    eventually(&format!("`{command}` shows a change"), || {
        number += 1;
        fs::write(file, format!("{command} {number}")).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        is_done(&String::from_utf8_lossy(&fs::read(&output).unwrap()))
    });
}

fn slug_copy(slug: &str, what: &str) -> String {
    format!("{slug}-{what}")
}

#[test]
fn the_command_that_build_prints_copies_all_sets() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let (folders, config) = two_sets(place);
    let site = place.join("site");
    let server = Server::new({
        let site = site.clone();
        move |request, stream| {
            let path = request.path().trim_start_matches('/');
            match fs::read(site.join(if path.is_empty() { "index.html" } else { path })) {
                Ok(bytes) => send(stream, "200 OK", "", &bytes),
                Err(_) => send(stream, "404 Not Found", "", b""),
            }
        }
    });
    for sets in [2, 1] {
        let mut command = abreast();
        command.arg("build").arg("--copy").arg("--out").arg(&site);
        command.args(["--base-url", &server.url("/")]);
        match sets {
            2 => command.arg("--config").arg(&config),
            _ => command.arg(&folders[0]),
        };
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        let printed = text.lines().find_map(|line| line.split("at its URL: ").nth(1)).unwrap();
        let copy = format!("copy{sets}");
        pasted(&printed.replace("FOLDER", &copy), place).unwrap();
        let copied = files(&place.join(&copy)).len();
        assert_eq!(copied, 3 * sets, "{printed}");
        fs::remove_dir_all(&site).unwrap();
        fs::remove_dir_all(place.join("store")).unwrap_or_default();
    }
}

#[test]
fn the_commands_that_an_audit_prints_repair_the_copy() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let folder = place.join("papers");
    fs::create_dir(&folder).unwrap();
    for number in 0..5 {
        fs::write(folder.join(format!("{number}.txt")), format!("{number}")).unwrap();
    }
    let source = Source::start(&folder, 0, &[]);
    let copy = place.join("my copy");
    let words = [source.url(), copy.display().to_string()];
    assert!(run(abreast().arg("sync").args(&words)).status.success());
    fs::remove_file(copy.join("1.txt")).unwrap();
    fs::write(copy.join("2.txt"), "other").unwrap();
    fs::write(copy.join("own.txt"), "own").unwrap();
    fs::write(folder.join("3.txt"), "three").unwrap();
    eventually("the change is recorded", || {
        let (_, sets) = source.answer("/api/v1/sets").unwrap();
        serde_json::from_slice::<serde_json::Value>(&sets).unwrap()["sets"][0]["head"] == 1
    });
    let output = run(abreast().arg("audit").args(&words).arg("--full"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (what, count) in [("different", 2), ("missing", 1), ("extra", 1)] {
        // One word for an item and for the sum.
        let items = text.lines().filter(|line| line.split(' ').next() == Some(what)).count();
        assert!(items == count && text.contains(&format!("{count} {what}")), "{what}: {text}");
    }
    let help: Vec<&str> = text.lines().filter(|line| line.starts_with("  help: ")).collect();
    let commands: Vec<&str> = help
        .iter()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|command| command.starts_with("abreast sync"))
        .collect();
    assert!(commands.len() == 2 && help.len() == 4, "{text}");
    for command in commands {
        pasted(command, place).unwrap();
    }
    eventually_ok("the copy is repaired", || {
        let mut found = files(&copy);
        found.remove(Path::new("own.txt"));
        same(&files(&folder), &found)
    });
}
