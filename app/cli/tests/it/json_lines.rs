//! The JSON lines of every command have the types and fields that `docs/json.md` lists.

use crate::world::{Source, abreast};
use abreast_testkit::{eventually, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

/// The fields of each type of line, by the heading; the type of records is `none`.
type Documented = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Every field, and those in italics, which are not in each line.
fn documented() -> [Documented; 2] {
    let text = include_str!("../../../../docs/json.md");
    let (mut found, mut optional) = (Documented::new(), Documented::new());
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut heading);
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [kind, fields] = cells.as_slice() else { continue };
        let kind = kind.trim().trim_matches('`');
        if heading.is_empty() || !line.starts_with('|') || kind == "type" {
            continue;
        }
        let add = |to: &mut Documented, names: &mut dyn Iterator<Item = &str>| {
            let types = to.entry(heading.clone()).or_default();
            types.entry(kind.to_owned()).or_default().extend(names.map(str::to_owned));
        };
        add(&mut found, &mut fields.split('`').skip(1).step_by(2));
        let italic = fields.split("*`").skip(1).filter_map(|rest| Some(rest.split_once("`*")?.0));
        add(&mut optional, &mut { italic });
    }
    [found, optional]
}

#[test]
fn every_field_of_every_json_line_is_documented() {
    let [documented, optional] = documented();
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    let papers = place.path().join("papers");
    fs::create_dir(&papers).unwrap();
    for number in 0..5 {
        fs::write(papers.join(format!("{number}.txt")), format!("text {number}")).unwrap();
    }
    fs::write(at("records.ndjson"), "{\"uri\":\"http://h/a\",\"length\":3}\n").unwrap();
    fs::write(at("names.nt"), "<http://h/1> <http://h/p> \"x\" .\n").unwrap();
    fs::write(at("other.html"), "<p>nothing</p>").unwrap();
    let config = |name: &str, origin: &str, more: &str| {
        let file = at(&format!("{name}.toml"));
        let data = at(&format!("{name}-store"));
        fs::create_dir_all(&data).unwrap();
        let text =
            format!("data = {data:?}\n[[set]]\nname = {name:?}\norigin = {origin:?}\n{more}");
        fs::write(&file, text).unwrap();
        file
    };
    config("records", "records", "");
    config("entities", "rdf", "namespace = \"http://h/\"\n");
    let source = Source::start(&papers, 0, &["--data", &at("store"), "--versions", "all"]);
    let url = source.url();
    let mut seen: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut wrong = BTreeSet::new();
    let mut check = |heading: &str, words: &str| {
        let words = words.replace("URL", &url).replace("DIR", place.path().to_str().unwrap());
        let output = run(abreast().args(words.split(' ')));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut count = 0;
        for line in text.lines() {
            let Ok(Value::Object(object)) = serde_json::from_str(line) else {
                wrong.insert(format!("`{words}` prints {line}"));
                continue;
            };
            count += 1;
            let types = documented.get(heading).unwrap_or_else(|| panic!("no heading {heading}"));
            let kind = object.get("type").and_then(Value::as_str).unwrap_or("none");
            let is_record = types.contains_key("none") && kind != "error";
            let kind = if is_record { "none" } else { kind };
            let everywhere = documented["Every command"].get(kind);
            if types.get(kind).or(everywhere).is_none() {
                wrong.insert(format!("`{words}`: the type `{kind}` is not under {heading}"));
                continue;
            }
            for field in object.keys().filter(|field| is_record || *field != "type") {
                let known = [types.get(kind), everywhere];
                if known.into_iter().flatten().any(|fields| fields.contains(field)) {
                    let key = (heading.to_owned(), kind.to_owned());
                    seen.entry(key).or_default().insert(field.clone());
                } else {
                    wrong.insert(format!("{heading}, {kind}: `{field}` of `{words}`"));
                }
            }
            if let Some(message) = object.get("message").and_then(Value::as_str) {
                assert!(!message.contains("help: "), "`{words}`: {message}");
            }
        }
        if count == 0 {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            wrong.insert(format!("`{words}` prints no line: {errors}"));
        }
        output.status.code()
    };
    for (heading, words) in [
        ("sync, audit", "sync URL DIR/rehearsed --json --dry-run"),
        ("sync, audit", "sync URL DIR/copy --json"),
        ("sync, audit", "sync URL DIR/copy --json --test-filter --exclude 1.txt"),
        ("sync, audit", "sync URL DIR/copies --json --all-sets"),
        ("sync, audit", "sync URL DIR/copy --json --set none"),
        ("sync, audit", "sync http://127.0.0.1:9/ DIR/copy2 --json --retries 0"),
        ("sync, audit", "sync URL DIR/copy --json --no-such-option"),
        ("sync, audit", "audit URL DIR/copy --json"),
        ("sync, audit", "audit URL DIR/copies --json --all-sets"),
        ("Copies as lines", "sync URL - --state DIR/lines --content 1K"),
        ("validate, explore", "validate URL --format json --strict"),
        ("validate, explore", "validate DIR/other.html --format json"),
        ("validate, explore", "explore URL --json"),
        ("build", "build DIR/papers --base-url http://h/ --copy --out DIR/site --json"),
        ("import", "import records DIR/records.ndjson --config DIR/records.toml --json"),
        ("import", "import entities DIR/names.nt --config DIR/entities.toml --json"),
        ("import", "import entities DIR/other.nt --config DIR/entities.toml --json"),
        ("doctor", "doctor DIR/papers --json --listen 127.0.0.1:0"),
        ("doctor", "doctor URL --json --listen 127.0.0.1:0"),
        ("config show", "config show DIR/records.toml --json"),
        ("hub", "hub topics --server URL --json"),
        ("status", "status DIR/copy --json"),
        ("status", "status URL --json"),
    ] {
        check(heading, words);
    }
    fs::write(papers.join("1.txt"), "another text").unwrap();
    fs::remove_file(papers.join("2.txt")).unwrap();
    eventually("the change is listed", || {
        source
            .get("/set/changelist.xml")
            .is_some_and(|list| String::from_utf8_lossy(&list).contains("2.txt"))
    });
    check("sync, audit", "sync URL DIR/copy --json");
    check("log", "log set --server URL");
    assert_eq!(source.stop(), Some(0));
    fs::remove_file(at("copy/3.txt")).unwrap();
    for (heading, words) in [
        ("check", "check DIR/store --json --read-data"),
        ("check", "check DIR/copy --json --read-data"),
        ("repair", "repair DIR/copy --json --read-data"),
        ("repair", "repair DIR/store --json --dry-run"),
        ("backup", "backup DIR/store DIR/backups --json"),
        ("backup", "backup DIR/store DIR/backups --json --dry-run --keep-last 1"),
        ("backup", "backup DIR/store DIR/backups --json --keep-last 1"),
        ("backup", "backup --list DIR/backups --json"),
        ("restore", "restore DIR/backups DIR/restored --json"),
        ("set remove", "drop DIR/restored set --json --dry-run"),
        ("set remove", "drop DIR/none set --json"),
        ("set remove", "set remove set --data DIR/restored --json --dry-run"),
        ("set rename", "set rename set new --data DIR/restored --json"),
        ("set list", "set list --data DIR/restored --json"),
        ("token list", "token list --data DIR/store --json"),
    ] {
        if heading == "token list" {
            let mut command = abreast();
            command.args(["token", "create", "--name", "x", "--scope", "read", "--data"]);
            assert!(run(command.arg(at("store"))).status.success());
        }
        check(heading, words);
    }
    assert!(wrong.is_empty(), "{}", Vec::from_iter(wrong).join("\n"));
    // What is documented without italics is there.
    for ((heading, kind), fields) in &seen {
        let documented = documented[heading].get(kind).into_iter().flatten();
        let is_optional = |field: &&String| {
            optional[heading].get(kind).is_some_and(|fields| fields.contains(*field))
        };
        for field in documented.filter(|field| !is_optional(field)) {
            let common = heading == "sync, audit" && kind == "error";
            assert!(common || fields.contains(field), "{heading}, {kind}: `{field}` is in no line");
        }
    }
}

#[test]
fn candidates_and_help_are_fields_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    let mut config = format!("data = {:?}\n", place.path().join("store"));
    for name in ["papers", "maps"] {
        let folder = place.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a"), "a").unwrap();
        let _ = writeln!(config, "[[set]]\nfolder = {folder:?}");
    }
    let file = place.path().join("abreast.toml");
    fs::write(&file, config).unwrap();
    let source = Source::start_config(file.to_str().unwrap());
    let url = source.url();
    let copy = place.path().join("copy").display().to_string();
    let error = |words: &[&str]| {
        let output = run(abreast().args(words));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.rfind(|line| line["type"] == "error").unwrap_or_else(|| panic!("{text}"))
    };
    for more in [&[][..], &["--set", "none"]] {
        let found = error(&[&["sync", &url, &copy, "--json"][..], more].concat());
        let candidates: Vec<&str> =
            found["candidates"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let expected = ["papers", "maps"].map(|name| format!("{url}{name}/capabilitylist.xml"));
        assert_eq!(candidates, expected, "{found}");
        assert!(found["help"].as_str().unwrap().contains("these") || more.is_empty(), "{found}");
        // Each of them can be given.
        for candidate in candidates {
            let into = place.path().join(candidate.len().to_string());
            let mut command = abreast();
            command.args(["sync", &url]).arg(&into).args(["--set", candidate]);
            assert!(run(&mut command).status.success(), "{candidate}");
        }
    }
    let found = error(&["sync", &url, &copy, "--json", "--conections", "3"]);
    assert_eq!(found["candidates"], serde_json::json!(["--connections"]), "{found}");
    let found = error(&["check", place.path().join("none").to_str().unwrap(), "--json"]);
    assert!(found["help"].is_string() && !found["message"].as_str().unwrap().contains("help"));
}
