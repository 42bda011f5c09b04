//! Certificates.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use abreast_net::{ClientCertificate, Error, Options, Pin};
use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData as _, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use sha2::Digest as _;

use crate::server::{Server, ok, read_head, redirect};
use crate::{client, get, quick};

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A server that says one thing under a certificate for that name.
    pub(crate) fn server(&self, name: &str, expired: bool, said: String, closes_properly: bool) -> Server {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        Server::raw(move |stream| {
            let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            while read_head(&mut tls).is_some() {
                if tls.write_all(said.as_bytes()).and_then(|()| tls.flush()).is_err()
                    || !said.contains("Content-Length")
                {
                    break;
                }
            }
            if closes_properly {
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
        })
    }

    pub(crate) fn trusted(&self, folder: &Path, server: &Server) -> Options {
        let path = folder.join("roots.pem");
        std::fs::write(&path, &self.pem).unwrap();
        Options {
            extra_roots: Some(path),
            connect_to: vec![("museum.example:443".into(), server.address())],
            ..quick()
        }
    }
}

async fn fetch(options: Options) -> Result<Vec<u8>, Error> {
    get(&client(options), "https://museum.example/").await.map(|(_, body)| body)
}

#[tokio::test]
async fn authority_in_the_extra_roots_is_trusted() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let server = authority.server("museum.example", false, ok("secure"), true);
    let client = client(authority.trusted(folder.path(), &server));
    for _ in 0..3 {
        assert_eq!(get(&client, "https://museum.example/").await.unwrap().1, b"secure");
    }
}

#[tokio::test]
async fn self_signed_expired_and_wrongly_named_certificates_are_refused() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let server = authority.server("museum.example", false, ok("x"), true);
    let unknown = Options { extra_roots: None, ..authority.trusted(folder.path(), &server) };
    let expired_server = authority.server("museum.example", true, ok("x"), true);
    let expired = authority.trusted(folder.path(), &expired_server);
    let other_server = authority.server("other.example", false, ok("x"), true);
    let other = authority.trusted(folder.path(), &other_server);
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

/// A server with a certificate of its own making, as `openssl req -x509` makes it or without the mark of an authority.
fn own_certificate(name: &str, is_authority: bool, expired: bool) -> (String, Server) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    if expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (certificate.pem(), saying_over_tls(Arc::new(config)))
}

#[tokio::test]
async fn a_certificate_that_is_named_itself_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let options = |pem: &str, server: &Server| {
        let path = folder.path().join("named.pem");
        std::fs::write(&path, pem).unwrap();
        Options {
            extra_roots: Some(path),
            connect_to: vec![("museum.example:443".into(), server.address())],
            ..quick()
        }
    };
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
    let authority = Authority::new();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["museum.example".to_owned()]).unwrap().signed_by(&key, &authority.issuer).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let server = saying_over_tls(Arc::new(config));
    assert_eq!(fetch(options(&certificate.pem(), &server)).await.unwrap(), b"secure");
}

#[tokio::test]
async fn the_wrong_scheme_for_a_port_is_named_as_the_cause() {
    let (_, secure) = own_certificate("museum.example", true, false);
    let error = get(&client(quick()), &secure.url("/")).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{error}");
    assert!(error.to_string().contains("speaks TLS") && error.to_string().contains("https://"), "{error}");
    let plain = Server::raw(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        crate::server::hold(&mut stream);
    });
    let options = Options { connect_to: vec![("museum.example:443".into(), plain.address())], ..quick() };
    let error = fetch(options).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{error}");
    assert!(error.to_string().contains("does not speak TLS") && error.to_string().contains("http://"), "{error}");
}

#[tokio::test]
async fn server_without_tls_is_refused() {
    let server = Server::raw(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        crate::server::hold(&mut stream);
    });
    let options = Options { connect_to: vec![("museum.example:443".into(), server.address())], ..quick() };
    assert_eq!(fetch(options).await.unwrap_err().code(), "net.tls");
}

/// What servers with TLS do with a request without it: nginx, Apache and Go explain it, others send an alert, or close the
/// connection with or without reading the request.
#[tokio::test]
async fn http_to_a_port_with_tls_is_a_failure_of_tls() {
    let refusal = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno".as_slice();
    for (answer, reads) in [(refusal, true), (b"\x15\x03\x03\x00\x02\x02\x46", true), (b"", true), (b"", false)] {
        for has_tls in [true, false] {
            let connections = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&connections);
            let server = Server::raw(move |mut stream| {
                count.fetch_add(1, SeqCst);
                let mut begin = [0];
                let is_handshake = stream.peek(&mut begin).is_ok() && begin == [0x16];
                if is_handshake && has_tls {
                    let _ = stream.write_all(b"\x15\x03\x03\x00\x02\x02\x28");
                    crate::server::hold(&mut stream);
                } else {
                    if reads {
                        read_head(&mut stream);
                    }
                    let _ = stream.write_all(answer);
                }
            });
            let client = client(quick());
            let result = get(&client, &server.url("/")).await;
            let said = format!("{answer:?} {has_tls}: {result:?}");
            if has_tls || answer.starts_with(b"\x15") {
                let error = result.unwrap_err();
                assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{said}");
                assert!(error.to_string().contains("write the address with https://"), "{said}");
            } else {
                assert_ne!(result.err().map(|error| error.code()), Some("net.tls"), "{said}");
                let before = connections.load(SeqCst);
                let _ = get(&client, &server.url("/")).await;
                assert_eq!(connections.load(SeqCst), before + 1, "tested once: {said}");
            }
        }
    }
}

#[tokio::test]
async fn body_of_unknown_length_cut_under_tls_is_truncated() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let said = "HTTP/1.1 200 OK\r\n\r\nsome".to_owned();
    let server = authority.server("museum.example", false, said.clone(), true);
    assert_eq!(fetch(authority.trusted(folder.path(), &server)).await.unwrap(), b"some");
    let server = authority.server("museum.example", false, said, false);
    assert_eq!(fetch(authority.trusted(folder.path(), &server)).await.unwrap_err().code(), "http.truncated");
}

#[tokio::test]
async fn redirect_from_https_to_http_is_refused_unless_allowed() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let plain = Server::saying(ok("plain"));
    let server = authority.server("museum.example", false, redirect("302 Found", &plain.url("/")), true);
    let options = authority.trusted(folder.path(), &server);
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
        let options = Options {
            extra_roots: Some(path.clone()),
            connect_to: vec![("museum.example:443".into(), server.address())],
            ..quick()
        };
        let error = fetch(options).await.unwrap_err();
        assert_eq!(error.code(), "net.tls");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

fn pin_of(key: &KeyPair) -> String {
    base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(key.subject_public_key_info()))
}

/// A server with a certificate that nobody vouches for, under another name, long expired.
fn self_signed(key: &KeyPair, name: &str) -> Server {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2019, 1, 1);
    params.not_after = date_time_ymd(2020, 1, 1);
    let certificate = params.self_signed(key).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    saying_over_tls(Arc::new(config))
}

fn saying_over_tls(config: Arc<ServerConfig>) -> Server {
    Server::raw(move |stream| {
        let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
        while read_head(&mut tls).is_some() && tls.write_all(ok("secure").as_bytes()).is_ok() {}
    })
}

#[tokio::test]
async fn a_pinned_key_stands_for_a_bad_certificate_of_its_host_only() {
    let (key, other_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let server = self_signed(&key, "something.else");
    let with = |pins: &[String], host: &str| Options {
        pins: pins.iter().map(|pin| Pin::parse(pin).unwrap()).collect(),
        connect_to: vec![(format!("{host}:443"), server.address())],
        ..quick()
    };
    let right = format!("museum.example=sha256/{}", pin_of(&key));
    let wrong = format!("museum.example=sha256/{}", pin_of(&other_key));
    assert_eq!(fetch(with(std::slice::from_ref(&right), "museum.example")).await.unwrap(), b"secure");
    assert_eq!(fetch(with(&[wrong.clone(), right.clone()], "museum.example")).await.unwrap(), b"secure");
    let error = fetch(with(&[wrong], "museum.example")).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.tls", false));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains(&pin_of(&key)), "tells the key to pin: {cause}");
    assert_eq!(fetch(with(&[], "museum.example")).await.unwrap_err().code(), "net.tls");
    let elsewhere = with(&[right], "other.example");
    let error = get(&client(elsewhere), "https://other.example/").await.unwrap_err();
    assert_eq!(error.code(), "net.tls", "the pin is for another host");
}

#[tokio::test]
async fn a_trusted_certificate_with_another_key_than_the_pinned_one_is_refused() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let server = authority.server("museum.example", false, ok("x"), true);
    let pins = vec![Pin::parse(&format!("museum.example=sha256/{}", pin_of(&KeyPair::generate().unwrap()))).unwrap()];
    let options = Options { pins, ..authority.trusted(folder.path(), &server) };
    assert_eq!(fetch(options).await.unwrap_err().code(), "net.tls");
}

#[tokio::test]
async fn our_own_certificate_is_shown_to_its_server_only() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["me.example".to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    let (certificate_file, key_file) = (folder.path().join("me.pem"), folder.path().join("me.key"));
    std::fs::write(&certificate_file, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();

    let server_key = KeyPair::generate().unwrap();
    let server_certificate = CertificateParams::new(vec!["museum.example".to_owned(), "other.example".to_owned()])
        .unwrap()
        .signed_by(&server_key, &authority.issuer)
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![server_certificate.der().clone()],
            PrivateKeyDer::try_from(server_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let server = saying_over_tls(Arc::new(config));
    let mut options = authority.trusted(folder.path(), &server);
    options.connect_to.push(("other.example:443".into(), server.address()));
    options.client_certificate = Some(ClientCertificate {
        url: "https://museum.example/x".into(),
        certificate: certificate_file,
        key: key_file,
    });
    assert_eq!(fetch(options.clone()).await.unwrap(), b"secure");
    assert!(get(&client(options.clone()), "https://other.example/").await.is_err(), "it is not shown to others");
    options.client_certificate.as_mut().unwrap().key = folder.path().join("missing");
    let error = fetch(options).await.unwrap_err();
    assert_eq!(error.code(), "net.tls");
    assert!(error.to_string().contains("missing"), "{error}");
}
