//! Stores and copies are checked, repaired, backed up and restored, also while they are used and
//! while killed.

use crate::crash::{spawn, write_version, writer};
use crate::world::{Source, abreast, catch_up, sync};
use abreast_core::{NewNotification, Offset, Payload, SystemClock, TopicLog as _, publish};
use abreast_store::backup::OFFSETS_APART;
use abreast_store::hub::SqliteHub;
use abreast_testkit::folder::assert_equal;
use abreast_testkit::{Random, eventually, kills, run, seed};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Kills of the test of kills.
const KILLS: u64 = 40;

fn tool(words: &[&str], paths: &[&Path], code: i32) -> String {
    let output = output(words, paths);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "abreast {words:?} {paths:?}\n{text}\n{errors}");
    format!("{text}{errors}")
}

fn output(words: &[&str], paths: &[&Path]) -> Output {
    run(abreast().args(&words[..1]).args(paths).args(&words[1..]))
}

fn codes(json: &str) -> Vec<String> {
    let lines = json.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut codes: Vec<String> = lines
        .filter(|line| line["type"] == "finding" && line["severity"] == "error")
        .map(|line| line["code"].as_str().unwrap().to_owned())
        .collect();
    codes.dedup();
    codes
}

fn put(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(format!(".{name}.new")), text).unwrap();
    fs::rename(folder.join(format!(".{name}.new")), folder.join(name)).unwrap();
}

fn lists(source: &Source, text: &str) -> bool {
    let lists = crate::crash::change_lists(source).unwrap_or_default();
    lists.iter().flat_map(|list| &list.entries).any(|entry| entry.loc.ends_with(text))
}

struct World {
    _temporary: tempfile::TempDir,
    original: PathBuf,
    data: PathBuf,
    backups: PathBuf,
    copy: PathBuf,
}

fn world(files: u64) -> World {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let world = World {
        original: at("original"),
        data: at("data"),
        backups: at("backups"),
        copy: at("copy"),
        _temporary: temporary,
    };
    fs::create_dir_all(&world.original).unwrap();
    for number in 0..files {
        write_version(&world.original, number, 0);
    }
    world
}

impl World {
    fn serve(&self, port: u16) -> Source {
        Source::start(
            &self.original,
            port,
            &["--data", self.data.to_str().unwrap(), "--versions", "all"],
        )
    }
}

#[test]
fn mirror_is_equal_after_the_source_restored_an_old_backup() {
    let world = world(20);
    let source = world.serve(0);
    let (port, url) = (source.port(), source.url());
    put(&world.original, "a.txt", "before");
    eventually("the change is published", || lists(&source, "a.txt"));
    tool(&["backup"], &[&world.data, &world.backups], 0);
    // Lost with the log: a resource that comes and one that changes, both sent to the mirror.
    put(&world.original, "lost.txt", "lost");
    put(&world.original, "a.txt", "after");
    eventually("the changes are published", || lists(&source, "lost.txt"));
    sync(&url, &world.copy, 0, &[]);
    assert_equal(&world.original, &world.copy);
    let log = |after: &str| run(abreast().args(["log", "set", "--server", &url, "--after", after]));
    let printed = String::from_utf8(log("0").stdout).unwrap();
    let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let (lost, kept) = (last["position"].to_string(), "1");
    source.stop();
    // The folder went back too: the log alone does not show that anything is different.
    fs::remove_file(world.original.join("lost.txt")).unwrap();
    put(&world.original, "a.txt", "before");
    fs::rename(&world.data, world.data.with_extension("old")).unwrap();
    tool(&["restore"], &[&world.backups, &world.data], 0);
    tool(&["check", "--read-data"], &[&world.data], 0);
    let source = world.serve(port);
    // The log has gone on beyond where the mirror stood.
    put(&world.original, "new.txt", "new");
    eventually("the change is published", || lists(&source, "new.txt"));
    sync(&url, &world.copy, 0, &[]);
    assert_equal(&world.original, &world.copy);
    assert_eq!(tool(&["check"], &[&world.data], 0).lines().last(), Some("no damage found"));
    // Clients of the API too: one whose position is in the lost part gets an error, others
    // continue.
    let refused = log(&lost);
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("of an earlier history"), "{text}");
    let printed = String::from_utf8(log(kept).stdout).unwrap();
    assert!(printed.lines().last().unwrap().contains("new.txt"), "{printed}");
}

#[test]
fn move_with_the_same_log_costs_a_mirror_nothing() {
    let world = world(5);
    let source = world.serve(0);
    let (port, url) = (source.port(), source.url());
    sync(&url, &world.copy, 0, &[]);
    put(&world.original, "a.txt", "one");
    eventually("the change is published", || lists(&source, "a.txt"));
    sync(&url, &world.copy, 0, &[]);
    source.stop();
    tool(&["backup"], &[&world.data, &world.backups], 0);
    fs::remove_dir_all(&world.data).unwrap();
    tool(&["restore", "--same-log"], &[&world.backups, &world.data], 0);
    let text = tool(&["restore", "--same-log"], &[&world.backups, &world.data], 2);
    assert!(text.contains("of a store already") && text.contains("--replace"), "{text}");
    let source = world.serve(port);
    let summary = sync(&url, &world.copy, 0, &[]);
    assert_eq!(summary["mode"], "unchanged", "{summary}");
    drop(source);
}

#[test]
fn backups_under_load_have_all_changes_and_contents() {
    let world = world(60);
    let source = world.serve(0);
    let stop = Arc::new(AtomicBool::new(false));
    let load = spawn(writer(world.original.clone(), 7), &stop);
    for number in 0..4 {
        let name = format!("marker-{number}.txt");
        put(&world.original, &name, "marker");
        eventually("the marker is published", || lists(&source, &name));
        tool(&["backup"], &[&world.data, &world.backups], 0);
        let restored = world.data.with_extension(format!("restored-{number}"));
        tool(&["restore"], &[&world.backups, &restored], 0);
        let text = tool(&["check", "--read-data", "--json"], &[&restored], 0);
        assert!(text.contains("\"ok\":true"), "{text}");
        let log = run(abreast().args(["log", "set", "--data"]).arg(&restored));
        assert!(
            String::from_utf8_lossy(&log.stdout).contains(&name),
            "{name} was acknowledged before the backup"
        );
        // Beside the server, whatever it is doing.
        tool(&["check", "--read-data-subset", "50%"], &[&world.data], 0);
    }
    stop.store(true, Ordering::Relaxed);
    load.join().unwrap();
    let refused = tool(&["repair"], &[&world.data], 10);
    assert!(refused.contains(&format!("process {}", source.child.0.id())), "{refused}");
}

#[test]
fn damage_in_a_store_is_found_and_repaired() {
    let world = world(30);
    let source = world.serve(0);
    put(&world.original, "f001.txt", "another version");
    put(&world.original, "large.txt", &"large ".repeat(20_000));
    eventually("the changes are published", || {
        lists(&source, "f001.txt") && lists(&source, "large.txt")
    });
    let (port, url) = (source.port(), source.url());
    sync(&url, &world.copy, 0, &[]);
    source.stop();
    assert!(codes(&tool(&["check", "--read-data", "--json"], &[&world.data], 0)).is_empty());
    // A flipped bit in a packed content, a flipped bit in the record of another, a missing large
    // content, an incomplete dump, and a wrong count.
    let segment = world.data.join("contents/packed/0000000001.segment");
    let mut bytes = fs::read(&segment).unwrap();
    let content = bytes.windows(15).position(|window| window == b"another version").unwrap();
    bytes[content] ^= 1;
    bytes[30] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let files: Vec<PathBuf> = files_below(&world.data.join("contents"));
    let large: Vec<&PathBuf> =
        files.iter().filter(|path| path.file_name().unwrap().len() == 62).collect();
    assert_eq!(large.len(), 1, "{files:?}");
    fs::remove_file(large[0]).unwrap();
    fs::create_dir_all(world.data.join("dumps/set/resources/making-resources-x")).unwrap();
    let json = tool(&["check", "--read-data", "--json"], &[&world.data], 1);
    let mut found = codes(&json);
    found.sort();
    assert_eq!(
        found,
        ["contents.digest", "contents.missing", "contents.record", "dumps.unfinished"],
        "{json}"
    );
    let planned = tool(&["repair", "--dry-run", "--read-data"], &[&world.data], 0);
    assert!(
        planned.contains("what names them: 2\n") && planned.contains("records are damaged: 1\n"),
        "{planned}"
    );
    assert_eq!(
        codes(&tool(&["check", "--read-data", "--json"], &[&world.data], 1)).len(),
        4,
        "a dry run does nothing"
    );
    tool(&["repair", "--read-data"], &[&world.data], 0);
    assert!(codes(&tool(&["check", "--read-data", "--json"], &[&world.data], 0)).is_empty());
    // The index of packed contents: something else has the name of one of its files.
    let index = world.data.join("contents/packed/000000000001-000000000001.index");
    fs::write(&index, "no index").unwrap();
    assert_eq!(codes(&tool(&["check", "--json"], &[&world.data], 1)), ["contents.index"]);
    assert!(tool(&["repair", "--dry-run"], &[&world.data], 0).contains("index of packed contents"));
    assert!(index.exists(), "a dry run does nothing");
    tool(&["repair"], &[&world.data], 0);
    assert!(codes(&tool(&["check", "--read-data", "--json"], &[&world.data], 0)).is_empty());
    // The database itself: a page in the middle is overwritten.
    let database = world.data.join("source.db");
    let mut bytes = fs::read(&database).unwrap();
    for byte in &mut bytes[5 * 8192..6 * 8192] {
        *byte = 0x5a;
    }
    fs::write(&database, bytes).unwrap();
    assert!(
        codes(&tool(&["check", "--json"], &[&world.data], 1)).contains(&"store.damaged".to_owned())
    );
    let steps = tool(&["repair"], &[&world.data], 0);
    assert!(steps.contains("source.db.damaged-1") && steps.contains("restart the log"), "{steps}");
    assert!(world.data.join("source.db.damaged-1").is_file());
    tool(&["check"], &[&world.data], 0);
    let source = world.serve(port);
    put(&world.original, "f002.txt", "after the repair");
    catch_up(&url, &world.original, &world.copy, &[]);
    drop(source);
}

#[test]
fn hub_is_checked_backed_up_repaired_and_restarted() {
    let world = world(3);
    let source = world.serve(0);
    put(&world.original, "a.txt", "published");
    eventually("the change is published", || lists(&source, "a.txt"));
    source.stop();
    let database = world.data.join("hub.db");
    let topic_url = "http://example.org/printed";
    let open = |data: &Path| {
        let store = SqliteHub::open(&data.join("hub.db"), Arc::new(SystemClock)).unwrap();
        let topic = store.open_topic(topic_url).unwrap();
        (store, topic)
    };
    let (store, topic) = open(&world.data);
    for body in ["first notification", "second notification", "third notification"] {
        let payload = Payload::Bytes(Arc::from(body.as_bytes()));
        publish(
            &store,
            topic,
            NewNotification { media_type: "text/plain".into(), links: String::new(), payload },
        )
        .unwrap();
    }
    drop(store);
    let sound = tool(&["check"], &[&world.data], 0);
    assert!(sound.contains("hub: ") && sound.ends_with("no damage found\n"), "{sound}");
    tool(&["backup"], &[&world.data, &world.backups], 0);

    let mut bytes = fs::read(&database).unwrap();
    let place = bytes.windows(18).position(|window| window == b"first notification").unwrap();
    bytes[place] ^= 1;
    fs::write(&database, bytes).unwrap();
    assert_eq!(codes(&tool(&["check", "--json"], &[&world.data], 1)), ["hub.notification"]);
    assert!(tool(&["backup"], &[&world.data, &world.backups], 1).contains("is damaged"));
    assert!(tool(&["repair", "--dry-run"], &[&world.data], 0).contains("hub: keep of each topic"));
    assert_eq!(
        codes(&tool(&["check", "--json"], &[&world.data], 1)),
        ["hub.notification"],
        "a dry run does nothing"
    );
    tool(&["repair"], &[&world.data], 0);
    tool(&["check"], &[&world.data], 0);
    let (store, topic) = open(&world.data);
    let kept = store.read(topic, Offset(0), 10).unwrap();
    assert_eq!(kept.len(), 2, "what follows the damage");
    assert!(kept[0].offset.0 > OFFSETS_APART, "under numbers that nobody has seen");
    drop(store);

    fs::rename(&world.data, world.data.with_extension("old")).unwrap();
    tool(&["restore"], &[&world.backups, &world.data], 0);
    tool(&["check"], &[&world.data], 0);
    let (store, topic) = open(&world.data);
    let offsets: Vec<u64> =
        store.read(topic, Offset(0), 10).unwrap().iter().map(|one| one.offset.0).collect();
    assert_eq!(offsets, [1, 2, 3].map(|number| OFFSETS_APART + number));
}

#[test]
fn incomplete_check_does_not_report_success() {
    let world = world(5);
    let source = world.serve(0);
    source.stop();
    assert!(tool(&["check"], &[&world.data], 0).ends_with("no damage found\n"));
    let contents = world.data.join("contents");
    let _ = fs::remove_dir_all(&contents);
    fs::write(&contents, "no folder").unwrap();
    let text = tool(&["check"], &[&world.data], 13);
    assert!(!text.lines().any(|line| line == "no damage found"), "{text}");
    assert!(text.contains("not checked to the end"), "{text}");
    let json = output(&["check", "--json"], &[&world.data]);
    let last: Value =
        serde_json::from_slice(json.stdout.split(|byte| *byte == b'\n').rev().nth(1).unwrap())
            .unwrap();
    assert_eq!(
        (&last["ok"], &last["complete"]),
        (&Value::Bool(false), &Value::Bool(false)),
        "{last}"
    );
}

#[test]
fn the_command_that_an_audit_names_repairs_the_copy() {
    let world = world(10);
    let source = world.serve(0);
    let url = source.url();
    let paths: [&Path; 2] = [Path::new(&url), &world.copy];
    tool(&["sync"], &paths, 0);
    fs::remove_file(world.copy.join("f001.txt")).unwrap();
    fs::write(world.copy.join("f002.txt"), "by hand").unwrap();
    assert!(!tool(&["sync"], &paths, 0).contains("missing"), "a run without changes reads nothing");
    for full in [false, true] {
        let text = tool(if full { &["audit", "--full"] } else { &["audit"] }, &paths, 1);
        let (_, command) = text.split_once("help: `abreast ").unwrap();
        let words: Vec<&str> = command.split('`').next().unwrap().split(' ').collect();
        assert_eq!(words.contains(&"--full"), full, "{text}");
        let output = run(abreast().args(&words));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("found missing or altered here"), "{printed}");
        tool(&["audit", "--full"], &paths, 0);
        assert_equal(&world.original, &world.copy);
        fs::remove_file(world.copy.join("f003.txt")).unwrap();
    }
}

#[test]
fn a_folder_that_is_served_is_not_copied_into() {
    let world = world(5);
    let source = world.serve(0);
    // With its store inside, as `abreast serve FOLDER` has it.
    let published = world.original.with_extension("published");
    fs::create_dir(&published).unwrap();
    fs::write(published.join("f001.txt"), "published").unwrap();
    let second = Source::start(&published, 0, &[]);
    let url = source.url();
    let text = tool(&["sync"], &[Path::new(&url), &published], 2);
    assert!(text.contains("[folder.published]") && text.contains("--republish"), "{text}");
    assert_eq!(fs::read_to_string(published.join("f001.txt")).unwrap(), "published");
    second.stop();
}

#[test]
fn damage_in_a_copy_is_found_and_fetched_again() {
    let world = world(10);
    let source = world.serve(0);
    for target in ["", "warc:"] {
        let copy = world.copy.with_extension(target.trim_end_matches(':'));
        let named = PathBuf::from(format!("{target}{}", copy.display()));
        let synced = || {
            assert_eq!(
                run(abreast().args(["sync", &source.url()]).arg(&named)).status.code(),
                Some(0)
            );
        };
        synced();
        assert!(codes(&tool(&["check", "--read-data", "--json"], &[&named], 0)).is_empty());
        if target.is_empty() {
            // Other bytes of the same length and time, and a file that is gone.
            let path = copy.join("f001.txt");
            let (mut bytes, modified) =
                (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
            bytes[3] ^= 4;
            fs::write(&path, bytes).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
            fs::remove_file(copy.join("f002.txt")).unwrap();
            fs::write(copy.join(".%~0123456789abcdef"), "left").unwrap();
            let found = codes(&tool(&["check", "--read-data", "--json"], &[&named], 1));
            assert_eq!(found, ["copy.digest", "copy.missing", "copy.leftover"]);
        } else {
            let segment = files_below(&copy.join("archive")).remove(0);
            let mut bytes = fs::read(&segment).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 8;
            fs::write(&segment, bytes).unwrap();
            assert_eq!(
                codes(&tool(&["check", "--read-data", "--json"], &[&named], 1)),
                ["copy.digest"]
            );
        }
        tool(&["repair", "--read-data", "--dry-run"], &[&named], 0);
        tool(&["repair", "--read-data"], &[&named], 0);
        synced();
        assert!(codes(&tool(&["check", "--read-data", "--json"], &[&named], 0)).is_empty());
        if target.is_empty() {
            assert_equal(&world.original, &copy);
        }
    }
}

#[test]
fn killed_backup_restore_and_repair_leave_old_or_new() {
    let world = world(40);
    let source = world.serve(0);
    put(&world.original, "f001.txt", "another version");
    eventually("the change is published", || lists(&source, "f001.txt"));
    source.stop();
    tool(&["backup"], &[&world.data, &world.backups], 0);
    let (kills, mut random) = (kills(KILLS), Random::new(seed(11)));
    let mut killed = 0;
    // All of it in one file.
    tool(&["repair"], &[&world.data], 0);
    let database = world.data.join("source.db");
    let good = fs::read(&database).unwrap();
    let mut bad = good.clone();
    for byte in &mut bad[5 * 8192..6 * 8192] {
        *byte = 0x5a;
    }
    let begun = Instant::now();
    for round in 0.. {
        if killed >= kills || begun.elapsed() > Duration::from_millis(1_500 * kills) {
            break;
        }
        let restored = world.data.with_extension("restored");
        let (word, paths): (_, Vec<&Path>) = match round % 3 {
            0 => ("backup", vec![&world.data, &world.backups]),
            1 => ("restore", vec![&world.backups, &restored]),
            _ => {
                fs::write(&database, &bad).unwrap();
                ("repair", vec![&world.data])
            }
        };
        let mut child = abreast()
            .arg(word)
            .args(&paths)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(random.below(60)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        match word {
            "restore" if restored.join("source.db").exists() => {
                tool(&["check", "--read-data"], &[&restored], 0);
                fs::remove_dir_all(&restored).unwrap();
            }
            "repair" => {
                // Whatever was left, it is repaired from there.
                tool(&["repair"], &[&world.data], 0);
                tool(&["check"], &[&world.data], 0);
                for entry in fs::read_dir(&world.data).unwrap() {
                    let path = entry.unwrap().path();
                    if path.file_name().unwrap().to_string_lossy().starts_with("source.db") {
                        fs::remove_file(path).unwrap();
                    }
                }
                fs::write(&database, &good).unwrap();
            }
            _ => {}
        }
    }
    eprintln!("{killed} of {kills} kills");
    assert!(killed >= kills / 4, "{killed} kills");
    // Whatever was left of backups, the next one and its restore are whole.
    tool(&["backup"], &[&world.data, &world.backups], 0);
    let restored = world.data.with_extension("restored");
    tool(&["restore"], &[&world.backups, &restored], 0);
    tool(&["check", "--read-data"], &[&restored], 0);
}

#[test]
fn doctor_reports_problems() {
    let world = world(1);
    let source = world.serve(0);
    // The port of another program, which never answers.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let output = run(abreast().args(["doctor", &source.url(), "--json", "--listen", &listen]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |code: &str| {
        lines.iter().find(|line| line["code"] == code).unwrap_or_else(|| panic!("{code}: {text}"))
    };
    assert_eq!(
        (of("port")["ok"].clone(), of("answer")["ok"].clone()),
        (false.into(), true.into()),
        "{text}"
    );
    assert!(of("port")["help"].as_str().unwrap().contains("--listen"));
    assert_eq!(output.status.code(), Some(1));
    let text = tool(&["doctor", "--json", "--listen", "127.0.0.1:0"], &[&world.original], 0);
    assert!(text.contains("\"writable\"") && text.contains("distinguishes A from a"), "{text}");
    assert_eq!(fs::read_dir(&world.original).unwrap().count(), 1, "nothing is left behind");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.extension().is_none_or(|extension| extension == "gz")
            && !path.ends_with("lock")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn a_copy_with_its_state_elsewhere_is_checked_and_repaired() {
    let world = world(10);
    let source = world.serve(0);
    for target in ["", "warc:"] {
        let copy = world.copy.with_extension(target.trim_end_matches(':'));
        let named = PathBuf::from(format!("{target}{}", copy.display()));
        let state = world.copy.with_file_name(format!("state-{}", target.trim_end_matches(':')));
        let sync = || {
            tool(&["sync"], &[Path::new(&source.url()), &named, Path::new("--state"), &state], 0)
        };
        sync();
        for given in [&named, &state] {
            let text = tool(&["check", "--read-data"], &[given], 0);
            assert!(
                text.contains("copy: 10 resources, 10 read") && text.contains("no damage found"),
                "{given:?}: {text}"
            );
        }
        for given in [&named, &state] {
            let damage = if target.is_empty() {
                copy.join("f001.txt")
            } else {
                files_below(&copy.join("archive")).remove(0)
            };
            fs::write(&damage, "").unwrap();
            let found = codes(&tool(&["check", "--json"], &[given], 1));
            assert!(found.iter().all(|code| code.starts_with("copy.")), "{given:?}: {found:?}");
            let planned = tool(&["repair", "--dry-run"], &[given], 0);
            assert_eq!(planned, tool(&["repair"], &[given], 0));
            sync();
            if target.is_empty() {
                assert_eq!(found, ["copy.changed"]);
                assert_eq!(planned.lines().count(), 1, "{planned}");
                assert_equal(&world.original, &copy);
            }
            tool(&["check", "--read-data"], &[given], 0);
        }
    }
}

#[test]
fn a_repair_of_a_state_elsewhere_takes_the_copy() {
    let world = world(3);
    let source = world.serve(0);
    let (url, state) = (source.url(), world.copy.with_extension("state"));
    let paths: [&Path; 4] = [Path::new(&url), &world.copy, Path::new("--state"), &state];
    tool(&["sync"], &paths, 0);
    let held = fs::File::open(world.copy.join(".abreast/lock")).unwrap();
    held.lock().unwrap();
    for given in [&world.copy, &state] {
        for words in [&["repair"][..], &["repair", "--dry-run"]] {
            let text = tool(words, &[given], 10);
            assert!(text.contains("in use by another process"), "{given:?}: {text}");
        }
        assert!(tool(&["check"], &[given], 0).contains("is using the copy"));
    }
    drop(held);
    // A state that names no copy is repaired by the folder of the copy only.
    let (other, alone) = (world.copy.with_extension("other"), world.copy.with_extension("alone"));
    tool(&["sync"], &[Path::new(&url), &other], 0);
    abreast_testkit::folder::copy(&other.join(".abreast"), &alone);
    assert!(tool(&["check"], &[&alone], 0).contains("name that folder"));
    assert!(tool(&["repair"], &[&alone], 2).contains("help: name the folder of the copy"));
}
