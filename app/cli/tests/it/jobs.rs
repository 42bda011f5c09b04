//! Jobs of a configuration file: what each has of its own.

use crate::world::{Source, abreast};
use abreast_testkit::http::{Server, answer};
use abreast_testkit::run;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A configuration file in a folder for the copies.
struct Jobs {
    folder: tempfile::TempDir,
}

impl Jobs {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn secret(&self, text: &str) -> String {
        let path = self.path(text);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn job(&self, name: &str, url: &str, more: &str) -> String {
        let folder = self.path(name);
        format!("[[mirror]]\nurl = {url:?}\nfolder = \"{}\"\n{more}\n", folder.display())
    }

    /// The exit code of all jobs, and what is printed about errors.
    fn run(
        &self,
        command: &str,
        jobs: &[String],
        words: &[&str],
        environment: &[(&str, &str)],
    ) -> (i32, String) {
        let file = self.path("jobs.toml");
        fs::write(&file, jobs.concat()).unwrap();
        let mut all = abreast();
        all.args([command, "--all", "--retries", "0", "--config"]).arg(&file).args(words);
        let output = run(all.envs(environment.iter().copied()));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), text)
    }
}

#[test]
fn limits_of_a_job_begin_with_it() {
    let jobs = Jobs::new();
    let original = jobs.path("original");
    fs::create_dir(&original).unwrap();
    fs::write(original.join("large"), vec![b'x'; 300_000]).unwrap();
    fs::write(original.join("small"), "1").unwrap();
    let source = Source::start(&original, 0, &[]);
    // The first job takes longer, and receives more, than the second one may.
    let slow = jobs.job("slow", &source.url(), "bwlimit = \"100K\"");
    let own = "exclude = [\"large\"]\nmax_time = \"2s\"\nmax_bytes = \"200K\"";
    let limited = jobs.job("limited", &source.url(), own);
    for words in [&[][..], &["--max-time", "1h"], &["--max-bytes", "1G"]] {
        let (code, text) = jobs.run("sync", &[slow.clone(), limited.clone()], words, &[]);
        assert_eq!(code, 0, "{words:?}: {text}");
        assert!(jobs.path("limited").join("small").is_file(), "{words:?}");
        for name in ["slow", "limited"] {
            fs::remove_dir_all(jobs.path(name)).unwrap();
        }
    }
    // Those of a flag are of all jobs.
    let (code, text) = jobs.run("sync", &[slow, limited], &["--max-bytes", "200K"], &[]);
    assert_eq!(code, 8, "{text}");
}

/// A server that answers 401 to everything.
fn refusing() -> Server {
    Server::saying(answer("401 No", "Connection: close\r\n", ""))
}

#[test]
fn logins_of_the_environment_replace_none_of_a_job() {
    let jobs = Jobs::new();
    let (token, password) = (jobs.secret("own-token"), jobs.secret("own-password"));
    let basic_me_own = "Basic bWU6b3duLXBhc3N3b3Jk";
    let basic_alice = "Basic YWxpY2U6cGxhbnRlZA==";
    let basic_me = "Basic bWU6cGxhbnRlZA==";
    let alice = &[("ABREAST_USER", "alice"), ("ABREAST_PASSWORD", "planted")][..];
    let (token_file, token_command) =
        (format!("token_file = {token:?}"), "token_command = \"echo own-token\"".to_owned());
    let (user, user_alone) =
        (format!("user = \"me\"\npassword_file = {password:?}"), "user = \"me\"".to_owned());
    let password_alone = format!("password_file = {password:?}");
    // Settings of the job, flags, environment, what is sent, exit code.
    for (own, words, environment, sent, code) in [
        (&token_file, &[][..], alice, Some("Bearer own-token"), 12),
        (&token_command, &[], alice, Some("Bearer own-token"), 12),
        (&user, &[], alice, Some(basic_me_own), 12),
        (&user, &[], &[("ABREAST_TOKEN", "planted")], Some(basic_me_own), 12),
        (&user_alone, &[], alice, None, 2),
        (&user_alone, &[], &alice[1..], Some(basic_me), 12),
        (&password_alone, &[], &alice[..1], Some("Basic YWxpY2U6b3duLXBhc3N3b3Jk"), 12),
        (&String::new(), &[], alice, Some(basic_alice), 12),
        (&token_file, &["--user", "alice"], &alice[1..], Some(basic_alice), 12),
    ] {
        let server = refusing();
        let job = jobs.job("copy", &server.url("/"), own);
        let (found, text) = jobs.run("sync", &[job], words, environment);
        assert_eq!(found, code, "{own} {words:?} {environment:?}: {text}");
        let seen = server.seen();
        assert_eq!(seen.is_empty(), sent.is_none(), "{own} {words:?} {environment:?}");
        for request in seen {
            assert_eq!(request.header("authorization"), sent, "{own} {words:?} {environment:?}");
        }
    }
    // What the refusal of one secret for two servers recommends is possible.
    let (one, other) = (refusing(), refusing());
    let one_job = jobs.job("one", &one.url("/"), "");
    let two = [one_job.clone(), jobs.job("other", &other.url("/"), "")];
    let (code, text) = jobs.run("sync", &two, &[], alice);
    assert!(code == 2 && text.contains("set `token_file`"), "{text}");
    let two = [one_job, jobs.job("other", &other.url("/"), &token_file)];
    let (code, text) = jobs.run("sync", &two, &[], alice);
    assert_eq!(code, 12, "{text}");
    for (server, sent) in [(one, basic_alice), (other, "Bearer own-token")] {
        let seen = server.seen();
        assert!(!seen.is_empty());
        for request in seen {
            assert_eq!(request.header("authorization"), Some(sent));
        }
    }
}

#[test]
fn the_exit_code_is_that_of_the_first_job() {
    let jobs = Jobs::new();
    let server = refusing();
    let refused = |name: &str| jobs.job(name, &server.url("/"), "");
    let left_out = |name: &str| jobs.job(name, &server.url("/"), "token_command = \"exit 3\"");
    // An audit needs a copy.
    fs::create_dir(jobs.path("a")).unwrap();
    let mut wrong = Vec::new();
    for command in ["sync", "audit"] {
        let of = |jobs_of: &[String]| jobs.run(command, jobs_of, &[], &[]);
        let (alone, _) = of(&[refused("a")]);
        for (jobs_of, code) in
            [([left_out("a"), refused("b")], 2), ([refused("a"), left_out("b")], alone)]
        {
            let (found, text) = of(&jobs_of);
            if found != code || alone == 2 || !text.contains("is left out") {
                wrong.push(format!("{command}, {code} expected: {found}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn jobs_that_do_not_follow_run_one_after_the_other() {
    let jobs = Jobs::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = |name: &'static str| {
        let server = abreast_testkit::pages::Server::start();
        let seen = Arc::clone(&seen);
        server.handler(move |_, _| {
            seen.lock().unwrap().push(name);
            std::thread::sleep(Duration::from_millis(100));
            None
        });
        server
    };
    let servers = ["follows", "one", "two"].map(server);
    let job = |name: &str, at: usize, more: &str| jobs.job(name, &servers[at].url("/s"), more);
    let all = [job("follows", 0, "follow = true"), job("one", 1, ""), job("two", 2, "")];
    let file = jobs.path("jobs.toml");
    fs::write(&file, all.concat()).unwrap();
    let mut running = abreast()
        .args(["sync", "--all", "--retries", "0", "--config"])
        .arg(&file)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let has = |name| seen.lock().unwrap().contains(&name);
    abreast_testkit::eventually("all jobs have begun", || has("two") && has("follows"));
    running.kill().unwrap();
    running.wait().unwrap();
    let seen = seen.lock().unwrap();
    let last = seen.iter().rposition(|name| *name == "one").unwrap();
    let first = seen.iter().position(|name| *name == "two").unwrap();
    assert!(last < first && seen.contains(&"follows"), "{seen:?}");
}

#[test]
fn a_wrong_job_costs_that_job_alone() {
    let jobs = Jobs::new();
    let server = refusing();
    let (empty, latin, large) = (jobs.path("empty"), jobs.path("latin"), jobs.path("large"));
    fs::write(&empty, "").unwrap();
    fs::write(&latin, b"caf\xe9\n").unwrap();
    fs::write(&large, vec![b'x'; 5 << 20]).unwrap();
    fs::write(jobs.path("text"), "text\n").unwrap();
    let folder = jobs.path("folder");
    fs::create_dir(&folder).unwrap();
    let mut cases: Vec<(&str, String)> = [
        ("uris_from", "uris_from = \"/nowhere/at/all\""),
        ("filter_from", "filter_from = [\"/nowhere/at/all\"]"),
        ("context", "context = [\"https://c.example/=/nowhere/at/all\"]"),
        ("pin", "pin = [\"h.example=sha256/short\"]"),
        ("connections", "connections = \"many\""),
        ("colour", "colour = 1"),
        ("proxy", "proxy = \"http://h:99999\""),
        ("segment_size", "segment_size = \"1M\""),
        ("callback_listen", "follow = true\ncallback_listen = \"0.0.0.0:0\""),
    ]
    .map(|(key, text)| (key, text.to_owned()))
    .into();
    if cfg!(feature = "xmpp") {
        cases.push((
            "xmpp_jid",
            "xmpp_jid = \"me@h.example\"\nxmpp_password_command = \"exit 3\"".to_owned(),
        ));
    }
    for path in [&empty, &latin, &large, &folder] {
        for (key, before) in
            [("token_file", ""), ("password_file", "user = \"me\"\n"), ("netrc", "")]
        {
            cases.push((key, format!("{before}{key} = {path:?}")));
        }
    }
    for path in [&empty, &large, &folder, &jobs.path("text")] {
        for key in ["ca_file", "client_cert"] {
            cases.push((key, format!("{key} = {path:?}")));
        }
    }
    let mut wrong = Vec::new();
    for (key, keys) in cases {
        let before = server.seen().len();
        let all =
            [jobs.job("wrong", &server.url("/"), &keys), jobs.job("right", &server.url("/"), "")];
        let (code, text) = jobs.run("sync", &all, &[], &[]);
        let named = format!("`{key}`");
        let is_reported = text.contains("job `wrong` is left out") && text.contains(&named);
        // 12 is the answer to the job that runs.
        if code != 2 && code != 13 || !is_reported || server.seen().len() == before {
            wrong.push(format!("sync, {keys}: {code}: {text}"));
        }
        let checked = run(abreast().args(["config", "check"]).arg(jobs.path("jobs.toml")));
        let text = String::from_utf8_lossy(&checked.stderr).into_owned();
        if checked.status.success() || !text.contains(&named) || text.contains("`right`") {
            wrong.push(format!("config check, {keys}: {:?}: {text}", checked.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unusable_files_of_servers_are_found_by_the_check() {
    let jobs = Jobs::new();
    let (empty, large) = (jobs.path("empty"), jobs.path("large"));
    fs::write(&empty, "").unwrap();
    fs::write(&large, vec![b'x'; 5 << 20]).unwrap();
    fs::write(jobs.path("text"), "text\n").unwrap();
    let (folder, file) = (jobs.path("folder"), jobs.path("server.toml"));
    fs::create_dir(&folder).unwrap();
    let mut wrong = Vec::new();
    for path in [&empty, &large, &folder, &jobs.path("text"), &jobs.path("none")] {
        let is_text = path.ends_with("text");
        let endpoint = |keys: &str| {
            format!("endpoint = {{ url = \"https://e.example/sparql\", {keys} = {path:?} }}")
        };
        let set = "data = \"/nowhere\"\n[[set]]\nname = \"a\"\norigin = \"sparql\"\n";
        let xmpp = "[xmpp]\njid = \"a@h.example\"\n";
        let xmpp_ca = format!("{xmpp}password_command = \"true\"\nca_file = {path:?}\n");
        for (key, text, is_secret, needs_xmpp) in [
            ("endpoint.ca_file", format!("{set}{}", endpoint("ca_file")), false, false),
            ("endpoint.token_file", format!("{set}{}", endpoint("token_file")), true, false),
            (
                "endpoint.password_file",
                format!("{set}{}", endpoint("user = \"me\", password_file")),
                true,
                false,
            ),
            ("hub.ca_file", format!("[hub]\nca_file = {path:?}\n{set}"), false, false),
            ("xmpp.password_file", format!("{xmpp}password_file = {path:?}\n{set}"), true, true),
            ("xmpp.ca_file", format!("{xmpp_ca}{set}"), false, true),
        ] {
            if is_secret && is_text || needs_xmpp && !cfg!(feature = "xmpp") {
                continue;
            }
            // `data` is at the beginning of the file.
            let text = text.replace("data = \"/nowhere\"\n", "");
            fs::write(&file, format!("data = \"/nowhere\"\n{text}\n")).unwrap();
            let checked = run(abreast().args(["config", "check"]).arg(&file));
            let printed = String::from_utf8_lossy(&checked.stderr).into_owned();
            if checked.status.code() != Some(2) || !printed.contains(&format!("`{key}`")) {
                wrong.push(format!("{key} = {}: {:?}: {printed}", path.display(), checked.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
