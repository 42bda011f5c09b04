//! Rules of Atom feeds and of SDShare.

use crate::report::rule::Level::{Must, Practice, Recommended, Should};
use crate::report::rule::Rule;
use abreast_core::Severity::{Error, Note, Warning};

rules! {
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
}
