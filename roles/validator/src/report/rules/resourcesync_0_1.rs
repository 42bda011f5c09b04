//! Rules of ResourceSync 0.1.

use crate::report::rule::Level::{Must, Practice, Recommended, Should};
use crate::report::rule::Rule;
use abreast_core::Severity::{Error, Note, Warning};

rules! {
    // ResourceSync 0.1.
    A_ROOT: "RS01-3.1-root", Must, Error / Error, "rs-0.1 §3.1, §3.2", "The root is `urlset` or `sitemapindex` in the Sitemap namespace, and its entries are its own",
        "write `url` in `urlset` and `sitemap` in `sitemapindex`; documents of other versions have other addresses";
    A_PREFIX: "RS01-1.2-prefix", Must, Error / Warning, "rs-0.1 §1.2, §3.1.3", "Attributes of ResourceSync have its prefix, `type` of `rs:fixity` has none",
        "write `rs:type`, `rs:protocol` and `rs:pubsubnode` (readers that ignore `type` take a change set for a Sitemap), and `type` of `rs:fixity`";
    A_REACHABLE: "RS01-2.1-reachable", Must, Error / Error, "rs-0.1 §2.1", "What documents link to can be fetched",
        "correct the link, or publish what it leads to";
    A_MODIFIED: "RS01-3.1-modified", Recommended, Note / Note, "rs-0.1 §3.1, §3.2, §5.1", "A document has its time: `DCTERMS.modified`",
        "add `<xhtml:meta name=\"DCTERMS.modified\" content=\"…\"/>`";
    A_MODIFIED_VALUE: "RS01-3.1-modified-value", Must, Error / Warning, "rs-0.1 §3.1, §5.1", "`DCTERMS.modified` is a W3C Datetime",
        "write for example 2026-01-31T09:00:00Z";
    A_READ: "RS01-3.1-read", Practice, Error / Error, "rs-0.1 §3.1", "Readers that stream, such as `abreast sync`, read the document to its end",
        "correct the place; `abreast sync --lenient` may read it meanwhile";
    A_TEXT: "RS01-3.1-text", Practice, Warning / Warning, "rs-0.1 §3.1", "Between elements there is no text",
        "remove it, or write the element that it should be";
    A_ORDER: "RS01-3.1-order", Practice, Warning / Note, "rs-0.1 §3.1", "`xhtml:link` and `xhtml:meta` of a document come before its entries",
        "write them first: readers that stream use them before the entries";
    A_VALUE: "RS01-3.1-value", Must, Error / Warning, "rs-0.1 §3.1", "Elements of an entry have a value, and occur once if they are not repeatable",
        "write each of them once, or leave it out";
    A_LOC: "RS01-3.1.1-loc", Must, Error / Error, "rs-0.1 §3.1.1", "Each entry has one `loc` with a URI",
        "give each `url` and `sitemap` exactly one `loc`, without white space around the URI";
    A_URI: "RS01-3.1.1-uri", Must, Error / Warning, "rs-0.1 §3.1.1", "`loc` is an absolute URI of allowed characters",
        "write the whole URI with its scheme, and percent-encode other characters";
    A_ONCE: "RS01-3.1.1-once", Practice, Warning / Note, "rs-0.1 §3.1.1", "A Sitemap and its index list each URI once",
        "remove the second entry: readers use one of them";
    A_DATETIME: "RS01-3.1.2-datetime", Must, Error / Error, "rs-0.1 §3.1.2", "Times are W3C Datetimes, with a zone",
        "write for example 2026-01-31T09:00:00Z";
    A_FUTURE: "RS01-3.1.2-future", Practice, Warning / Note, "rs-0.1 §3.1.2, §5.1", "Times are not in the future, and changes not later than `DCTERMS.modified` of their set",
        "write the time at which it happened, in UTC: readers that continue from a later time miss the changes until then";
    A_TIME: "RS01-3.1.2-time", Recommended, Note / Note, "rs-0.1 §3.1.2", "An entry has its time",
        "add `lastmod`: readers must fetch every resource otherwise";
    A_EXPIRES: "RS01-3.1.2-expires", Must, Error / Warning, "rs-0.1 §3.1", "`expires` is in the past",
        "state deletions after they happened";
    A_FIXITY: "RS01-3.1.3-fixity", Must, Error / Warning, "rs-0.1 §3.1.3", "`rs:fixity` has a `type` of md5, sha-1 or sha-256 and a digest in base64",
        "write for example <rs:fixity type=\"md5\">1B2M2Y8AsgTpgAmY7PhCfg==</rs:fixity>: the type in lower case, the bytes of the digest in base64";
    A_SIZE: "RS01-3.1.4-size", Must, Error / Warning, "rs-0.1 §3.1.4", "`rs:size` is a number of bytes",
        "write the value of Content-Length, in digits only";
    A_MIMETYPE: "RS01-3.1.5-mimetype", Must, Error / Warning, "rs-0.1 §3.1.5", "`rs:mimetype` is a media type",
        "write the value of Content-Type";
    A_ENCODING: "RS01-3.1.6-encoding", Must, Error / Warning, "rs-0.1 §3.1.6", "`rs:contentencoding` is a list of content codings",
        "write the value of Content-Encoding, for example gzip";
    A_LINK: "RS01-3.1.7-link", Must, Error / Warning, "rs-0.1 §3.1.7, §5.2.1", "`xhtml:link` has `href`, and `rel` or `rs:protocol`; `xhtml:meta` has `name` and `content`",
        "add what is missing: readers ignore the element otherwise";
    A_ITEMS: "RS01-3.2-items", Must, Error / Warning, "rs-0.1 §3.2", "A document has 50,000 entries at most",
        "split the Sitemap and publish an index; close the change set earlier";
    A_BYTES: "RS01-3.2-bytes", Must, Error / Warning, "rs-0.1 §3.2", "A document has 10 MB at most, unpacked",
        "split the Sitemap and publish an index; close the change set earlier";
    A_INDEX: "RS01-3.2-index", Must, Error / Error, "rs-0.1 §3.2", "The entries of an index are Sitemaps",
        "list each Sitemap itself, and no index or change set";
    A_EMPTY: "RS01-3.2-empty", Practice, Warning / Note, "rs-0.1 §3.2", "An index has a Sitemap",
        "publish a Sitemap, which may be empty: there is nothing that can be read";
    A_INDEX_TIME: "RS01-3.2-time", Must, Error / Warning, "rs-0.1 §3.2", "`lastmod` of an index is not later than the Sitemap's own time",
        "publish the Sitemap before its index";
    A_CATEGORIES: "RS01-3.2-categories", Must, Error / Warning, "rs-0.1 §3.2", "The categories of a Sitemap in an index are those of its resources",
        "aggregate them again: readers skip Sitemaps whose categories they do not want";
    A_CATEGORIES_MISSING: "RS01-3.2-categories-missing", Practice, Note / Note, "rs-0.1 §3.2", "An index has the categories of its Sitemaps",
        "aggregate them: readers must fetch all Sitemaps otherwise";
    A_MANIFEST: "RS01-4.2.1-manifest", Must, Error / Error, "rs-0.1 §4.2, §4.2.1", "A dump has a manifest.xml",
        "put it at the top level of the ZIP file, or into a record `resource` of the WARC file whose URI ends with its name";
    A_PATH_MISSING: "RS01-4.2.1-path-missing", Must, Error / Error, "rs-0.1 §4.2.1", "Each entry of a manifest has `rs:path`",
        "add the path of the member in the dump";
    A_PATH: "RS01-4.2.1-path", Must, Error / Error, "rs-0.1 §4.2.1", "`rs:path` is a relative path in the dump, and each is named once",
        "write the member's name: without a slash at its beginning, `..` and backslashes";
    A_MEMBERS: "RS01-4.2.1-members", Must, Error / Warning, "rs-0.1 §4.2.1", "The members of a dump are those of its manifest",
        "write the manifest from the members, and the dump to its end";
    A_MEMBER_TRUE: "RS01-4.2.1-true", Must, Error / Error, "rs-0.1 §4.2.1, §3.1.3, §3.1.4", "Members have the size and the digests that the manifest states",
        "compute them from the bytes in the dump";
    A_MIRROR: "RS01-4.3.1-mirror", Must, Error / Note, "rs-0.1 §4.3.1", "A mirror has the relations `alternate` and `…/rs/mirror`",
        "write rel=\"alternate http://www.openarchives.org/rs/mirror\"";
    A_PLACE: "RS01-4.3.2-place", Must, Error / Warning, "rs-0.1 §4.3.1, §4.3.2", "Mirrors are of a resource, partial content is of a creation or update in a change set",
        "link to it from the `url` of the change";
    A_PARTIAL: "RS01-4.3.2-protocol", Must, Error / Warning, "rs-0.1 §4.3.2", "Partial content has `rs:protocol`",
        "state the format, for example https://www.iana.org/assignments/media-types/application/json-patch+json";
    A_OTHERS: "RS01-4.3.3-resources", Practice, Error / Error, "rs-0.1 §4.3.3", "A Sitemap or index has resources beside addresses of other protocols, such as OAI-PMH",
        "list the resources too: copies refuse a Sitemap without any";
    A_TYPE: "RS01-5.1-type", Recommended, Warning / Note, "rs-0.1 §5.1", "The root of a change set has `rs:type=\"changeset\"`: of a document that another links to as one, that has `prev`, or with another value",
        "write it exactly so: readers take a document without it for a Sitemap";
    A_CHANGE: "RS01-5.1-change", Must, Error / Error, "rs-0.1 §5.1", "A change has either `lastmod`, with `rs:type` created or updated, or `expires`",
        "write one of them: a deletion has `expires`, every other change `lastmod`";
    A_CHANGE_TIME: "RS01-5.1-time", Practice, Warning / Note, "rs-0.1 §5.1", "A change has a time of day",
        "write for example 2026-01-31T09:00:00Z: URI and time identify a change, and readers continue from the time of the last one";
    A_CHANGE_SET: "RS01-5.1-change-set", Must, Error / Error, "rs-0.1 §5.1, §6.1", "Links of change sets lead to change sets",
        "correct the link, or write rs:type=\"changeset\" on the root";
    A_IDENTITY: "RS01-5.1-identity", Should, Warning / Note, "rs-0.1 §5.1", "Each change is once in the change sets, and its URI and time are its own",
        "give changes of one resource different times; split sets between two times";
    A_XMPP: "RS01-5.2.1-xmpp", Must, Error / Warning, "rs-0.1 §5.2.1", "A link to XMPP PubSub has an `xmpp:` URI, `rs:protocol` and `rs:pubsubnode`",
        "write for example href=\"xmpp:pubsub.example.com\" rs:protocol=\"http://xmpp.org/extensions/xep-0060.html\" rs:pubsubnode=\"changes\"";
    A_STANZA: "RS01-5.2.1-stanza", Must, Error / Warning, "rs-0.1 §5.2.1", "A change set is a document, not an XMPP stanza",
        "publish the `urlset` alone; send it inside an `iq` of `jabber:client`";
    A_CALLBACK: "RS01-5.2.2-callback", Must, Error / Warning, "rs-0.1 §5.2.2", "A link to subscriptions by callback leads to an HTTP address",
        "write the address that takes `POST` with `callbackURI`";
    A_PREV: "RS01-6.1-prev", Must, Error / Error, "rs-0.1 §6.1", "`prev` of a change set leads to one earlier set, and the chain has an end",
        "leave the link out of the first one";
    A_PREVIOUS: "RS01-6.1-previous", Must, Warning / Note, "rs-0.1 §6.1", "The link to the change set before has the relation `prev`",
        "write rel=\"prev http://www.openarchives.org/rs/changeset\": few readers know its other name, `previous`";
    A_CURRENT: "RS01-6.1-current", Should, Note / Note, "rs-0.1 §2.1, §6.1", "Change sets of a chain link to the current one",
        "add the link with rel=\"current http://www.openarchives.org/rs/changeset\"";
    A_CHAIN: "RS01-6.1-chain", Must, Error / Warning, "rs-0.1 §6.1", "A change set begins after the one before it ends",
        "split sets between two times: readers stop at the first change that they know";
    A_GAP: "RS01-6.1-gap", Should, Warning / Note, "rs-0.1 §5.1, §6.1", "Change sets of a chain have every change: no creation or deletion between two of them is missing",
        "keep every change in one of the sets: copies that follow them miss the others";
    A_CLOSED: "RS01-6.1-closed", Practice, Warning / Note, "rs-0.1 §6.1", "A change set that is not the current one does not change",
        "begin a new set for later changes";
    A_DISCOVERY: "RS01-7.1-discovery", Practice, Note / Note, "rs-0.1 §3.1, §7.1, §7.3", "robots.txt or /.well-known/host-meta names the Sitemap",
        "add a line `Sitemap: ` with its address to robots.txt";
}
