//! The table of rules, shown in `docs/validating.md`.

use crate::report::rule::Level::{Must, Practice, Recommended, Should};
use crate::report::rule::Rule;
use abreast_core::Severity::{Error, Note, Warning};

/// Rule that an error of the XML reader violates, by the code of the error.
pub(crate) fn of_syntax(code: &str) -> &'static Rule {
    match code {
        "xml.doctype" => &DOCTYPE,
        "xml.encoding" => &UTF_8,
        _ => &WELL_FORMED,
    }
}

/// As [`of_syntax`], for a document in a Sitemap format.
pub(crate) fn of_sitemap_syntax(code: &str) -> &'static Rule {
    match code {
        "xml.encoding" => &SITEMAP_UTF_8,
        other => of_syntax(other),
    }
}

macro_rules! rules {
    ($($name:ident: $id:literal, $level:ident, $severity:ident / $lenient:ident, $cites:literal, $title:literal, $help:literal;)*) => {
        $(pub(crate) static $name: Rule = Rule {
            id: $id, level: $level, severity: $severity, lenient: $lenient, cites: $cites, title: $title, help: $help,
        };)*
        /// All rules in the order of the specifications.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

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

    // Structure, navigation, discovery.
    CAPABILITY_EQUAL: "RS-6.1-capability-equal", Must, Error / Error, "rs-core §6.1", "A document is of the kind stated by the index, Capability List or Source Description that links to it",
        "give index, lists and the Capability List's entry the same `capability`";
    NO_NESTING: "RS-6.1-no-nesting", Must, Error / Error, "rs-core §6.1", "An index points to lists, not to other indexes",
        "one index holds 50,000 lists of 50,000 entries";
    LISTED_ONCE: "RS-6.1-once", Practice, Error / Warning, "rs-core §6.1, §10.2", "A Resource List Index lists each Resource List once, and not itself",
        "remove the second entry: copies refuse the index";
    NAMED_ONCE: "RS-6.1-once-other", Practice, Warning / Note, "rs-core §6.1, §11.1, §12.2, §13.1", "Other indexes and dumps list each document and package once, and not themselves",
        "remove the second entry: readers use one of them";
    REACHABLE: "RS-6.2-reachable", Must, Error / Error, "rs-core §6.2", "Documents that are linked to can be fetched",
        "correct the link, or publish the document";
    UP_LEADS: "RS-6.2-up-leads", Must, Error / Error, "rs-core §6.2", "`up` leads to the Capability List, and from there to the Source Description",
        "link each document of a set to its Capability List, and that to the Source Description";
    UP_ONCE: "RS-6.2-up-once", Practice, Warning / Note, "rs-core §6.2", "A document has one link `up` and one link `index` at most",
        "remove the second link: readers follow one of them";
    INDEX_LEADS: "RS-6.2-index-leads", Must, Error / Warning, "rs-core §6.2", "`index` leads to the index that has the document",
        "link to the index that lists this document";
    LISTED: "RS-6.2-listed", Must, Warning / Note, "rs-core §6.2", "What `up` leads to points back down",
        "add the document to the Capability List, or the Capability List to the Source Description";
    WELL_KNOWN: "RS-6.3.2-well-known", Should, Warning / Note, "rs-core §6.3.2", "The Source Description is at /.well-known/resourcesync",
        "publish it there, or redirect from there";
    DESCRIPTION: "RS-6.3.2-description", Must, Error / Note, "rs-core §6.3.2", "A Source publishes a Source Description",
        "publish one that names each Capability List";
    LINK: "RS-6.3.3-link", Must, Error / Warning, "rs-core §6.3.3", "A link with `rel=resourcesync` leads to the Capability List of the resource",
        "link to the Capability List of a set that has this resource";
    ROBOTS: "RS-6.3.4-robots", Should, Warning / Note, "rs-core §6.3.4", "What robots.txt names as Sitemap can be fetched",
        "correct the Sitemap line in robots.txt";

    // Source Description and Capability List.
    DESCRIPTION_DESCRIBEDBY: "RS-8-describedby", Recommended, Note / Note, "rs-core §8", "A Source Description links to a document about the Source",
        "add `rs:ln rel=\"describedby\"`";
    DESCRIPTION_CAPABILITY: "RS-8-capability", Must, Error / Error, "rs-core §8", "Entries of a Source Description are Capability Lists",
        "write `capability=\"capabilitylist\"`";
    DESCRIPTION_MD: "RS-8-md", Must, Note / Note, "rs-core §7", "Entries of a Source Description have the capability of Capability Lists",
        "add `<rs:md capability=\"capabilitylist\"/>`";
    SET_DESCRIBEDBY: "RS-8-set-describedby", Recommended, Note / Note, "rs-core §8", "Entries of a Source Description link to a document about the set",
        "add `rs:ln rel=\"describedby\"` to the entry";
    DESCRIPTION_LASTMOD: "RS-8-lastmod", Should, Note / Note, "rs-core §8", "A Source Description has no `lastmod`",
        "leave it out, unless it changes with every update of a Capability List";
    NO_ENTRIES: "RS-8-entries", Practice, Warning / Note, "rs-core §8, §9", "A Source Description has a Capability List, and a Capability List a document",
        "publish a set of resources with one list at least: there is nothing that can be read";
    CAPABILITY_LIST_UP: "RS-9-up", Must, Error / Note, "rs-core §9", "A Capability List links `up` to the Source Description",
        "add `rs:ln rel=\"up\"`";
    CAPABILITY_LIST_DESCRIBEDBY: "RS-9-describedby", Recommended, Note / Note, "rs-core §9", "A Capability List links to a document about the set",
        "add `rs:ln rel=\"describedby\"`";
    CAPABILITY_LIST_CAPABILITY: "RS-9-capability", Must, Error / Error, "rs-core §9", "Entries of a Capability List have a `capability`",
        "state the capability of each document";
    CAPABILITY_LIST_KIND: "RS-9-kind", Must, Error / Warning, "rs-core §9", "A Capability List points to documents of capabilities",
        "point to lists and dumps, not to manifests, Capability Lists or the Source Description";
    CAPABILITY_LIST_ONCE: "RS-9-once", Must, Error / Error, "rs-core §9", "A Capability List has one entry for each capability",
        "group several documents of one capability in an index";
    CAPABILITY_LIST_INDEX: "RS-9-index", Should, Warning / Note, "rs-core §9", "There is no index of Capability Lists",
        "name the Capability Lists in the Source Description";
    CAPABILITY_LIST_LASTMOD: "RS-9-lastmod", Should, Note / Note, "rs-core §9", "A Capability List has no `lastmod`",
        "leave it out, unless it changes with every update of its documents";
    UNIFORM_DUMP: "RS-9-uniform-dump", Must, Warning / Note, "rs-core §9", "Resource List and Resource Dump have the same resources (sampled)",
        "make both from the same snapshot";
    UNIFORM_CHANGES: "RS-9-uniform-changes", Must, Error / Warning, "rs-core §9", "Resource List and Change Lists are consistent (sampled)",
        "every state in a list must include all changes until its `at`";

    // Resource Lists.
    RESOURCE_LIST_UP: "RS-10.1-up", Must, Error / Note, "rs-core §10.1", "A Resource List links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    RESOURCE_LIST_INDEX: "RS-10.1-index", Recommended, Note / Note, "rs-core §10.1", "A Resource List links to its index",
        "add `rs:ln rel=\"index\"`";
    RESOURCE_LIST_ONCE: "RS-10.1-once", Should, Warning / Note, "rs-core §10.1", "A resource is listed once",
        "list each URI once in all Resource Lists of a set";
    RESOURCE_INDEX_UP: "RS-10.2-up", Must, Error / Note, "rs-core §10.2", "A Resource List Index links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    RESOURCE_INDEX_AT: "RS-10.2-at", Must, Error / Warning, "rs-core §10.2", "The times an index states for a list are those of the list",
        "publish the index again when a list changes, after the list";
    RESOURCE_INDEX_LATER: "RS-10.2-at-later", Practice, Note / Note, "rs-core §10.2", "`at` of an index is not later than `at` of its lists",
        "readers continue from the index's `at`: every list must include all changes until then";

    // Resource Dumps.
    RESOURCE_DUMP_UP: "RS-11.1-up", Must, Error / Note, "rs-core §11.1", "A Resource Dump links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    RESOURCE_DUMP_INDEX: "RS-11.1-index", Recommended, Note / Note, "rs-core §11.1", "A Resource Dump links to its index",
        "add `rs:ln rel=\"index\"`";
    DUMP_TYPE_LENGTH: "RS-11.1-type-length", Recommended, Note / Note, "rs-core §11.1", "Entries of dumps state type and length of the package",
        "add `type` and `length`: readers choose by them";
    DUMP_FORMAT: "RS-11.1-format", Should, Warning / Note, "rs-core §11.1", "All packages of a dump have one format",
        "publish one dump for each format";
    DUMP_ZIP: "RS-11.1-zip", Recommended, Note / Note, "rs-core §11.1", "Packages are ZIP files",
        "use ZIP: readers of other communities know nothing else";
    DUMP_CONTENTS: "RS-11.1-contents", Must, Error / Error, "rs-core §11.1", "The manifest that `contents` leads to is the one in the package",
        "publish a copy of the package's manifest.xml";
    MANIFEST: "RS-11.2-manifest", Must, Error / Error, "rs-core §11.2", "A package has `manifest.xml` at its top level, a `urlset` of the right capability",
        "put the manifest at the top level of the ZIP";
    MANIFEST_UP: "RS-11.2-up", Must, Error / Note, "rs-core §11.2", "A manifest links `up` to the Capability List",
        "add `rs:ln rel=\"up\"`";
    MANIFEST_PATH: "RS-11.2-path", Must, Error / Error, "rs-core §11.2", "Entries of a manifest have a `path`",
        "add the path of the bitstream in the package";
    MANIFEST_SLASH: "RS-11.2-slash", Must, Error / Warning, "rs-core §11.2", "A `path` begins with a slash",
        "write the path from the package's root with a leading `/`";
    MANIFEST_SAFE: "RS-11.2-safe", Practice, Error / Error, "rs-core §11.2", "A `path` stays inside the package and names a file",
        "no `.`, `..`, backslash, or slash at the end";
    MANIFEST_EXISTS: "RS-11.2-exists", Must, Error / Error, "rs-core §11.2", "What a manifest lists is in the package",
        "pack the bitstream under its `path`";
    MANIFEST_TRUE: "RS-11.2-true", Must, Error / Error, "rs-core §11.2", "Length and digests in a manifest are those of the bitstream",
        "make package and manifest in one go";
    MANIFEST_ALL: "RS-11.2-all", Must, Error / Warning, "rs-core §11.2", "Every bitstream of a package is in its manifest, under a path of its own",
        "list the file, or leave it out of the package";
    MANIFEST_TYPE: "RS-11.2-type", Recommended, Note / Note, "rs-core §11.2", "Entries of a manifest state the media type",
        "add `type`: there is no server to ask";

    // Change Lists.
    CHANGE_LIST_UP: "RS-12.1-up", Must, Error / Note, "rs-core §12.1", "A Change List links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    CHANGE_LIST_INDEX: "RS-12.1-index", Recommended, Note / Note, "rs-core §12.1", "A Change List links to its index",
        "add `rs:ln rel=\"index\"`: readers of a closed list find the next one there";
    CHANGE: "RS-12.1-change", Must, Error / Error, "rs-core §12.1", "Entries of a Change List or Change Dump Manifest have `change`",
        "state whether the resource was created, updated or deleted";
    CHANGE_VALUE: "RS-12.1-change-value", Must, Error / Error, "rs-core §12.1", "`change` is created, updated or deleted",
        "use one of the three, in lower case";
    ORDER: "RS-12.1-order", Must, Error / Error, "rs-core §12.1", "Changes are in forward chronological order",
        "sort by `datetime`, the earliest first";
    CHANGE_TIME: "RS-12.1-datetime", Practice, Note / Note, "rs-core §12.1", "Changes have a `datetime`",
        "add it: readers see by it which changes they have";
    CHANGE_INDEX_UP: "RS-12.2-up", Must, Error / Note, "rs-core §12.2", "A Change List Index links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    CHANGE_INDEX_ORDER: "RS-12.2-order", Must, Error / Error, "rs-core §12.2", "An index has its Change Lists in forward chronological order",
        "put the oldest list first";
    CHANGE_INDEX_INTERVAL: "RS-12.2-interval", Must, Error / Warning, "rs-core §12.2", "The interval an index states for a list is that of the list",
        "publish the index again when a list is closed, after the list";
    CHANGE_INDEX_CLOSED: "RS-12.2-until-closed", Must, Error / Warning, "rs-core §12.2", "An index states `until` for a closed list",
        "copy `until` of the list to its entry";
    CHANGE_INDEX_OPEN: "RS-12.2-until-open", Must, Error / Error, "rs-core §12.2", "An index states no `until` for an open list",
        "remove `until`: readers would not read the list again";
    CHANGE_INDEX_GAP: "RS-12.2-gap", Must, Error / Error, "rs-core §12.2", "Change Lists follow each other without a gap",
        "`from` of a list is `until` of the one before, or earlier";
    CHANGE_INDEX_LAST: "RS-12.2-last", Must, Error / Warning, "rs-core §12.2", "Only the last Change List is open",
        "close a list with `until` before beginning the next";
    CHANGE_INDEX_SPAN: "RS-12.2-span", Must, Error / Warning, "rs-core §12.2", "The lists of an index cover the interval it states",
        "`from` of the index is that of its first list; its `until`, if any, that of its last";

    // Change Dumps.
    CHANGE_DUMP_UP: "RS-13.1-up", Must, Error / Note, "rs-core §13.1", "A Change Dump links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    CHANGE_DUMP_INDEX: "RS-13.1-index", Recommended, Note / Note, "rs-core §13.1", "A Change Dump links to its index",
        "add `rs:ln rel=\"index\"`";
    CHANGE_DUMP_ORDER: "RS-13.1-order", Should, Warning / Note, "rs-core §13.1", "Packages are in forward chronological order",
        "put the package of the oldest changes first";
    CHANGE_DUMP_SPAN: "RS-13.1-span", Practice, Warning / Note, "rs-core §13.1", "The packages of a Change Dump cover the interval it states, without a gap, and are within it",
        "`from` of the dump is that of its first package, `from` of a package is `until` of the one before, and `until` of the dump, if any, that of its last";
    CHANGE_DUMP_PATH: "RS-13.2-path", Must, Error / Error, "rs-core §13.2", "Entries of a Change Dump Manifest have a `path`, unless deleted",
        "add the path of the bitstream in the package";
    CHANGE_DUMP_DELETED: "RS-13.2-deleted", Must, Error / Note, "rs-core §13.2", "Deletions in a Change Dump Manifest have no `path`",
        "remove it: there is no bitstream";
    CHANGE_DUMP_INTERVAL: "RS-13.2-interval", Must, Error / Warning, "rs-core §13.2", "The interval a Change Dump states for a package is that of its manifest",
        "make dump and manifest in one go";

    // Links to related resources.
    DUPLICATE_DIFFERS: "RS-14.2-differs", Must, Error / Warning, "rs-core §14.2", "A mirror has the same bytes: length, hash and type do not differ",
        "correct the attributes of the link, or leave them out";
    DUPLICATE_REPEATS: "RS-14.2-repeats", Should, Note / Note, "rs-core §14.2", "A link to a mirror does not repeat values of `rs:md`",
        "leave hash, length and type out of the link";
    DUPLICATE_SELF: "RS-14.2-self", Practice, Warning / Note, "rs-core §14.2", "A link to a mirror or another form leads elsewhere than to the resource itself",
        "remove the link";
    ALTERNATE_TYPE: "RS-14.3-type", Recommended, Note / Note, "rs-core §14.3", "A link to an alternate representation states its type",
        "add `type`";
    PATCH_TYPE: "RS-14.4-type", Must, Error / Warning, "rs-core §14.4", "A link to a patch states its type",
        "add `type`: without it nobody can apply the patch";
    PATCH_WHERE: "RS-14.4-where", Must, Error / Note, "rs-core §14.4", "Patches are for Change Lists and Change Dump Manifests, on updates",
        "remove the link";
    PATCH_PATH: "RS-14.4-path", Must, Error / Warning, "rs-core §14.4", "In a Change Dump Manifest a link to a patch has a `path`",
        "put the patch into the package and state its path";
    TIMEGATE: "RS-14.6-timegate", Should, Warning / Note, "rs-core §14.6", "A link to a TimeGate has no other attributes",
        "leave `rel` and `href` only";
    MEMENTO_MODIFIED: "RS-14.6-modified", Practice, Note / Note, "rs-core §14.6", "A link to a memento states the version's `modified`",
        "add `modified`";
    MEMENTO_ONCE: "RS-14.6-once", Must, Warning / Note, "rs-core §14.6", "There is one memento: the version of the last modification",
        "offer older versions by TimeMap or TimeGate";
    VIA_ONCE: "RS-14.8-via", Should, Warning / Note, "rs-core §14.8", "A republished resource has one `via`, to the original Source",
        "keep the link you found, add none of your own";

    // Archives.
    ARCHIVE_UP: "RSA-3-up", Must, Error / Note, "rs-archives §3", "An archive links `up` to its Capability List",
        "add `rs:ln rel=\"up\"`";
    ARCHIVE_HEAD: "RSA-3-time", Practice, Warning / Note, "rs-archives §3", "An archive has no times of its own",
        "state the times on its entries";
    ARCHIVE_AT: "RSA-3-at", Practice, Warning / Note, "rs-archives §3", "Entries of archives of snapshots have `at`",
        "copy the times of the archived document to its entry";
    ARCHIVE_FROM: "RSA-5-from", Practice, Warning / Note, "rs-archives §5", "Entries of archives of changes have `from`",
        "copy the interval of the archived document to its entry";
    ARCHIVE_ORDER: "RSA-3-order", Practice, Warning / Note, "rs-archives §3", "An archive is in forward chronological order",
        "put the oldest document first";
    ARCHIVE_LINK: "RSA-2.2-archives", Practice, Warning / Note, "rs-archives §2.2", "`archives` leads to the archive of the document's capability",
        "link a Change List to the Change List Archive, and so on";

    // Notifications.
    NOTIFICATION_ROOT: "RSN-3-root", Must, Error / Error, "rs-change-notification §3", "A notification is a `urlset`, never an index",
        "split the changes into several notifications, sent one after the other";
    NOTIFICATION_ONCE: "RSN-3-once", Practice, Warning / Note, "rs-change-notification §3", "A notification lists each change once",
        "remove the second entry with the same URI and time";
    NOTIFICATION_CHANGE: "RSCN-3-change", Must, Error / Error, "rs-change-notification §3", "Entries of a Change Notification have `change`",
        "add created, updated or deleted";
    NOTIFICATION_ORDER: "RSCN-3-order", Must, Error / Error, "rs-change-notification §3", "Changes are listed in forward chronological order",
        "sort by `datetime`, the earliest first";
    NOTIFICATION_TIME: "RSCN-3-datetime", Practice, Note / Note, "rs-change-notification §3", "Listed changes have a `datetime`",
        "add the time of the change: readers find by it what they missed";
    FRAMEWORK_CHANGE: "RSFN-3-change", Must, Error / Error, "rs-framework-notification §3", "Entries of a Framework Notification have `change`",
        "add created, updated or deleted";
    FRAMEWORK_CAPABILITY: "RSFN-3-capability", Must, Error / Error, "rs-framework-notification §3", "Entries of a Framework Notification have `capability`",
        "state the document's capability: resourcelist, changelist and so on";
    FRAMEWORK_TABLE: "RSFN-2.1-change", Must, Error / Warning, "rs-framework-notification §2.1", "Only the changes of the table are notified: a list is never deleted, a Resource Dump only created",
        "notify the document that replaced it; the Capability List shows the removal";
    FRAMEWORK_INDEX: "RSFN-3-index", Must, Error / Warning, "rs-framework-notification §3", "The entry of a document that is under an index links to that index",
        "add `rs:ln rel=\"index\"` to the entry";
    FRAMEWORK_NO_INDEX: "RSFN-2-no-index", Must, Error / Warning, "rs-framework-notification §2", "Indexes are never notified",
        "notify one document of the index, with a link to the index";
    CHANNELS: "RSN-2-channels", Must, Error / Warning, "rs-change-notification §2", "Each set has topics of its own, and another one for each kind of notification",
        "give each its own URI, in its own Capability List";
    TOPIC_ENTRY_HUB: "RSN-5-hub", Must, Error / Error, "rs-change-notification §5", "The entry of a topic in a Capability List links to a hub",
        "add `rs:ln rel=\"hub\"` with the URI of each hub";
    TOPIC_ANSWERS: "RSN-4.1-answers", Must, Error / Warning, "rs-change-notification §4.1", "A topic answers GET and HEAD with 200",
        "answer both at the topic's own URI, without a body while there are no notifications";
    TOPIC_TYPE: "RSN-4.1-type", Must, Error / Warning, "rs-change-notification §4.1", "A topic is delivered as application/xml",
        "set `Content-Type: application/xml`, also where there is no body";
    TOPIC_SELF: "RSN-4.1-self", Must, Error / Error, "rs-change-notification §4.1", "A topic has one `Link` with `rel=self`: its URI as in the Capability List",
        "send `Link: <URI of the topic>; rel=\"self\"`: subscribers ask the hub for exactly that";
    TOPIC_HUBS: "RSN-4.1-hub", Must, Error / Error, "rs-change-notification §4.1", "A topic has a `Link` with `rel=hub` for each hub that the Capability List has for it",
        "send the same hubs in the header and in the Capability List";
    TOPIC_HEAD: "RSN-4.1-head", Must, Error / Warning, "rs-change-notification §4.1", "A topic has the same `Link` and `Content-Type` for HEAD as for GET",
        "send them whatever the method: hubs and subscribers may ask either way";
    TOPIC_EMPTY: "RSN-4.1-empty", Should, Warning / Note, "rs-change-notification §4.1", "A topic without content states `Content-Length: 0`",
        "send the header";
    HUB_ANSWERS: "WS-5.1.2-refusal", Practice, Note / Note, "websub §5.1.2", "A hub refuses a request without parameters, with the reason as text",
        "answer 4xx, with a sentence about the missing parameters as text/plain";

    // Atom feeds.
    ATOM_FEED: "ATOM-2-feed", Must, Error / Error, "rfc4287 §2", "A feed is a document of Atom",
        "the root is `feed` in the namespace http://www.w3.org/2005/Atom";
    ATOM_BASE: "ATOM-2-base", Must, Error / Note, "rfc4287 §2", "`xml:base` leads somewhere",
        "correct the address, or write absolute links and leave `xml:base` out";
    ATOM_TEXT: "ATOM-2-text", Practice, Warning / Warning, "rfc4287 §2", "Between elements of a feed there is no text",
        "remove it, or write the element that it should be";
    ATOM_AUTHOR: "ATOM-4.1.1-author", Must, Error / Note, "rfc4287 §4.1.1", "The feed, or each of its entries, has an author",
        "add `<author><name>…</name></author>` to the feed";
    ATOM_ID_ONCE: "ATOM-4.1.1-id-once", Should, Warning / Note, "rfc4287 §4.1.1", "Entries with one `id` are versions of one entry",
        "give each entry an `id` of its own, or another `updated` if it is a newer version";
    ATOM_ALTERNATE: "ATOM-4.1.2-alternate", Must, Error / Note, "rfc4287 §4.1.2", "An entry without content has a link `alternate`",
        "repeat the link of the entry with `rel=\"alternate\"`";
    ATOM_ALTERNATE_ONCE: "ATOM-4.1.2-alternate-once", Must, Error / Note, "rfc4287 §4.1.2", "An entry has one link `alternate` of each type and language",
        "remove the second one, or state its own `type` or `hreflang`";
    ATOM_TITLE: "ATOM-4.2.14-title", Must, Error / Note, "rfc4287 §4.2.14", "The feed and its entries have one `title` each",
        "add a title: the label of the resource, or its IRI";
    ATOM_UPDATED: "ATOM-4.2.15-updated", Must, Error / Note, "rfc4287 §4.2.15", "The feed and its entries have one `updated` each, a date and time with zone",
        "write for example `<updated>2026-01-31T09:00:00Z</updated>`";
    ATOM_ID: "ATOM-4.2.6-id", Must, Error / Note, "rfc4287 §4.2.6", "The feed and its entries have one `id` each, an absolute IRI",
        "use an address of your own, or a `urn:uuid:`, that stays the same";
    ATOM_LINK: "ATOM-4.2.7-href", Must, Error / Warning, "rfc4287 §4.2.7", "Links have an `href` that leads somewhere",
        "write the absolute address";
    ATOM_TYPE: "ATOM-4.2.7.3-type", Must, Error / Note, "rfc4287 §4.2.7.3", "`type` of a link is a media type",
        "write type/subtype as registered, for example text/turtle";
    PAGE_NEXT: "PAGE-3-next", Must, Error / Error, "rfc5005 §3", "A page has one link `next` at most",
        "link to the page after it only: a client follows one of them";
    PAGE_LOOP: "PAGE-3-loop", Must, Error / Error, "rfc5005 §3", "The links `next` lead to an end",
        "link to what comes after the last entry of the page, and leave `next` out on the last page";
    PAGE_SINCE: "PAGE-3-since", Must, Error / Error, "sdshare §Fragments Feed", "The pages of a feed asked with `since` have no older entries either",
        "repeat `since` in the links `next`";

    // SDShare.
    SDS_ALTERNATE: "SDS-5.1-alternate", Must, Error / Note, "sdshare §Server Role", "Every link of SDShare is repeated as `alternate`",
        "add a link with the same `type` and `href` and `rel=\"alternate\"`";
    SDS_EXTRA: "SDS-5.1-alternate-only", Practice, Note / Note, "sdshare §Server Role", "No other links of an entry are `alternate`",
        "use another relation: some clients take every `alternate` for data of SDShare";
    SDS_TYPE: "SDS-5.1-type", Must, Error / Note, "sdshare §Server Role", "Every link of SDShare has a type; links to feeds have application/atom+xml",
        "add `type`: clients choose by it";
    SDS_EMPTY: "SDS-5.1-empty", Practice, Note / Note, "sdshare §Server Role", "A feed that is given has an entry, which shows of which kind it is",
        "publish a collection, or give the feed above this one";
    SDS_MIXED: "SDS-5.1-mixed", Must, Error / Warning, "sdshare §Server Role", "All entries of a feed have links of SDShare, of one kind of feed",
        "put them into feeds of their own";
    SDS_KIND: "SDS-5.1-kind", Must, Error / Error, "sdshare §Server Role", "A link leads to a feed of the kind that its relation states",
        "correct the link or its relation";
    SDS_OLDER: "SDS-5.1-older", Must, Warning / Note, "sdshare §Server Role", "Relations and elements are those of SDShare 1.0, in its namespace",
        "write http://www.sdshare.org/2012/core/ with its last slash, and `resource`; clients of 1.0 do not know the draft of 2010";
    SDS_REACHABLE: "SDS-5.1-reachable", Should, Error / Error, "sdshare §Server Role", "What feeds link to can be fetched",
        "correct the link, or publish what it leads to";
    SDS_DELIVERED: "SDS-5.1-delivered", Must, Error / Warning, "sdshare §Server Role", "What a link leads to is delivered with the type of the link",
        "let link and Content-Type agree";
    SDS_ATOM: "SDS-5.1-atom", Practice, Warning / Note, "sdshare §Server Role", "Feeds are Atom whatever the client accepts",
        "answer every `Accept` with the feed: pages for people have other addresses";
    SDS_ACCEPTABLE: "SDS-5.1-acceptable", Practice, Warning / Note, "rfc9110 §15.5.7", "RDF is not sent to a client that accepts other types only",
        "answer 406 with the types that there are";
    SDS_COLLECTION_LINK: "SDS-5.1.1-link", Must, Error / Error, "sdshare §Overview Feed", "Each entry of an overview has one link `collectionfeed`",
        "add the link to the collection feed, with the type application/atom+xml";
    SDS_COLLECTION_ONCE: "SDS-5.1.1-once", Must, Error / Warning, "sdshare §Overview Feed", "An overview has one entry for each collection",
        "remove the second entry";
    SDS_TWO_FEEDS: "SDS-5.1.2-two", Must, Error / Warning, "sdshare §Collection Feed", "A collection feed has two entries: for its snapshots feed and its fragments feed",
        "write one entry with a link `snapshotsfeed` and one with a link `fragmentsfeed`";
    SDS_NO_SINCE: "SDS-5.1.2-since", Must, Warning / Note, "sdshare §Fragments Feed", "The link to a fragments feed has no `since`",
        "link to the whole feed: clients add the parameter";
    SDS_SNAPSHOT_LINK: "SDS-5.1.3-link", Must, Error / Error, "sdshare §Snapshots Feed", "Each entry of a snapshots feed has a link `snapshot`",
        "add the link to the data, with its type";
    SDS_SNAPSHOT_UPDATED: "SDS-5.1.3-updated", Must, Error / Error, "sdshare §Snapshots Feed", "A snapshot has every change until its `updated` (sampled)",
        "state the time of the last change that it includes: clients ask for the fragments since then";
    SDS_SNAPSHOT_LATER: "SDS-5.1.3-later", Practice, Note / Note, "sdshare §Snapshots Feed", "A snapshot is not later than the newest fragment",
        "state the time of the last change that it includes: what changes while it is made is missed otherwise";
    SDS_CHUNK_LINK: "SDS-5.1.4-link", Must, Error / Error, "sdshare §Chunked Snapshot Feed", "Each entry of a chunked snapshot feed has a link `snapshot-component`",
        "add the link to the data, with its type";
    SDS_CHUNKS: "SDS-5.1.4-whole", Must, Error / Error, "sdshare §Chunked Snapshot Feed", "The chunks have what the snapshot has, and none divides a blank node",
        "write all statements that blank nodes connect into one chunk";
    SDS_FRAGMENT_LINK: "SDS-5.1.5-link", Must, Error / Error, "sdshare §Fragments Feed", "Each entry of a fragments feed has a link `fragment`",
        "add the link to the resource's description, with its type";
    SDS_RESOURCE: "SDS-5.1.5-resource", Must, Error / Warning, "sdshare §Fragments Feed", "Each entry of a fragments feed has one `resource`, an absolute IRI",
        "write one entry for each resource";
    SDS_FUTURE: "SDS-5.1.5-updated", Must, Error / Warning, "sdshare §Fragments Feed", "`updated` is the time of the change, not later than the server's clock",
        "stamp changes when they are made: a client never asks again for what is before the latest time";
    SDS_SINCE: "SDS-5.1.5-since", Must, Error / Error, "sdshare §Fragments Feed", "`since` leaves out the entries that are older, and no others",
        "compare instants, whatever their zone and the digits of their fraction";
    SDS_SINCE_EQUAL: "SDS-5.1.5-inclusive", Must, Warning / Note, "sdshare §Fragments Feed", "`since` keeps the entries of exactly that time",
        "leave out what is older only: two changes may have one time";
    SDS_SINCE_FORM: "SDS-5.1.5-since-form", Must, Error / Warning, "sdshare §Fragments Feed", "`since` may be any date and time of Atom, with any offset",
        "read it as RFC 3339 has it, and compare instants";
    SDS_SINCE_INVALID: "SDS-5.1.5-since-invalid", Practice, Warning / Note, "rfc9110 §15.5.1", "A `since` that is no time is answered 400",
        "refuse it: a client that wrote it wrongly misses changes otherwise, or reads everything each time";
    SDS_CLOSURE: "SDS-5.1.5-closure", Must, Error / Warning, "sdshare §Fragments Feed", "A fragment has the statements of its resource and of the blank nodes in them, and no others",
        "leave out statements with other subjects: a client never deletes them";
    SDS_SAME: "SDS-5.1.5-same", Must, Error / Warning, "sdshare §Fragments Feed", "The forms of a fragment or snapshot have the same statements",
        "leave out the form that cannot carry them";
    SDS_DELETED: "SDS-5.1.5-deleted", Practice, Error / Error, "sdshare §Fragment Processing", "The fragment of a deleted resource is an empty document, with the status 200",
        "answer 200 without statements: that is the only sign of a deletion, and clients stop at 404 and 410";
    SDS_SHARED: "SDS-5.1.5-shared", Practice, Warning / Note, "sdshare §Fragments Feed", "No blank node belongs to several resources",
        "give it an IRI: each of the resources has a copy of it at the client, and an update of one deletes the other's";
    SDS_BLANK_ROOT: "SDS-5.1.5-blank-root", Practice, Warning / Note, "sdshare §Fragments Feed", "Every statement of a snapshot is in the fragment of a resource",
        "give the blank node an IRI, or link to it from a resource: its changes never reach a client";
    SDS_ACCEPTED: "SDS-5.2.1-accepted", Must, Warning / Note, "sdshare §Snapshot Processing", "Only snapshots and their chunks are answered 202, with a Retry-After",
        "state when to ask again; answer anything else with 200";
    SDS_FORMATS: "SDS-5.3-formats", Recommended, Note / Note, "sdshare §Recommended Resource Representation Formats", "RDF is offered as RDF/XML or N-Triples",
        "add application/rdf+xml or application/n-triples: many clients read nothing else";
    SDS_SYNTAX: "SDS-5.3-syntax", Must, Error / Error, "sdshare §Recommended Resource Representation Formats", "Fragments and snapshots are of the syntax of their type",
        "write them with a library for RDF";
    FEED_SELF: "WS-4-self", Must, Error / Warning, "websub §4", "A feed with a link `hub` has one link `self`, its own address",
        "add `<link rel=\"self\" href=\"…\"/>`: subscribers ask the hub for exactly that";

    // Activity Streams.
    AS_JSON: "AS-2-json", Must, Error / Error, "as-core §2", "A document is JSON in UTF-8",
        "write the document with a JSON library: line feeds in strings are `\\n`, and nothing follows the last member";
    AS_OBJECT: "AS-2-object", Must, Error / Error, "as-core §2", "A document is one object",
        "write one document for each Entry Point, page or activity: readers take the members of the object at the top";
    AS_MEDIA_TYPE: "AS-2-media-type", Should, Warning / Note, "as-core §2", "Documents are delivered as JSON of Activity Streams",
        "answer with application/activity+json, application/ld+json or application/json";
    AS_CONTEXT: "AS-2.1-context", Must, Error / Warning, "as-core §2.1", "`@context` is a URL, an object, or an array of these",
        "write https://www.w3.org/ns/activitystreams";
    CF_TERM: "AS-2.1-term", Practice, Warning / Note, "as-core §2.1", "Types of objects are IRIs, or terms that a context defines",
        "write the IRI of the class: other terms become blank nodes";
    AS_URL: "AS-2.2-absolute", Must, Error / Warning, "as-core §2.2", "URLs and IRIs are absolute",
        "write the whole address, with its scheme and host";
    AS_DATETIME: "AS-2.3-datetime", Must, Error / Note, "as-core §2.3", "Times have a date, a time of day and a zone",
        "write for example 2026-01-31T09:00:00Z: readers that stop at a time lose changes of the same day otherwise";
    AS_ID: "AS-4.1-id", Must, Error / Error, "as-core §4.1", "`id` is one absolute IRI",
        "write it as a string, with its scheme and host";
    CF_ID_ONCE: "AS-4.1-id-once", Must, Error / Warning, "as-core §4.1", "Each activity has an `id` of its own",
        "number the activities: readers take two with one `id` for the same";
    AS_TYPE: "AS-4.1-type", Must, Error / Error, "as-core §4.1", "`type` is a string, or an array of strings",
        "write the name of the type, for example \"Update\"";
    AS_LINK: "AS-4.2-link", Must, Error / Warning, "as-core §4.2", "A Link has an `href`, and `mediaType` is a media type",
        "write for example {\"type\": \"Link\", \"href\": \"https://…\", \"mediaType\": \"text/turtle\"}";
    CF_DELIVERED: "AS-4.2-delivered", Practice, Warning / Note, "as-core §4.2", "What a Link leads to has the media type of the Link (sampled)",
        "let Link and Content-Type agree: readers choose by it";
    AS_REFERENCE: "AS-4.4-reference", Must, Error / Warning, "as-core §4.4", "Properties such as `object`, `actor` and `url` are objects, IRIs, or arrays of these",
        "write the object, or its IRI as a string";
    AS_ITEMS: "AS-4.6-items", Must, Error / Warning, "as-core §4.6", "Ordered collections have `orderedItems`, others `items`",
        "write `orderedItems` in an OrderedCollection and its pages";
    AS_PAGE: "AS-4.6-page", Must, Error / Warning, "as-core §4.6", "`first`, `last`, `next` and `prev` lead to pages, `partOf` to a collection",
        "write the type OrderedCollectionPage, or OrderedCollection for `partOf`";
    AS_TOTAL: "AS-4.6-total", Must, Error / Note, "as-core §4.6", "`totalItems` and `startIndex` are integers that are not negative",
        "write the number without quotes, or leave it out";
    AS_TEXT: "AS-4.7-text", Must, Error / Note, "as-core §4.7", "`name`, `summary` and `content` are strings",
        "write a string; texts in several languages belong into `nameMap`, `summaryMap` and `contentMap`";
    AS_MAP: "AS-4.7-map", Must, Error / Note, "as-core §4.7", "`nameMap`, `summaryMap` and `contentMap` have a string for each language",
        "write an object, for example {\"en\": \"Milk\"}";
    AS_LANGUAGE: "AS-4.7-language", Must, Error / Note, "as-core §4.7", "Languages are language tags",
        "write for example `en`, `de-AT` or `zh-Hant`";

    // Change feeds: Entity Metadata Management and IIIF Change Discovery.
    CF_KIND: "EMM-3-kind", Must, Error / Error, "emm-1.0 §3, emm-0.1 §3, iiif-discovery §3", "A document is an Entry Point, a Change Set, an activity or an Entity Patch",
        "give the document its `type`: OrderedCollection, OrderedCollectionPage, that of an activity, or rdf_patch";
    CF_CONTEXT: "EMM-2.2-context", Must, Error / Warning, "emm-1.0 §2.2, emm-0.1 §3.1, iiif-discovery §3.4.1", "A document has the context of its specification",
        "add it to `@context`";
    CF_ALIAS: "EMM-2.2-context-exact", Must, Error / Note, "emm-1.0 §2.2, emm-0.1 §3.1, iiif-discovery §3.4.1", "Contexts are named by their exact URLs",
        "write it as the specification does: JSON-LD processors find no context at other spellings";
    CF_CONTEXT_ORDER: "EMM-2.2-context-order", Must, Error / Note, "emm-1.0 §2.2, emm-0.1 §3.1, iiif-discovery §3.4.1", "The context of the specification is behind extensions; in EMM 0.1 it is the first",
        "reorder `@context`: the last definition of a term counts";
    EMM_CONTEXT: "EMM-2.2-context-emm", Recommended, Note / Note, "emm-1.0 §2.2", "`@context` has that of Entity Metadata Management too",
        "add https://emm-spec.org/1.0/context.json";
    EMM01_OVERRIDE: "EMM01-3.1-override", Must, Error / Note, "emm-0.1 §3.1", "Extensions do not define terms of the specification again",
        "choose other names";
    EMM_DEPRECATE: "EMM-4.3-context", Must, Error / Warning, "emm-1.0 §4.3", "A document with `Deprecate` has the context of Entity Metadata Management",
        "add https://emm-spec.org/1.0/context.json: Activity Streams has no such type";
    IIIF_CONTEXT_STRINGS: "IIIF-3.4.1-strings", Must, Error / Note, "iiif-discovery §3.4.1", "`@context` of IIIF is a string, or an array of strings",
        "publish the terms as a context of their own, and write its URL";
    IIIF_CONTEXT_FIRST: "IIIF-3.4.1-first", Should, Warning / Note, "iiif-discovery §3.4.1", "`@context` is the first member of a document",
        "write it first";
    CF_TYPE: "EMM-3.1-type", Must, Error / Warning, "emm-1.0 §3.1, §3.2, emm-0.1 §3.1, §3.2, iiif-discovery §3.1, §3.2", "`type` of an Entry Point is OrderedCollection, of a page OrderedCollectionPage",
        "write it as one string";
    CF_ID: "EMM-3.1-id", Must, Error / Warning, "emm-1.0 §3.1, §3.2, emm-0.1 §3.1, iiif-discovery §3.1, §3.2", "Entry Points and pages have an `id`, an HTTP(S) URI",
        "write the address of the document";
    CF_ID_SERVED: "EMM-3.1-id-served", Must, Error / Warning, "emm-1.0 §3.1, §3.2, emm-0.1 §3.1, iiif-discovery §3.1, §3.2", "Entry Points and pages are available at their `id`",
        "write the address at which the document is";
    EMM_SUMMARY: "EMM-3.1-summary", Should, Warning / Note, "emm-1.0 §3.1, emm-0.1 §3.1", "An Entry Point has a `summary`",
        "state the Entity Set, and what distinguishes this Entry Point from others";
    EMM_FIRST: "EMM-3.1-first", Should, Warning / Note, "emm-1.0 §3.1", "An Entry Point has `first` and `last`",
        "link to both ends of the feed: readers begin with the newest changes";
    EMM01_FIRST: "EMM01-3.1-first", Must, Error / Note, "emm-0.1 §3.1", "An Entry Point of version 0.1 has `first` and `last`",
        "link to both ends of the feed: readers begin with the newest changes";
    IIIF_LAST: "IIIF-3.1-last", Must, Error / Error, "iiif-discovery §3.1", "A collection has `last`",
        "link to the page with the newest activities: readers begin there";
    IIIF_FIRST: "IIIF-3.1-first", Should, Warning / Note, "iiif-discovery §3.1", "A collection has `first`",
        "link to the page with the oldest activities";
    EMM_REFERENCE: "EMM-3.1-reference", Must, Error / Warning, "emm-1.0 §3.1, §3.2, emm-0.1 §3.1, §3.2", "References are HTTP(S) URIs, or objects with `id` and `type`",
        "write for example {\"id\": \"https://…/page/1\", \"type\": \"OrderedCollectionPage\"}";
    IIIF_REFERENCE: "IIIF-3.1-reference", Must, Error / Note, "iiif-discovery §3.1, §3.2", "References are objects with `id` and `type`",
        "write for example {\"id\": \"https://…/page-1\", \"type\": \"OrderedCollectionPage\"}";
    IIIF_MEMBERS: "IIIF-3.1-members", Must, Error / Note, "iiif-discovery §3.1", "`seeAlso` of a collection is an array of objects with `id` and the `type` Dataset, `partOf` of objects with `id` and the `type` OrderedCollection, `rights` is a URI",
        "write for example \"seeAlso\": [{\"id\": \"https://…\", \"type\": \"Dataset\"}]";
    CF_TOTAL_SUM: "EMM-3.1-total", Should, Warning / Note, "emm-1.0 §3.1, emm-0.1 §3.1", "`totalItems` of an Entry Point is the number of activities on its pages",
        "count what the pages list, or leave it out";
    EMM_DOWNLOAD: "EMM-A.2-download", Practice, Note / Note, "emm-1.0 §A.2, emm-0.1 §6.2", "Links to full downloads have a media type, and the time up to which they have changes",
        "write a Link with `mediaType` and `updated`: a reader continues from there";
    CF_ITEMS: "EMM-3.2-items", Must, Error / Error, "emm-1.0 §3.2, emm-0.1 §3.2, iiif-discovery §3.2", "`orderedItems` is an array of activities",
        "write the activities as objects";
    IIIF_EMPTY: "IIIF-3.2-empty", Must, Error / Note, "iiif-discovery §3.2", "A page has at least one activity",
        "leave the page out";
    EMM_PART_OF: "EMM-3.2-part-of", Must, Error / Note, "emm-1.0 §3.2", "A page has `partOf`",
        "link to the Entry Point";
    IIIF_PART_OF: "IIIF-3.2-part-of", Should, Warning / Note, "iiif-discovery §3.2", "A page of IIIF has `partOf`",
        "link to the collection";
    CF_PART_OF_EQUAL: "EMM-3.2-part-of-equal", Must, Error / Warning, "emm-1.0 §3.2, iiif-discovery §3.2", "`partOf` is the Entry Point that has the page",
        "write the `id` of the Entry Point: a reader of the page finds the feed by it";
    CF_TOTAL_PAGE: "EMM-3.2-total", Must, Error / Note, "emm-1.0 §3.2, as-core §4.6", "`totalItems` of a page is the number of its activities, or of all in the feed",
        "count the activities of the page, or leave it out";
    CF_REACHABLE: "EMM-3.2-reachable", Must, Error / Error, "emm-1.0 §3.2, emm-0.1 §3.2, iiif-discovery §3.2", "What Entry Points and pages link to can be fetched",
        "correct the link, or publish the page";
    CF_NEXT: "EMM-3.2-next", Must, Error / Error, "emm-1.0 §3.2, emm-0.1 §3.2", "Each page but the last has `next`",
        "link to the page that follows: readers miss the changes on it otherwise";
    IIIF_NEXT: "IIIF-3.2-next", Should, Warning / Note, "iiif-discovery §3.2", "Each page of IIIF but the last has `next`",
        "link to the page that follows";
    IIIF_PREV: "IIIF-3.2-prev", Must, Error / Error, "iiif-discovery §3.2", "Each page of IIIF but the first has `prev`",
        "link to the page before: readers go from the last page back";
    CF_PREV: "EMM-3.2-prev", Must, Error / Warning, "emm-1.0 §3.2, emm-0.1 §3.2, iiif-discovery §3.2", "`prev` and `next` of neighbours lead to each other",
        "let both lead to the page beside, by its `id`";
    CF_LOOP: "EMM-3.2-loop", Must, Error / Error, "emm-1.0 §3.2, emm-0.1 §3.2, iiif-discovery §3.2", "Links from page to page lead to an end",
        "leave the link out on the last page";
    CF_ENDS: "EMM-3.2-ends", Must, Error / Warning, "emm-1.0 §3.1, §3.2, emm-0.1 §3.1, §3.2, iiif-discovery §3.1, §3.2", "The first page has no `prev`, and the last no `next`",
        "let `first` and `last` of the Entry Point name the ends of the feed";
    CF_ORDER: "EMM-3.2-order", Must, Error / Error, "emm-1.0 §3.2, emm-0.1 §3.2, iiif-discovery §3.2", "Activities of a page are in the order of their times",
        "sort them, on every page in the same direction: readers stop at the first one that they know";
    CF_PAGE_ORDER: "EMM-3.2-page-order", Must, Error / Error, "emm-1.0 §3.2, emm-0.1 §3.2, iiif-discovery §3.2", "Pages are in the order of their activities",
        "arrange the pages in the direction of the activities on them";
    IIIF_ORDER: "IIIF-3.2-order", Must, Error / Error, "iiif-discovery §3.2", "The newest activity of a feed of IIIF is the last one of `last`",
        "sort by `endTime`, the oldest first: readers go back from the end";
    EMM_TYPE: "EMM-3.3-type", Must, Error / Error, "emm-1.0 §3.3, §4, emm-0.1 §4.1, §5", "`type` of an activity is Create, Add, Update, Delete, Remove or Deprecate",
        "use Create, Add, Update, Deprecate, Remove or Delete";
    IIIF_TYPE: "IIIF-3.3-type", Must, Error / Error, "iiif-discovery §3.3", "`type` of an activity of IIIF is a registered type",
        "use Create, Update, Delete, Move, Add, Remove or Refresh";
    IIIF_TYPE_OTHER: "IIIF-3.3-type-known", Should, Note / Note, "iiif-discovery §3.3", "`type` of an activity of IIIF is one that readers know",
        "use Create, Update, Delete, Move, Add, Remove or Refresh";
    CF_TYPE_STRING: "EMM-3.3-type-string", Practice, Warning / Note, "emm-1.0 §3.3, emm-0.1 §4.1, iiif-discovery §3.3", "`type` of an activity is one string, without a prefix",
        "write for example \"Update\": readers compare strings";
    EMM_DATE: "EMM-3.3-date", Must, Error / Error, "emm-1.0 §3.3, emm-0.1 §4.1", "An activity has a time: `published` or `endTime`",
        "add `published`, the time at which the activity was added to the feed";
    EMM_PUBLISHED: "EMM-3.3-published", Recommended, Note / Note, "emm-1.0 §3.3", "The time of an activity is `published`",
        "add `published`";
    EMM01_PUBLISHED: "EMM01-4.1-published", Should, Warning / Note, "emm-0.1 §4.1", "The time of an activity of version 0.1 is `published`",
        "add `published`";
    IIIF_END_TIME: "IIIF-3.3-end-time", Should, Warning / Note, "iiif-discovery §3.3", "An activity of IIIF has `endTime`",
        "add it: readers must fetch all resources otherwise";
    IIIF_UTC: "IIIF-3.3-utc", Must, Error / Note, "iiif-discovery §3.3", "Times of IIIF are in UTC",
        "write them with `Z`";
    CF_FUTURE: "EMM-3.3-future", Practice, Warning / Note, "emm-1.0 §3.3, emm-0.1 §4.1, iiif-discovery §3.3", "Times are not later than the server's clock",
        "stamp changes when they are made: a reader never asks again for what is before the latest time";
    EMM_ACTIVITY_SUMMARY: "EMM-3.3-summary", Recommended, Note / Note, "emm-1.0 §3.3, emm-0.1 §4.1", "An activity has a `summary`",
        "state the type of the change and the label of the entity";
    EMM01_ID: "EMM01-4.1-id", Must, Error / Note, "emm-0.1 §4.1", "An activity of version 0.1 has an `id`, an HTTP(S) URI",
        "write the address of the activity's own document";
    EMM01_ID_SERVED: "EMM01-4.1-id-served", Must, Error / Note, "emm-0.1 §4.1", "An activity of version 0.1 is available at its `id` (sampled)",
        "publish a document for each activity";
    IIIF_ID: "IIIF-3.3-id", Must, Error / Note, "iiif-discovery §3.3", "`id` of an activity of IIIF is an HTTP(S) URI",
        "write an address, or leave it out";
    IIIF_ID_SERVED: "IIIF-3.3-id-served", Must, Error / Note, "iiif-discovery §3.3", "An activity of IIIF that is a document of its own is at its `id`",
        "publish the document there, or correct the `id`";
    EMM_ACTIVITY_PART_OF: "EMM-3.3-part-of", Must, Error / Note, "emm-1.0 §3.3, emm-0.1 §4.1", "`partOf` of an activity is the URL of its page, as a string",
        "write the `id` of the page, or leave it out";
    EMM_OBJECT: "EMM-3.3-object", Must, Error / Error, "emm-1.0 §3.3, emm-0.1 §4.1", "`object` of an activity is an object with `id`, the IRI of the entity",
        "write for example {\"id\": \"https://…\", \"type\": \"https://…\", \"updated\": \"…\"}";
    EMM_OBJECT_TYPE: "EMM-3.3-object-type", Recommended, Note / Note, "emm-1.0 §3.3, emm-0.1 §4.1", "`object` of an activity has a `type`",
        "add the class of the entity, as an IRI";
    EMM_OBJECT_UPDATED: "EMM-3.3-object-updated", Recommended, Note / Note, "emm-1.0 §3.3, emm-0.1 §4.1", "`object` of an activity has `updated`",
        "add the time at which the entity changed";
    IIIF_OBJECT: "IIIF-3.3-object", Must, Error / Error, "iiif-discovery §3.3", "`object` of an activity of IIIF has `id`, an HTTP(S) URI, and `type`",
        "write for example {\"id\": \"https://…/manifest.json\", \"type\": \"Manifest\"}";
    IIIF_OBJECT_MEMBERS: "IIIF-3.3-members", Must, Error / Note, "iiif-discovery §3.3", "`canonical` of an `object` or `target` of IIIF is a URI, `seeAlso` is an array of objects with `id` and the `type` Dataset, `provider` of objects with a URI as `id`, the `type` Agent and a language map as `label`",
        "write for example \"seeAlso\": [{\"id\": \"https://…\", \"type\": \"Dataset\"}]";
    IIIF_ACTOR: "IIIF-3.3-actor", Must, Error / Note, "iiif-discovery §3.3", "`actor` of an activity of IIIF is an object with `id`, and the `type` Application, Organization or Person",
        "write for example {\"id\": \"https://…\", \"type\": \"Organization\"}";
    IIIF_TARGET: "IIIF-3.3-target", Must, Error / Error, "iiif-discovery §3.3", "A `Move` has a `target` with `id` and `type` that is not its `object`",
        "add where the resource is now";
    EMM_APPEARANCE: "EMM-4.1-first", Must, Error / Note, "emm-1.0 §4.1, emm-0.1 §5.1", "The first activity of an entity is `Create` or `Add`",
        "write `Add` for entities that the feed begins with, or link to a full download that has them";
    EMM_DEREFERENCE: "EMM-4.1-available", Must, Error / Warning, "emm-1.0 §4.1, emm-0.1 §5.1, iiif-discovery §3.3", "An entity that is not deleted can be fetched (sampled)",
        "publish its description, or its deletion";
    CF_AFTER_DELETE: "EMM-4.4-after", Practice, Warning / Note, "emm-1.0 §4.1, §4.4, emm-0.1 §5.1, §5.3, iiif-discovery §3.3", "An entity that was deleted or removed is created or added before it changes again",
        "write `Create` or `Add` when it is back";
    EMM01_INSTRUMENT: "EMM01-4.2-instrument", Must, Error / Warning, "emm-0.1 §4.2", "`instrument` of an activity leads to its Entity Patch, of the type rdf_patch (sampled)",
        "write for example {\"type\": \"rdf_patch\", \"id\": \"https://…/instrument/1\"}";
    EMM01_PATCH: "EMM01-4.2-document", Must, Error / Warning, "emm-0.1 §4.2", "An Entity Patch has `type`, `id`, `partOf` its activity, and `content`",
        "write the members as the example of the specification has them";
    PATCH_SYNTAX: "EMM01-4.2-syntax", Must, Error / Error, "emm-0.1 §4.2, rdf-patch §Structure", "The content of an Entity Patch is RDF Patch",
        "write a row a line, with terms of N-Triples: readers fetch the whole entity otherwise";
    PATCH_STRICT: "EMM01-4.2-strict", Practice, Note / Note, "rdf-patch §Structure", "RDF Patch is written as its specification has it, not as the examples of EMM 0.1 do",
        "write strings in double quotes, and a space and a dot at the end of each row, between TX and TC";
    PATCH_SUBJECT: "EMM01-4.2-subject", Practice, Warning / Note, "emm-0.1 §4.2, §7.1", "An Entity Patch changes statements of its entity and of the blank nodes in them only",
        "write `object.id` exactly as the subject; changes of other entities are activities of their own";
    PATCH_CHAIN: "EMM01-4.2-chain", Practice, Warning / Note, "rdf-patch-logs §Header Information", "`H prev` is the patch before it in the log or of the entity, `H entityPrev` that of the entity",
        "write the `H id` of the patch before it: readers apply none that does not follow";
    PATCH_DIGEST: "EMM01-4.2-digest", Practice, Error / Error, "rdf-patch §Header", "A patch applies to what the one before it of the entity results in, and results in what it states",
        "make the patch from the two descriptions as they were published";
    IIIF_MEDIA_TYPE: "IIIF-4.1-media-type", Should, Warning / Note, "iiif-discovery §4.1", "Documents of IIIF are application/ld+json with the profile, or application/json",
        "answer with Content-Type: application/ld+json;profile=\"http://iiif.io/api/discovery/1/context.json\"";
    IIIF_CORS: "IIIF-4.1-cors", Should, Warning / Note, "iiif-discovery §4.1", "Documents of IIIF can be read by scripts of any web page",
        "send Access-Control-Allow-Origin: *";
    CF_CORS: "FETCH-3.3-cors", Practice, Note / Note, "fetch §3.3", "Documents of a change feed can be read by scripts of any web page",
        "send Access-Control-Allow-Origin: *";
    CF_SKIP_TO: "EMM-B.2-skip-to", Practice, Warning / Note, "emm-1.0 §B.2", "`skip-to`, if it is offered, leads to the page with the first activity since a time",
        "redirect to the page, or leave it out";

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

    // The walk itself.
    LIMIT: "WALK-limit", Practice, Warning / Warning, "rs-core §6.2", "Everything was checked within the limits",
        "raise the limit if it is an option; what is beyond it was not checked";
    OTHER_HOST: "WALK-other-host", Practice, Note / Note, "rs-core §6.2", "Documents and sampled resources are on the host that was given",
        "run again with `--allow-host` to check it too";
}
