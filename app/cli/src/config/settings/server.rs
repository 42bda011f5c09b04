//! Settings of the server, its API and its notifications.

use super::declare::{Needed, Size, Time, settings};
use super::set::{SET, SetFile};
use crate::config::faults::Origins;
use std::path::PathBuf;

settings! {
    /// The configuration file.
    FILE File "" {
        /// Address to listen on, `HOST:PORT`.
        listen: Option<String> = "127.0.0.1:8080", flag "--listen", env "ABREAST_LISTEN", restart true;
        /// Public base URL: every URL in every document starts with it. Default: `http://`, with `tls` `https://`, and the listen address.
        base_url: Option<String>, flag "--base-url", env "ABREAST_BASE_URL", restart true;
        /// Folder of the store, or the URL of a PostgreSQL database that several nodes share,
        /// `postgres://USER@HOST:PORT/NAME` ([nodes.md](nodes.md)). Default: `.abreast` in the published folder, if there is
        /// only one set.
        data: Option<PathBuf>, flag "--data", env "ABREAST_DATA", restart true;
        /// Bucket for the contents of a store in a database, `s3://BUCKET/PREFIX`. Endpoint, region and credentials come from
        /// the environment, as for copies in S3 ([sinks.md](sinks.md)).
        contents: Option<String>, flag "--contents", env "ABREAST_CONTENTS", restart true;
        /// Least size of files and dumps that are answered by a redirect to the bucket, to a URL that is valid for 10
        /// minutes ([nodes.md](nodes.md#redirects-to-the-bucket)). Default: never.
        contents_redirect: Option<Size>, restart true;
        /// Folder for temporary files of a node whose store is in a database. It may be lost at any time, and belongs to
        /// one node.
        scratch: Option<PathBuf>, flag "--scratch", env "ABREAST_SCRATCH", restart true;
        /// Name of this node, if several share a database. Default: the name of the machine.
        node: Option<String>, flag "--node", env "ABREAST_NODE", restart true;
        /// Work of this node, if several share a database: `publish`, `api`, `hub`, `watch`
        /// ([nodes.md](nodes.md#nodes-with-different-roles)). Default: all.
        roles: Option<Vec<String>>, flag "--roles", env "ABREAST_ROLES", restart true;
        /// Access to the database of `data`.
        database: Option<DatabaseFile>, table DATABASE, restart true;
        /// Proxies whose `X-Forwarded-For` is believed: addresses and networks of all proxies that write the field or
        /// append to it ([push.md](push.md)).
        trusted_proxies: Option<Vec<String>> = [], flag "--trusted-proxy", env "ABREAST_TRUSTED_PROXIES";
        /// Clients may use HTTP/2: chosen in the TLS handshake, or without TLS by a proxy that knows it
        /// ([deploying.md](deploying.md)).
        http2: Option<bool> = true, restart true;
        /// A proxy leaves the path of `base_url` in requests ([deploying.md](deploying.md)). By default it removes the
        /// path.
        strip_prefix: Option<bool> = false, restart true;
        /// TLS of the server's own, without a proxy ([deploying.md](deploying.md)).
        tls: Option<TlsFile>, table TLS, restart true;
        /// A file that gets one line for each request ([observing.md](observing.md)), or `-` for standard output. Default:
        /// none.
        access_log: Option<PathBuf>, flag "--access-log", env "ABREAST_ACCESS_LOG";
        /// The form of its lines: `combined`, as of Apache and nginx, or `json`.
        access_log_format: Option<String> = "combined", flag "--access-log-format", env "ABREAST_ACCESS_LOG_FORMAT";
        /// Second address that answers `/livez`, `/readyz`, `/metrics` and `/status`, `HOST:PORT`
        /// ([observing.md](observing.md)). An address that others reach needs `admin_token_file`.
        admin_listen: Option<String>, flag "--admin-listen", env "ABREAST_ADMIN_LISTEN", restart true;
        /// A file with the token that requests to this address need, in its first line.
        admin_token: Option<PathBuf>, key "admin_token_file", flag "--admin-token-file", env "ABREAST_ADMIN_TOKEN_FILE", restart true;
        /// Pages for administrators at `/admin` ([administration.md](administration.md)).
        admin_pages: Option<bool> = true, restart true;
        /// Files with the Ed25519 keys (PEM or JWK) that sign the requests of copies: their public parts are at
        /// `/.well-known/http-message-signatures-directory` ([deploying.md](deploying.md)).
        sign_keys: Option<Vec<PathBuf>> = [], flag "--sign-key", env "ABREAST_SIGN_KEYS", restart true;
        /// Most requests in flight of a client that is not known ([deploying.md](deploying.md)), which is an address or
        /// a /64 network of IPv6; `0` for no limit.
        requests_per_client: Option<u64> = 64, restart true;
        /// Clients with another limit.
        #[serde(default)]
        known: Vec<KnownFile>, table KNOWN, restart true;
        /// The institution that the pages for people show.
        institution: Option<InstitutionFile>, table INSTITUTION;
        /// The API.
        api: Option<ApiFile>, table API;
        /// The hub at `/hub`, and other hubs.
        hub: Option<HubFile>, table HUB, restart true;
        /// Notifications of the sets.
        notify: Option<NotifyFile>, table NOTIFY;
        /// The account that publishes change sets over XMPP.
        xmpp: Option<XmppFile>, table XMPP, restart true;
        /// Copies that `abreast sync` makes.
        #[serde(default)]
        mirror: Vec<toml::Table>;
        /// The sets to publish.
        #[serde(default)]
        set: Vec<SetFile>, table SET;
    } with {
        /// The line of each key in the file, and its errors.
        #[serde(skip)]
        pub(crate) origins: Origins,
    }
}

settings! {
    /// Access to a PostgreSQL database ([nodes.md](nodes.md)).
    DATABASE DatabaseFile "[database]" {
        /// A file with the password in its first line.
        password_file: Option<PathBuf>, restart true;
        /// A shell command that prints the password, in place of the file.
        password_command: Option<String>, restart true;
        /// A PEM file with additional trusted certificates. The connection is encrypted if the server offers it; with
        /// `sslmode=require` in the URL, always.
        ca_file: Option<PathBuf>, restart true;
        /// Time after which other nodes take over the work of a node that does not renew its lease, `2s` to `10m`.
        lease: Option<Time> = "15s", restart true;
    }
}

settings! {
    /// TLS of the server's own ([deploying.md](deploying.md)). The files are read again when they change.
    TLS TlsFile "[tls]" {
        /// A PEM file with the certificate of the server, followed by the certificates that signed it.
        cert: Option<PathBuf>, flag "--tls-cert", env "ABREAST_TLS_CERT", restart true;
        /// A PEM file with its private key.
        key: Option<PathBuf>, flag "--tls-key", env "ABREAST_TLS_KEY", restart true;
    }
}

settings! {
    /// A client that this server knows by its signature or token, with another limit
    /// ([deploying.md](deploying.md)).
    KNOWN KnownFile "[[known]]" {
        /// Name in the access log and in metrics: letters, digits, `.`, `_`, `-`.
        name: Needed<String>, restart true;
        /// A file with the public Ed25519 keys of its signatures: PEM, a JWK, or a JWK Set.
        key: Option<PathBuf>, restart true;
        /// The name of its token, of `abreast token create`.
        token: Option<String>, restart true;
        /// How many times as many requests as another client it may have in flight, 1 to 10000.
        share: Option<u64> = 10, restart true;
    }
}

settings! {
    /// The institution that the pages for people show ([web.md](web.md)).
    INSTITUTION InstitutionFile "[institution]" {
        /// Name of the institution, at the top of each page.
        name: Option<String>;
        /// URL of the institution's own site.
        url: Option<String>;
        /// URL of an image, shown 40 pixels high at the top of each page.
        logo: Option<String>;
        /// Contact at the bottom of each page: a mail address or the URL of a page.
        contact: Option<String>;
        /// Colour of links and buttons, with a contrast of at least 4.5 to white; dark pages use a lighter variant.
        accent: Option<String> = "#1f4e79";
    }
}

settings! {
    /// The API under `/api/v1` ([api.md](api.md)).
    API ApiFile "[api]" {
        /// Accept changes. On a public address this requires a token: `abreast token create`.
        write: Option<bool> = false, flag "--api-write", env "ABREAST_API_WRITE";
        /// Who may read: `anyone`, or only clients with a `token`.
        read: Option<String> = "anyone";
        /// Largest uploaded content.
        max_content: Option<Size> = "1GiB";
    }
}

settings! {
    /// The hub at `/hub`, and other hubs ([push.md](push.md)).
    HUB HubFile "[hub]" {
        /// Run the built-in hub.
        enabled: Option<bool> = true, flag "--no-hub";
        /// URLs of other hubs, listed in the documents and sent every notification.
        #[serde(default)]
        hubs: Vec<String> = [], flag "--hub";
        /// Submission to other hubs: `content` sends each notification, `form` only reports that the topic changed.
        submit: Option<String> = "content";
        /// Accept topics of anyone. Their notifications are checked against the topics' own hosts.
        open: Option<bool> = false;
        /// Accept topics whose URLs start with one of these, in addition to the topics of the sets and of publishers with a
        /// token.
        #[serde(default)]
        allow_topics: Vec<String> = [];
        /// Callbacks that cannot confirm a subscription, by their exact URLs: receivers of ResourceSync 0.1. They receive
        /// notifications for as long as they are listed here.
        #[serde(default)]
        trusted_callbacks: Vec<String> = [];
        /// Allow callbacks on this machine or in its network. Default: only while the server listens on this machine
        /// alone and `base_url` is on this machine, because behind a proxy strangers can subscribe.
        private_callbacks: Option<bool>;
        /// Signature method of deliveries: `sha1`, `sha256`, `sha384` or `sha512`.
        signature: Option<String> = "sha256";
        /// Lease of subscriptions that request none, `5m` to `31d`.
        lease: Option<Time> = "10d";
        /// How long notifications are stored; twice as long while targets need them.
        keep: Option<Time> = "7d";
        /// A PEM file with additional trusted certificates, of callbacks, topics and other hubs.
        ca_file: Option<PathBuf>;
        /// Redirect subscribers to this hub.
        redirect: Option<String>;
        /// The redirect is permanent.
        redirect_permanent: Option<bool> = false;
    }
}

settings! {
    /// Notifications of the sets ([push.md](push.md)).
    NOTIFY NotifyFile "[notify]" {
        /// Publish notifications.
        enabled: Option<bool> = true, restart true;
        /// The longest pause between two notifications while changes continue; after a single change, a tenth.
        debounce: Option<Time> = "200ms";
        /// Changes in one notification, 1 to 50000.
        most: Option<u32> = 1000;
        /// Time between notifications that the open Change List grew; `0s` for never.
        open_lists: Option<Time> = "1m";
    }
}

settings! {
    /// Change sets of ResourceSync 0.1 over XMPP ([push.md](push.md)).
    XMPP XmppFile "[xmpp]" {
        /// The account that publishes, `user@example.org`.
        jid: Option<String>;
        /// A file with the password of the account in its first line.
        password_file: Option<PathBuf>;
        /// A shell command that prints the password, in place of the file.
        password_command: Option<String>;
        /// The service with the nodes. Default: `pubsub.` and the domain of the account.
        service: Option<String>;
        /// The server to connect to, `HOST:PORT`. Default: the domain of the account, port 5222.
        server: Option<String>;
        /// A PEM file with additional trusted certificates.
        ca_file: Option<PathBuf>;
        /// Most bytes of a stanza, 10000 to 2000000: less than the XMPP server accepts, often 262144.
        max_stanza: Option<Size> = 200000;
        /// Items that a new node retains, 1 to 1000. Each costs time for every change: Prosody reads and writes all items
        /// by default.
        kept_items: Option<u64> = 1;
    }
}
