//! TLS of a server: its certificate, read again when the files change, and connections with and
//! without TLS as one type.

use std::fs::Metadata;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::address::error::{Error, ErrorKind};

/// First byte of a TLS record with a handshake, in RFC 8446 §5.1.
const HANDSHAKE: u8 = 22;

/// The names of the protocols in the TLS handshake [rfc9113 §3.1].
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The answer to HTTP without TLS, which ends with the connection.
const NO_TLS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Connection: close\r\n\r\nthis port speaks HTTPS: write the URL with https://\n";

/// The certificate of a server with its key. Connections use the files as they were read last.
#[derive(Debug)]
pub struct ServerCertificate {
    certificate: PathBuf,
    key: PathBuf,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    /// For HTTP/1.1 alone.
    http1: Arc<ServerConfig>,
    /// For HTTP/2 and HTTP/1.1.
    http2: Arc<ServerConfig>,
    /// The files' identity when they were read; `None` if it is unknown.
    files: Option<[FileState; 2]>,
}

/// Fields of a file that differ after it was replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl ServerCertificate {
    /// Reads PEM files: the certificate with the certificates that signed it, and its private key.
    /// They may be the same file.
    ///
    /// # Errors
    /// A file cannot be read, has no certificate or no key, or they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let loaded = load(certificate, key)?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            loaded: Mutex::new(loaded),
        })
    }

    /// Reads the files again if they changed, for later connections; returns whether they did.
    ///
    /// # Errors
    /// As for [`Self::read`]. The server continues with the former certificate.
    pub fn reread(&self) -> Result<bool, Error> {
        let files = states(&self.certificate, &self.key);
        if files.is_some() && files == self.lock().files {
            return Ok(false);
        }
        match load(&self.certificate, &self.key) {
            Ok(loaded) => {
                *self.lock() = loaded;
                Ok(true)
            }
            Err(error) => {
                // Reported once for each state of the files.
                self.lock().files = files;
                Err(error)
            }
        }
    }

    /// Answers the handshake of a client, which may choose HTTP/2 if `http2` allows it. To a client that
    /// speaks HTTP without TLS, it sends an explanation.
    ///
    /// # Errors
    /// The handshake failed, or the connection broke.
    pub async fn accept(&self, mut stream: TcpStream, http2: bool) -> io::Result<ServerStream> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
            if first[0].is_ascii_uppercase() {
                stream.write_all(NO_TLS.as_bytes()).await?;
                stream.shutdown().await?;
            }
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not use TLS"));
        }
        let acceptor = {
            let loaded = self.lock();
            TlsAcceptor::from(Arc::clone(if http2 { &loaded.http2 } else { &loaded.http1 }))
        };
        Ok(ServerStream::Tls(Box::new(acceptor.accept(stream).await?)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Loaded, Error> {
    // Before the files are read, so that a change during the read is found later.
    let files = states(certificate, key);
    let unusable = |path: &Path, what: &str, cause: &dyn std::fmt::Display, help: &'static str| {
        let message = format!("cannot use {what} in `{}`: {cause}", path.display());
        Error::new(ErrorKind::Tls, "", message).with_help(help)
    };
    let no_certificate = |cause: &dyn std::fmt::Display| {
        unusable(
            certificate,
            "the certificate",
            cause,
            "give a PEM file that begins with the server's certificate, followed by those that signed it",
        )
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|cause| no_certificate(&cause))?;
    if chain.is_empty() {
        return Err(no_certificate(&"the file has no certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|cause| {
        let help = match &cause {
            rustls::pki_types::pem::Error::Io(_) => {
                "the user of the server must be allowed to read it"
            }
            _ => "give a PEM file with an unencrypted private key",
        };
        unusable(key, "the private key", &cause, help)
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|cause| no_certificate(&cause))?;
    config.alpn_protocols = vec![HTTP1.to_vec()];
    let http1 = Arc::new(config.clone());
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Loaded { http1, http2: Arc::new(config), files })
}

fn states(certificate: &Path, key: &Path) -> Option<[FileState; 2]> {
    use std::os::unix::fs::MetadataExt as _;
    let state = |path: &Path| -> Option<FileState> {
        let found: Metadata = path.metadata().ok()?;
        Some(FileState {
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    };
    Some([state(certificate)?, state(key)?])
}

/// The connection of a client, with or without TLS.
#[derive(Debug)]
pub enum ServerStream {
    /// A connection without TLS, such as from a proxy.
    Plain(TcpStream),
    /// With TLS, whose state is much larger.
    Tls(Box<TlsStream<TcpStream>>),
}

impl ServerStream {
    /// Whether the client and the server chose HTTP/2 in the TLS handshake.
    pub fn chose_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(HTTP2),
        }
    }

    /// The TCP connection that carries the bytes.
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// Calls a method of the stream that there is.
macro_rules! of_stream {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            ServerStream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            ServerStream::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        of_stream!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self, stream => stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self, stream => stream.poll_shutdown(cx))
    }
}
