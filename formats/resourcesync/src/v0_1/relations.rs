//! Relation types and protocols of links.

/// Relation type of change sets, together with `current` or `prev` [rs-0.1 §5.1, §6.1].
pub const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";
/// Relation type of a dump [rs-0.1 §4.2].
pub const DUMP: &str = "http://www.openarchives.org/rs/dump";
/// Relation type of the same content elsewhere, together with `alternate` [rs-0.1 §4.3.1].
pub const MIRROR: &str = "http://www.openarchives.org/rs/mirror";
/// Relation type of partial content [rs-0.1 §4.3.2].
pub const PARTIAL: &str = "http://www.openarchives.org/rs/partial";
/// Relation type of a Sitemap, in `Link` headers, pages and host-meta. The specification does not
/// define one; this is the usual one.
pub const SITEMAP: &str = "sitemap";
/// Relation type of a category [rs-0.1 §3.1.7].
pub const SUBJECT: &str = "DCTERMS.subject";
/// Name of a category that is not a URI [rs-0.1 §3.1.7].
pub const SUBJECT_NAME: &str = "DC.subject";
/// `rs:protocol` of XMPP PubSub [rs-0.1 §5.2.1].
pub const XMPP_PROTOCOL: &str = "http://xmpp.org/extensions/xep-0060.html";
/// `rs:protocol` of an OAI-PMH base URL [rs-0.1 §4.3.3].
pub const OAI_PMH_PROTOCOL: &str = "http://www.openarchives.org/OAI/openarchivesprotocol.html";
/// `rs:protocol` of a subscription by HTTP callback [rs-0.1 §5.2.2]. The specification has an
/// example only; this URI is ours.
pub const CALLBACK_PROTOCOL: &str = "urn:abreast:resourcesync-0.1:callback";
