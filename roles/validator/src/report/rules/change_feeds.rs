//! Rules of Activity Streams, Entity Metadata Management and IIIF Change Discovery.

use crate::report::rule::Level::{Must, Practice, Recommended, Should};
use crate::report::rule::Rule;
use abreast_core::Severity::{Error, Note, Warning};

rules! {
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
}
