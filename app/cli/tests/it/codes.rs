//! Exit codes: the same cause has the same code in every command.

use crate::world::{abreast, run};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::sync::Arc;

/// Every command that has an address of a server, with the place of it.
const WITH_A_NETWORK: [&[&str]; 10] = [
    &["sync", "URL", "DIR/copy", "--retries", "0"],
    &["audit", "URL", "DIR", "--retries", "0"],
    &["validate", "URL", "--retries", "0"],
    &["explore", "URL", "--retries", "0"],
    &["subscribe", "URL"],
    &["log", "papers", "--server", "URL"],
    &["import", "papers", "DIR/records.ndjson", "--server", "URL"],
    &["hub", "topics", "--server", "URL"],
    &["hub", "targets", "http://h/topic", "--server", "URL"],
    &["doctor", "URL", "--listen", "127.0.0.1:0"],
];

fn with(words: &[&str], url: &str, dir: &str, more: &[&str]) -> (Option<i32>, String) {
    let words = words.iter().map(|word| word.replace("URL", url).replace("DIR", dir));
    let Output { status, stdout, stderr } = run(abreast().args(words).args(more));
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

/// A server with a certificate of its own making, which has nothing for anybody. Gives back its port and certificate.
fn self_signed() -> (u16, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    // As `openssl req -x509` makes it.
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && tls.read(&mut byte).unwrap_or(0) == 1 {
                    head.push(byte[0]);
                }
                let _ = tls.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = tls.flush();
            });
        }
    });
    (port, certificate.pem())
}

#[test]
fn a_failure_of_tls_is_code_6_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    let (port, pem) = self_signed();
    let (_, other) = self_signed();
    std::fs::write(place.path().join("records.ndjson"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    let (named, wrong) = (place.path().join("named.pem"), place.path().join("other.pem"));
    std::fs::write(&named, pem).unwrap();
    std::fs::write(&wrong, other).unwrap();
    for words in WITH_A_NETWORK {
        let secure = format!("https://localhost:{port}/");
        let (code, told) = with(words, &secure, dir, &[]);
        assert_eq!(code, Some(6), "{words:?}: {told}");
        assert!(told.contains("self-signed, and not known here"), "{words:?}: {told}");
        let (code, told) = with(words, &secure, dir, &["--ca-file", wrong.to_str().unwrap()]);
        assert_eq!(code, Some(6), "{words:?}: {told}");
        // The server is known then, and has nothing.
        let (code, told) = with(words, &secure, dir, &["--ca-file", named.to_str().unwrap()]);
        assert!(code != Some(6) && !told.contains("self-signed"), "{words:?} {code:?}: {told}");
        // The certificate is of another name.
        let (code, told) =
            with(words, &format!("https://127.0.0.1:{port}/"), dir, &["--ca-file", named.to_str().unwrap()]);
        assert_eq!(code, Some(6), "{words:?}: {told}");
        assert!(told.contains("for another host name"), "{words:?}: {told}");
        let (code, told) = with(words, &format!("http://localhost:{port}/"), dir, &[]);
        assert_eq!(code, Some(6), "{words:?}: {told}");
        assert!(told.contains("the server speaks TLS"), "{words:?}: {told}");
    }
}

#[test]
fn a_path_that_is_not_there_is_code_2_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    let missing = place.path().join("missing").display().to_string();
    let missing = missing.as_str();
    let url = "http://127.0.0.1:9/";
    for words in [
        &["audit", url, missing][..],
        &["sync", url, "DIR/copy", "--config", missing],
        &["sync", "--all", "--config", missing],
        &["sync", url, "DIR/copy", "--filter-from", missing],
        &["sync", url, "DIR/copy", "--ca-file", missing],
        &["sync", url, "DIR/copy", "--token-file", missing],
        &["audit", "--all", "--config", missing],
        &["validate", missing],
        &["validate", url, "--ca-file", missing],
        &["explore", url, "--ca-file", missing],
        &["subscribe", url, "--ca-file", missing],
        &["log", "papers", "--data", missing],
        &["log", "papers", "--config", missing],
        &["log", "papers", "--server", url, "--ca-file", missing],
        &["import", "papers", missing, "--data", "DIR/store"],
        &["import", "papers", "--config", missing],
        &["hub", "--config", missing],
        &["hub", "--data", "DIR/hub", "--ca-file", missing],
        &["hub", "topics", "--data", missing],
        &["hub", "topics", "--config", missing],
        &["serve", "--config", missing],
        &["build", "--config", missing],
        &["check", missing],
        &["repair", missing],
        &["backup", missing, "DIR/backups"],
        &["restore", missing, "DIR/restored"],
        &["doctor", missing, "--listen", "127.0.0.1:0"],
        &["doctor", url, "--ca-file", missing, "--listen", "127.0.0.1:0"],
        &["config", "check", missing],
        &["config", "show", missing],
        &["token", "list", "--config", missing],
    ] {
        let (code, told) = with(words, "", dir, &[]);
        assert_eq!(code, Some(2), "{words:?}: {told}");
        assert!(!told.is_empty(), "{words:?}");
    }
}

#[test]
fn a_bad_argument_is_code_2_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    std::fs::write(place.path().join("records.ndjson"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    for words in WITH_A_NETWORK {
        for url in ["http://[", "ftp://papers.example.org/", "nonsense://"] {
            // What is no URL is the name of a file to some.
            if words[0] == "doctor" && !url.starts_with("http") || words[0] == "validate" || words[0] == "explore" {
                continue;
            }
            let (code, told) = with(words, url, dir, &[]);
            assert_eq!(code, Some(2), "{words:?} {url}: {told}");
        }
        for more in [["--proxy", "nonsense://"], ["--pin", "nonsense"], ["--no-such-option", "x"]] {
            let (code, told) = with(words, "http://127.0.0.1:9/", dir, &more);
            assert_eq!(code, Some(2), "{words:?} {more:?}: {told}");
        }
    }
}

#[test]
fn an_unknown_host_is_reported_while_retries_go_on() {
    let place = tempfile::tempdir().unwrap();
    let mut command = abreast();
    command.args(["sync", "http://no-such-host.invalid/"]).arg(place.path().join("copy"));
    let begun = std::time::Instant::now();
    let mut child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("no-such-host.invalid") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "it ended without a word");
    }
    assert!(child.try_wait().unwrap().is_none(), "it goes on trying");
    assert!(begun.elapsed() < std::time::Duration::from_secs(3), "{:?}: {line}", begun.elapsed());
    child.kill().unwrap();
    child.wait().unwrap();
}
