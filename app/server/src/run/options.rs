//! Settings of a server, and their defaults.

use crate::connection::client::TrustedProxies;
use crate::limits::clients::{KnownClient, REQUESTS_PER_CLIENT};
use abreast_core::NodeRoles;
use abreast_net::{KeyDirectory, ServerCertificate};
use std::sync::Arc;
use std::time::Duration;

/// Limits of a server, and its trusted proxies.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Most connections at a time; if there are more, the oldest idle connection of the client with
    /// the most connections is closed.
    pub connections: usize,
    /// Time limit for a request's header, and for an idle connection.
    pub header_timeout: Duration,
    /// Time without progress after which the connection of a client that does not read its answer
    /// is closed.
    pub stall_timeout: Duration,
    /// Time limit for requests in flight when the server stops.
    pub stop_timeout: Duration,
    /// Proxies whose reports of client addresses are trusted. Default: none.
    pub trusted_proxies: TrustedProxies,
    /// The certificate, if the server speaks TLS. Its files are read again when they change.
    pub certificate: Option<Arc<ServerCertificate>>,
    /// Whether clients may use HTTP/2: chosen in the TLS handshake, or without TLS by the first bytes of a
    /// connection. Default: yes.
    pub http2: bool,
    /// Whether the paths of requests include the path of the public URL, which the server then
    /// removes. Default: no, because proxies usually remove it.
    pub strip_prefix: bool,
    /// Public keys that sign requests of copies, served at [`KeyDirectory::PATH`]. Default: none.
    pub keys: Option<KeyDirectory>,
    /// Most requests in flight of a client that is not known, 0 for no limit. Default 64. Requests from
    /// this machine, and through a proxy that does not report the address of its client, are not limited.
    pub requests_per_client: usize,
    /// Clients with a limit of their own. Default: none.
    pub known_clients: Vec<KnownClient>,
    /// Length in bytes from which files in an object store are answered by a redirect to a URL of the store
    /// that is valid for 10 minutes. Default: never.
    pub redirect_from: Option<u64>,
    /// The roles of this node: requests for another role are refused with 421. Default: all.
    pub roles: NodeRoles,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            connections: 2_048,
            header_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(8),
            trusted_proxies: TrustedProxies::default(),
            certificate: None,
            http2: true,
            strip_prefix: false,
            keys: None,
            requests_per_client: REQUESTS_PER_CLIENT,
            known_clients: Vec::new(),
            redirect_from: None,
            roles: NodeRoles::default(),
        }
    }
}
