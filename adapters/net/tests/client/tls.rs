//! Certificates.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use abreast_net::{Error, Options};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::{Server, ok, read_head, redirect};
use crate::{client, get, quick};

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A server that says one thing under a certificate for that name.
    fn server(&self, name: &str, expired: bool, said: String, closes_properly: bool) -> Server {
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

    fn trusted(&self, folder: &Path, server: &Server) -> Options {
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
    for (what, options) in [("unknown", unknown), ("expired", expired), ("other name", other)] {
        let error = fetch(options).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("net.tls", false), "{what}: {error}");
        assert!(error.to_string().contains("help:"));
    }
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
