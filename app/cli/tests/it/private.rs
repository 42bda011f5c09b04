//! What is never published: stores, backups, states of copies, copies of the Source itself.

use crate::world::{Source, abreast, sync};
use abreast_resourcesync::v1_1::Document;
use abreast_testkit::{eventually, folder, run};
use std::fs;
use std::path::{Path, PathBuf};

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    /// A folder with three files.
    fn new() -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        fs::create_dir(world.at("papers")).unwrap();
        for name in ["a.txt", "b.txt", "c.txt"] {
            fs::write(world.at("papers").join(name), name).unwrap();
        }
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Serves the folder, with its store in another one.
    fn serve(&self) -> Source {
        Source::start(&self.at("papers"), 0, &["--data", &self.word("data")])
    }

    /// Runs a command, in whose words `@` stands for the folder of this test.
    fn code(&self, words: &[&str]) -> (Option<i32>, String) {
        let own = format!("{}/", self.temporary.path().display());
        let output = run(abreast().args(words.iter().map(|word| word.replace('@', &own))));
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// A store with a token, a backup of it, a copy and its state, each as a folder.
    fn fill(&self) {
        let other = self.at("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("x"), "x").unwrap();
        let source = Source::start(&other, 0, &["--data", &self.word("store"), "--versions", "3"]);
        sync(&source.url(), &self.at("copy"), 0, &["--state", &self.word("state")]);
        assert_eq!(source.stop(), Some(0));
        for words in [
            &["token", "create", "--name", "n", "--scope", "admin", "--data", "@store"][..],
            &["backup", "@store", "@backups"],
        ] {
            assert_eq!(self.code(words).0, Some(0), "{words:?}");
        }
    }
}

/// The names of the listed resources.
fn listed(source: &Source) -> Vec<String> {
    let bytes = source.get("/set/resourcelist.xml").unwrap_or_default();
    let Ok(document) = Document::from_slice(&bytes) else { return Vec::new() };
    let name = |uri: &str| uri.split_once("/set/r/").unwrap().1.to_owned();
    document.entries.into_iter().map(|entry| name(&entry.loc)).collect()
}

/// Adds a file, and waits until it is listed; all that was changed before is listed as well then.
fn assert_listed_after(source: &Source, folder: &Path, file: &str, expected: &[&str]) {
    fs::write(folder.join(file), "new").unwrap();
    eventually("the file is listed", || listed(source).iter().any(|name| name == file));
    assert_eq!(listed(source), expected);
}

#[test]
fn a_copy_in_the_folder_of_its_source_feeds_nothing() {
    let world = World::new();
    let papers = world.at("papers");
    let source = world.serve();
    let state = world.word("state");
    for _ in 0..3 {
        sync(&source.url(), &papers.join("copy"), 0, &[]);
        sync(&source.url(), &papers.join("deep/er"), 0, &["--state", &state]);
        sync(
            &source.url(),
            Path::new(&format!("warc:{}", papers.join("packed").display())),
            0,
            &[],
        );
        eventually("all is read", || source.get("/readyz").is_some());
    }
    let expected = ["a.txt", "b.txt", "c.txt", "d.txt"];
    assert_listed_after(&source, &papers, "d.txt", &expected);
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    let source = Source::start(&papers, port, &["--data", &world.word("data")]);
    assert_listed_after(&source, &papers, "e.txt", &[&expected[..], &["e.txt"]].concat());
}

fn eventually_listed<const N: usize>(sources: [&Source; N], expected: [&[&str]; N]) {
    eventually(&format!("{expected:?} are listed"), || sources.map(listed) == expected);
}

/// Serves a folder with one file, its store elsewhere.
fn serve_one(world: &World, name: &str, port: u16) -> Source {
    fs::create_dir_all(world.at(name)).unwrap();
    fs::write(world.at(name).join(format!("{name}.txt")), name).unwrap();
    Source::start(&world.at(name), port, &["--data", &world.word(&format!("data-{name}"))])
}

/// Copies each Source into the folder of the next one, in a circle, so many times. In each round everything is read before the
/// next copy is made.
fn copy_in_a_circle(world: &World, sources: &[(&str, &Source)], rounds: usize, kind: &str) {
    for _ in 0..rounds {
        for (number, (name, source)) in sources.iter().enumerate() {
            let (into, other) = sources[(number + 1) % sources.len()];
            let to = world.at(into).join(format!("of-{name}"));
            sync(&source.url(), Path::new(&format!("{kind}{}", to.display())), 0, &[]);
            let mark = world.at(into).join("mark.txt");
            fs::write(&mark, "").unwrap();
            let has_mark = || listed(other).iter().any(|name| name == "mark.txt");
            eventually("all before is listed", has_mark);
            fs::remove_file(&mark).unwrap();
            eventually("the mark is not listed", || !has_mark());
        }
    }
}

#[test]
fn sources_that_copy_each_other_do_not_grow() {
    let world = World::new();
    let (a, b) = (serve_one(&world, "a", 0), serve_one(&world, "b", 0));
    copy_in_a_circle(&world, &[("a", &a), ("b", &b)], 4, "");
    eventually_listed([&a, &b], [&["a.txt", "of-b/b.txt"], &["b.txt", "of-a/a.txt"]]);
    // Each server lists the origin of its copy, also with other documents.
    let head = a.head("/set/changelist.xml").unwrap().to_ascii_lowercase();
    let link = format!("rel=\"via\"; anchor=\"{}set/r/of-b/\"", a.url());
    assert!(head.contains(&link) && head.contains(&b.url()), "{head}");
    // New and deleted files reach the other Source.
    fs::write(world.at("a/new.txt"), "new").unwrap();
    fs::remove_file(world.at("b/b.txt")).unwrap();
    copy_in_a_circle(&world, &[("a", &a), ("b", &b)], 2, "");
    eventually_listed([&a, &b], [&["a.txt", "new.txt"], &["of-a/a.txt", "of-a/new.txt"]]);
    // The same after a restart, when nothing was read yet.
    let ports = [a.port(), b.port()];
    assert_eq!([a.stop(), b.stop()], [Some(0), Some(0)]);
    let (a, b) = (serve_one(&world, "a", ports[0]), serve_one(&world, "b", ports[1]));
    copy_in_a_circle(&world, &[("a", &a), ("b", &b)], 2, "");
    let expected = [&["a.txt", "new.txt", "of-b/b.txt"], &["b.txt", "of-a/a.txt", "of-a/new.txt"]];
    eventually_listed([&a, &b], expected.map(|names| &names[..]));
    // A renamed copy is listed with its new path; a deleted copy is not listed.
    let link = || a.head("/set/changelist.xml").unwrap();
    fs::create_dir(world.at("a/in")).unwrap();
    fs::rename(world.at("a/of-b"), world.at("a/in/of-b")).unwrap();
    eventually_listed([&a], [&["a.txt", "in/of-b/b.txt", "new.txt"]]);
    fs::rename(world.at("a/in"), world.at("a/within")).unwrap();
    eventually_listed([&a], [&["a.txt", "new.txt", "within/of-b/b.txt"]]);
    eventually("only the new path is named", || {
        let head = link();
        head.contains("/set/r/within/of-b/") && head.matches("of-b/").count() == 1
    });
    fs::remove_dir_all(world.at("a/within")).unwrap();
    eventually("no copy is named", || !link().contains("of-b"));
}

#[test]
fn copies_by_each_protocol_note_where_parts_come_from() {
    let world = World::new();
    let (a, b) = (serve_one(&world, "a", 0), serve_one(&world, "b", 0));
    sync(&a.url(), &world.at("b/of-a"), 0, &[]);
    eventually("the copy is listed", || listed(&b).len() == 2);
    for (number, path) in [
        "set/capabilitylist.xml",
        "set/resourcelist.xml",
        "set/v0.1/sitemap.xml",
        "set/iiif",
        "set/emm/1.0",
    ]
    .into_iter()
    .enumerate()
    {
        let copy = world.at(&format!("a/of-b-{number}"));
        sync(&format!("{}{path}", b.url()), &copy, 0, &[]);
        let record = fs::read_to_string(copy.join(".abreast/copy-of")).unwrap();
        let part = format!("part {}", a.url());
        let noted = record.lines().find(|line| line.starts_with(&part));
        assert!(noted.is_some_and(|line| line.ends_with(" of-a")), "{path}: {record}");
    }
    let expected = (0..5).map(|number| format!("of-b-{number}/b.txt"));
    let expected: Vec<_> = [String::from("a.txt")].into_iter().chain(expected).collect();
    eventually("nothing of the Source itself is listed", || listed(&a) == expected);
}

#[test]
fn three_sources_in_a_circle_publish_everything_once() {
    let world = World::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| serve_one(&world, name, 0));
    copy_in_a_circle(&world, &[("a", &a), ("b", &b), ("c", &c)], 4, "");
    let expected: [&[&str]; 3] = [
        &["a.txt", "of-c/c.txt", "of-c/of-b/b.txt"],
        &["b.txt", "of-a/a.txt", "of-a/of-c/c.txt"],
        &["c.txt", "of-b/b.txt", "of-b/of-a/a.txt"],
    ];
    eventually_listed([&a, &b, &c], expected);
}

#[test]
fn archives_of_sources_that_copy_each_other_do_not_grow() {
    let world = World::new();
    let (a, b) = (serve_one(&world, "a", 0), serve_one(&world, "b", 0));
    let sources = [("a", &a), ("b", &b)];
    copy_in_a_circle(&world, &sources, 3, "warc:");
    let before = [listed(&a), listed(&b)];
    let bytes = |name: &str| {
        abreast_testkit::folder::files(&world.at(name)).values().map(Vec::len).sum::<usize>()
    };
    let length = [bytes("a"), bytes("b")];
    copy_in_a_circle(&world, &sources, 3, "warc:");
    eventually("the same is listed", || [listed(&a), listed(&b)] == before);
    assert!(bytes("a") < length[0] + 16_384 && bytes("b") < length[1] + 16_384, "{length:?}");
}

#[test]
fn stores_backups_and_states_in_a_folder_are_not_listed() {
    let world = World::new();
    world.fill();
    let papers = world.at("papers");
    folder::copy(&world.at("backups"), &papers.join("before"));
    let source = world.serve();
    for name in ["store", "backups", "state"] {
        folder::copy(&world.at(name), &world.at("moving"));
        fs::rename(world.at("moving"), papers.join(name)).unwrap();
        folder::copy(&world.at(name), &papers.join("deep").join(name));
    }
    // The copy is of a Source of others: it is published as all files are.
    folder::copy(&world.at("copy"), &papers.join("copy"));
    let expected = ["a.txt", "b.txt", "c.txt", "copy/x", "d.txt"];
    eventually("the copy is listed", || listed(&source).iter().any(|name| name == "copy/x"));
    fs::write(papers.join("d.txt"), "new").unwrap();
    eventually("nothing else is listed", || listed(&source) == expected);
    for path in ["store/source.db", "deep/store/tokens.json", "before/backup.lock"] {
        assert!(papers.join(path).is_file(), "{path}");
        assert_eq!(source.get(&format!("/set/r/{path}")), None, "{path}");
    }
    assert_eq!(source.stop(), Some(0));
    let source = world.serve();
    let expected = [&expected[..], &["e.txt"]].concat();
    assert_listed_after(&source, &papers, "e.txt", &expected);
}

#[test]
fn what_was_published_before_it_became_private_is_removed() {
    let world = World::new();
    world.fill();
    let papers = world.at("papers");
    fs::create_dir_all(papers.join("x/deep")).unwrap();
    fs::write(papers.join("x/tokens.json"), "{}").unwrap();
    fs::write(papers.join("x/deep/y"), "").unwrap();
    let source = world.serve();
    eventually("it is listed", || listed(&source).len() == 5);
    fs::copy(world.at("store/source.db"), papers.join("x/source.db")).unwrap();
    assert_eq!(source.get("/set/r/x/tokens.json"), None);
    eventually("it is removed", || listed(&source) == ["a.txt", "b.txt", "c.txt"]);
    // No rule of others, and no deletion that is held, shows it.
    assert_eq!(source.get("/set/r/x/deep/y"), None);
}

#[test]
fn no_output_goes_where_it_would_be_published() {
    let world = World::new();
    let source = Source::start(&world.at("papers"), 0, &[]);
    let url = source.url();
    fs::create_dir(world.at("papers/empty")).unwrap();
    fs::create_dir(world.at("records")).unwrap();
    fs::write(world.at("lines"), "").unwrap();
    for words in [
        &["sync", &url, "@papers/copy"][..],
        &["sync", &url, "warc:@papers/copy"],
        &["sync", &url, "nquads:@papers/copy"],
        &["sync", &url, "labels:@papers/labels.csv", "--state", "@state"],
        &["sync", &url, "@copy", "--state", "@papers/state"],
        &["sync", &url, "@copy", "--backup-dir", "@papers/replaced"],
        &["sync", &url, "-", "--state", "@papers/state"],
        &["sync", &url, "@papers/copies", "--all-sets"],
        &["sync", &url, "@papers/copy", "--state", "@papers/state", "--republish"],
        &["sync", &url, "@papers/copy", "--dry-run"],
        &["import", "s", "--data", "@papers/empty", "@lines"],
        &["serve", "@records", "--data", "@papers/store", "--listen", "127.0.0.1:0"],
        &["hub", "--data", "@papers/hub", "--listen", "127.0.0.1:0"],
        &["token", "create", "--name", "n", "--scope", "read", "--data", "@papers/empty"],
        &[
            "build",
            "@records",
            "--copy",
            "--base-url",
            "http://h/",
            "--out",
            "@site",
            "--data",
            "@papers/store",
        ],
    ] {
        let (code, text) = world.code(words);
        assert_eq!(code, Some(2), "{words:?}\n{text}");
        assert!(text.contains("published") && text.contains("help: "), "{words:?}\n{text}");
    }
    let names = fs::read_dir(world.at("papers")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert_eq!(names, [".abreast", "a.txt", "b.txt", "c.txt", "empty"]);
    // Nobody publishes names that begin with a dot.
    sync(&url, &world.at("papers/.copy"), 0, &[]);
}

#[test]
fn no_output_goes_into_a_folder_that_a_file_publishes() {
    let world = World::new();
    let config = world.word("abreast.toml");
    let (papers, data) = (world.word("papers"), world.word("data"));
    let text = format!(
        "data = \"{data}\"\n[[set]]\nname = \"set\"\nfolder = \"{papers}\"\n[[mirror]]\nname = \"m\"\nurl = \"http://127.0.0.1:1/\"\n\
         folder = \"{papers}/copy\"\n"
    );
    fs::write(&config, text).unwrap();
    let (code, text) = world.code(&["sync", "--config", &config, "m"]);
    assert!(code == Some(2) && text.contains("folder.published"), "{code:?} {text}");
}

#[test]
fn neither_a_store_nor_the_log_of_its_own_server_is_published() {
    let world = World::new();
    world.fill();
    for name in ["store", "backups", "state"] {
        let (code, text) = world.code(&["serve", &format!("@{name}"), "--data", "@data"]);
        assert!(code == Some(2) && text.contains("which is never published"), "{name}: {text}");
    }
    let log = world.at("papers/log");
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", &world.word("data")]);
    command.arg(world.at("papers")).stderr(fs::File::create(&log).unwrap());
    assert_eq!(command.status().unwrap().code(), Some(2));
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("it would be published with it"), "{text}");
}
