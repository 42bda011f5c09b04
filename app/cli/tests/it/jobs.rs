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
