//! What rules leave out of a folder is published nowhere, by `serve` or by `build`.

use crate::world::{Source, abreast, audit, get, sync};
use abreast_testkit::{eventually, run};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Paths of resources in a list.
fn listed(source: &Source, list: &str) -> BTreeSet<String> {
    let text = String::from_utf8(source.get(list).unwrap_or_default()).unwrap();
    let locations = text.split("<loc>").skip(1).filter_map(|rest| rest.split("</loc>").next());
    locations.filter_map(|url| Some(url.split_once("/r/")?.1.to_owned())).collect()
}

fn status(source: &Source, path: &str) -> u16 {
    get(&source.address, path).unwrap().0
}

const LIST: &str = "/set/resourcelist.xml";
const CHANGES: &str = "/set/changelist.xml";
const RULES: [&str; 4] = ["--exclude", "*.tmp", "--exclude", "/drafts/"];

#[test]
fn excluded_files_are_published_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("original");
    for name in
        ["a.xml", "b.tmp", "drafts/x.xml", "drafts/deep/y.xml", "papers/z.tmp", "papers/z.xml"]
    {
        write(&folder, name, "<draft/>");
    }
    // So many that no deletion by the rules is held.
    let kept: Vec<String> = (0..10).map(|number| format!("kept/{number}.xml")).collect();
    for name in &kept {
        write(&folder, name, "x");
    }
    symlink("drafts/x.xml", folder.join("link.xml")).unwrap();
    symlink("drafts", folder.join("linked")).unwrap();
    symlink("a.xml", folder.join("good.xml")).unwrap();
    let more =
        ["--versions", "all", "--follow-links", "--api-write", "--dumps", "1s", "--change-dumps"];
    let all = Source::start(&folder, 0, &more);
    eventually("everything is published", || listed(&all, LIST).len() == 20);
    write(&folder, "drafts/x.xml", "<draft>second</draft>");
    eventually("a change is recorded", || listed(&all, CHANGES).contains("drafts/x.xml"));
    let timemap = |source: &Source| format!("/timemap/json/{}set/r/drafts/x.xml", source.url());
    let map: serde_json::Value = serde_json::from_slice(&all.get(&timemap(&all)).unwrap()).unwrap();
    let memento = map["mementos"]["list"][0]["uri"]
        .as_str()
        .unwrap()
        .splitn(4, '/')
        .nth(3)
        .unwrap()
        .to_owned();
    assert_eq!(status(&all, &format!("/{memento}")), 200);
    let port = all.port();
    assert_eq!(all.stop(), Some(0));

    let some = Source::start(&folder, port, &[&more[..], &RULES].concat());
    let taken = ["a.xml", "good.xml", "papers/z.xml"].map(str::to_owned).into_iter().chain(kept);
    let taken: BTreeSet<String> = taken.collect();
    // At once under the URLs, in the lists when the first scan has ended.
    let hidden =
        ["drafts/x.xml", "drafts/deep/y.xml", "b.tmp", "papers/z.tmp", "link.xml", "linked/x.xml"];
    for name in hidden {
        assert_eq!(status(&some, &format!("/set/r/{name}")), 404, "{name}");
        assert_eq!(status(&some, &format!("/api/v1/sets/set/content/{name}")), 404, "{name}");
    }
    eventually("the lists name what the rules take", || listed(&some, LIST) == taken);
    let deleted = String::from_utf8(some.get(CHANGES).unwrap()).unwrap();
    assert_eq!(deleted.matches("change=\"deleted\"").count(), 7, "{deleted}");
    for path in [&format!("/{memento}"), &timemap(&some)] {
        assert_eq!(status(&some, path), 404, "{path}");
    }
    write(&folder, "drafts/new.xml", "<draft/>");
    write(&folder, "new.tmp", "x");
    write(&folder, "new.xml", "x");
    eventually("a new file is published", || listed(&some, LIST).contains("new.xml"));
    assert!(!listed(&some, LIST).iter().any(|path| path.contains("draft") || path.contains("tmp")));
    let put = |name: &str| {
        let url = format!("{}api/v1/sets/set/content/{name}", some.url());
        let body = place.path().join("body");
        fs::write(&body, "x").unwrap();
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-T"]).arg(body).arg(url);
        String::from_utf8(run(&mut curl).stdout).unwrap()
    };
    assert_eq!((put("drafts/put.xml").as_str(), put("put.xml").as_str()), ("422", "201"));
    assert!(!folder.join("drafts/put.xml").exists());
    eventually("the dump names what the rules take", || {
        let list =
            String::from_utf8(some.get("/set/resourcedump.xml").unwrap_or_default()).unwrap();
        let Some(package) = list.split("<loc>").nth(1).and_then(|rest| rest.split("</loc>").next())
        else {
            return false;
        };
        let path = format!("/{}", package.splitn(4, '/').nth(3).unwrap());
        let bytes = some.get(&path).unwrap_or_default();
        let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        has(b"put.xml") && !has(b"drafts/")
    });
    assert_eq!(some.stop(), Some(0));

    let again = Source::start(&folder, port, &more);
    eventually("what the rules left out comes back", || {
        listed(&again, LIST).contains("drafts/new.xml")
    });
    assert_eq!(status(&again, "/set/r/drafts/x.xml"), 200);
    assert_eq!(again.stop(), Some(0));
}

#[test]
fn a_built_site_has_what_the_rules_take() {
    let place = tempfile::tempdir().unwrap();
    let (folder, site) = (place.path().join("original"), place.path().join("site"));
    for name in ["a.pdf", "b.xml", "c.tmp", "drafts/d.pdf"] {
        write(&folder, name, "x");
    }
    let build = |rules: &[&str]| {
        let mut command = abreast();
        command.arg("build").arg(&folder).args([
            "--base-url",
            "https://example.org/",
            "--copy",
            "--json",
            "--out",
        ]);
        let output = run(command.arg(&site).args(rules));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    let copied = || {
        let found = abreast_testkit::folder::files(&site.join("original/r"));
        found.into_keys().map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(build(&["--include", "*.pdf", "--include", "*.xml"]).0, Some(0));
    assert_eq!(copied(), ["a.pdf", "b.xml", "drafts/d.pdf"]);
    assert_eq!(build(&["--exclude", "drafts/", "--include", "type:application/pdf"]).0, Some(0));
    assert_eq!(copied(), ["a.pdf"]);
    let list = fs::read_to_string(site.join("original/resourcelist.xml")).unwrap();
    assert!(list.contains("a.pdf") && !list.contains("drafts") && !list.contains(".tmp"), "{list}");
    assert_eq!(build(&[]).0, Some(0));
    assert_eq!(copied().len(), 4);
    let (code, error) = build(&["--exclude", "uri:https://example.org/**"]);
    assert!(code == Some(2) && error.contains("`uri:`") && error.contains("help:"), "{error}");
    assert_eq!(build(&["--filter", "nonsense"]).0, Some(2));
    let config = place.path().join("abreast.toml");
    let text =
        format!("[[set]]\nfolder = {:?}\nexclude = [\"*.tmp\"]\n", folder.display().to_string());
    fs::write(&config, text + "filter = [\"- drafts/\"]\n").unwrap();
    let mut command = abreast();
    command.arg("build").arg("--config").arg(&config).args([
        "--base-url",
        "https://example.org/",
        "--copy",
        "--out",
    ]);
    assert_eq!(run(command.arg(&site)).status.code(), Some(0));
    assert_eq!(copied(), ["a.pdf", "b.xml"]);
}

#[test]
fn newly_excluded_files_are_served_while_held() {
    let place = tempfile::tempdir().unwrap();
    let (folder, copy) = (place.path().join("original"), place.path().join("copy"));
    (0..8).for_each(|number| write(&folder, &format!("{number}.tmp"), "x"));
    (0..4).for_each(|number| write(&folder, &format!("{number}.xml"), "x"));
    let all = Source::start(&folder, 0, &[]);
    eventually("everything is published", || listed(&all, LIST).len() == 12);
    sync(&all.url(), &copy, 0, &[]);
    let port = all.port();
    assert_eq!(all.stop(), Some(0));
    write(&folder, "never.tmp", "never published");

    let some = Source::start_unready(&folder, port, &["--exclude", "*.tmp"]);
    let mut ready = (0, String::new());
    eventually("the deletions are held", || {
        let (code, text) = get(&some.address, "/readyz").unwrap();
        ready = (code, String::from_utf8(text).unwrap());
        ready.1.contains("deletion")
    });
    let cause = "the deletion of 8 of 12 resources is held: the include and exclude patterns leave them out";
    assert!(
        ready.0 == 200 && ready.1.contains(cause) && ready.1.contains("scope `admin`"),
        "{ready:?}"
    );
    assert_eq!(listed(&some, LIST).len(), 12);
    for path in listed(&some, LIST) {
        assert_eq!(status(&some, &format!("/set/r/{path}")), 200, "{path} is listed");
        assert_eq!(
            status(&some, &format!("/api/v1/sets/set/content/{path}")),
            200,
            "{path} is listed"
        );
    }
    assert_eq!(status(&some, "/set/r/never.tmp"), 404, "it is in no list");
    assert_eq!(audit(&some.url(), &copy), 0);
    // A new mirror gets all that is listed.
    sync(&some.url(), &place.path().join("second"), 0, &[]);

    let data = folder.join(".abreast");
    let create = |data: &Path| {
        run(abreast()
            .args(["token", "create", "--name", "a", "--scope", "admin", "--data"])
            .arg(data))
    };
    let refused = create(&folder);
    let help = format!("name the store of this published folder: --data {}", data.display());
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && text.contains(&help), "{text}");
    let token = String::from_utf8(create(&data).stdout).unwrap();
    let mut answer = serde_json::Value::Null;
    eventually("the token is known", || {
        let header = format!("Authorization: Bearer {}", token.trim());
        let mut curl = std::process::Command::new("curl");
        curl.args([
            "-s",
            "-X",
            "POST",
            "-H",
            &header,
            &format!("{}api/v1/sets/set/deletions", some.url()),
        ]);
        answer = serde_json::from_slice(&run(&mut curl).stdout).unwrap_or_default();
        answer["status"] != 401
    });
    assert_eq!(
        (&answer["state"], &answer["count"], &answer["held_deletions"]),
        (&"ready".into(), &4.into(), &0.into())
    );
    assert_eq!(status(&some, "/set/r/0.tmp"), 404);
    assert_eq!(listed(&some, LIST).len(), 4);
    assert_eq!(some.stop(), Some(0));
}

#[test]
fn a_build_names_why_deletions_are_held() {
    let place = tempfile::tempdir().unwrap();
    let (folder, site) = (place.path().join("original"), place.path().join("site"));
    (0..8).for_each(|number| write(&folder, &format!("{number}.tmp"), "x"));
    (0..4).for_each(|number| write(&folder, &format!("{number}.xml"), "x"));
    let build = |more: &[&str]| {
        let mut command = abreast();
        command.arg("build").arg(&folder).arg("--out").arg(&site).args([
            "--base-url",
            "https://example.org/",
            "--copy",
        ]);
        let output = run(command.args(more));
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(build(&[]).0, 0);
    let (code, text) = build(&["--exclude", "*.tmp"]);
    assert!(
        code == 7 && text.contains("8 of 12") && text.contains("patterns leave them out"),
        "{text}"
    );
    assert!(
        text.contains("if the patterns are as intended, run it again with --confirm-deletions"),
        "{text}"
    );
    fs::remove_file(folder.join("0.tmp")).unwrap();
    let (code, text) = build(&["--exclude", "*.tmp"]);
    assert!(
        code == 7
            && text.contains("1 file is gone, and the include and exclude patterns leave out 7"),
        "{text}"
    );
    (1..7).for_each(|number| fs::remove_file(folder.join(format!("{number}.tmp"))).unwrap());
    let (code, text) = build(&[]);
    assert!(code == 7 && text.contains("7 of 12") && text.contains("the files are gone"), "{text}");
    assert!(site.join("original/r/0.tmp").is_file(), "the site was not changed");
    assert_eq!(build(&["--exclude", "*.tmp", "--confirm-deletions"]).0, 0);
    assert!(!site.join("original/r/7.tmp").exists());
}
