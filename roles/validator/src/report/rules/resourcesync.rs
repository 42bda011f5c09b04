//! Rules of ResourceSync 1.1: documents, archives and notifications.

use crate::report::rule::Level::{Must, Practice, Recommended, Should};
use crate::report::rule::Rule;
use abreast_core::Severity::{Error, Note, Warning};

rules! {
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
}
