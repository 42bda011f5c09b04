//! Sets that are listed, removed, renamed and moved to another server, and what copies notice: of a store in a folder, and
//! of one in a database.

mod world;

use crate::world::{Source, abreast, audit, get, sync};
use abreast_testkit::folder::{files, same};
use abreast_testkit::http::{Server, send};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::s3::S3Server;
use abreast_testkit::{Running, eventually, eventually_ok, provided, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use world::World;

/// The addresses of copies over each protocol, below the address of a set: of files, then of entities.
const READERS: [(&str, bool); 7] = [
    ("capabilitylist.xml", true),
    ("v0.1/sitemap.xml", true),
    ("emm/1.0", true),
    ("iiif", true),
    ("capabilitylist.xml", false),
    ("emm/1.0", false),
    ("sdshare", false),
];

/// The copied files.
fn contents(copy: &Path) -> Vec<(String, Vec<u8>)> {
    files(copy).into_iter().map(|(name, bytes)| (name.display().to_string(), bytes)).collect()
}

fn name_of(is_file: bool, names: [&'static str; 2]) -> &'static str {
    if is_file { names[0] } else { names[1] }
}

#[test]
fn copies_over_each_protocol_follow_a_renamed_set() {
    rename_with_copies(&World::new());
}

fn rename_with_copies(world: &World) {
    let source = world.serve(0);
    let (port, base) = (source.port(), source.url());
    let url =
        |(path, is_file): (&str, bool), names| format!("{base}{}/{path}", name_of(is_file, names));
    let (old, new) = (["papers", "people"], ["articles", "persons"]);
    for reader in READERS {
        sync(&url(reader, old), &world.copy(reader), 0, &[]);
    }
    // By the root, without and with the name of the set.
    sync(&base, &world.at("named"), 0, &["--set", "papers"]);
    assert_eq!(source.stop(), Some(0));

    // The configuration is changed first.
    let text = world.set(&["rename", "papers", "articles"], "config", 2);
    assert!(text.contains("change its `name` first: name = \"articles\""), "{text}");
    world.configure(&[("articles", "files"), ("persons", "rdf"), ("other", "other")]);
    let text = world.set(&["rename", "papers", "Bad Name"], "config", 2);
    assert!(text.contains("`Bad Name`"), "{text}");
    let text = world.set(&["rename", "nothing", "articles"], "config", 2);
    assert!(text.contains("name one of its sets: papers, people, other"), "{text}");
    let text = world.set(&["rename", "papers", "other"], "data", 2);
    assert!(text.contains("the store has a set `other`"), "{text}");
    world.set(&["rename", "papers", "articles", "--dry-run"], "config", 0);
    assert!(!world.set(&["list"], "config", 0).contains("renamed"));
    world.set(&["rename", "papers", "articles"], "config", 0);
    let text = world.set(&["rename", "people", "persons", "--json"], "data", 0);
    assert!(text.contains("\"renamed\":true"), "{text}");
    world.assert_undamaged();

    fs::write(world.at("files/more.txt"), "more").unwrap();
    world.describe(4);
    let source = world.serve(port);
    eventually("the log continues", || {
        let list = source.get("/articles/changelist.xml").unwrap_or_default();
        String::from_utf8_lossy(&list).contains("more.txt")
    });
    for reader in READERS {
        let (copy, is_file) = (world.copy(reader), reader.1);
        let stale = run(abreast().args(["audit", &url(reader, old)]).arg(&copy));
        let text = String::from_utf8_lossy(&stale.stderr).into_owned();
        assert!(stale.status.code() == Some(2) && text.contains("source.renamed"), "{text}");
        // The address is the former one in each run.
        let summary = sync(&url(reader, old), &copy, 0, &[]);
        assert_eq!(
            (&summary["created"], &summary["deleted"]),
            (&Value::from(1), &Value::from(0)),
            "{reader:?}"
        );
        assert_eq!(summary["updated"], 0, "{reader:?}");
        let expected = if is_file { 13 } else { 4 };
        assert_eq!(contents(&copy).len(), expected, "{reader:?}");
        for address in [old, new] {
            assert_eq!(audit(&url(reader, address), &copy), 0, "{reader:?}");
            let summary = sync(&url(reader, address), &copy, 0, &[]);
            assert_eq!(summary["created"], 0, "{reader:?}");
        }
        if is_file {
            assert_eq!(same(&files(&world.at("files")), &files(&copy)), Ok(()), "{reader:?}");
        }
    }
    // The name of a set in a command is not an address that redirects.
    let before = contents(&world.at("named"));
    let output = run(abreast().args(["sync", &base, &world.word("named"), "--set", "papers"]));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("--set articles --moved") && text.contains("source.renamed"), "{text}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(contents(&world.at("named")), before);
    let summary = sync(&base, &world.at("named"), 0, &["--set", "articles", "--moved"]);
    assert_eq!((&summary["created"], &summary["deleted"]), (&Value::from(1), &Value::from(0)));
}

#[test]
fn addresses_of_a_renamed_set_are_redirected() {
    rename_with_redirects(&World::new());
}

fn rename_with_redirects(world: &World) {
    let source = world.serve(0);
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    let token = |words: &[&str]| {
        let output = run(world.command().arg("token").args(words).args(["--data", &world.store()]));
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    token(&["create", "--name", "t", "--scope", "read", "--set", "papers"]);
    world.configure(&[("articles", "files"), ("other", "other")]);
    world.set(&["rename", "papers", "articles"], "config", 0);
    let tokens = token(&["list"]);
    assert!(tokens.contains("articles") && !tokens.contains("papers"), "{tokens}");
    let source = world.serve(port);
    let base = source.url();
    let own = base.trim_end_matches('/');
    for (path, to) in [
        ("/papers", "/articles".to_owned()),
        ("/papers/", "/articles/".to_owned()),
        ("/papers/r/1.txt?a=b&c", "/articles/r/1.txt?a=b&c".to_owned()),
        ("/papers/changelist.xml", "/articles/changelist.xml".to_owned()),
        ("/papers/notify/change", "/articles/notify/change".to_owned()),
        ("/papers/v0.1/subscribe", "/articles/v0.1/subscribe".to_owned()),
        ("/api/v1/sets/papers/changes?after=0", "/api/v1/sets/articles/changes?after=0".to_owned()),
        (&format!("/timegate/{own}/papers/r/1.txt"), format!("/timegate/{own}/articles/r/1.txt")),
        (
            &format!("/timemap/json/{own}/papers/r/1.txt"),
            format!("/timemap/json/{own}/articles/r/1.txt"),
        ),
    ] {
        let head = source.head(path).unwrap();
        assert!(head.starts_with("HTTP/1.1 308 "), "{path}: {head}");
        assert!(head.contains(&format!("location: {own}{to}\r\n")), "{path}: {head}");
    }
    assert_eq!(source.answer("/papersx").unwrap().0, 404);
    // A set that is not published is not a place to redirect to.
    assert_eq!(source.answer("/people/capabilitylist.xml").unwrap().0, 404);
    assert_eq!(source.stop(), Some(0));
    // Back: the name is the set's own again, and the other one is former.
    world.configure(&[("papers", "files"), ("other", "other")]);
    world.set(&["rename", "articles", "papers"], "config", 0);
    let source = world.serve(port);
    assert!(source.head("/articles/r/1.txt").unwrap().contains(" 308 "));
    assert_eq!(source.answer("/papers/r/1.txt").unwrap().0, 200);
    assert_eq!(source.stop(), Some(0));
    // Another set has the former name.
    world.configure(&[("papers", "files"), ("articles", "other")]);
    let source = world.serve(port);
    assert_eq!(source.answer("/articles/r/a.txt").unwrap().0, 200);
    assert!(!world.set(&["list"], "config", 0).contains("renamed"));
}

#[test]
fn copies_over_each_protocol_keep_a_removed_set() {
    remove_with_copies(&World::new());
}

fn remove_with_copies(world: &World) {
    let source = world.serve(0);
    let (port, base) = (source.port(), source.url());
    let url = |(path, is_file): (&str, bool)| {
        format!("{base}{}/{path}", name_of(is_file, ["papers", "people"]))
    };
    for reader in READERS {
        sync(&url(reader), &world.copy(reader), 0, &[]);
    }
    sync(&base, &world.at("named"), 0, &["--set", "papers"]);
    let text = world.set(&["remove", "people", "--yes"], "data", 10);
    assert!(text.contains("in use by ") && text.contains("help: stop "), "{text}");
    assert_eq!(source.stop(), Some(0));
    let text = world.set(&["remove", "papers", "--yes"], "config", 2);
    assert!(text.contains("remove its `[[set]]` there first"), "{text}");
    world.configure(&[("other", "other")]);
    assert_eq!(world.set(&["list"], "config", 0).matches("not configured").count(), 2);
    assert!(world.set(&["remove", "papers", "--dry-run"], "config", 0).contains("12 resources"));
    world.set(&["remove", "papers"], "config", 2);
    world.set(&["remove", "papers", "--yes"], "config", 0);
    world.set(&["remove", "people", "--yes", "--json"], "data", 0);
    world.assert_undamaged();
    let source = world.serve(port);
    let list = world.set(&["list", "--json"], "config", 0);
    let states: Vec<(String, String)> = list
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "former_set")
        .map(|line| {
            (line["set"].as_str().unwrap().to_owned(), line["state"].as_str().unwrap().to_owned())
        })
        .collect();
    let removed = |name: &str| (name.to_owned(), "removed".to_owned());
    assert_eq!(states, [removed("papers"), removed("people")]);
    for path in ["/papers/capabilitylist.xml", "/papers/r/1.txt", "/papers", "/api/v1/sets/papers"]
    {
        let (status, body) = source.answer(path).unwrap();
        assert_eq!(status, 410, "{path}");
        assert!(String::from_utf8_lossy(&body).contains("the set `papers` was removed"), "{path}");
    }
    let described = source.get("/.well-known/resourcesync").unwrap();
    assert!(!String::from_utf8_lossy(&described).contains("papers"));
    let named = (base.clone(), world.at("named"), &["--set", "papers"][..]);
    let copies = READERS.map(|reader| (url(reader), world.copy(reader), &[][..]));
    for (url, copy, more) in copies.into_iter().chain([named]) {
        let before = contents(&copy);
        for command in ["sync", "audit"] {
            let output = run(abreast().args([command, &url]).arg(&copy).args(more));
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            // An audit by the name of a set reads the sets of the Source.
            if command == "sync" || more.is_empty() {
                assert!(
                    text.contains("has removed this set") && text.contains("source.removed"),
                    "{url}: {text}"
                );
                assert_eq!(output.status.code(), Some(4), "{url}: {text}");
            }
        }
        assert!(!before.is_empty());
        assert_eq!(contents(&copy), before, "{url}");
        // The next step is that of the message, not a run that fails again.
        let output = run(abreast().arg("status").arg(&copy));
        let text = String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains("end its job") && !text.contains("abreast sync"), "{url}: {text}");
    }
    assert_eq!(source.stop(), Some(0));
    // It begins again.
    world.configure(&[("papers", "files"), ("other", "other")]);
    let source = world.serve(port);
    assert_eq!(source.answer("/papers/r/1.txt").unwrap().0, 200);
    assert!(!world.set(&["list"], "config", 0).contains("papers  removed"));
}

#[test]
fn a_set_moves_to_another_server() {
    let world = World::new();
    let source = world.serve(0);
    let (port, url) = (source.port(), format!("{}papers/capabilitylist.xml", source.url()));
    sync(&url, &world.at("copy"), 0, &[]);
    assert_eq!(source.stop(), Some(0));
    // The other server, with the same log.
    let backup = run(abreast().args(["backup", &world.word("data"), &world.word("backup")]));
    assert!(backup.status.success(), "{}", String::from_utf8_lossy(&backup.stderr));
    let moved = ["restore", &world.word("backup"), &world.word("data-2"), "--same-log"];
    let restored = run(abreast().args(moved));
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let text = fs::read_to_string(world.at("abreast.toml")).unwrap();
    fs::write(world.at("second.toml"), text.replace("/data\"", "/data-2\"")).unwrap();
    let second = Source::start_config(&world.word("second.toml"));
    let to = format!("{}papers", second.url());
    world.configure(&[("other", "other")]);
    for wrong in ["papers", "ftp://h/", "https:///x", "https://h/?a", "https://user:word@h/"] {
        let text = world.set(&["remove", "papers", "--yes", "--moved-to", wrong], "config", 2);
        assert!(text.contains("`--moved-to`") && !text.contains("user:word"), "{text}");
    }
    world.set(&["remove", "papers", "--yes", "--moved-to", &to], "config", 0);
    let source = world.serve(port);
    let head = source.head("/papers/r/1.txt?x").unwrap();
    assert!(
        head.contains(" 308 ") && head.contains(&format!("location: {to}/r/1.txt?x\r\n")),
        "{head}"
    );
    assert!(world.set(&["list"], "config", 0).contains(&format!("papers  moved to {to}/")));
    fs::write(world.at("files/more.txt"), "more").unwrap();
    eventually("the log continues", || {
        let list = second.get("/papers/changelist.xml").unwrap_or_default();
        String::from_utf8_lossy(&list).contains("more.txt")
    });
    // Another server is followed only when a person says so; nothing is changed before.
    let before = contents(&world.at("copy"));
    let output = run(abreast().args(["sync", &url, &world.word("copy")]));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("uri.authority"), "{text}");
    assert_eq!(contents(&world.at("copy")), before);
    let new = format!("{to}/capabilitylist.xml");
    let summary = sync(&new, &world.at("copy"), 0, &["--moved"]);
    assert_eq!((&summary["created"], &summary["deleted"]), (&Value::from(1), &Value::from(0)));
    assert_eq!(same(&files(&world.at("files")), &files(&world.at("copy"))), Ok(()));
}

#[test]
fn subscribers_of_a_renamed_set_are_notified() {
    rename_with_subscribers(&World::new());
}

fn rename_with_subscribers(world: &World) {
    let source = world.serve(0);
    let (port, base) = (source.port(), source.url());
    let got = Arc::<Mutex<Vec<(String, String)>>>::default();
    let kept = Arc::clone(&got);
    let callback = Server::new(move |request, stream| {
        let challenge =
            request.target().split(['?', '&']).find_map(|part| part.strip_prefix("hub.challenge="));
        if challenge.is_none() {
            let links = request.header("link").unwrap_or_default().to_owned();
            kept.lock().unwrap().push((links, String::from_utf8_lossy(&request.body).into_owned()));
        }
        send(stream, "200 OK", "", challenge.unwrap_or_default().as_bytes())
    });
    let ask = || {
        let topic = format!("{base}papers/notify/change");
        let callback = callback.url("/c");
        let form = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}");
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", &form]);
        let output = curl.arg(format!("{base}hub")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(ask(), "202");
    let progress = format!("/hub?callback={}", callback.url("/c"));
    eventually("the subscription counts", || source.get(&progress).is_some());
    // A copy that follows, by its former address.
    let url = format!("{base}papers/capabilitylist.xml");
    let mut follow = abreast();
    follow.args(["sync", &url, &world.word("copy"), "--follow", "--interval", "1s"]);
    let _follower = Running(follow.stderr(Stdio::null()).spawn().unwrap());
    eventually("it has a copy", || world.at("copy/1.txt").exists());
    assert_eq!(source.stop(), Some(0));
    world.configure(&[("articles", "files"), ("other", "other")]);
    world.set(&["rename", "papers", "articles"], "config", 0);
    world.assert_undamaged();
    let source = world.serve(port);
    fs::write(world.at("files/more.txt"), "more").unwrap();
    eventually("the change is delivered", || {
        got.lock().unwrap().iter().any(|(_, body)| body.contains("/articles/r/more.txt"))
    });
    for (links, body) in got.lock().unwrap().iter() {
        assert!(
            links.contains(&format!("<{base}articles/notify/change>; rel=\"self\"")),
            "{links}"
        );
        assert!(!body.contains("/papers/"), "{body}");
    }
    eventually_ok("the copy follows", || {
        same(&files(&world.at("files")), &files(&world.at("copy")))
    });
    assert_eq!(get(&source.address, "/papers/notify/change").unwrap().0, 308);
    // The hub has no topic of this name any more.
    assert_eq!(ask(), "404");
}

/// The same in a database and a bucket.
#[test]
fn sets_of_a_database_are_renamed_and_removed_as_in_a_folder() {
    type Check = (&'static str, fn(&World));
    const CHECKS: [Check; 4] = [
        ("rename_with_copies", rename_with_copies),
        ("rename_with_redirects", rename_with_redirects),
        ("remove_with_copies", remove_with_copies),
        ("rename_with_subscribers", rename_with_subscribers),
    ];
    let name = "former_sets::sets_of_a_database_are_renamed_and_removed_as_in_a_folder";
    let Some(programs) = provided(name, "ABREAST_TEST_POSTGRES") else { return };
    let server = Postgres::start(&programs);
    let Some(bucket) = S3Server::start(name) else { return };
    for (database, check) in CHECKS {
        println!("{database}");
        check(&World::in_database(&server, &bucket, database));
    }
}

/// Paths below a folder that belong to another user than the one with this number.
fn of_others(folder: &Path, user: u32) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (path, stat) = entry.map(|it| (it.path(), it.metadata().unwrap())).unwrap();
        if stat.is_dir() {
            found.extend(of_others(&path, user));
        }
        if stat.uid() != user {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_store_that_root_renames_a_set_in_keeps_its_owner() {
    use std::os::unix::fs::chown;
    let world = World::new();
    let source = world.serve(0);
    eventually("the set is read", || source.get("/papers/resourcelist.xml").is_some());
    assert_eq!(source.stop(), Some(0));
    let data = world.at("data");
    if chown(&data, Some(12_345), Some(12_346)).is_err() {
        abreast_testkit::skipped(module_path!(), "only root can change owners");
        return;
    }
    for path in of_others(&data, 12_345) {
        chown(&path, Some(12_345), Some(12_346)).unwrap();
    }
    world.set(&["rename", "papers", "articles"], "data", 0);
    assert_eq!(of_others(&data, 12_345), Vec::<PathBuf>::new());
    // A server that root starts there says what its owner runs instead.
    world.configure(&[("articles", "files"), ("people", "rdf"), ("other", "other")]);
    let config = world.word("abreast.toml");
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    let errors = world.at("errors");
    let source = Source::run_logged(&mut command, &errors);
    let text = fs::read_to_string(&errors).unwrap();
    assert!(text.contains("help: run `setpriv --reuid 12345 --regid 12346"), "{text}");
    drop(source);
}
