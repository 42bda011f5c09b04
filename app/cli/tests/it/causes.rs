//! Causes: what failed and where is printed, and the same cause has the same code in every command.

use crate::world::{Source, abreast};
use abreast_testkit::http::{Server, send};
use abreast_testkit::{folder, run, skipped};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Exit code, and everything printed.
fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let output = run(command);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), text)
}

/// As a user who owns nothing here.
fn as_nobody(command: &mut Command) -> &mut Command {
    if rustix::process::getuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn readable(below: &Path) {
    let mut paths = folder::paths(below);
    paths.insert(below.to_owned());
    for path in paths {
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn permission_denied_is_code_13_with_the_path() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for name in ["papers", "shut", "none", "site", "copy", "store", "open", "backups", "tokens"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("papers").join("a.txt"), "a").unwrap();
    for name in
        ["secret", "rules", "config.toml", "list.xml", "data.csv", "data.nt", "tokens/tokens.json"]
    {
        fs::write(at(name), "").unwrap();
    }
    let unreadable =
        format!("data = {:?}\n[[set]]\nfolder = {:?}\n", at("open/store"), at("shut/papers"));
    fs::write(at("unreadable.toml"), unreadable).unwrap();
    let hidden = format!(
        "data = {:?}\n[[set]]\nname = \"papers\"\norigin = \"rdf\"\nnamespace = \"http://h/\"\n",
        at("shut/store")
    );
    fs::write(at("hidden.toml"), hidden).unwrap();
    fs::write(at("lines"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    fs::write(at("one.nt"), "<http://h/a> <http://h/p> <http://h/b> .\n").unwrap();
    let data = at("store").display().to_string();
    let source = Source::start(&at("papers"), 0, &["--data", &data]);
    let url = source.url();
    let sync = |to: &str| run(abreast().args(["sync", &url, to, "--quiet"]));
    assert!(sync(at("copy").to_str().unwrap()).status.success());
    drop(source);
    assert!(run(abreast().args(["backup", &data]).arg(at("backups"))).status.success());
    let source =
        Source::start(&at("papers"), 0, &["--data", at("other").to_str().unwrap(), "--new-store"]);
    readable(&at("copy"));
    readable(&at("store"));
    readable(&at("backups"));
    for name in [
        "shut",
        "secret",
        "rules",
        "config.toml",
        "list.xml",
        "data.csv",
        "data.nt",
        "tokens/tokens.json",
    ] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    for (name, mode) in [("none", 0o555), ("papers", 0o555), ("open", 0o777), ("tokens", 0o777)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if as_nobody(&mut abreast()).arg("--version").output().is_err() {
        return skipped(
            "causes::permission_denied_is_code_13_with_the_path",
            "others may not run the program here",
        );
    }
    let (dir, url) = (place.path().display().to_string(), source.url());
    let mut wrong = Vec::new();
    for words in [
        "sync URL DIR/none",
        "sync URL DIR/none/below",
        "sync URL DIR/open/one --state DIR/none/state",
        "sync URL warc:DIR/none",
        "sync URL nquads:DIR/none",
        "sync URL labels:DIR/none/labels.db --state DIR/none/state",
        "sync URL DIR/none --all-sets",
        "sync URL DIR/copy",
        "sync URL DIR/open/two --filter-from DIR/rules",
        "sync URL DIR/open/two --uris-from DIR/rules",
        "sync URL DIR/open/two --user me --password-file DIR/secret",
        "sync URL DIR/open/two --token-file DIR/secret",
        "sync URL DIR/open/two --ca-file DIR/secret",
        "sync URL DIR/open/two --netrc=DIR/secret",
        "sync --all --config DIR/config.toml",
        "audit URL DIR/shut",
        "audit --all --config DIR/config.toml",
        "serve DIR/papers --listen 127.0.0.1:0",
        "serve DIR/papers --listen 127.0.0.1:0 --data DIR/none/store",
        "serve DIR/papers --listen 127.0.0.1:0 --data DIR/store",
        "serve DIR/papers --listen 127.0.0.1:0 --data DIR/tokens",
        "serve DIR/papers --listen 127.0.0.1:0 --data DIR/shut",
        "serve DIR/shut/papers --listen 127.0.0.1:0 --data DIR/open/store --new-store",
        "serve --config DIR/unreadable.toml",
        "serve --config DIR/config.toml",
        "build DIR/papers --base-url http://h/ --copy --out DIR/none/site",
        "build --config DIR/config.toml --copy --out DIR/open/site",
        "hub --listen 127.0.0.1:0 --data DIR/none/hub",
        "hub --listen 127.0.0.1:0 --data DIR/tokens",
        "hub --config DIR/config.toml",
        "hub topics --data DIR/shut",
        "log --data DIR/shut set",
        "import papers DIR/data.csv --data DIR/store",
        "import papers DIR/data.nt --data DIR/store",
        "import papers DIR/data.nt --config DIR/config.toml",
        "import papers DIR/lines --data DIR/shut",
        "import papers DIR/lines --data DIR/shut/store --dry-run",
        "import papers DIR/one.nt --data DIR/shut",
        "import papers DIR/one.nt --data DIR/shut/store --dry-run",
        "import papers --add DIR/one.nt --data DIR/shut/store",
        "import papers DIR/one.nt --config DIR/hidden.toml --dry-run",
        "hub targets --data DIR/shut",
        "hub attempts 1 --data DIR/shut/store",
        "token revoke x --data DIR/shut/store",
        "build DIR/papers --base-url http://h/ --copy --out DIR/open/site --data DIR/shut",
        "build DIR/papers --base-url http://h/ --copy --out DIR/open/site --data DIR/none/store",
        "log set --config DIR/config.toml",
        "check DIR/shut",
        "check DIR/shut/store",
        "repair DIR/shut",
        "repair DIR/shut/store",
        "repair DIR/store",
        "repair DIR/copy",
        "drop DIR/store set --yes",
        "drop DIR/shut set",
        "drop DIR/shut/store set --yes",
        "backup DIR/store DIR/none/backups",
        "backup DIR/shut DIR/open/backups",
        "backup DIR/shut/store DIR/open/backups",
        "restore DIR/backups DIR/none/restored",
        "restore DIR/shut/backups DIR/open/restored",
        "token create --name x --scope read --data DIR/store",
        "token create --name x --scope read --data DIR/shut",
        "token list --config DIR/config.toml",
        "token list --data DIR/shut/store",
        "token list --data DIR/tokens",
        "config check DIR/config.toml",
        "config check DIR/unreadable.toml",
        "doctor DIR/shut/papers --listen 127.0.0.1:0",
        "config show DIR/config.toml",
        "validate DIR/list.xml",
        "man --dir DIR/none/man",
    ] {
        let words = words.replace("DIR", &dir).replace("URL", &url);
        let mut command = abreast();
        let (code, printed) = outcome(as_nobody(command.args(words.split(' '))));
        let named = printed.to_lowercase().contains("permission denied") && printed.contains(&dir);
        if code != Some(13)
            || !named
            || printed.contains("folders of their own")
            || printed.contains("there is no")
            || printed.contains("create it")
        {
            wrong.push(format!("{words}\n  {code:?}: {printed}"));
        }
    }
    for name in ["shut", "none", "papers", "copy", "store", "backups", "tokens"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn compressed_input_that_is_cut_off_names_its_cause() {
    let place = tempfile::tempdir().unwrap();
    let mut statements = String::new();
    for n in 0..5_000 {
        let _ = writeln!(statements, "<http://h/{n}> <http://h/p> \"{}\" .", n * n);
    }
    let text = statements.as_bytes();
    let config = place.path().join("abreast.toml");
    let data = place.path().join("store");
    fs::create_dir(&data).unwrap();
    fs::write(
        &config,
        format!("data = {data:?}\n[[set]]\nname = \"names\"\norigin = \"rdf\"\nnamespace = \"http://h/\"\n"),
    )
    .unwrap();
    for (ending, packed) in [
        ("gz", gzip(text)),
        ("bz2", {
            let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            packer.write_all(text).unwrap();
            packer.finish().unwrap()
        }),
    ] {
        for (length, what) in [(packed.len() / 2, "truncated"), (packed.len() - 3, "truncated")] {
            let path = place.path().join(format!("names.nt.{ending}"));
            fs::write(&path, &packed[..length]).unwrap();
            let mut command = abreast();
            command.args(["import", "names"]).arg(&path).arg("--config").arg(&config);
            let (code, printed) = outcome(&mut command);
            assert_eq!(code, Some(2), "{ending} {length}: {printed}");
            assert!(printed.contains(what), "{ending} {length}: {printed}");
            assert!(printed.contains("names.nt"), "{ending} {length}: {printed}");
        }
    }
    // A list in gzip, read over HTTP and from a file.
    let mut urls = String::new();
    for n in 0..5_000 {
        let _ = write!(urls, "<url><loc>http://h/{}</loc></url>", n * n);
    }
    let list =
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{urls}</urlset>");
    let packed = gzip(list.as_bytes());
    let cut = &packed[..packed.len() / 2];
    fs::write(place.path().join("list.xml.gz"), cut).unwrap();
    let server = Server::new({
        let cut = cut.to_vec();
        move |_, stream| send(stream, "200 OK", "", &cut)
    });
    let url = server.url("/list.xml.gz");
    let (file, copy) = (place.path().join("list.xml.gz"), place.path().join("copy"));
    let (file, copy) = (file.to_str().unwrap(), copy.to_str().unwrap());
    for words in [
        &["sync", &*url, copy, "--retries", "0"][..],
        &["explore", &url, "--retries", "0"],
        &["validate", &url, "--retries", "0"],
        &["validate", file],
    ] {
        let (code, printed) = outcome(abreast().args(words));
        assert!(code != Some(0) && printed.contains("truncated"), "{words:?} {code:?}: {printed}");
    }
}

#[test]
fn a_log_filter_that_cannot_be_used_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("abreast.toml");
    fs::create_dir(place.path().join("papers")).unwrap();
    fs::write(&config, format!("[[set]]\nfolder = {:?}\n", place.path().join("papers"))).unwrap();
    for (value, is_wrong) in [
        ("debug", false),
        ("abreast=debug", false),
        ("abreast_net=debug,info", false),
        ("abreast", false),
        ("", false),
        ("warn,abreast_destination=debug", false),
        ("debgu", true),
        ("info,hyper", true),
        ("abreast=debgu", true),
        ("info,[", true),
        ("7", true),
    ] {
        let mut command = abreast();
        command.env("ABREAST_LOG", value).args(["config", "check"]).arg(&config);
        let (code, printed) = outcome(&mut command);
        assert_eq!(code, Some(0), "{value}: {printed}");
        let is_reported = printed.contains("ABREAST_LOG is `") && printed.contains("help: levels");
        assert_eq!(is_reported, is_wrong, "{value}: {printed}");
    }
}

#[test]
fn a_run_stopped_by_failures_counts_what_it_left() {
    let place = tempfile::tempdir().unwrap();
    let mut urls = String::new();
    for n in 0..3_000 {
        let _ = write!(urls, "<url><loc>URL{n}</loc><lastmod>2026-01-01T00:00:00Z</lastmod></url>");
    }
    let list = format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
         <rs:md capability=\"resourcelist\" at=\"2026-01-02T00:00:00Z\"/>{urls}</urlset>"
    );
    let server = Server::new(move |request, stream| {
        let base = format!("http://{}/", request.header("host").unwrap());
        match request.path() {
            "/list.xml" => send(stream, "200 OK", "", list.replace("URL", &base).as_bytes()),
            _ => send(stream, "404 Not Found", "", b""),
        }
    });
    let url = server.url("/list.xml");
    let copy = place.path().join("copy");
    let mut command = abreast();
    let (code, printed) = outcome(command.args(["sync", &url]).arg(&copy));
    assert_eq!(code, Some(8), "{printed}");
    let last = printed.lines().find(|line| line.starts_with("NOT in sync")).unwrap();
    assert!(last.contains("failed, ") && last.contains("not tried"), "{last}");
    assert!(printed.contains("one run may have 100; the rest is not tried"), "{printed}");
    let other = place.path().join("other");
    let summary = crate::world::sync(&url, &other, 8, &[]);
    let sum = summary["failed"].as_u64().unwrap() + summary["untried"].as_u64().unwrap();
    assert_eq!(sum, 3_000, "{summary}");
}

#[test]
fn wrong_values_of_a_configuration_get_help_that_works() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("abreast.toml");
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    for (text, fault, help) in [
        ("listen = \":21010\"\nSET", "is not HOST:PORT", "127.0.0.1:21010 for this machine"),
        ("listen = 127.0.0.1:80\nSET", "text must be in quotes", "listen = \"127.0.0.1:80\""),
        ("data = /srv/x\nSET", "text must be in quotes", "data = \"/srv/x\""),
        ("base_url = http://me:hush@h/\nSET", "text must be in quotes", "base_url = \"http://h/\""),
        ("strip_prefix = True\nSET", "small letters", "write strip_prefix = true"),
        ("data = 2026-99-99\nSET", "", "key = value"),
        ("[hub]\nlease = 10\nSET", "found integer `10`", "lease = \"10s\""),
        ("SET\nrescan = 3600", "found integer `3600`", "rescan = \"3600s\""),
        ("SET\ndebounce = 1.5", "found floating point `1.5`", "debounce = \"1.5s\""),
        ("SET\ntitle = 3", "found integer `3`", "title = \"3\""),
        ("[set]\nfolder = \"x\"", "found a table", "write `[[set]]`, not `[set]`"),
        (
            "SET\n[set.links]\nmatch = \"*\"\nrel = \"x\"\nhref = \"y\"",
            "a table",
            "`[[set.links]]`",
        ),
        ("SET\n[mirror]\nurl = \"http://h/\"", "found a table", "write `[[mirror]]`, not"),
        ("SET\n[[api]]\nwrite = true", "found a list", "write `[api]`, not `[[api]]`"),
        ("SET\n[[hub]]", "found a list", "write `[hub]`, not `[[hub]]`"),
        ("SET\nname = \"api\"", "address of the server itself", "change `name`"),
    ] {
        let set = format!("[[set]]\nfolder = {folder:?}");
        fs::write(&config, text.replace("SET", &set)).unwrap();
        let (code, printed) = outcome(abreast().args(["config", "check"]).arg(&config));
        assert_eq!(code, Some(2), "{text}: {printed}");
        assert!(printed.contains(fault) && printed.contains(help), "{text}: {printed}");
    }
}

#[test]
fn a_secret_that_cannot_be_read_costs_one_set() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "a").unwrap();
    let (data, secret) = (place.path().join("store"), place.path().join("none.token"));
    let config = place.path().join("abreast.toml");
    fs::write(
        &config,
        format!(
            "data = {data:?}\n[[set]]\nfolder = {folder:?}\n[[set]]\nname = \"names\"\norigin = \"sparql\"\n\
             namespace = \"http://h/\"\nendpoint = {{ url = \"http://127.0.0.1:9/\", token_file = {secret:?} }}\n"
        ),
    )
    .unwrap();
    let config = config.to_str().unwrap();
    let (code, printed) = outcome(abreast().args(["config", "check", config]));
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("`endpoint.token_file`: cannot read"), "{printed}");
    let source = Source::start_config(config);
    let (code, ready) = source.answer("/readyz").unwrap();
    let ready = String::from_utf8_lossy(&ready).into_owned();
    assert!(code == 200 && ready.contains("set `names`"), "{code}: {ready}");
    abreast_testkit::eventually("the cause is shown", || {
        let ready = source.answer("/readyz").unwrap().1;
        let ready = String::from_utf8_lossy(&ready).into_owned();
        ready.contains("none.token") && !ready.contains(secret.to_str().unwrap())
    });
    assert!(source.get("/papers/resourcelist.xml").is_some());
    assert_eq!(source.answer("/names/resourcelist.xml").unwrap().0, 503);
}

#[test]
fn doctor_knows_the_configuration_and_the_source() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "a").unwrap();
    let source = Source::start(&folder, 0, &[]);
    let site = Server::new(|request, stream| match request.path() {
        "/none" => send(stream, "404 Not Found", "", b"no"),
        _ => send(stream, "200 OK", "Content-Type: text/html\r\n", b"<html><p>a page</p></html>"),
    });
    let doctor = |words: &[&str]| outcome(abreast().arg("doctor").args(words));
    let free = ["--listen", "127.0.0.1:0"];
    for (url, answer, is_source) in [
        (source.url(), "ok   answer", true),
        (format!("{}set/changelist.xml", source.url()), "ok   answer", true),
        (site.url("/none"), "bad  answer", false),
        (site.url("/"), "ok   answer", false),
    ] {
        let (code, printed) = doctor(&[&[&*url][..], &free].concat());
        assert_eq!(code, Some(i32::from(!is_source)), "{url}: {printed}");
        assert!(printed.contains(answer), "{url}: {printed}");
        assert_eq!(printed.contains("ok   source"), is_source, "{url}: {printed}");
    }
    // A root with a link for each of very many sets.
    let link = format!("Link: <http://h/{}>; rel=\"x\"\r\n", "y".repeat(1_000));
    let site = Server::new(move |_, stream| send(stream, "200 OK", &link.repeat(90), b""));
    let (code, printed) = doctor(&[&*site.url("/"), "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(4), "{printed}");
    assert!(printed.contains("the answer's headers are too large"), "{printed}");
    assert!(printed.contains("help: the server can be reached"), "{printed}");
    assert!(!printed.contains("firewalls") && printed.contains("bad  source"), "{printed}");
    // The port of the configuration, on which this program serves already.
    let config = place.path().join("abreast.toml");
    let write = |more: &str| {
        let text = format!("listen = \"{}\"\n{more}[[set]]\nfolder = {folder:?}\n", source.address);
        fs::write(&config, text).unwrap();
    };
    write("");
    let config = config.to_str().unwrap();
    let (code, printed) = doctor(&["--config", config]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("ok   config"), "{printed}");
    assert!(printed.contains(&format!("{}: abreast listens there", source.address)), "{printed}");
    assert!(printed.contains(&format!("readable: {}", folder.display())), "{printed}");
    assert!(printed.contains(&format!("writable: {}", folder.display())), "{printed}");
    assert!(printed.contains("has a store"), "{printed}");
    write(&format!("data = {:?}\n", place.path().join("none")));
    let (code, printed) = doctor(&["--config", config]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("none has no store yet"), "{printed}");
    write("data = \"mistyped\"\n");
    let (_, printed) = doctor(&["--config", config]);
    let here = std::env::current_dir().unwrap().join("mistyped");
    let no_store = format!("{} has no store yet", here.display());
    assert!(printed.contains(&no_store) && printed.contains("correct `data`"), "{printed}");
    write("base_ulr = \"x\"\n");
    let (code, printed) = doctor(&["--config", config]);
    assert_eq!(code, Some(1), "{printed}");
    assert_eq!(printed.matches("base_ulr").count(), 1, "{printed}");
    assert!(printed.contains("bad  config") && printed.contains("did you mean `base_url`?"));
    let taken = site.address().to_string();
    let (code, printed) = doctor(&["--listen", &taken, folder.to_str().unwrap()]);
    assert!(code == Some(1) && printed.contains("stop what listens there"), "{printed}");
    let (code, printed) = doctor(&["--listen", ":21010", folder.to_str().unwrap()]);
    assert!(code == Some(1) && printed.contains("127.0.0.1:21010 for this machine"), "{printed}");
}

#[test]
fn doctor_waits_neither_for_a_pause_nor_counts_it() {
    let site = Server::new(|request, stream| {
        if request.path() != "/" {
            // As a set whose folder is missing.
            std::thread::sleep(Duration::from_millis(1_500));
            return send(stream, "503 Service Unavailable", "Retry-After: 30\r\n", b"missing");
        }
        let now = jiff::fmt::rfc2822::DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&jiff::Timestamp::now())
            .unwrap();
        let headers = format!("Content-Type: text/html\r\nDate: {now}\r\n");
        send(stream, "200 OK", &headers, b"<html><p>a page</p></html>")
    });
    let begun = Instant::now();
    let (code, printed) =
        outcome(abreast().args(["doctor", &site.url("/"), "--listen", "127.0.0.1:0"]));
    assert_eq!(code, Some(1), "{printed}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?} {printed}", begun.elapsed());
    let is_near = ["clock has the time of", "clock is 1 s behind"];
    assert!(is_near.iter().any(|near| printed.contains(near)), "{printed}");
    assert!(printed.contains("clock: 20") && !printed.contains("since 1970"), "{printed}");
    assert!(printed.find("clocks").unwrap() < printed.find("source").unwrap(), "{printed}");
}

#[test]
fn an_address_without_a_scheme_is_proposed_with_one() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    for address in ["127.0.0.1:8080/set", "localhost:8080", "example.org/x"] {
        for words in [
            &["sync", address, folder][..],
            &["audit", address, folder],
            &["explore", address],
            &["validate", address],
            &["doctor", address, "--listen", "127.0.0.1:0"],
            &["subscribe", address],
            &["log", "set", "--server", address],
            &["hub", "topics", "--server", address],
            &["serve", folder, "--base-url", address],
        ] {
            let (code, printed) = outcome(abreast().args(words));
            assert_eq!(code, Some(2), "{words:?}: {printed}");
            let meant = format!("did you mean `http://{address}`?");
            assert!(printed.contains(&meant), "{words:?}: {printed}");
        }
    }
}

#[test]
fn a_missing_folder_has_one_name_everywhere() {
    let place = tempfile::tempdir().unwrap();
    let (papers, gone) = (place.path().join("papers"), place.path().join("gone"));
    fs::create_dir(&papers).unwrap();
    fs::write(papers.join("a.txt"), "a").unwrap();
    let config = place.path().join("abreast.toml");
    let text = format!(
        "data = {:?}\n[[set]]\nfolder = {papers:?}\n[[set]]\nfolder = {gone:?}\n",
        place.path().join("store")
    );
    fs::write(&config, text).unwrap();
    let source = Source::start_config(config.to_str().unwrap());
    let get = |path: &str| String::from_utf8_lossy(&source.answer(path).unwrap().1).into_owned();
    abreast_testkit::eventually("the folder is missing", || {
        get("/metrics").contains("abreast_set_state{set=\"gone\",state=\"missing\"} 1")
    });
    assert!(get("/readyz").contains("set `gone` is missing"), "{}", get("/readyz"));
    let sets: serde_json::Value = serde_json::from_str(&get("/api/v1/sets")).unwrap();
    let states = sets["sets"].as_array().unwrap().iter();
    let states: Vec<_> = states.map(|set| (&set["name"], &set["state"])).collect();
    let name = serde_json::Value::from;
    assert!(states.contains(&(&name("gone"), &name("missing"))), "{states:?}");
    assert!(get("/").contains("<p class=\"facts\">missing</p>"), "{}", get("/"));
    // Read, and then lost: the same name.
    fs::create_dir(&gone).unwrap();
    fs::write(gone.join("b.txt"), "b").unwrap();
    abreast_testkit::eventually("the folder is read", || !get("/readyz").contains("gone"));
}

#[test]
fn a_server_with_few_open_files_stays_reachable() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "a").unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 200; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_abreast")]);
    command.args(["serve", folder.to_str().unwrap(), "--listen", "127.0.0.1:0", "--name", "set"]);
    command.env("ABREAST_LOG_FORMAT", "text");
    let source = Source::run(&mut command);
    let held: Vec<_> =
        (0..120).map(|_| std::net::TcpStream::connect(&source.address).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(source.answer("/livez").map(|(status, _)| status), Some(200));
        assert!(source.get("/set/resourcelist.xml").is_some());
        assert!(source.get("/set/r/a.txt").is_some());
    }
    let files = fs::read_dir(format!("/proc/{}/fd", source.pid())).unwrap().count();
    assert!(files <= 180, "{files} of 200 are open while clients hold all connections");
    drop(held);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 100; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_abreast")]);
    let (code, printed) = outcome(command.args(["serve", folder.to_str().unwrap()]));
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("allow 198 files"), "{printed}");
}

#[test]
fn a_copy_with_few_open_files_has_fewer_requests_in_flight() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    for number in 0..400 {
        let below = folder.join((number % 200).to_string());
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{number}.txt")), vec![b'x'; 20_000]).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_abreast"));
    command.args(["serve", folder.to_str().unwrap(), "--listen", "127.0.0.1:0", "--name", "set"]);
    let source = Source::run(command.env("ABREAST_LOG_FORMAT", "text"));
    for files in [60, 100, 128] {
        let copy = place.path().join(format!("copy-{files}"));
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_abreast"), "sync"]).arg(source.url());
        command.arg(&copy).args(["--connections", "200", "--dumps", "never"]);
        let (code, printed) = outcome(&mut command);
        assert_eq!(code, Some(0), "{files} files: {printed}");
        assert!(printed.contains("400 created"), "{files} files: {printed}");
    }
}
