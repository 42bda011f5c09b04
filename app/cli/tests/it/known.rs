//! Requests in flight of each client of a server: strangers, and clients known by a signature or a token.

use crate::world::{Source, abreast, sync};
use abreast_testkit::digest::sha256_hex;
use abreast_testkit::{eventually, run};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// A server that is `https://source.example/`, behind a proxy on this machine.
struct World {
    place: tempfile::TempDir,
    source: Option<Source>,
    token: String,
}

impl World {
    fn new(head: &str) -> Self {
        let mut world =
            Self { place: tempfile::tempdir().unwrap(), source: None, token: String::new() };
        for folder in ["papers", "data"] {
            fs::create_dir(world.at(folder)).unwrap();
        }
        fs::write(world.at("papers/a.txt"), "four").unwrap();
        fs::write(world.at("papers/large.bin"), vec![7; 64 << 20]).unwrap();
        let word = |path: &PathBuf| path.to_str().unwrap().to_owned();
        for name in ["key", "other"] {
            let (key, public) =
                (world.at(&format!("{name}.pem")), world.at(&format!("{name}.pub")));
            openssl(&["genpkey", "-algorithm", "ed25519", "-out", &word(&key)]);
            openssl(&["pkey", "-in", &word(&key), "-pubout", "-out", &word(&public)]);
        }
        let words = ["token", "create", "--name", "partner", "--scope", "read", "--data"];
        let made = run(abreast().args(words).arg(world.at("data")));
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().clone_into(&mut world.token);
        let config = world.at("abreast.toml");
        let text = format!(
            "{head}data = \"{}\"\nrequests_per_client = 2\naccess_log = \"{}\"\n\
             [[known]]\nname = \"signer\"\nkey = \"{}\"\nshare = 2\n\
             [[known]]\nname = \"token\"\ntoken = \"partner\"\nshare = 3\n\
             [[set]]\nname = \"set\"\nfolder = \"{}\"\n",
            world.at("data").display(),
            world.at("access.log").display(),
            world.at("key.pub").display(),
            world.at("papers").display(),
        );
        fs::write(&config, text).unwrap();
        world.source = Some(Source::start_config(config.to_str().unwrap()));
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn source(&self) -> &Source {
        self.source.as_ref().unwrap()
    }

    /// Begins a request, and returns its connection and the head of the answer.
    fn ask(&self, path: &str, headers: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(&self.source().address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (stream, String::from_utf8(head).unwrap())
    }

    /// How many downloads with these headers run at the same time, each with headers of its own.
    fn most(&self, mut headers: impl FnMut() -> String) -> usize {
        let mut held = Vec::new();
        loop {
            let (stream, head) = self.ask("/set/r/large.bin", &headers());
            if !head.starts_with("HTTP/1.1 200 ") {
                assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
                assert!(head.to_lowercase().contains("retry-after: 1\r\n"), "{head}");
                return held.len();
            }
            held.push(stream);
            assert!(held.len() < 20, "there is no limit");
        }
    }

    /// The headers of a request that is signed with a key for a server, at a time.
    fn signed(&self, key: &str, authority: &str, created: u64) -> String {
        let public = fs::read_to_string(self.at("key.pub")).unwrap();
        let encoded: String = public.lines().filter(|line| !line.starts_with('-')).collect();
        let x = URL_SAFE_NO_PAD.encode(&STANDARD.decode(encoded).unwrap()[12..]);
        let members = format!("{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{x}\"}}");
        let hex = sha256_hex(members);
        let digest = (0..64).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        let keyid = URL_SAFE_NO_PAD.encode(digest.collect::<Vec<_>>());
        let input = format!(
            "(\"@authority\");created={created};expires={};keyid=\"{keyid}\";tag=\"web-bot-auth\"",
            created + 300
        );
        let base = format!("\"@authority\": {authority}\n\"@signature-params\": {input}");
        let [base_file, signature] = ["base", "signature"].map(|name| self.at(name));
        fs::write(&base_file, base).unwrap();
        let word = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let (key, input_file, output) = (word(&self.at(key)), word(&base_file), word(&signature));
        openssl(&[
            "pkeyutl",
            "-sign",
            "-inkey",
            &key,
            "-rawin",
            "-in",
            &input_file,
            "-out",
            &output,
        ]);
        let signature = STANDARD.encode(fs::read(signature).unwrap());
        format!("Signature-Input: sig1={input}\r\nSignature: sig1=:{signature}:\r\n")
    }
}

fn openssl(words: &[&str]) {
    let output = run(Command::new("openssl").args(words));
    assert!(output.status.success(), "{output:?}");
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn from(address: &str) -> String {
    format!("X-Forwarded-For: {address}\r\n")
}

const PUBLIC: &str = "base_url = \"https://source.example/\"\ntrusted_proxies = [\"127.0.0.1\"]\n";

#[test]
fn a_stranger_is_limited_and_a_known_client_has_its_share() {
    let world = World::new(PUBLIC);
    // Each address has its own number, and no more of one proxy than of another.
    assert_eq!(world.most(|| from("192.0.2.1")), 2);
    let (_one, head) = world.ask("/set/r/large.bin", &from("192.0.2.9"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(world.most(|| from("192.0.2.2")), 2);
    let mut number = 0;
    let network = || {
        number += 1;
        from(&format!("2001:db8:1:2::{number}"))
    };
    assert_eq!(world.most(network), 2);
    // Known clients, from any address.
    let signed = world.signed("key.pem", "source.example", now());
    let mut number = 0;
    let anywhere = || {
        number += 1;
        format!("{}{signed}", from(&format!("192.0.2.{number}")))
    };
    assert_eq!(world.most(anywhere), 4);
    let bearer = |token: &str| format!("{}Authorization: Bearer {token}\r\n", from("192.0.2.3"));
    assert_eq!(world.most(|| bearer(&world.token)), 6);
    assert_eq!(world.most(|| bearer("abreast_wrong")), 2);
    // What ended does not count, and clients are known in metrics and in the access log.
    eventually("ended requests do not count", || {
        world.ask("/set/r/a.txt", &from("192.0.2.1")).1.starts_with("HTTP/1.1 200 ")
    });
    let text = String::from_utf8(world.source().get("/metrics").unwrap()).unwrap();
    for line in [
        "abreast_http_known_requests_total{client=\"signer\"} 5",
        "abreast_http_known_requests_total{client=\"token\"} 7",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert!(text.contains("\nabreast_http_limited_total "), "{text}");
    eventually("the log has the names", || {
        let log = fs::read_to_string(world.at("access.log")).unwrap();
        let has = |name: &str| log.lines().any(|line| line.contains(&format!(" - {name} [")));
        has("signer") && has("token") && has("-")
    });
}

#[test]
fn a_signature_that_is_not_valid_makes_a_stranger() {
    let world = World::new(PUBLIC);
    for (number, (what, headers)) in [
        ("expired", world.signed("key.pem", "source.example", now() - 301)),
        ("of the future", world.signed("key.pem", "source.example", now() + 3_600)),
        ("of another key", world.signed("other.pem", "source.example", now())),
        ("for another server", world.signed("key.pem", "other.example", now())),
        (
            "with a later end",
            world
                .signed("key.pem", "source.example", now() - 301)
                .replace(&format!("expires={}", now() - 1), &format!("expires={}", now() + 300))
                .replace(&format!("expires={}", now() - 2), &format!("expires={}", now() + 300)),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        // Requests of the former address may still be counted.
        let headers = format!("{}{headers}", from(&format!("192.0.2.{}", number + 1)));
        assert_eq!(world.most(|| headers.clone()), 2, "{what}");
    }
}

#[test]
fn a_copy_with_a_key_is_known_and_this_machine_is_not_limited() {
    let world = World::new("");
    let key = world.at("key.pem");
    let signing = ["--sign-key", key.to_str().unwrap(), "--sign-agent", "https://h.example"];
    sync(&world.source().url(), &world.at("copy"), 0, &signing);
    let text = String::from_utf8(world.source().get("/metrics").unwrap()).unwrap();
    let known = "abreast_http_known_requests_total{client=\"signer\"} ";
    let number = text.lines().find_map(|line| line.strip_prefix(known)).unwrap();
    assert!(number.parse::<u32>().unwrap() >= 4, "{number}");
    let held: Vec<_> = (0..8).map(|_| world.ask("/set/r/large.bin", "")).collect();
    assert!(held.iter().all(|(_, head)| head.starts_with("HTTP/1.1 200 ")));
}

#[test]
fn faults_of_known_clients_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("abreast.toml");
    fs::write(place.path().join("text"), "text").unwrap();
    let private = place.path().join("key.pem");
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", private.to_str().unwrap()]);
    let text = place.path().join("text");
    for (lines, part) in [
        ("requests_per_client = 10001\n".to_owned(), "`requests_per_client`: 10001"),
        ("[[known]]\nname = \"a b\"\ntoken = \"t\"\n".to_owned(), "is not a name"),
        ("[[known]]\nname = \"a\"\n".to_owned(), "neither `key` nor `token`"),
        ("[[known]]\nname = \"a\"\ntoken = \"t\"\nshare = 0\n".to_owned(), "`share` is 0"),
        ("[[known]]\ntoken = \"t\"\n".to_owned(), "name"),
        ("[[known]]\nname = \"a\"\ntoken = \"t\"\n".repeat(2), "have the name `a`"),
        (format!("[[known]]\nname = \"a\"\nkey = {private:?}\n"), "a private key"),
        (format!("[[known]]\nname = \"a\"\nkey = {text:?}\n"), "not a public key"),
        ("[[known]]\nname = \"a\"\nkey = \"/nowhere/key\"\n".to_owned(), "No such file"),
        ("sign_keys = [\"/nowhere/key\"]\n".to_owned(), "`sign_keys`"),
    ] {
        let rest = format!("data = {:?}\n", place.path().join("data"));
        let set = format!("[[set]]\nfolder = {:?}\n", place.path());
        let all = if lines.starts_with('[') {
            format!("{rest}{lines}{set}")
        } else {
            format!("{lines}{rest}{set}")
        };
        fs::write(&config, all).unwrap();
        let output = run(abreast().args(["config", "check"]).arg(&config));
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert_eq!(output.status.code(), Some(2), "{lines}: {printed}");
        assert!(printed.contains(part), "{lines}: {printed}");
    }
}
