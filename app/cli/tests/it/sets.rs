//! Sources with several sets: one is chosen, or each is copied into its own folder.

use crate::world::{Source, abreast};
use abreast_testkit::folder::{assert_equal, files, paths};
use abreast_testkit::{Running, eventually, run};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    /// Folders of these names, each with one file, and a configuration that serves them.
    fn new(sets: &[&str]) -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        for set in sets {
            fs::create_dir_all(world.set(set)).unwrap();
            fs::write(world.set(set).join(format!("of-{set}.txt")), set).unwrap();
        }
        world.configure(sets);
        world
    }

    fn configure(&self, sets: &[&str]) {
        let data = self.path("data");
        let mut text = format!("data = \"{}\"\n", data.display());
        for set in sets {
            let folder = self.set(set);
            let folder = folder.display();
            let _ = writeln!(
                text,
                "[[set]]\nname = \"{set}\"\ndebounce = \"30ms\"\nfolder = \"{folder}\""
            );
        }
        fs::write(self.path("abreast.toml"), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn set(&self, name: &str) -> PathBuf {
        self.path("sets").join(name)
    }

    fn serve(&self) -> Source {
        Source::start_config(self.path("abreast.toml").to_str().unwrap())
    }

    fn serve_at(&self, port: u16) -> Source {
        Source::start_config_at(self.path("abreast.toml").to_str().unwrap(), port)
    }
}

/// Exit code, JSON lines on standard output, and text on standard error.
fn printed(words: &[&str], folder: &Path) -> (i32, Vec<serde_json::Value>, String) {
    let output = run(abreast().args(&words[..2]).arg(folder).args(&words[2..]).arg("--json"));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), lines, String::from_utf8(output.stderr).unwrap())
}

fn of_type<'a>(lines: &'a [serde_json::Value], kind: &str) -> Vec<&'a serde_json::Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn the_set_that_is_named_is_copied_and_audited() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let root = source.url();
    let copy = world.path("copy");
    for address in
        [root.clone(), format!("{root}.well-known/resourcesync"), format!("{root}about.html")]
    {
        for command in ["sync", "audit"] {
            fs::create_dir_all(&copy).unwrap();
            for more in [&[][..], &["--set", "nothing"]] {
                let (code, _, errors) =
                    printed(&[&[command, address.as_str()], more].concat(), &copy);
                assert_eq!(code, 2, "{command} {address} {more:?}: {errors}");
                assert!(
                    errors.contains("/maps/capabilitylist.xml") && errors.contains("/papers/"),
                    "{errors}"
                );
            }
        }
    }
    assert!(files(&copy).is_empty());
    for address in [root.clone(), format!("{root}sitemap.xml"), format!("{root}about.html")] {
        let copy = world.path(&format!("copy-{}", address.len()));
        assert_eq!(printed(&["sync", &address, "--set", "papers"], &copy).0, 0, "{address}");
        assert_equal(&world.set("papers"), &copy);
        assert_eq!(printed(&["audit", &address, "--set", "papers"], &copy).0, 0, "{address}");
        let (code, _, errors) = printed(&["audit", &address, "--set", "maps"], &copy);
        assert_eq!(code, 2, "a copy is not compared with another set: {errors}");
    }
}

#[test]
fn sets_are_followed_as_far_as_files_may_be_open() {
    let names: Vec<String> = (0..20).map(|number| format!("set{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&names);
    let source = world.serve();
    let follow = |files: usize| {
        let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_abreast"), "sync", &source.url()]);
        command.arg(world.path("copies")).args(["--all-sets", "--follow"]);
        command
    };
    let refused = run(&mut follow(439));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(
        text.contains("too few to follow 20 sets") && text.contains("LimitNOFILE=440"),
        "{text}"
    );
    // Just enough: all are copied, each over one connection.
    let errors = world.path("errors");
    let running = follow(440).stderr(fs::File::create(&errors).unwrap()).spawn().unwrap();
    let _running = Running(running);
    for name in names {
        let copied = world.path("copies").join(name).join(format!("of-{name}.txt"));
        eventually("each set is copied", || copied.is_file());
    }
    let text = fs::read_to_string(&errors).unwrap();
    assert!(!text.contains("open files"), "{text}");
}

#[test]
fn two_jobs_on_one_root_copy_two_sets() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let job = |set: &str| {
        let folder = world.path(&format!("copy-of-{set}"));
        format!(
            "[[mirror]]\nurl = \"{}\"\nset = \"{set}\"\nfolder = \"{}\"\n",
            source.url(),
            folder.display()
        )
    };
    let file = world.path("mirrors.toml");
    fs::write(&file, job("maps") + &job("papers")).unwrap();
    for command in ["sync", "audit"] {
        let output = run(abreast().args([command, "--all", "--config"]).arg(&file));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for set in ["maps", "papers"] {
        assert_equal(&world.set(set), &world.path(&format!("copy-of-{set}")));
    }
}

#[test]
fn all_sets_are_copied_each_into_its_own_folder() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let (root, copy) = (source.url(), world.path("copy"));
    assert_eq!(source.hint(), format!("abreast sync {root} FOLDER --all-sets"));
    let sync = || printed(&["sync", &root, "--all-sets"], &copy);
    let audit = || printed(&["audit", &root, "--all-sets"], &copy);

    let (code, lines, errors) = printed(&["sync", &root, "--all-sets", "--dry-run"], &copy);
    assert_eq!((code, of_type(&lines, "item").len(), copy.exists()), (0, 2, false), "{errors}");
    let (code, lines, errors) = sync();
    let summaries = of_type(&lines, "summary");
    assert_eq!((code, summaries.len()), (0, 1), "one summary: {lines:?} {errors}");
    assert_eq!((&summaries[0]["created"], &summaries[0]["exit_code"]), (&2.into(), &0.into()));
    for set in ["maps", "papers"] {
        assert_equal(&world.set(set), &copy.join(set));
    }
    let (code, lines, _) = audit();
    assert_eq!((code, of_type(&lines, "audit").len()), (0, 1), "{lines:?}");
    assert_eq!(of_type(&lines, "audit")[0]["same"], 2);
    // A single set does not go where all are, nor all where a single one is.
    assert_eq!(printed(&["sync", &root, "--set", "maps"], &copy).0, 2);
    assert_eq!(printed(&["sync", &root, "--all-sets"], &copy.join("maps")).0, 2);
    for more in [["--set", "maps"], ["--base", "http://h/"]] {
        assert_eq!(
            printed(&[&["sync", root.as_str(), "--all-sets"], &more[..]].concat(), &copy).0,
            2
        );
    }

    // What changes is found, and one difference makes the whole different.
    fs::write(world.set("papers").join("more.txt"), "more").unwrap();
    eventually("the new file is listed", || {
        let list = source.get("/papers/resourcelist.xml").unwrap_or_default();
        String::from_utf8_lossy(&list).contains("more.txt")
    });
    assert_eq!(audit().0, 1);
    assert_eq!(sync().0, 0);
    assert_equal(&world.set("papers"), &copy.join("papers"));

    // The next run copies a new set; the copy of a removed set is retained and reported.
    let port = source.port();
    drop(source);
    fs::create_dir_all(world.set("scans")).unwrap();
    fs::write(world.set("scans").join("one"), "1").unwrap();
    world.configure(&["papers", "scans"]);
    let _source = world.serve_at(port);
    let (code, lines, _) = audit();
    assert_eq!(code, 1, "the new set has no copy yet: {lines:?}");
    let outcome = of_type(&lines, "audit")[0];
    assert_eq!(
        (&outcome["missing"], &outcome["missing_sets"]),
        (&0.into(), &1.into()),
        "sets are no resources"
    );
    let output = run(abreast().args(["audit", &root]).arg(&copy).arg("--all-sets"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 sets without a copy") && text.contains("--all-sets` copies the sets"),
        "{text}"
    );
    let (code, lines, errors) = sync();
    assert_eq!(code, 0, "{errors}");
    let notices = of_type(&lines, "notice");
    assert!(notices.iter().any(|notice| notice["code"] == "sets.gone"), "{lines:?}");
    assert_equal(&world.set("scans"), &copy.join("scans"));
    assert_equal(&world.set("maps"), &copy.join("maps"));
    let (code, lines, _) = audit();
    assert_eq!(code, 0, "{lines:?}");
}

#[test]
fn one_set_that_fails_does_not_hold_the_others() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let (root, copy) = (source.url(), world.path("copy"));
    assert_eq!(printed(&["sync", &root, "--all-sets"], &copy).0, 0);
    let state = abreast_folder::Folder::open(copy.join("maps/.abreast")).unwrap();
    let held = state.root().lock(b"lock").unwrap().expect("nobody has it");
    fs::write(world.set("papers").join("more.txt"), "more").unwrap();
    eventually("the new file is copied", || {
        let (code, lines, _) = printed(&["sync", &root, "--all-sets"], &copy);
        assert_eq!(code, 10, "{lines:?}");
        let notices = of_type(&lines, "notice");
        assert!(notices.iter().any(|notice| notice["code"] == "sets.failed"), "{lines:?}");
        copy.join("papers/more.txt").exists()
    });
    drop(held);
    assert_eq!(printed(&["sync", &root, "--all-sets"], &copy).0, 0);
}

#[test]
fn all_sets_are_followed_by_one_command() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let copy = world.path("copy");
    let mut command = abreast();
    command.args(["sync", &source.url()]).arg(&copy).args([
        "--all-sets",
        "--follow",
        "--interval",
        "100ms",
    ]);
    let mut following =
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let set = |name: &str| (world.set(name), copy.join(name));
    for (number, name) in ["maps", "papers", "maps"].into_iter().enumerate() {
        let (original, copied) = set(name);
        fs::write(original.join(format!("new-{number}")), name).unwrap();
        eventually("the change is copied", || copied.join(format!("new-{number}")).exists());
    }
    let second = printed(&["sync", &source.url(), "--all-sets"], &copy);
    assert_eq!(second.0, 10, "one command has all of them: {}", second.2);
    let pid = rustix::process::Pid::from_child(&following.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(following.0.wait().unwrap().code().is_some());
    for name in ["maps", "papers"] {
        assert_equal(&set(name).0, &set(name).1);
    }
}

#[test]
fn the_folder_of_all_sets_is_not_taken_for_a_copy() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let (root, copy) = (source.url(), world.path("copy"));
    assert_eq!(printed(&["sync", &root, "--all-sets"], &copy).0, 0);
    let before = files(&copy);
    for command in [&["sync"][..], &["sync", "--dry-run"], &["sync", "--follow"], &["audit"]] {
        let words = [&[command[0], root.as_str(), "--set", "maps"], &command[1..]].concat();
        let (code, _, errors) = printed(&words, &copy);
        assert_eq!(code, 2, "{words:?} {errors}");
        assert!(
            errors.contains("copies of all sets") && errors.contains("use `--all-sets`"),
            "{errors}"
        );
    }
    assert_eq!(files(&copy), before);
    // Its advice repeats the option.
    fs::remove_file(copy.join("maps/of-maps.txt")).unwrap();
    let output = run(abreast().args(["audit", &root]).arg(&copy).arg("--all-sets"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("--all-sets --baseline"), "{text}");
}

#[test]
fn check_and_repair_go_through_all_sets() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let (root, copy, elsewhere) = (source.url(), world.path("copy"), world.path("elsewhere"));
    let (other, state) = (world.path("other"), world.path("state"));
    let state_word = state.display().to_string();
    let beside = ["--state", state_word.as_str()];
    // With the state in the copies; elsewhere, checked by the folder of the copies; elsewhere,
    // checked by that of the state.
    for (copy, given, more) in
        [(&copy, &copy, &[][..]), (&other, &other, &beside), (&other, &state, &beside)]
    {
        let sync = || printed(&[&["sync", root.as_str(), "--all-sets"], more].concat(), copy).0;
        let on_copies = |words: &[&str]| {
            let output = run(abreast().args(words).arg(given));
            let text = String::from_utf8(output.stdout).unwrap()
                + &String::from_utf8(output.stderr).unwrap();
            (output.status.code().unwrap(), text)
        };
        assert_eq!(sync(), 0);
        let (code, text) = on_copies(&["check"]);
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains("maps: copy: 1 resource,") && text.contains("papers: copy: 1 resource,"),
            "{text}"
        );
        fs::remove_file(copy.join("papers/of-papers.txt")).unwrap();
        let (code, text) = on_copies(&["check"]);
        assert!(
            code == 1 && text.contains("[copy.missing]") && text.contains("of-papers.txt"),
            "{code} {text}"
        );
        let (code, text) = on_copies(&["repair"]);
        assert!(
            code == 0 && text.contains("papers: fetch ") && !text.contains("maps:"),
            "{code} {text}"
        );
        assert_eq!(sync(), 0);
        assert_eq!(on_copies(&["check"]).0, 0);
        if given == copy {
            fs::rename(copy.join("maps"), &elsewhere).unwrap();
            let (code, text) = on_copies(&["check"]);
            assert!(code == 0 && text.contains("[sets.missing]"), "{code} {text}");
            fs::rename(&elsewhere, copy.join("maps")).unwrap();
        }
    }
    // An audit finds the states that the copies name; a run is refused, since the user knows why
    // they are there.
    let before = paths(&other);
    let (code, lines, errors) = printed(&["audit", &root, "--all-sets"], &other);
    assert_eq!((code, &of_type(&lines, "audit")[0]["same"]), (0, &2.into()), "{errors}");
    let (code, _, errors) = printed(&["sync", &root, "--all-sets"], &other);
    assert!(
        code == 2 && errors.contains(&format!("help: give `--state {state_word}`")),
        "{code} {errors}"
    );
    assert_eq!(paths(&other), before);
}

#[test]
fn a_copy_that_is_followed_is_locked_between_polls() {
    let world = World::new(&["maps", "papers"]);
    let source = world.serve();
    let (root, copy) = (source.url(), world.path("copy"));
    assert_eq!(printed(&["sync", &root, "--all-sets"], &copy).0, 0);
    let follow = |words: &[&str], folder: &Path| {
        let mut command = abreast();
        command
            .args(["sync", &root])
            .arg(folder)
            .args(["--follow", "--interval", "1h"])
            .args(words);
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let is_locked = |words: &[&str], folder: &Path, pid: u32| {
        let output = run(abreast().args(words).arg(folder));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let named = text.contains(&format!("process {pid}"));
        assert!(output.status.code() != Some(10) || named, "the process is named: {text}");
        output.status.code() == Some(10)
    };
    // What is copied shows that the first run of each is over.
    let changed = |set: &str, name: &str| {
        fs::write(world.set(set).join(name), name).unwrap();
        eventually("the change is copied", || copy.join(set).join(name).exists());
    };
    let one = follow(&["--set", "maps"], &copy.join("maps"));
    changed("maps", "first");
    let pid = one.0.id();
    for _ in 0..3 {
        assert!(is_locked(&["sync", &root, "--set", "maps"], &copy.join("maps"), pid));
        assert!(is_locked(&["sync", &root, "--all-sets"], &copy, pid));
        assert!(is_locked(&["repair"], &copy.join("maps"), pid));
        assert!(is_locked(&["repair"], &copy, pid));
    }
    assert!(!is_locked(&["sync", &root, "--set", "papers"], &copy.join("papers"), pid));
    drop(one);
    let all = follow(&["--all-sets"], &copy);
    changed("maps", "second");
    changed("papers", "third");
    let pid = all.0.id();
    assert!(is_locked(&["sync", &root, "--all-sets"], &copy, pid));
    assert!(is_locked(&["sync", &root, "--set", "papers"], &copy.join("papers"), pid));
    assert!(is_locked(&["repair"], &copy, pid));
}

#[test]
fn a_first_run_that_fails_leaves_nothing_behind() {
    let world = World::new(&["maps"]);
    let source = world.serve();
    let root = source.url();
    let missing = format!("{root}nothing/capabilitylist.xml");
    let refused = "http://127.0.0.1:9/".to_owned();
    let warc = |folder: &Path| format!("warc:{}", folder.display());
    for url in [&missing, &refused] {
        for more in [&[][..], &["--all-sets"], &["--follow"], &["--state", "STATE"]] {
            let (new, state) = (world.path("deep/new"), world.path("state/of"));
            let more: Vec<_> = more
                .iter()
                .map(|word| if *word == "STATE" { state.to_str().unwrap() } else { word })
                .collect();
            for target in [new.display().to_string(), warc(&new)] {
                let words = [&["sync", url.as_str(), "--retries", "0"], &more[..]].concat();
                let output = run(abreast().args(words).arg(&target));
                assert!(!output.status.success());
                assert!(
                    !world.path("deep").exists() && !world.path("state").exists(),
                    "{url} {more:?} {target}"
                );
            }
            // What was there stays.
            let own = world.path("own");
            fs::create_dir_all(own.join("empty")).unwrap();
            fs::write(own.join("mine"), "mine").unwrap();
            let words = [&["sync", url.as_str(), "--retries", "0"], &more[..]].concat();
            assert!(!run(abreast().args(words).arg(&own)).status.success());
            let mut names: Vec<_> =
                fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["empty", "mine"], "{url} {more:?}");
            fs::remove_dir_all(own).unwrap();
        }
    }
    // A copy that was made stays, and so does one that is refused where another one is.
    let copy = world.path("copy");
    assert_eq!(printed(&["sync", &root], &copy).0, 0);
    assert_ne!(printed(&["sync", &missing], &copy).0, 0);
    assert_eq!(printed(&["sync", &root], &copy.join("inside")).0, 2);
    assert!(!copy.join("inside").exists() && copy.join(".abreast/mirror.db").exists());
    assert_eq!(printed(&["sync", &root], &copy).0, 0);
}

#[test]
fn audit_explains_what_to_do_about_files_of_others() {
    let world = World::new(&["maps"]);
    let source = world.serve();
    let (root, copy) = (source.url(), world.path("copy"));
    assert_eq!(printed(&["sync", &root], &copy).0, 0);
    fs::write(copy.join("mine"), "mine").unwrap();
    let output = run(abreast().args(["audit", &root]).arg(&copy));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("all other extra files are your own: keep them")
            && !text.contains("--baseline"),
        "{text}"
    );
}

#[test]
fn a_limit_of_a_run_holds_for_all_sets_together() {
    let world = World::new(&["a", "b", "c", "d"]);
    for set in ["a", "b", "c", "d"] {
        fs::write(world.set(set).join("large"), vec![b'x'; 1 << 20]).unwrap();
    }
    let (source, copy) = (world.serve(), world.path("copy"));
    let words = ["sync", &source.url(), "--all-sets", "--max-bytes", "1500000"];
    let (code, lines, _) = printed(&words, &copy);
    assert_eq!(code, 8, "{lines:?}");
    let bytes: u64 = files(&copy).values().map(|bytes| bytes.len() as u64).sum();
    assert!(bytes < 3 << 20, "{bytes} bytes");
}

#[test]
fn a_source_of_many_sets_is_found_at_its_root() {
    let names: Vec<String> = (0..95).map(|number| format!("set-{number}")).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let source = world.serve();
    let head = source.head("/").unwrap();
    let links: Vec<_> =
        head.lines().filter(|line| line.to_lowercase().starts_with("link:")).collect();
    let all = format!("<{}.well-known/resourcesync>; rel=\"resourcesync\"", source.url());
    assert!(links.len() == 1 && links[0].ends_with(&all), "{links:?}");
    assert!(head.len() < 2_000, "{head}");
    let copy = world.path("copy");
    let (code, lines, _) = printed(&["sync", &source.url(), "--set", "set-94"], &copy);
    assert_eq!(code, 0, "{lines:?}");
    assert_equal(&world.set("set-94"), &copy);
}
