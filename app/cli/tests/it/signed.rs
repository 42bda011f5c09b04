//! Requests that are signed (RFC 9421, Web Bot Auth), and the directory of the keys; OpenSSL makes the keys and checks the
//! signatures.

use crate::world::{Source, abreast};
use abreast_testkit::http::{Request, Server, redirect, send};
use abreast_testkit::{Running, run};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

const AGENT: &str = "https://harvest.example";

fn openssl(words: &[&str]) -> bool {
    run(Command::new("openssl").args(words)).status.success()
}

/// A key as OpenSSL makes it.
struct Key {
    place: tempfile::TempDir,
}

impl Key {
    fn new() -> Self {
        let key = Self { place: tempfile::tempdir().unwrap() };
        let [private, public] = ["key.pem", "public.pem"].map(|name| key.at(name));
        assert!(openssl(&["genpkey", "-algorithm", "ed25519", "-out", &private]));
        assert!(openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]));
        key
    }

    fn at(&self, name: &str) -> String {
        self.place.path().join(name).to_str().unwrap().to_owned()
    }

    fn is_signature(&self, base: &str, signature: &str) -> bool {
        let Ok(bytes) = STANDARD.decode(signature) else { return false };
        fs::write(self.at("base"), base).unwrap();
        fs::write(self.at("signature"), bytes).unwrap();
        let (public, base, signature) =
            (self.at("public.pem"), self.at("base"), self.at("signature"));
        openssl(&[
            "pkeyutl", "-verify", "-pubin", "-inkey", &public, "-rawin", "-in", &base, "-sigfile",
            &signature,
        ])
    }

    /// What is wrong with the signature of a request to the host that it names.
    fn fault(&self, seen: &Request) -> Option<String> {
        let header = |name: &str| seen.header(name).map(str::to_owned);
        let member = |name: &str| header(name)?.strip_prefix("sig1=").map(str::to_owned);
        let all = (member("signature-input"), member("signature-agent"), member("signature"));
        let (Some(input), Some(agent), Some(signature)) = all else {
            return Some("is not signed".to_owned());
        };
        let base = format!(
            "\"@authority\": {}\n\"signature-agent\";key=\"sig1\": {agent}\n\"@signature-params\": {input}",
            header("host").unwrap()
        );
        if agent != format!("\"{AGENT}\"") || !input.ends_with(";tag=\"web-bot-auth\"") {
            return Some(format!("{agent} {input}"));
        }
        if !is_current(&input, 300) {
            return Some(format!("is not of now: {input}"));
        }
        let signature = signature.trim_matches(':');
        (!self.is_signature(&base, signature)).then(|| format!("{base}: {signature}"))
    }
}

/// Whether the parameters have the present time, and a lifetime.
fn is_current(input: &str, lifetime: u64) -> bool {
    let number = |name: &str| -> u64 {
        let rest = input.split(&format!(";{name}=")).nth(1).unwrap_or_default();
        rest.split(';').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    (now - 300..=now).contains(&number("created"))
        && number("expires") == number("created") + lifetime
}

/// A Source with one resource; everything below `/moved/` is at another server.
fn source(other: Option<String>) -> Server {
    Server::new(move |request, stream| {
        let host = request.header("host").unwrap_or_default();
        if let Some((other, path)) = other.as_ref().zip(request.path().strip_prefix("/moved/")) {
            let answer = redirect("302 Found", &format!("{other}{path}"));
            return stream.write_all(answer.as_bytes()).is_ok();
        }
        let document = |capability: &str, body: &str| {
            format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
                 <rs:md capability=\"{capability}\" at=\"2026-01-01T00:00:00Z\" from=\"2026-01-01T00:00:00Z\"/>{body}</urlset>"
            )
        };
        let entry =
            |path: &str, more: &str| format!("<url><loc>http://{host}{path}</loc>{more}</url>");
        let body = match request.path() {
            "/capabilitylist.xml" => document(
                "capabilitylist",
                &["resourcelist", "changelist"]
                    .map(|name| {
                        entry(&format!("/{name}.xml"), &format!("<rs:md capability=\"{name}\"/>"))
                    })
                    .concat(),
            ),
            "/resourcelist.xml" => document(
                "resourcelist",
                &entry("/a.txt", "<lastmod>2026-01-01T00:00:00Z</lastmod>"),
            ),
            "/changelist.xml" => document("changelist", ""),
            "/a.txt" => "a".to_owned(),
            _ => String::new(),
        };
        let status = if body.is_empty() { "404 Not Found" } else { "200 OK" };
        send(stream, status, "Content-Type: application/xml\r\n", body.as_bytes())
    })
}

/// Commands that read, and a path that each must have asked for.
const READERS: [(&[&str], &str); 9] = [
    (&["sync", "URL", "DIR/copy", "--retries", "0"], "/a.txt"),
    (&["sync", "URL", "DIR/copy", "--retries", "0"], "/changelist.xml"),
    (&["sync", "URL", "warc:DIR/archive", "--state", "DIR/state", "--retries", "0"], "/a.txt"),
    (&["audit", "URL", "DIR/copy", "--retries", "0"], "/resourcelist.xml"),
    (&["validate", "URL", "--retries", "0"], "/capabilitylist.xml"),
    (&["explore", "URL", "--retries", "0"], "/capabilitylist.xml"),
    (&["subscribe", "URL"], "/capabilitylist.xml"),
    (&["doctor", "URL", "--listen", "127.0.0.1:0"], "/capabilitylist.xml"),
    (
        &["sync", "URL", "DIR/follower", "--follow", "--interval", "1s", "--retries", "0"],
        "/changelist.xml",
    ),
];

/// Runs a command until it ends, or has sent enough, and returns what the server saw of it.
fn seen_of(server: &Server, words: &[&str], path: &str, dir: &Path, more: &[&str]) -> Vec<Request> {
    let before = server.seen().len();
    let (url, dir) = (server.url("/capabilitylist.xml"), dir.to_str().unwrap());
    let mut command = abreast();
    command.args(words.iter().map(|word| word.replace("URL", &url).replace("DIR", dir))).args(more);
    let is_asked = |seen: &[Request]| seen[before..].iter().any(|one| one.path() == path);
    if words.contains(&"--follow") {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let child = Running(child);
        server.wait("the follower polls", is_asked);
        drop(child);
    } else {
        let output = run(&mut command);
        assert!(is_asked(&server.seen()), "{words:?}: {output:?}");
    }
    server.seen().split_off(before)
}

#[test]
fn every_reader_signs_each_request_if_it_has_a_key() {
    let (key, place, server) = (Key::new(), tempfile::tempdir().unwrap(), source(None));
    let file = key.at("key.pem");
    let mut wrong = Vec::new();
    for (words, path) in READERS {
        let signing = ["--sign-key", &file, "--sign-agent", AGENT];
        for one in seen_of(&server, words, path, place.path(), &signing) {
            wrong.extend(key.fault(&one).map(|fault| format!("{words:?} {}: {fault}", one.line())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_reader_signs_without_a_key() {
    let (place, server) = (tempfile::tempdir().unwrap(), source(None));
    for (words, path) in READERS {
        for one in seen_of(&server, words, path, place.path(), &[]) {
            let signed =
                one.headers().any(|(name, _)| name.to_lowercase().starts_with("signature"));
            assert!(!signed, "{words:?} {}", one.line());
        }
    }
}

#[test]
fn a_redirected_request_is_signed_for_the_next_server() {
    let (key, place, other) = (Key::new(), tempfile::tempdir().unwrap(), source(None));
    let server = source(Some(other.url("/")));
    let config = place.path().join("jobs.toml");
    let text = format!(
        "[[mirror]]\nurl = {:?}\nfolder = {:?}\nretries = 0\nsign_key = {:?}\nsign_agent = {AGENT:?}\n",
        server.url("/moved/capabilitylist.xml"),
        place.path().join("copy"),
        key.at("key.pem"),
    );
    fs::write(&config, text).unwrap();
    let output = run(abreast().args(["sync", "--config"]).arg(&config));
    assert!(!other.seen().is_empty(), "{output:?}");
    for one in [server.seen(), other.seen()].concat() {
        assert_eq!(key.fault(&one), None, "{}", one.line());
    }
}

#[test]
fn a_file_without_a_usable_key_is_explained() {
    let (key, place, server) = (Key::new(), tempfile::tempdir().unwrap(), source(None));
    let file = |name: &str, text: &str| -> PathBuf {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let rsa = place.path().join("rsa.pem");
    let ec = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
    assert!(openssl(&[&ec[..], &[rsa.to_str().unwrap()]].concat()));
    let private = fs::read_to_string(key.at("key.pem")).unwrap();
    for (path, agent, code, parts) in [
        (place.path().join("none"), AGENT, 2, &["`--sign-key`", "none", "No such file"][..]),
        (file("empty", ""), AGENT, 2, &["`--sign-key`", "is empty"]),
        (file("text", "text"), AGENT, 2, &["`--sign-key`", "PEM or a JWK", "openssl genpkey"]),
        (key.at("public.pem").into(), AGENT, 2, &["`--sign-key`", "no readable `PRIVATE KEY`"]),
        (rsa, AGENT, 2, &["`--sign-key`", "not an Ed25519 key", "openssl genpkey"]),
        (file("key", &private), "http://h.example", 2, &["`--sign-agent`", "not https"]),
        (file("key", &private), "https://h.example/keys", 2, &["`--sign-agent`", "has a path"]),
    ] {
        let mut command = abreast();
        command.args(["validate", &server.url("/capabilitylist.xml"), "--retries", "0"]);
        let output = run(command.arg("--sign-key").arg(&path).args(["--sign-agent", agent]));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            text.contains("help: ") || text.contains("No such file") || text.contains("empty"),
            "{text}"
        );
    }
    assert!(server.seen().is_empty(), "nothing is sent unsigned");
    // One without the other is a fault of usage, and a key that others can read is a warning.
    let url = server.url("/capabilitylist.xml");
    for words in [["--sign-key", "key"], ["--sign-agent", AGENT]] {
        let output = run(abreast().args(["validate", &url]).args(words));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    for (mode, is_warned) in [(0o600, false), (0o644, true)] {
        use std::os::unix::fs::PermissionsExt as _;
        let path = place.path().join("key");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = abreast();
        command.args(["validate", &url, "--sign-agent", AGENT, "--sign-key"]).arg(&path);
        let text = String::from_utf8_lossy(&run(&mut command).stderr).into_owned();
        assert_eq!(text.contains("can be read by other users"), is_warned, "{text}");
    }
}

#[test]
fn the_directory_of_keys_is_served_with_a_proof() {
    let (keys, place) = ([Key::new(), Key::new()], tempfile::tempdir().unwrap());
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    let path = "/.well-known/http-message-signatures-directory";
    let files = keys.each_ref().map(|key| key.at("key.pem"));
    let more = ["--sign-key", &files[0], "--sign-key", &files[1]];
    let source = Source::start(&folder, 0, &more);
    let head = source.head(path).unwrap();
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let media = "application/http-message-signatures-directory+json";
    assert_eq!(header("content-type").as_deref(), Some(media), "{head}");
    let body = source.get(path).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let listed = document["keys"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    fs::write(keys[0].at("body"), &body).unwrap();
    let hash = Command::new("openssl")
        .args(["dgst", "-sha256", "-binary", &keys[0].at("body")])
        .output()
        .unwrap();
    let digest = format!("sha-256=:{}:", STANDARD.encode(hash.stdout));
    assert_eq!(header("content-digest"), Some(digest.clone()));
    let (inputs, signatures) = (header("signature-input").unwrap(), header("signature").unwrap());
    for (number, key) in keys.iter().enumerate() {
        let label = format!("binding{number}=");
        let member = |text: &str| {
            text.split(", ").find_map(|part| part.strip_prefix(&label).map(str::to_owned)).unwrap()
        };
        let input = member(&inputs);
        assert!(is_current(&input, 86_400), "{input}");
        assert!(input.ends_with(";tag=\"http-message-signatures-directory\""), "{input}");
        let kid = listed[number]["kid"].as_str().unwrap();
        assert!(input.contains(&format!("keyid=\"{kid}\"")), "{input}");
        let base = format!(
            "\"@authority\";req: {}\n\"content-digest\": {digest}\n\"@signature-params\": {input}",
            source.address
        );
        assert!(key.is_signature(&base, member(&signatures).trim_matches(':')), "{base}");
    }
    assert_eq!(source.stop(), Some(0));
    // Without a key there is no directory.
    let source = Source::start(&folder, 0, &[]);
    assert_eq!(source.answer(path).unwrap().0, 404);
    assert_eq!(source.stop(), Some(0));
}
