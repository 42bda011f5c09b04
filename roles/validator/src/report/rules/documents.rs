//! Rules of a document as such, and of the headers that it is served with.

use crate::report::rule::Level::{Must, Practice, Recommended, Should};
use crate::report::rule::Rule;
use abreast_core::Severity::{Error, Note, Warning};

rules! {
    // The document as such.
    WELL_FORMED: "XML-2.1-well-formed", Must, Error / Error, "xml §2.1", "A document is well-formed XML",
        "write the document with an XML library";
    DOCTYPE: "XML-2.8-doctype", Practice, Error / Error, "xml §2.8", "A document has no DOCTYPE, though XML permits one",
        "leave the DTD and its entities out: readers refuse the document, since entities expand without bounds";
    UTF_8: "XML-4.3.3-utf-8", Practice, Error / Error, "xml §4.3.3", "A document is in UTF-8, or in UTF-16 with a byte order mark, though XML permits other encodings",
        "save the document as UTF-8, and declare that";
    SITEMAP_UTF_8: "SITEMAP-utf-8", Must, Error / Error, "sitemap", "A Sitemap is in UTF-8",
        "save the document as UTF-8, and declare that";
    ROOT: "RS-7-root", Must, Error / Error, "rs-core §7", "The root is `urlset` or `sitemapindex` in the Sitemap namespace",
        "use the namespace http://www.sitemaps.org/schemas/sitemap/0.9 for `urlset` and `sitemapindex`";
    MD: "RS-7-md", Must, Error / Error, "rs-core §7", "A document has an `rs:md` with its capability",
        "add `<rs:md capability=\"…\"/>` as a child of the root, in the namespace http://www.openarchives.org/rs/terms/";
    MD_ONCE: "RS-7-md-once", Must, Error / Warning, "rs-core §7", "There is one `rs:md` at most in one place",
        "put all attributes on one `rs:md`";
    MD_FIRST: "RS-7-md-first", Practice, Warning / Note, "rs-core §7", "`rs:md` and `rs:ln` of a document come before its entries",
        "write them first: readers that stream refuse the document otherwise";
    READ: "RS-7-read", Practice, Error / Error, "rs-core §7", "Readers that stream, such as `abreast sync`, read the document to its end",
        "correct the place, or split the document: copies refuse it";
    CAPABILITY: "RS-7-capability", Must, Error / Error, "rs-core §7", "The `rs:md` of a document has a `capability`",
        "add `capability`, without a prefix, with one of the defined values";
    CAPABILITY_VALUE: "RS-7-capability-value", Must, Error / Warning, "rs-core §7", "`capability` has a defined value, in lower case",
        "use description, capabilitylist, resourcelist, resourcedump, resourcedump-manifest, changelist, changedump, changedump-manifest, change-notification or framework-notification";
    PREFIX: "RS-7-prefix", Must, Error / Error, "rs-core §7", "Attributes of `rs:md` and `rs:ln` have no namespace prefix",
        "write `capability=…`, not `rs:capability=…`";
    ATTRIBUTES: "RS-7-attributes", Must, Error / Note, "rs-core §7", "Attributes that are not ResourceSync's are in a namespace of their own",
        "remove the attribute, or declare a namespace for it and use its prefix";
    ELEMENTS: "RS-7-elements", Must, Error / Warning, "rs-core §7", "The elements are those of the Sitemap formats and ResourceSync, each in its place",
        "`urlset` has `url`, `sitemapindex` has `sitemap`; other elements need a namespace of their own";
    TEXT: "RS-7-text", Must, Warning / Warning, "rs-core §7", "Between elements there is no text",
        "remove it, or write the element that it should be: readers ignore the text";
    LOC: "RS-7-loc", Must, Error / Error, "rs-core §7", "Each entry has one `loc` with a URI",
        "give each `url` and `sitemap` exactly one `loc`";
    LOC_SPACE: "RS-7-loc-space", Must, Warning / Note, "rs-core §7", "`loc` has no no-break spaces or byte order marks around its URI",
        "remove them: copies read the URI without them, and other readers request another resource";
    URI: "RS-7-uri", Must, Error / Warning, "rs-core §7", "`loc` and `href` are absolute URIs of allowed characters, with a host if they are HTTP(S)",
        "write the whole URI with its scheme, and percent-encode other characters";
    URI_NORMAL: "RS-7-uri-normal", Practice, Note / Note, "rfc3986 §6.2.2", "URIs are in normal form: two spellings are two resources",
        "write host and scheme in lower case, no default port, no dot segments, no fragment, `%XX` in upper case";
    SITEMAP_LOC: "SITEMAP-loc", Must, Warning / Note, "sitemap", "`loc` has less than 2,048 characters",
        "give the resource a shorter URI: readers of Sitemaps leave the entry out";
    SITEMAP_PRIORITY: "SITEMAP-priority", Must, Warning / Note, "sitemap", "`priority` is a number from 0.0 to 1.0",
        "leave it out: ResourceSync does not use it";
    ITEMS: "RS-7-items", Must, Error / Warning, "rs-core §7", "A document has 50,000 entries at most",
        "split the document and publish an index";
    SIZE: "RS-7-size", Must, Error / Warning, "rs-core §7", "A document has 50 MB at most, unpacked",
        "split the document and publish an index";
    DATETIME: "RS-7-datetime", Must, Error / Error, "rs-core §7", "Datetimes are W3C Datetimes",
        "write for example 2026-01-31T09:00:00Z";
    DATETIME_UTC: "RS-7-datetime-utc", Recommended, Note / Note, "rs-core §7", "Datetimes are complete and in UTC",
        "write seconds and `Z`: YYYY-MM-DDThh:mm:ssZ";
    DATETIME_FORM: "RS-7-datetime-form", Must, Warning / Note, "rs-core §7, w3c-datetime", "Datetimes have `T` and `Z` as capital letters, and seconds up to 59",
        "write for example 2026-01-31T09:00:00Z: some readers accept nothing else";
    FUTURE: "RS-7-future", Practice, Warning / Note, "rs-core §7", "Times are not in the future",
        "write the time at which it happened, in UTC: readers that continue from a later time miss the changes until then";
    CHANGEFREQ: "RS-7-changefreq", Must, Error / Note, "rs-core §7", "`changefreq` has a defined value",
        "use always, hourly, daily, weekly, monthly, yearly or never";
    COMPLETED: "RS-7-completed", Must, Error / Note, "rs-core §7", "`completed` is not before `at`",
        "`at` is the start of the snapshot, `completed` its end";
    INTERVAL: "RS-7-interval", Must, Error / Note, "rs-core §7", "`until` is not before `from`",
        "`from` is where the interval begins, `until` where it ends";
    DATETIME_RANGE: "RS-7-datetime-range", Must, Error / Warning, "rs-core §7", "`datetime` of a change is between `from` and `until`",
        "put the change into the list of its time, or correct the list's interval";
    HREF: "RS-7-href", Must, Error / Warning, "rs-core §7", "Each `rs:ln` has an `href`",
        "add the URI of the related document or resource";
    REL: "RS-7-rel", Must, Error / Warning, "rs-core §7", "Each `rs:ln` has a `rel`",
        "add the relation type";
    REL_REGISTERED: "RS-7-rel-registered", Must, Error / Note, "rs-core §7", "Relation types are registered, or URIs",
        "use a type of the IANA link relation registry, or a URI of your own";
    PRI: "RS-7-pri", Must, Error / Note, "rs-core §7", "`pri` is a number from 1 to 999,999",
        "1 is the highest priority; leave it out for the lowest";
    HASH: "RS-7-hash", Must, Error / Note, "rs-core §7", "`hash` is a list of `algorithm:digest` in hex",
        "write for example md5:1e0d5cb8ef6ba40c99b14c0237be735e, several separated by blanks";
    HASH_ONCE: "RS-7-hash-once", Practice, Warning / Note, "rs-core §7", "`hash` has one digest of each algorithm",
        "leave out the digest that is not of the bytes delivered: readers compare with one of them";
    HASH_ALGORITHM: "RS-7-hash-algorithm", Practice, Note / Note, "rs-core §7", "Digests are of an algorithm that readers know",
        "add md5, sha-1, sha-256 or sha-512";
    LENGTH: "RS-7-length", Must, Error / Error, "rs-core §7", "`length` is a number of bytes",
        "write the number without sign and unit";
    TYPE: "RS-7-type", Must, Error / Note, "rs-core §7", "`type` is a media type",
        "write type/subtype as registered, for example application/pdf";
    ENCODING: "RS-7-encoding", Must, Error / Note, "rs-core §7", "`encoding` is a list of content codings",
        "write the value of Content-Encoding, for example gzip, or leave it out";
    PATH_ONLY: "RS-7-path-only", Must, Error / Note, "rs-core §7", "`path` is used in manifests only",
        "remove it: only bitstreams in a package have a path";
    CHANGE_ONLY: "RS-7-change-only", Must, Error / Note, "rs-core §7", "`change` and `datetime` are used in Change Lists, Change Dump Manifests and notifications only",
        "remove them, or publish a Change List";
    DELETED: "RS-7-deleted", Should, Warning / Note, "rs-core §7", "A deletion has no attributes of a representation",
        "remove hash, length, type, encoding and path: there is nothing they could describe";
    AT: "RS-A-at", Must, Error / Error, "rs-core §A", "Resource Lists, Resource Dumps, their indexes and manifests have `at`",
        "add the time at which the snapshot began";
    FROM: "RS-A-from", Must, Error / Error, "rs-core §A", "Change Lists, Change Dumps, their indexes and manifests have `from`",
        "add the time since which all changes are included";
    FROM_CHILD: "RS-A-from-child", Recommended, Note / Note, "rs-core §A", "Entries of Change List Indexes, Change Dumps and their indexes have `from`",
        "add the interval of the list or package to its entry";
    TIME_FORBIDDEN: "RS-A-forbidden", Must, Error / Note, "rs-core §A", "Attributes of time are used where the table allows them",
        "snapshots have `at` and `completed`, changes have `from` and `until`; entries for resources have neither";

    // HTTP headers.
    AVAILABLE: "RS-10.1-available", Must, Error / Warning, "rs-core §10.1", "Listed resources can be fetched",
        "take the resource out of the list, or make it available";
    LENGTH_EQUAL: "RS-7-length-equal", Should, Warning / Note, "rs-core §7", "`length` equals Content-Length",
        "let the server state the same Content-Length";
    LENGTH_TRUE: "RS-7-length-true", Must, Error / Error, "rs-core §7", "`length` is the number of bytes delivered",
        "publish the lists again after the resource changed";
    HASH_TRUE: "RS-7-hash-true", Must, Error / Error, "rs-core §7", "`hash` is the digest of the bytes delivered",
        "publish the lists again after the resource changed";
    TYPE_TRUE: "RS-7-type-true", Must, Warning / Note, "rs-core §7", "`type` is the media type delivered",
        "let server and list agree";
    ENCODING_TRUE: "RS-7-encoding-true", Should, Warning / Note, "rs-core §7", "`encoding` equals Content-Encoding",
        "let server and list agree";
    LASTMOD_TRUE: "RS-7-lastmod-true", Practice, Note / Note, "rs-core §7", "`lastmod` is Last-Modified",
        "let server and list agree";
    CONTENT_TYPE: "HTTP-8.3-content-type", Practice, Note / Note, "rfc9110 §8.3", "Documents are delivered as XML",
        "answer with Content-Type: application/xml";
    ETAG: "HTTP-8.8.3-etag", Practice, Note / Note, "rfc9110 §8.8", "Documents have an ETag or Last-Modified",
        "add one: polling readers then need not fetch unchanged documents";
    CONDITIONAL: "HTTP-13.1-conditional", Practice, Note / Note, "rfc9110 §13.1", "Unchanged documents are answered with 304 when asked so",
        "let the server honour If-None-Match and If-Modified-Since";
    GZIP: "HTTP-8.4.1-gzip", Practice, Note / Note, "rfc9110 §8.4.1", "Large documents are packed when asked so",
        "switch on gzip for application/xml: lists shrink to a tenth";
    REDIRECT: "HTTP-15.4-redirect", Practice, Note / Note, "rfc9110 §15.4", "Links lead to documents without redirects",
        "link to the final address";
}
