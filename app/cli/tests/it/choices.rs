//! What a user chooses: which resources, through what, with which secrets, in which jobs.

use crate::world::{Source, abreast, audit, sync};
use abreast_testkit::folder::{assert_equal, files};
use abreast_testkit::http::{Server, answer};
use abreast_testkit::{eventually, run};
use std::fs;
use std::path::Path;

fn collection(folder: &Path) {
    for (path, text) in [("a.txt", "1"), ("b.pdf", "2"), ("deep/c.txt", "3"), ("deep/d.tmp", "4")] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_keys().map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn filters_choose_what_is_copied_and_deleted() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    collection(&original);
    let source = Source::start(&original, 0, &[]);
    let url = source.url();

    let shown = run(abreast().args(["sync", &url]).arg(&copy).args([
        "--test-filter",
        "--include",
        "*.txt",
    ]));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("take      deep/c.txt  (+ *.txt)"), "{shown}");
    assert!(shown.contains("leave out deep/d.tmp  (no rule takes it)"), "{shown}");
    assert!(!copy.exists());

    sync(&url, &copy, 0, &["--include", "*.txt"]);
    assert_eq!(names(&copy), ["a.txt", "deep/c.txt"]);
    let rules = temporary.path().join("rules");
    fs::write(&rules, "# what we want\n- *.tmp\n- a.txt\n+ **\n").unwrap();
    let from_file = ["--filter-from", rules.to_str().unwrap()];
    let summary = sync(&url, &copy, 0, &from_file);
    assert_eq!(
        (summary["mode"].as_str(), summary["created"].as_u64()),
        (Some("baseline"), Some(1)),
        "{summary}"
    );
    assert_eq!(names(&copy), ["a.txt", "b.pdf", "deep/c.txt"], "newly excluded files stay");
    assert_eq!(sync(&url, &copy, 0, &from_file)["mode"], "unchanged");
    sync(&url, &copy, 0, &[from_file[0], from_file[1], "--delete-excluded"]);
    assert_eq!(names(&copy), ["b.pdf", "deep/c.txt"]);
    sync(&url, &copy, 0, &[]);
    assert_equal(&original, &copy);
}

#[test]
fn a_copy_follows_its_source_to_a_new_address() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    collection(&original);
    let source = Source::start(&original, 0, &[]);
    let old = source.url();
    sync(&old, &copy, 0, &[]);
    source.stop();
    let source = Source::start(&original, 0, &[]);
    let url = source.url();
    assert_ne!(url, old);
    let refused = run(abreast().args(["sync", &url]).arg(&copy));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("--moved") && !text.contains("--allow-host"), "{text}");
    for more in [&["--moved"][..], &[]] {
        let summary = sync(&url, &copy, 0, more);
        let counts = ["created", "updated", "deleted", "failed"].map(|name| &summary[name]);
        assert!(counts.iter().all(|count| **count == 0), "{more:?}: {summary}");
        assert_eq!(audit(&url, &copy), 0, "{more:?}");
    }
    fs::write(original.join("a.txt"), "changed at the new address").unwrap();
    crate::world::catch_up(&url, &original, &copy, &[]);
}

#[test]
fn jobs_of_a_configuration_file_run_by_name_or_all() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let original = root.join("original");
    collection(&original);
    let source = Source::start(&original, 0, &[]);
    let file = root.join("abreast.toml");
    let job = |folder: &str, more: &str| {
        format!(
            "[[mirror]]\nurl = \"{}\"\nfolder = \"{}\"\n{more}\n",
            source.url(),
            root.join(folder).display()
        )
    };
    fs::write(
        &file,
        job("one", "exclude = [\"*.tmp\"]") + &job("two", "include = [\"*.pdf\"]\nretries = 1"),
    )
    .unwrap();
    let with = |more: &[&str]| run(abreast().args(["sync", "--config"]).arg(&file).args(more));

    assert_eq!(with(&["two"]).status.code(), Some(0));
    assert_eq!(names(&root.join("two")), ["b.pdf"]);
    assert!(!root.join("one").exists());
    let output = with(&["--all", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for job in ["one", "two"] {
        assert!(printed.contains(&format!("\"job\":\"{job}\"")), "{printed}");
    }
    assert_eq!(names(&root.join("one")), ["a.txt", "b.pdf", "deep/c.txt"]);
    let output = with(&["one", "--exclude", "deep/", "--dry-run"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("leave out deep/c.txt") && !printed.contains("leave out b.pdf"),
        "a flag replaces the file: {printed}"
    );
    let output = run(abreast().args(["audit", "--config"]).arg(&file).arg("one"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));

    for (words, part) in [
        (&[][..], "one, two"),
        (&["none"][..], "there is no job `none`"),
        (&["one", "--all"][..], "not both"),
    ] {
        let output = with(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{words:?}");
    }
    fs::write(&file, job("one", "exlude = [\"*.tmp\"]")).unwrap();
    let output = with(&["--all"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("unknown key `exlude` in `[[mirror]]` (help: did you mean `exclude`?)")
    );
}

#[test]
fn configuration_is_checked_and_shown_with_origins() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    fs::write(
        &file,
        "listen = \"127.0.0.1:1\"\n[[mirror]]\nurl = \"https://me:hush@h.example/\"\nfolder = \"f\"\nuser = \"file\"\nproxy = \"http://file:1\"\nretries = 2\n",
    )
    .unwrap();
    let config = |words: &[&str]| {
        let environment =
            [("ABREAST_USER", "environment"), ("ABREAST_PROXY", "http://environment:1")];
        run(abreast().arg("config").args(words).envs(environment))
    };
    let path = file.to_str().unwrap();
    let checked = config(&["check", path]);
    let warned = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(0), "{warned}");
    assert!(warned.contains("chmod 600"), "a password that others can read is warned of: {warned}");
    let shown = config(&["show", path, "--origin"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for line in [
        "proxy = \"http://environment:1\"  # environment",
        "user = \"file\"  # file",
        "retries = \"2\"  # file",
        "dumps = \"auto\"  # default",
        "url = \"https://hidden@h.example/\"  # file",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(!text.contains("hush"));
    assert!(
        String::from_utf8_lossy(&config(&["show", path, "--json"]).stdout)
            .contains(r#""key":"connections""#)
    );
    fs::write(&file, "lisen = \"127.0.0.1:1\"\n").unwrap();
    let refused = config(&["check", path]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("did you mean `listen`?"));
}

/// A server that answers 401 to everything.
fn refusing() -> Server {
    Server::saying(answer("401 No", "Connection: close\r\n", ""))
}

/// URL, arguments, environment.
type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);

#[test]
fn secrets_reach_their_server_and_nothing_else() {
    let temporary = tempfile::tempdir().unwrap();
    let (token, netrc) = (temporary.path().join("token"), temporary.path().join("netrc"));
    fs::write(&token, "planted-token\n").unwrap();
    let server = refusing();
    let address = server.address();
    fs::write(&netrc, "machine 127.0.0.1 login me password planted-netrc\n").unwrap();
    let netrc = format!("--netrc={}", netrc.display());
    let (url, login_url) =
        (format!("http://{address}/"), format!("http://me:planted-url@{address}/"));
    let cases: &[Case<'_>] = &[
        (&url, &["--token-file", token.to_str().unwrap()], &[]),
        (&url, &["--token-command", "echo planted-command"], &[]),
        (&url, &[], &[("ABREAST_TOKEN", "planted-environment")]),
        (&url, &["--user", "me", "--password-command", "printf planted-password"], &[]),
        (&url, &["--user", "me"], &[("ABREAST_PASSWORD", "planted-password2")]),
        (&url, &[&netrc], &[]),
        (&login_url, &[], &[]),
    ];
    for (number, (url, words, environment)) in cases.iter().enumerate() {
        let copy = temporary.path().join(format!("copy{number}"));
        let before = server.seen().len();
        let mut command = abreast();
        command
            .args(["-vv", "sync", url])
            .arg(&copy)
            .args(["--json", "--retries", "0"])
            .args(*words);
        for (name, value) in *environment {
            command.env(name, value);
        }
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(12), "{words:?}");
        let sent: String =
            server.seen()[before..].iter().map(|request| request.head.to_lowercase()).collect();
        assert!(sent.contains("authorization: b"), "{words:?} sends credentials: {sent}");
        assert!(!copy.exists(), "{words:?}: a first run that fails leaves nothing");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let encoded = sent.split("basic ").nth(1).map(|rest| rest[..8].to_owned());
        assert!(!printed.contains("planted"), "{words:?}: {printed}");
        assert!(printed.contains("status=401"), "{words:?}, every request: {printed}");
        assert!(
            encoded.is_none_or(|encoded| !printed.to_lowercase().contains(&encoded)),
            "{words:?}: {printed}"
        );
    }
}

#[test]
fn proxy_from_the_environment_is_used_without_its_password() {
    let temporary = tempfile::tempdir().unwrap();
    let server = refusing();
    let address = server.address();
    let sync_through = |name: &str, more: &[(&str, &str)]| {
        let copy = temporary.path().join("copy");
        let mut command = abreast();
        command.args(["-vv", "sync", "http://museum.example/list.xml"]).arg(&copy).args([
            "--json",
            "--retries",
            "0",
        ]);
        command.env(name, format!("http://me:planted@{address}"));
        for (name, value) in more {
            command.env(name, value);
        }
        run(&mut command)
    };
    let output = sync_through("http_proxy", &[]);
    assert!(server.seen()[0].head.starts_with("GET http://museum.example/list.xml HTTP/1.1"));
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!printed.contains("planted"), "{printed}");
    let before = server.seen().len();
    sync_through("ABREAST_PROXY", &[("NO_PROXY", "museum.example")]);
    assert_eq!(server.seen().len(), before);
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = run(abreast().args(["completions", shell]));
        assert!(String::from_utf8_lossy(&output.stdout).contains("bwlimit"), "{shell}");
    }
    let temporary = tempfile::tempdir().unwrap();
    assert!(run(abreast().args(["man", "--dir"]).arg(temporary.path())).status.success());
    for page in ["abreast.1", "abreast-sync.1"] {
        assert!(fs::read_to_string(temporary.path().join(page)).unwrap().contains(".TH"), "{page}");
    }
}

#[test]
fn an_audit_with_filters_judges_what_they_take() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    collection(&original);
    let source = Source::start(&original, 0, &[]);
    sync(&source.url(), &copy, 0, &["--exclude", "deep/"]);
    assert_eq!(audit(&source.url(), &copy), 1);
    let filtered = run(abreast().args(["audit", &source.url()]).arg(&copy).args([
        "--exclude",
        "deep/",
        "--full",
    ]));
    assert_eq!(filtered.status.code(), Some(0), "{}", String::from_utf8_lossy(&filtered.stdout));
}

#[test]
fn secrets_for_one_server_are_not_sent_to_two() {
    let temporary = tempfile::tempdir().unwrap();
    let (one, other) = (refusing(), refusing());
    let file = temporary.path().join("jobs.toml");
    let job = |name: &str, url: &str| {
        let folder = temporary.path().join(name);
        format!("[[mirror]]\nurl = \"{url}\"\nfolder = \"{}\"\n", folder.display())
    };
    let sync = |jobs: &[String], words: &[&str], environment: &[(&str, &str)]| {
        fs::write(&file, jobs.concat()).unwrap();
        let mut command = abreast();
        command.args(["sync", "--all", "--retries", "0", "--config"]).arg(&file).args(words);
        command.envs(environment.iter().copied());
        let output = run(&mut command);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let secret = temporary.path().join("secret");
    fs::write(&secret, "planted\n").unwrap();
    let token = ["--token-file", secret.to_str().unwrap()];
    let two = [job("a", &one.url("/")), job("b", &other.url("/"))];
    for (words, environment, named) in [
        (&[][..], &[("ABREAST_TOKEN", "planted")][..], "`ABREAST_TOKEN`"),
        (&[], &[("ABREAST_USER", "me"), ("ABREAST_PASSWORD", "planted")], "`ABREAST_USER`"),
        (&token, &[], "`--token-file`"),
    ] {
        let (code, text) = sync(&two, words, environment);
        assert_eq!(code, Some(2), "{named}: {text}");
        assert!(text.contains(named) && text.contains("help: set `token_file`"), "{text}");
        assert!(one.seen().is_empty() && other.seen().is_empty(), "{named}");
    }
    // Of one server, both have it; a login in a URL is what that job uses.
    let same = [job("a", &one.url("/a")), job("b", &one.url("/b"))];
    assert_eq!(sync(&same, &[], &[("ABREAST_TOKEN", "planted")]).0, Some(12));
    let login = other.url("/").replace("http://", "http://me:own@");
    let mixed = [job("a", &one.url("/a")), job("b", &login)];
    assert_eq!(sync(&mixed, &[], &[("ABREAST_TOKEN", "planted")]).0, Some(12));
    for (server, scheme) in [(&one, "Bearer planted"), (&other, "Basic bWU6b3du")] {
        for request in server.seen() {
            assert_eq!(request.header("authorization"), Some(scheme), "{}", request.head);
        }
        assert!(!server.seen().is_empty());
    }
    // A secret that cannot be read costs its job alone, which is named.
    let xmpp =
        "follow = true\nxmpp_jid = \"me@h\"\nxmpp = \"xmpp:pubsub.h?;node=n\"\nxmpp_password_file";
    for (keys, has_feature) in [
        ("token_file", true),
        ("user = \"me\"\npassword_file", true),
        ("netrc", true),
        ("ca_file", true),
        ("client_cert", true),
        (xmpp, cfg!(feature = "xmpp")),
    ] {
        let before = other.seen().len();
        let missing = format!("{}{keys} = \"/nowhere/secret\"\n", job("a", &one.url("/")));
        let (code, text) = sync(&[missing, job("b", &other.url("/"))], &[], &[]);
        assert_eq!(code, Some(2), "{keys}: {text}");
        assert!(!has_feature || text.contains("job `a` is left out"), "{keys}: {text}");
        assert!(!has_feature || text.contains("/nowhere/secret"), "{keys}: {text}");
        assert!(!has_feature || other.seen().len() > before, "{keys}: {text}");
        let checked = run(abreast().args(["config", "check"]).arg(&file));
        let text = [checked.stdout, checked.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("job `a`") && text.contains("/nowhere/secret"), "{keys}: {text}");
    }
    let before = other.seen().len();
    let failing = job("a", &one.url("/")) + "token_command = \"exit 3\"\n";
    let (code, text) = sync(&[failing, job("b", &other.url("/"))], &[], &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("job `a` is left out") && other.seen().len() > before, "{text}");
}

#[test]
fn no_error_about_an_address_repeats_its_password() {
    let temporary = tempfile::tempdir().unwrap();
    let (file, copy) = (temporary.path().join("config.toml"), temporary.path().join("copy"));
    let line = temporary.path().join("line.jsonl");
    fs::write(&line, "{\"uri\":\"http://h/\",\"change\":\"created\"}\n").unwrap();
    let mut wrong = Vec::new();
    for url in [
        "http://me:planted@h:99999/",
        "http://me:plan/ted@h:x/",
        "http:/me:planted@h:x/",
        "ftp://me:planted@h/",
        "http://me:planted@h /",
    ] {
        fs::write(
            &file,
            format!(
                "base_url = \"{url}\"\ndata = \"/nowhere\"\nlisten = \"{url}\"\ntrusted_proxies = [\"{url}\"]\n[hub]\nhubs = [\"{url}\"]\nredirect = \"{url}\"\n\
                 trusted_callbacks = [\"{url}\"]\n[[set]]\nname = \"a\"\norigin = \"sparql\"\nendpoint = {{ url = \"{url}\" }}\n\
                 [[mirror]]\nurl = \"{url}\"\nfolder = \"copy\"\ncallback_url = \"{url}\"\ncallback_listen = \"127.0.0.1:0\"\n\
                 follow = true\nproxy = \"{url}\"\n"
            ),
        )
        .unwrap();
        let (config, copy) = (file.to_str().unwrap(), copy.to_str().unwrap());
        let line = line.to_str().unwrap();
        let sparql = format!("sparql:{url}");
        // Wherever anything else is expected.
        let others: &[&[&str]] = &[
            &["serve", copy, "--listen", url],
            &["serve", copy, "--trusted-proxy", url, "--listen", "nowhere"],
            &["serve", copy, "--base", url, "--listen", "nowhere"],
            &["sync", "http://127.0.0.1:9/", copy, "--uris-from", url],
            &["sync", "http://127.0.0.1:9/", copy, "--filter-from", url],
            &["sync", "http://127.0.0.1:9/", copy, "--pin", url],
            &["sync", "http://127.0.0.1:9/", copy, "--base", url, "--retries", "0"],
            &["sync", "http://127.0.0.1:9/", copy, "--ca-file", url],
            &["sync", "http://127.0.0.1:9/", copy, "--token-file", url, "--json"],
            &["sync", "http://127.0.0.1:9/", copy, "--set", url, "--retries", "0"],
            &["sync", "http://127.0.0.1:9/", copy, "--xmpp-jid", url, "--follow"],
            &["sync", "http://127.0.0.1:9/", copy, "--bwlimit", url],
            &["sync", "http://127.0.0.1:9/", copy, "--config", url],
            &["hub", "targets", url, "--server", "http://127.0.0.1:9/"],
            &["hub", "targets", "--server", url, "http://127.0.0.1:9/t"],
            &["hub", "--listen", url],
            &["import", url, line, "--server", "http://127.0.0.1:9/"],
            &["import", "set", url, "--server", "http://127.0.0.1:9/"],
            &["log", "set", "--data", url],
            &["check", url],
            &["repair", url],
            &["backup", url, copy],
            &["restore", url, copy],
            &["drop", url, "set"],
            &["set", "list", "--data", url],
            &["set", "remove", "set", "--data", url],
            &["set", "remove", "set", "--data", copy, "--moved-to", url],
            &["set", "rename", "set", url, "--data", copy],
            &["token", "list", "--data", url],
            &["config", "check", url],
            &["doctor", "--config", config],
            &["doctor", "--config", config, "--json"],
            &["config", "show", url],
            &["build", url, copy],
            &[url],
        ];
        let is_first = url.contains(":99999");
        for words in [
            &["sync", url, copy][..],
            &["sync", "http://127.0.0.1:9/", &sparql, "--state", copy, "--retries", "0"],
            &["sync", url, copy, "--json"],
            &[
                "sync",
                "http://127.0.0.1:9/",
                copy,
                "--follow",
                "--retries",
                "0",
                "--callback-listen",
                "127.0.0.1:0",
                "--callback-url",
                url,
            ],
            &["sync", "http://127.0.0.1:9/", copy, "--proxy", url, "--retries", "0"],
            &["audit", url, copy],
            &["validate", url],
            &["explore", url],
            &["subscribe", url],
            &["doctor", url],
            &["log", "set", "--server", url],
            &["import", "set", "/dev/null", "--server", url],
            &["hub", "topics", "--server", url],
            &["serve", copy, "--base-url", url],
            &["serve", copy, "--hub", url],
            &["config", "check", config],
            &["serve", "--config", config],
            &["hub", "--config", config],
            &["sync", "--config", config],
        ]
        .into_iter()
        .chain(others.iter().copied().filter(|_| is_first))
        {
            let output = run(abreast().args(words));
            assert_ne!(output.status.code(), Some(0), "{words:?}");
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8_lossy(&printed);
            if printed.contains("plan") {
                wrong.push(format!("{words:?}: {printed}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn flags_replace_alternatives_of_the_environment() {
    let temporary = tempfile::tempdir().unwrap();
    let (data, folder) = (temporary.path().join("data"), temporary.path().join("folder"));
    fs::create_dir(&data).unwrap();
    collection(&folder);
    let config = temporary.path().join("config.toml");
    let text = format!("data = {data:?}\n[[set]]\nname = \"a\"\nfolder = {folder:?}\n");
    fs::write(&config, text).unwrap();
    let secret = temporary.path().join("secret");
    fs::write(&secret, "token\n").unwrap();
    let (data, config) = (data.to_str().unwrap(), config.to_str().unwrap());
    let server = refusing();
    let (url, copy) = (server.url("/"), temporary.path().join("copy"));
    let create =
        ["token", "create", "--scope", "read", "--name", "n", "--set", "a", "--config", config];
    for (words, variable, value, code) in [
        (&create[..], "ABREAST_DATA", "/nowhere", 0),
        (
            &[
                "token", "create", "--scope", "read", "--name", "m", "--set", "b", "--config",
                config,
            ],
            "ABREAST_DATA",
            "/nowhere",
            2,
        ),
        (&["token", "list", "--config", config], "ABREAST_DATA", "/nowhere", 0),
        (&["log", "a", "--data", data], "ABREAST_SERVER", "http://127.0.0.1:9/", 2),
        (
            &[
                "sync",
                &url,
                copy.to_str().unwrap(),
                "--retries",
                "0",
                "--token-file",
                secret.to_str().unwrap(),
            ],
            "ABREAST_USER",
            "me",
            12,
        ),
    ] {
        let output = run(abreast().args(words).env(variable, value));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(!text.contains("cannot be used with"), "{words:?}: {text}");
    }
    assert!(server.seen().iter().all(|one| one.header("authorization") == Some("Bearer token")));
}

/// Files and packages that are larger than the limit of a run are resumed by the next runs; see also
/// `small_limits_of_bytes_make_progress_in_each_run` of the Destination.
#[test]
fn a_stored_part_is_resumed_with_less_than_8_mib() {
    let place = tempfile::tempdir().unwrap();
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
    fs::create_dir(&original).unwrap();
    fs::write(original.join("a"), vec![b'a'; 20 << 20]).unwrap();
    let source = Source::start(&original, 0, &[]);
    let run_with = |most: &str| {
        let mut command = abreast();
        command.args(["sync", &source.url(), "--max-bytes", most, "--json"]).arg(&copy);
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    // Too few bytes to begin with it.
    let (code, text) = run_with("3M");
    assert!(code == Some(8) && text.contains("was not begun"), "{text}");
    let mut codes = vec![run_with("12M").0];
    for _ in 0..3 {
        let (code, text) = run_with("3M");
        assert!(!text.contains("was not begun"), "{codes:?}: {text}");
        codes.push(code);
    }
    assert_eq!(codes, [Some(8), Some(8), Some(8), Some(0)]);
    assert_equal(&original, &copy);
}

#[test]
fn large_files_are_received_over_several_runs_with_a_limit() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir(&original).unwrap();
    for name in ["a", "b"] {
        fs::write(original.join(name), vec![name.as_bytes()[0]; 20 << 20]).unwrap();
    }
    let source = Source::start(&original, 0, &["--dumps", "1d"]);
    eventually("the dump is complete", || source.get("/set/resourcedump.xml").is_some());
    for dumps in ["never", "always"] {
        let copy = place.path().join(dumps);
        let mut codes = Vec::new();
        for _ in 0..8 {
            let mut command = abreast();
            command.args(["sync", &source.url(), "--max-bytes", "9M", "--json", "--dumps", dumps]);
            let output = run(command.arg(&copy));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            codes.push(output.status.code());
            if output.status.code() == Some(0) {
                break;
            }
            assert!(text.contains("limit.bytes"), "{dumps}, {codes:?}: {text}");
        }
        assert_eq!(codes.last(), Some(&Some(0)), "{dumps}: {codes:?}");
        assert_equal(&original, &copy);
    }
}
