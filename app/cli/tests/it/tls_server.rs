//! A server with its own certificate.

use crate::world::{Source, abreast, sync};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::tls::{Authority, Certificate};
use abreast_testkit::{Running, eventually, provided, run};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    fn new(certificate: &Certificate) -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        fs::create_dir(world.path("papers")).unwrap();
        fs::write(world.path("papers/a.txt"), "one").unwrap();
        world.install(certificate);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Replaces the certificate and its key, as programs that renew certificates do.
    fn install(&self, certificate: &Certificate) {
        for (name, text) in [("cert.pem", certificate.pem()), ("key.pem", &certificate.key_pem())] {
            fs::write(self.path("new"), text).unwrap();
            fs::rename(self.path("new"), self.path(name)).unwrap();
        }
    }

    /// Trusts an authority: the flags for it.
    fn trust(&self, authority: &Authority, name: &str) -> Vec<String> {
        fs::write(self.path(name), authority.pem()).unwrap();
        vec!["--ca-file".to_owned(), self.path(name).display().to_string()]
    }

    fn serve(&self, more: &[&str]) -> Source {
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| self.path(name));
        let flags = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        Source::start_unready(&self.path("papers"), 0, &[&flags, more].concat())
    }
}

fn url(source: &Source) -> String {
    format!("https://{}/", source.address)
}

fn flags(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// Syncs once the set is ready.
fn sync_ready(source: &Source, copy: &Path, more: &[&str]) {
    let is_synced = || {
        let mut command = abreast();
        run(command.args(["sync", &url(source)]).arg(copy).args(more)).status.success()
    };
    eventually("a copy is made over TLS", is_synced);
}

#[test]
fn a_copy_over_tls_is_exact_and_its_urls_are_https() {
    let authority = Authority::default();
    let world = World::new(&authority.server(&["127.0.0.1"], false));
    let source = world.serve(&[]);
    let trust = world.trust(&authority, "ca.pem");
    let copy = world.path("copy");
    assert!(source.hint().contains("abreast sync https://127.0.0.1:"), "{}", source.hint());
    sync_ready(&source, &copy, &flags(&trust));
    assert_equal(&world.path("papers"), &copy);
    fs::write(world.path("papers/b.bin"), vec![9; 3 << 20]).unwrap();
    eventually("the change is copied", || {
        sync(&url(&source), &copy, 0, &flags(&trust));
        copy.join("b.bin").exists()
    });
    assert_equal(&world.path("papers"), &copy);
    for (command, more, code) in [
        ("health", flags(&trust), 0),
        ("health", vec![], 1),
        ("status", flags(&trust), 0),
        ("status", vec![], 6),
    ] {
        let output = run(abreast().args([command, &url(&source)]).args(more));
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
    }
    // Without the authority, the server is not believed.
    sync(&url(&source), &world.path("other"), 6, &[]);
    assert_eq!(source.stop(), Some(0));
}

/// The protocols of the requests for resources in an access log.
fn protocols(log: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(log).unwrap();
    let requests = text.lines().filter_map(|line| line.split('"').nth(1));
    let protocol = |request: &str| request.rsplit(' ').next().map(str::to_owned);
    requests.filter(|request| request.contains("/r/")).filter_map(protocol).collect()
}

#[test]
fn copies_and_curl_use_http_2_unless_one_side_refuses() {
    let authority = Authority::default();
    let world = World::new(&authority.server(&["127.0.0.1"], false));
    for number in 0..200 {
        fs::write(world.path(&format!("papers/{number}.txt")), format!("{number}")).unwrap();
    }
    let config = |http2: bool| {
        let [papers, data, cert, key, log] =
            ["papers", "data", "cert.pem", "key.pem", &format!("{http2}.log")]
                .map(|name| world.path(name).display().to_string());
        let text = format!(
            "data = {data:?}\nhttp2 = {http2}\ntls = {{ cert = {cert:?}, key = {key:?} }}\n\
             access_log = {log:?}\n[[set]]\nname = \"papers\"\nfolder = {papers:?}\n"
        );
        let file = world.path("abreast.toml");
        fs::write(&file, text).unwrap();
        file
    };
    let trust = world.trust(&authority, "ca.pem");
    let trust = flags(&trust);
    let mut number = 0;
    for (http2, more, protocol) in [
        (true, None, "HTTP/2.0"),
        (true, Some("--no-http2"), "HTTP/1.1"),
        (false, None, "HTTP/1.1"),
    ] {
        let mut command = abreast();
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(config(http2));
        let source = Source::listening(&mut command);
        let log = world.path(&format!("{http2}.log"));
        number += 1;
        let copy = world.path(&format!("copy{number}"));
        let flags: Vec<_> = trust.iter().copied().chain(more).collect();
        sync_ready(&source, &copy, &flags);
        assert_equal(&world.path("papers"), &copy);
        if let Some(curl) = provided("tls_server::copies_and_curl", "ABREAST_TEST_CURL")
            && more.is_none()
        {
            let url = format!("{}papers/r/1.txt", url(&source));
            let mut command = Command::new(curl);
            command.args(["-sS", "-w", " %{http_version}", "--cacert"]);
            let output = run(command.arg(world.path("ca.pem")).arg(&url));
            let version = if http2 { "1 2" } else { "1 1.1" };
            assert_eq!(String::from_utf8_lossy(&output.stdout), version, "{output:?}");
        }
        assert_eq!(source.stop(), Some(0));
        assert_eq!(protocols(&log), BTreeSet::from([protocol.to_owned()]), "{http2} {more:?}");
        fs::remove_file(log).unwrap();
    }
}

#[test]
fn http_on_the_port_of_tls_is_explained() {
    let world = World::new(&Certificate::self_signed("127.0.0.1", false, false));
    let source = world.serve(&[]);
    let mut stream = TcpStream::connect(&source.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    // Neither noise nor silence takes a place from others.
    let idle: Vec<TcpStream> =
        (0..50).map(|_| TcpStream::connect(&source.address).unwrap()).collect();
    for mut stream in idle.iter().take(25) {
        stream.write_all(&[22, 3, 1, 255, 255, 1]).unwrap();
    }
    let mut stream = TcpStream::connect(&source.address).unwrap();
    stream.write_all(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("https://"), "{answer}");
    // They do not delay the end.
    let begun = std::time::Instant::now();
    assert_eq!(source.stop(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[test]
fn a_renewed_certificate_is_used_without_a_restart() {
    let (first, second) = (Authority::default(), Authority::default());
    let world = World::new(&first.server(&["127.0.0.1"], false));
    let source = world.serve(&[]);
    let (old, new) = (world.trust(&first, "first.pem"), world.trust(&second, "second.pem"));
    let copy = world.path("copy");
    sync_ready(&source, &copy, &flags(&old));
    let mut follower = abreast();
    follower.args(["sync", "--follow", &url(&source)]).arg(world.path("followed")).args(&old);
    let _follower = Running(follower.spawn().unwrap());
    eventually("it follows", || world.path("followed/a.txt").exists());
    let reload = || kill_process(Pid::from_child(&source.child.0), Signal::HUP).unwrap();
    // A file that is not one changes nothing.
    fs::write(world.path("key.pem"), "no key").unwrap();
    reload();
    std::thread::sleep(Duration::from_millis(300));
    sync(&url(&source), &copy, 0, &flags(&old));
    world.install(&second.server(&["127.0.0.1"], false));
    reload();
    eventually("the new certificate is used", || {
        let mut command = abreast();
        run(command.args(["sync", &url(&source)]).arg(&copy).args(&new)).status.success()
    });
    sync(&url(&source), &copy, 6, &flags(&old));
}

#[test]
fn wrong_files_are_refused_at_the_start() {
    let authority = Authority::default();
    let world = World::new(&authority.server(&["127.0.0.1"], false));
    fs::write(world.path("other.pem"), authority.server(&["h"], false).key_pem()).unwrap();
    fs::write(world.path("empty.pem"), "").unwrap();
    for (cert, key, code, expected) in [
        ("cert.pem", "missing.pem", 2, "missing.pem"),
        ("cert.pem", "empty.pem", 2, "cannot use the private key in"),
        ("empty.pem", "key.pem", 2, "the file has no certificate"),
        ("cert.pem", "other.pem", 2, "cannot use the certificate in"),
        ("", "key.pem", 2, "`tls.cert`: TLS needs a certificate"),
    ] {
        let mut command = abreast();
        command.arg("serve").arg(world.path("papers")).args(["--listen", "127.0.0.1:0"]);
        for (flag, name) in [("--tls-cert", cert), ("--tls-key", key)] {
            if !name.is_empty() {
                command.arg(flag).arg(world.path(name));
            }
        }
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(expected), "{cert} {key}: {text}");
        assert_eq!(output.status.code(), Some(code), "{cert} {key}: {text}");
    }
}
