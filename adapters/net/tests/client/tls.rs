//! Certificates.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use abreast_net::{ClientCertificate, Error, Options, Pin};
use abreast_testkit::http::{Server, hold, ok, read_head, redirect};
use abreast_testkit::tls::{Authority, Certificate};

use crate::{client, get, quick};

/// Options of a client that trusts an authority, and finds a server under a name.
pub(crate) fn trusted(authority: &Authority, folder: &Path, server: &Server) -> Options {
    named(authority.pem(), folder, server)
}

fn named(pem: &str, folder: &Path, server: &Server) -> Options {
    let path = folder.join("named.pem");
    std::fs::write(&path, pem).unwrap();
    Options { extra_roots: Some(path), ..found(server) }
}

fn found(server: &Server) -> Options {
    Options { connect_to: vec![("museum.example:443".into(), server.address())], ..quick() }
}

async fn fetch(options: Options) -> Result<Vec<u8>, Error> {
    get(&client(options), "https://museum.example/").await.map(|(_, body)| body)
}

#[tokio::test]
async fn authority_in_the_extra_roots_is_trusted() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let server = authority.server(&["museum.example"], false).serve(ok("secure"));
    let client = client(trusted(&authority, folder.path(), &server));
    for _ in 0..3 {
        assert_eq!(get(&client, "https://museum.example/").await.unwrap().1, b"secure");
    }
}

#[tokio::test]
async fn self_signed_expired_and_misnamed_certificates_are_refused() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let server = authority.server(&["museum.example"], false).serve(ok("x"));
    let unknown = Options { extra_roots: None, ..trusted(&authority, folder.path(), &server) };
    let expired_server = authority.server(&["museum.example"], true).serve(ok("x"));
    let expired = trusted(&authority, folder.path(), &expired_server);
    let other_server = authority.server(&["other.example"], false).serve(ok("x"));
    let other = trusted(&authority, folder.path(), &other_server);
    for (what, options, words, help) in [
        ("unknown", unknown, "signed by an authority that is not known here", "--ca-file"),
        ("expired", expired, "has expired", "renewed"),
        ("other name", other, "is for another host name", "host name"),
    ] {
        let error = fetch(options).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{what}: {error}");
        let text = error.to_string();
        assert!(text.contains(words), "the cause is in the message: {text}");
        assert!(error.help().unwrap().contains(help), "{text}");
    }
}

/// A server with a certificate of its own making.
fn own_certificate(name: &str, is_authority: bool, is_expired: bool) -> (String, Server) {
    let certificate = Certificate::self_signed(name, is_authority, is_expired);
    (certificate.pem().to_owned(), certificate.serve(ok("secure")))
}

#[tokio::test]
async fn a_certificate_that_is_named_itself_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let options = |pem: &str, server: &Server| named(pem, folder.path(), server);
    let message = async |options: Options| fetch(options).await.unwrap_err().to_string();
    for is_authority in [true, false] {
        let (pem, server) = own_certificate("museum.example", is_authority, false);
        assert_eq!(fetch(options(&pem, &server)).await.unwrap(), b"secure", "{is_authority}");
        let unnamed = Options { extra_roots: None, ..options(&pem, &server) };
        let text = message(unnamed).await;
        assert!(text.contains("not known here") && text.contains("--ca-file"), "{text}");
        // Another certificate of the same name is not the one that was named.
        let (other, _) = own_certificate("museum.example", is_authority, false);
        let text = message(options(&other, &server)).await;
        assert!(text.contains("the server's certificate"), "{text}");
        // Its dates and names count.
        let (pem, server) = own_certificate("museum.example", is_authority, true);
        let text = message(options(&pem, &server)).await;
        assert!(text.contains("has expired"), "{text}");
        let (pem, server) = own_certificate("other.example", is_authority, false);
        let text = message(options(&pem, &server)).await;
        assert!(text.contains("for another host name"), "{text}");
    }
    // Also without the authority that signed it.
    let certificate = Authority::default().server(&["museum.example"], false);
    let server = certificate.serve(ok("secure"));
    assert_eq!(fetch(options(certificate.pem(), &server)).await.unwrap(), b"secure");
}

#[tokio::test]
async fn the_wrong_scheme_for_a_port_is_named_as_the_cause() {
    let (_, secure) = own_certificate("museum.example", true, false);
    let error = get(&client(quick()), &secure.url("/")).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{error}");
    assert!(
        error.to_string().contains("speaks TLS") && error.to_string().contains("https://"),
        "{error}"
    );
    let plain = Server::raw(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        hold(&mut stream);
    });
    let options = found(&plain);
    let error = fetch(options).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{error}");
    assert!(
        error.to_string().contains("does not speak TLS") && error.to_string().contains("http://"),
        "{error}"
    );
}

#[tokio::test]
async fn server_without_tls_is_refused() {
    let server = Server::raw(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        hold(&mut stream);
    });
    let options = found(&server);
    assert_eq!(fetch(options).await.unwrap_err().code(), "net.tls");
}

/// What servers with TLS do with a request without it: nginx, Apache and Go explain it, others send
/// an alert, or close the connection with or without reading the request.
#[tokio::test]
async fn http_to_a_port_with_tls_is_a_failure_of_tls() {
    let refusal = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno".as_slice();
    for (answer, reads) in
        [(refusal, true), (b"\x15\x03\x03\x00\x02\x02\x46", true), (b"", true), (b"", false)]
    {
        for has_tls in [true, false] {
            let connections = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&connections);
            let server = Server::raw(move |mut stream| {
                count.fetch_add(1, SeqCst);
                let mut begin = [0];
                let is_handshake = stream.peek(&mut begin).is_ok() && begin == [0x16];
                if is_handshake && has_tls {
                    let _ = stream.write_all(b"\x15\x03\x03\x00\x02\x02\x28");
                    hold(&mut stream);
                } else {
                    if reads {
                        read_head(&mut stream);
                    }
                    let _ = stream.write_all(answer);
                }
            });
            let client = client(quick());
            let result = get(&client, &server.url("/")).await;
            let reply = format!("{answer:?} {has_tls}: {result:?}");
            if has_tls || answer.starts_with(b"\x15") {
                let error = result.unwrap_err();
                assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{reply}");
                assert!(error.to_string().contains("write the address with https://"), "{reply}");
            } else {
                assert_ne!(result.err().map(|error| error.code()), Some("net.tls"), "{reply}");
                let before = connections.load(SeqCst);
                let _ = get(&client, &server.url("/")).await;
                assert_eq!(connections.load(SeqCst), before + 1, "tested once: {reply}");
            }
        }
    }
}

#[tokio::test]
async fn body_of_unknown_length_cut_under_tls_is_truncated() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let reply = "HTTP/1.1 200 OK\r\n\r\nsome".to_owned();
    let server = authority.server(&["museum.example"], false).serve(reply.clone());
    assert_eq!(fetch(trusted(&authority, folder.path(), &server)).await.unwrap(), b"some");
    let server = authority.server(&["museum.example"], false).serve_and_cut(reply);
    assert_eq!(
        fetch(trusted(&authority, folder.path(), &server)).await.unwrap_err().code(),
        "http.truncated"
    );
}

#[tokio::test]
async fn redirect_from_https_to_http_is_refused_unless_allowed() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let plain = Server::saying(ok("plain"));
    let server =
        authority.server(&["museum.example"], false).serve(redirect("302 Found", &plain.url("/")));
    let options = trusted(&authority, folder.path(), &server);
    let error = fetch(options.clone()).await.unwrap_err();
    assert_eq!(error.code(), "http.downgrade");
    assert!(plain.seen().is_empty());
    assert_eq!(fetch(Options { allow_downgrade: true, ..options }).await.unwrap(), b"plain");
}

#[tokio::test]
async fn unreadable_extra_roots_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate here").unwrap();
    let server = Server::raw(drop);
    for path in [empty, folder.path().join("missing.pem")] {
        let options = Options { extra_roots: Some(path.clone()), ..found(&server) };
        let error = fetch(options).await.unwrap_err();
        assert_eq!(error.code(), "net.tls");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

/// The pin of a key that no server has.
fn other_pin() -> String {
    Certificate::self_signed("museum.example", false, false).pin()
}

#[tokio::test]
async fn a_pinned_key_stands_for_a_bad_certificate_of_its_host_only() {
    // Nobody vouches for the certificate, it has another name and has long expired.
    let certificate = Certificate::self_signed("something.else", false, true);
    let server = certificate.serve(ok("secure"));
    let with = |pins: &[String], host: &str| Options {
        pins: pins.iter().map(|pin| Pin::parse(pin).unwrap()).collect(),
        connect_to: vec![(format!("{host}:443"), server.address())],
        ..quick()
    };
    let right = format!("museum.example=sha256/{}", certificate.pin());
    let wrong = format!("museum.example=sha256/{}", other_pin());
    assert_eq!(
        fetch(with(std::slice::from_ref(&right), "museum.example")).await.unwrap(),
        b"secure"
    );
    assert_eq!(
        fetch(with(&[wrong.clone(), right.clone()], "museum.example")).await.unwrap(),
        b"secure"
    );
    let error = fetch(with(&[wrong], "museum.example")).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.tls", false));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains(&certificate.pin()), "tells the key to pin: {cause}");
    assert_eq!(fetch(with(&[], "museum.example")).await.unwrap_err().code(), "net.tls");
    let elsewhere = with(&[right], "other.example");
    let error = get(&client(elsewhere), "https://other.example/").await.unwrap_err();
    assert_eq!(error.code(), "net.tls", "the pin is for another host");
}

#[tokio::test]
async fn trusted_certificate_without_the_pinned_key_is_refused() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let server = authority.server(&["museum.example"], false).serve(ok("x"));
    let pins = vec![Pin::parse(&format!("museum.example=sha256/{}", other_pin())).unwrap()];
    let options = Options { pins, ..trusted(&authority, folder.path(), &server) };
    assert_eq!(fetch(options).await.unwrap_err().code(), "net.tls");
}

#[tokio::test]
async fn our_own_certificate_is_shown_to_its_server_only() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let certificate = authority.client("me.example");
    let (certificate_file, key_file) = (folder.path().join("me.pem"), folder.path().join("me.key"));
    std::fs::write(&certificate_file, certificate.pem()).unwrap();
    std::fs::write(&key_file, certificate.key_pem()).unwrap();

    let names = ["museum.example", "other.example"];
    let server = authority.server(&names, false).serve_clients_of(&authority, ok("secure"));
    let mut options = trusted(&authority, folder.path(), &server);
    options.connect_to.push(("other.example:443".into(), server.address()));
    options.client_certificate = Some(ClientCertificate {
        url: "https://museum.example/x".into(),
        certificate: certificate_file,
        key: key_file,
    });
    assert_eq!(fetch(options.clone()).await.unwrap(), b"secure");
    assert!(
        get(&client(options.clone()), "https://other.example/").await.is_err(),
        "it is not shown to others"
    );
    options.client_certificate.as_mut().unwrap().key = folder.path().join("missing");
    let error = fetch(options).await.unwrap_err();
    assert_eq!(error.code(), "net.tls");
    assert!(error.to_string().contains("missing"), "{error}");
}
