//! `abreast validate` and `abreast explore` on what `abreast serve` publishes, and on files.

use crate::world::{Source, abreast};
use abreast_testkit::{eventually, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn validate(arguments: &[&str], code: i32) -> String {
    let output = run(abreast().arg("validate").args(arguments));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{text}{}", shown(&output));
    text
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A Source with several Change Lists, dumps, unusual names, and changed and deleted resources.
fn lively(folder: &Path, data: &Path) -> Source {
    for number in 0..30 {
        fs::write(folder.join(format!("{number}.txt")), format!("file {number}")).unwrap();
    }
    fs::create_dir(folder.join("a b")).unwrap();
    fs::write(folder.join("a b/ü&<>%.html"), "<!DOCTYPE html>").unwrap();
    let data = data.to_str().unwrap();
    let more = [
        "--data",
        data,
        "--changes-per-list",
        "10",
        "--dumps",
        "1s",
        "--change-dumps",
        "--digests",
        "both",
    ];
    let source = Source::start(folder, 0, &more);
    for number in 0..12 {
        fs::write(folder.join(format!("{number}.txt")), format!("changed {number}")).unwrap();
    }
    fs::remove_file(folder.join("20.txt")).unwrap();
    eventually("a closed Change List and a dump are published", || {
        ["/set/changelist/2.xml", "/set/resourcedump.xml", "/set/changedump.xml"]
            .iter()
            .all(|path| source.get(path).is_some())
    });
    source
}

#[test]
fn documents_of_serve_break_no_rule() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = lively(folder.path(), data.path());
    let all = ["--sample", "all", "--packages", "all", "--fail-on", "warning", "--format", "json"];
    let report = lines(&validate(&[&[source.url().as_str()][..], &all].concat(), 0));
    let summary = report.last().unwrap();
    assert_eq!((&summary["errors"], &summary["warnings"]), (&0.into(), &0.into()), "{report:#?}");
    assert_eq!(summary["sampled"], 30, "{summary}");
    let names: Vec<_> = report.iter().filter_map(|line| line["name"].as_str()).collect();
    for name in [
        "Source Description",
        "Capability List",
        "Resource List",
        "Change List Index",
        "Change List",
        "package",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}

#[test]
fn topics_keep_to_every_rule_before_and_after_changes() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("a.txt"), "first").unwrap();
    let data = data.path().to_str().unwrap();
    let source = Source::start(folder.path(), 0, &["--data", data, "--changes-per-list", "2"]);
    let judged = || lines(&validate(&[&source.url(), "--fail-on", "note", "--format", "json"], 0));
    judged();
    let topic = "/set/notify/change";
    for round in 0..3 {
        let name = format!("{round}.txt");
        fs::write(folder.path().join(&name), "more").unwrap();
        eventually("the change is notified", || {
            source.get(topic).is_some_and(|body| String::from_utf8_lossy(&body).contains(&name))
        });
        let topics: Vec<_> =
            judged().into_iter().filter(|line| line["found_by"] == "topic").collect();
        assert!(topics.len() == 2 && topics[0]["name"] == "Change Notification", "{topics:#?}");
    }
    let file = folder.path().join(".notification.xml");
    fs::write(&file, source.get(topic).unwrap()).unwrap();
    validate(&[file.to_str().unwrap(), "--fail-on", "note"], 0);
}

#[test]
fn explore_shows_the_tree_from_any_address_to_any_depth() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = lively(folder.path(), data.path());
    let start = format!("{}set/changelist/1.xml", source.url());
    let explore = |more: &[&str]| {
        let output = run(abreast().args(["explore", &start]).args(more));
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let tree = explore(&[]);
    let first: Vec<_> = tree.lines().take(3).collect();
    assert!(first[0].starts_with("Source Description http://"), "{tree}");
    assert!(
        first[1].starts_with("└─ Capability List ") && first[2].contains("├─ Resource List "),
        "{tree}"
    );
    assert!(tree.contains("  ├─ Change List http") && tree.contains("until 20"), "{tree}");
    let documents = lines(&explore(&["--json", "--depth", "1"]));
    let names: Vec<_> = documents.iter().map(|line| line["name"].as_str().unwrap()).collect();
    // What was given is shown whatever its depth, and the index that it links to; then the feeds.
    assert_eq!(
        names[..4],
        ["Source Description", "Capability List", "Change List Index", "Change List"]
    );
    assert_eq!(names[4..], ["change feed"; 3]);
    assert_eq!(documents[1]["parent"], documents[0]["url"]);
}

#[test]
fn files_are_checked_and_exit_codes_show_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changelist.xml");
    let name = path.to_str().unwrap();
    let write = |change: &str| {
        let text = format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"\n  xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n\
             <rs:ln rel=\"up\" href=\"http://example.org/c.xml\"/>\n<rs:md capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"/>\n\
             <url><loc>http://example.org/a</loc><rs:md change=\"{change}\" datetime=\"2026-01-02T00:00:00Z\"/></url>\n</urlset>\n"
        );
        fs::write(&path, text).unwrap();
    };
    write("deleted\" length=\"5");
    validate(&[name], 0);
    let text = validate(&[name, "--fail-on", "warning"], 1);
    assert!(
        text.contains("warning line 5, column 1:") && text.contains("(RS-7-deleted) [rs-core §7]"),
        "{text}"
    );
    write("<b>");
    assert!(validate(&[name], 1).contains("(XML-2.1-well-formed)"));
    write("&lt;b>");
    let text = validate(&[name], 1);
    assert!(
        text.contains(
            "error   line 5, column 37: `change` is \"<b>\"; copies refuse it: `change` is"
        ) && text.contains("(RS-12.1-change-value)"),
        "{text}"
    );
    assert!(
        text.contains("help: use one of the three") && text.contains("1 error, 0 warnings"),
        "{text}"
    );
    let page = validate(&[name, "--format", "html"], 1);
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("&quot;&lt;b&gt;&quot;"),
        "{page}"
    );
    let nowhere = folder.path().join("nothing.xml");
    for command in ["validate", "explore"] {
        let output = run(abreast().arg(command).arg(&nowhere));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(
            shown(&output).contains("no such file: `") && shown(&output).contains("help:"),
            "{}",
            shown(&output)
        );
    }
    // What cannot be read hides no report of what can.
    for other in [nowhere.to_str().unwrap(), folder.path().to_str().unwrap(), "http://:1/"] {
        let text = validate(&[other, name], 1);
        let faults = ["(RS-12.1-change-value)", "cannot be read: ", "2 errors, 0 warnings"];
        assert!(faults.iter().all(|fault| text.contains(fault)), "{other}: {text}");
    }
    let text = validate(&["http://127.0.0.1:1/", "--retries", "0"], 5);
    assert!(text.contains("help: check the address, and that its server is running"), "{text}");
    assert_eq!(run(abreast().args(["validate"])).status.code(), Some(2));
    assert_eq!(
        run(abreast().args(["validate", name, "--strict", "--lenient"])).status.code(),
        Some(2)
    );
    assert_eq!(
        run(abreast().args(["explore", "http://127.0.0.1:1/", "--retries", "0"])).status.code(),
        Some(5)
    );
}

#[test]
fn what_is_in_the_place_of_a_change_feed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("feed.json");
    for (body, what) in [("", "it is empty, and not JSON"), ("x", "it is plain text, and not JSON")]
    {
        fs::write(&file, body).unwrap();
        let found = validate(&[file.to_str().unwrap()], 1);
        assert!(found.contains(what) && !found.contains("XML"), "{found}");
        let output = run(abreast().arg("explore").arg(&file));
        assert_eq!(output.status.code(), Some(2));
        assert!(shown(&output).contains(&format!("feed.json: {what}")), "{}", shown(&output));
    }
}

#[test]
fn invalid_access_options_are_wrong_usage() {
    for command in ["validate", "explore"] {
        let output =
            run(abreast().args([command, "http://127.0.0.1:1/", "--token-file", "/nothing/there"]));
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(shown(&output).contains("/nothing/there"), "{}", shown(&output));
    }
}

const TURTLE: &str = "@prefix : <http://id.example/> .\n\
    :a a :Ship ; :name 'Aurora'@en ; :built [ :at 'Bremen' ; :in [ :name 'x' ] ] .\n\
    :b a :Ship ; :knows :a ; :\u{e9} 'caf\u{e9}' .\n:c :name 'c' .\n:d a :Ship .\n";

/// A set of entities with a change, another type of one, and a deletion.
fn ships(folder: &Path, data: &Path, more: &[&str]) -> Source {
    fs::write(folder.join("ships.ttl"), TURTLE).unwrap();
    let data = data.to_str().unwrap();
    let source = Source::start(folder, 0, &[&["--origin", "rdf", "--data", data], more].concat());
    let changed = TURTLE.replace("Bremen", "Kiel").replace(":c :name 'c' .", "");
    let changed = changed.replace(":d a :Ship", ":d a :Wreck");
    fs::write(folder.join(".part"), changed).unwrap();
    fs::rename(folder.join(".part"), folder.join("ships.ttl")).unwrap();
    eventually("the deletion is published", || {
        let feed = source.get("/set/sdshare/fragments").unwrap_or_default();
        let text = String::from_utf8_lossy(&feed).into_owned();
        text.rfind("http://id.example/c<") > text.rfind("http://id.example/b<")
            && source
                .get("/set/sdshare/fragment/nt/!iri/http%3A/!/id.example/c")
                .is_some_and(|body| body.is_empty())
    });
    source
}

#[test]
fn feeds_of_serve_break_no_rule_of_sdshare() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = ships(folder.path(), data.path(), &[]);
    let url = |path: &str| format!("{}{path}", source.url());
    let checks = ["--fail-on", "note", "--strict", "--sample", "all", "--format", "json"];
    for (path, feeds) in [
        ("sdshare", 6),
        ("set/sdshare", 5),
        ("set/sdshare/snapshots", 3),
        ("set/sdshare/fragments", 1),
    ] {
        let report = lines(&validate(&[&[url(path).as_str()][..], &checks].concat(), 0));
        let read = report.iter().filter(|line| line["name"].as_str().is_some()).count();
        assert_eq!(read, feeds, "{report:#?}");
    }
    let all = lines(&validate(&[&[url("sdshare").as_str()][..], &checks].concat(), 0));
    assert!(all.last().unwrap()["sampled"].as_u64().unwrap() > 12, "{all:#?}");

    // The bytes of files are fragments too.
    let (files, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = lively(files.path(), data.path());
    let url = format!("{}sdshare", source.url());
    let report = lines(&validate(&[&[url.as_str()][..], &checks].concat(), 0));
    assert!(report.last().unwrap()["sampled"].as_u64().unwrap() >= 31, "{report:#?}");
}

#[test]
fn explore_shows_the_feeds_of_sdshare() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = ships(folder.path(), data.path(), &[]);
    let explore = |more: &[&str]| {
        let url = format!("{}sdshare", source.url());
        let output = run(abreast().args(["explore", &url]).args(more));
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    eventually("the snapshot is complete", || explore(&[]).contains("rdf+xml, application/n-t"));
    let tree = explore(&[]);
    for part in [
        "SDShare overview feed http",
        "\n└─ SDShare collection feed http",
        "\n   ├─ SDShare snapshots feed http",
        "\n   │  └─ SDShare snapshot http",
        "\n   │     └─ SDShare chunked snapshot feed http",
        "\n   └─ SDShare fragments feed http",
        "4 entries, 1 page, ",
        "newest entry 20",
        ", hub http",
    ] {
        assert!(tree.contains(part), "{part}\n{tree}");
    }
    let documents = lines(&explore(&["--json", "--depth", "2"]));
    let fragments = documents.last().unwrap();
    assert_eq!(
        (&fragments["name"], &fragments["pages"]),
        (&"SDShare fragments feed".into(), &1.into())
    );
    assert_eq!(fragments["formats"].as_array().unwrap().len(), 4, "{fragments}");
}

#[test]
fn change_feeds_of_serve_break_no_rule() {
    let checks = ["--fail-on", "note", "--strict", "--sample", "all", "--format", "json"];
    let check = |source: &Source, paths: &[&str]| {
        for path in paths {
            let url = format!("{}set/{path}", source.url());
            let report = lines(&validate(&[&[url.as_str()][..], &checks].concat(), 0));
            assert!(report[0]["entries"].as_u64().unwrap() > 0, "{path}: {report:#?}");
            assert!(report[0]["profile"].is_string(), "{path}: {report:#?}");
        }
    };
    let all = ["emm/1.0", "emm/0.1", "iiif"]
        .map(|profile| ["", "/latest"].map(|view| format!("{profile}{view}")));
    let all: Vec<&str> = all
        .iter()
        .flatten()
        .map(String::as_str)
        .chain(["emm/1.0/newest", "emm/0.1/newest"])
        .collect();
    for versions in [&[][..], &["--versions", "20"]] {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let source = ships(folder.path(), data.path(), versions);
        check(&source, &all);
        check(
            &source,
            &["emm/1.0/type/Ship", "emm/0.1/type/Ship", "emm/1.0/page/1", "iiif/activity/1"],
        );
        check(&source, &["emm/1.0/type/Wreck", "emm/0.1/type/Wreck"]);
        if !versions.is_empty() {
            check(
                &source,
                &["emm/1.0/labels", "emm/0.1/labels", "emm/1.0/patches", "emm/0.1/patches"],
            );
        }
    }
    let (files, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    check(&lively(files.path(), data.path()), &all);
}

#[test]
fn documents_of_0_1_of_serve_break_no_rule() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = lively(folder.path(), data.path());
    let all = ["--strict", "--fail-on", "note", "--sample", "all", "--format", "json"];
    for (path, names) in [
        ("sitemap.xml", &["Sitemap", "Change Set", "Dump"][..]),
        ("changeset.xml", &["Change Set"]),
    ] {
        let url = format!("{}set/v0.1/{path}", source.url());
        let report = lines(&validate(&[&[url.as_str()][..], &all].concat(), 0));
        let found: Vec<_> = report.iter().filter_map(|line| line["name"].as_str()).collect();
        for name in names {
            let name = format!("ResourceSync 0.1 {name}");
            assert!(found.iter().any(|found| found.contains(&name)), "{name} in {report:#?}");
        }
        let sets = found.iter().filter(|name| name.ends_with("Change Set")).count();
        assert!(sets > 1, "{report:#?}");
    }
    let url = format!("{}set/v0.1/sitemap.xml", source.url());
    let output = run(abreast().args(["explore", &url]));
    let tree = String::from_utf8(output.stdout).unwrap();
    for part in ["ResourceSync 0.1 Sitemap", "ResourceSync 0.1 Change Set", "0.1 Dump"] {
        assert!(tree.contains(part), "{part}\n{tree}");
    }
}

#[test]
fn explore_shows_change_feeds() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = ships(folder.path(), data.path(), &["--versions", "20"]);
    let explore = |path: &str, more: &[&str]| {
        let url = format!("{}set/{path}", source.url());
        let output = run(abreast().args(["explore", &url]).args(more));
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let tree = explore("emm/0.1", &[]);
    for part in [
        "EMM 0.1 Entry Point http",
        " activities, 1 page, ",
        "oldest first",
        "newest change 20",
        "newest page: ",
        " Delete",
        "patches linked",
        ", hub http",
    ] {
        assert!(tree.contains(part), "{part}\n{tree}");
    }
    let patches = explore("emm/0.1/patches", &[]);
    assert!(patches.contains("patches inline") && patches.contains("/set/emm/0.1, "), "{patches}");
    let feed = &lines(&explore("iiif", &["--json"]))[0];
    assert_eq!((&feed["profile"], &feed["pages"]), (&"iiif-1".into(), &1.into()), "{feed}");
    assert_eq!(feed["kinds"]["Delete"], 1, "{feed}");
}

#[test]
fn full_downloads_have_the_last_change_in_them() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = ships(folder.path(), data.path(), &[]);
    let entry =
        || -> Value { serde_json::from_slice(&source.get("/set/emm/1.0").unwrap()).unwrap() };
    eventually("the newest snapshot is linked to", || {
        entry()["url"][0].get("urn:abreast:position").is_some()
    });
    let entry = entry();
    let links = entry["url"].as_array().unwrap();
    let page = source.get("/set/emm/1.0/page/1").unwrap();
    let page: Value = serde_json::from_slice(&page).unwrap();
    for link in links.iter().filter(|link| link["mediaType"] != "text/html") {
        let position = link["urn:abreast:position"].as_u64().unwrap() as usize;
        let last = &page["orderedItems"][position - 1];
        assert_eq!(link["updated"], last["published"], "{link}");
    }
    assert!(links.iter().any(|link| link["mediaType"] == "application/n-triples"), "{links:?}");
    // The page about it for people.
    assert_eq!(links.last().unwrap()["mediaType"], "text/html");
}
