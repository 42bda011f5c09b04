//! Certificates for tests, and servers that use them.

use crate::servers::http::{Server, read_head};
use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PublicKeyData as _, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use sha2::Digest as _;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key.
pub struct Certificate {
    der: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

/// The authority of a new key.
impl Default for Authority {
    fn default() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Of another name than the certificates: OpenSSL takes those for self-signed otherwise.
        params.distinguished_name.push(DnType::CommonName, "an authority of tests");
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

impl Authority {
    /// Its own certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate of servers with these names.
    pub fn server(&self, names: &[&str], is_expired: bool) -> Certificate {
        self.sign(&params(names, is_expired))
    }

    /// A certificate of a client.
    pub fn client(&self, name: &str) -> Certificate {
        let mut params = params(&[name], false);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Certificate { der: signed.der().clone(), pem: signed.pem(), key }
    }
}

impl Certificate {
    /// A certificate that is signed by its own key: of an authority, as `openssl req -x509` makes
    /// it, or without that mark.
    pub fn self_signed(name: &str, is_authority: bool, is_expired: bool) -> Self {
        let mut params = params(&[name], is_expired);
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let signed = params.self_signed(&key).unwrap();
        Self { der: signed.der().clone(), pem: signed.pem(), key }
    }

    /// The certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Its private key.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// The digest of its public key, as pins state it: SHA-256 in base64.
    pub fn pin(&self) -> String {
        base64::engine::general_purpose::STANDARD
            .encode(sha2::Sha256::digest(self.key.subject_public_key_info()))
    }

    /// A server that answers every request with the same bytes, until an answer states no length.
    pub fn serve(&self, answer: impl Into<String>) -> Server {
        serve(self.config(None), answer.into(), true)
    }

    /// The same, except that connections end without notice, as if they were cut.
    pub fn serve_and_cut(&self, answer: impl Into<String>) -> Server {
        serve(self.config(None), answer.into(), false)
    }

    /// The same as [`Certificate::serve`], for clients with a certificate of that authority only.
    pub fn serve_clients_of(&self, authority: &Authority, answer: impl Into<String>) -> Server {
        serve(self.config(Some(authority)), answer.into(), true)
    }

    /// A server that answers, with TLS and without, what the one at an address answers.
    pub fn serve_for(&self, behind: SocketAddr) -> Server {
        let config = self.config(None);
        Server::raw(move |mut stream| {
            let mut first = [0];
            // The type of a TLS handshake.
            if stream.peek(&mut first).is_ok() && first == [22] {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut tls = StreamOwned::new(connection, stream);
                pass_on(&mut tls, behind);
                tls.conn.send_close_notify();
                let _ = tls.flush();
            } else {
                pass_on(&mut stream, behind);
            }
        })
    }

    /// Settings of a server that speaks these protocols, the preferred one first.
    pub fn speaking(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let mut config = Arc::unwrap_or_clone(self.config(None));
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    fn config(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots
                    .add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap())
                    .unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .unwrap();
                config.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        Arc::new(config.with_single_cert(vec![self.der.clone()], key).unwrap())
    }
}

fn params(names: &[&str], is_expired: bool) -> CertificateParams {
    let mut params =
        CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
            .unwrap();
    if is_expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    params
}

/// Answers requests without bodies as the server at an address does.
fn pass_on(stream: &mut (impl Read + Write), behind: SocketAddr) {
    while let Some(head) = read_head(stream) {
        let mut answer = Vec::new();
        let answered = TcpStream::connect(behind).and_then(|mut to| {
            to.write_all(head.as_bytes())?;
            // It answers, and closes the connection.
            to.shutdown(Shutdown::Write)?;
            to.read_to_end(&mut answer)
        });
        let sent = answered.and_then(|_| stream.write_all(&answer)).and_then(|()| stream.flush());
        if sent.is_err() {
            return;
        }
    }
}

fn serve(config: Arc<ServerConfig>, answer: String, closes_properly: bool) -> Server {
    Server::raw(move |stream| {
        let mut tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        while read_head(&mut tls).is_some() {
            let is_sent = tls.write_all(answer.as_bytes()).and_then(|()| tls.flush()).is_ok();
            if !is_sent || !answer.contains("Content-Length") {
                break;
            }
        }
        if closes_properly {
            tls.conn.send_close_notify();
            let _ = tls.flush();
        }
    })
}
