//! Settings of a set, and of the tables in it.

use super::declare::{Needed, Size, Time, settings};
use serde::Deserialize;
use std::path::PathBuf;

settings! {
    /// A set to publish ([publishing.md](publishing.md)). The flags and environment variables apply to the set of `abreast
    /// serve FOLDER` and not to the sets of a file.
    SET SetFile "[[set]]" {
        /// Name in URLs: small letters, digits, `.`, `_`, `-`. Default: made from the folder's name.
        name: Option<String>, flag "--name";
        /// Title for people. Default: the name.
        title: Option<String>, flag "--title";
        /// Description of the set on its page, `/NAME/about.html`: a few sentences.
        description: Option<String>;
        /// Terms of use: the address of a licence, or its name.
        licence: Option<String>;
        /// Contact: a mail address, or the address of a page.
        contact: Option<String>;
        /// Report of the last validation for the page of the set, written by `abreast validate --format json --output FILE`
        /// ([validating.md](validating.md#validation-on-the-page-of-a-set)).
        validation: Option<PathBuf>;
        /// Follow symbolic links: only relative ones that lead to published files of the same folder.
        follow_links: Option<bool> = false, flag "--follow-links";
        /// Publish what matches one of these patterns, and nothing else but what other rules take
        /// ([filters.md](filters.md)).
        #[serde(default)]
        include: Vec<String> = [], flag "--include";
        /// Do not publish what matches one of these patterns, as in `.gitignore`.
        #[serde(default)]
        exclude: Vec<String> = [], flag "--exclude";
        /// Rules, `+ PATTERN` or `- PATTERN`: the first that matches decides, after `include` and `exclude`.
        #[serde(default)]
        filter: Vec<String> = [], flag "--filter";
        /// Files with such rules, one per line; they are tried after `filter`.
        #[serde(default)]
        filter_from: Vec<PathBuf> = [], flag "--filter-from";
        /// Copies of the Resource List at intervals, and closed Change Lists ([archives.md](archives.md)). Default: no
        /// archives.
        archives: Option<ArchivesFile>, table ARCHIVES;
        /// The folder to publish. Hidden files and temporary files of editors (`.x`, `x~`, `#x#`) are not published.
        #[serde(default)]
        folder: PathBuf;
        /// The origin of the resources: `folder`; `rdf`, entities described in RDF; `sparql`, entities described in an
        /// endpoint; or `records` of resources that live elsewhere, which come through the API.
        origin: Option<String> = "folder", flag "--origin";
        /// Entities only: the beginning of their IRIs, which their addresses leave out.
        namespace: Option<String>;
        /// Entities only: the beginning of IRIs for blank nodes that belong to several entities or to none. Default: each
        /// entity has a copy, and blank nodes of no entity are not published.
        skolemize: Option<String>, flag "--skolemize";
        /// Entities only: leave out statements that are not valid, in place of reading nothing ([rdf.md](rdf.md)).
        #[serde(default)]
        leave_out_invalid: bool = false;
        /// For `rdf` and `sparql`: contexts of JSON-LD that files name, each as `URL=FILE`, in addition to the bundled
        /// contexts ([rdf.md](rdf.md)).
        #[serde(default)]
        context: Vec<String> = [];
        /// For `rdf`: relative IRIs in a file are resolved against this and the path of the file in the folder. Default:
        /// relative IRIs are rejected.
        base: Option<String>, flag "--base";
        /// For `rdf`: the graphs whose statements count, `default` for statements without a graph. Default: all.
        #[serde(default)]
        graphs: Vec<String> = [];
        /// For `sparql`: the endpoint.
        endpoint: Option<EndpointFile>, table ENDPOINT;
        /// The older spelling of `origin = "records"`, which is still read.
        records: Option<bool>;
        /// Rules for links of resources.
        #[serde(default)]
        links: Vec<RuleFile> = [], table RULE;
        /// Categories of files, by their paths.
        #[serde(default)]
        categories: Vec<CategoryFile> = [], table CATEGORY;
        /// The documents of ResourceSync 0.1.
        resourcesync_0_1: Option<OptionsFile>, table RESOURCESYNC_0_1;
        /// Links of the set as a whole, on its Capability List.
        #[serde(default)]
        set_links: Vec<SetLinkFile> = [], table SET_LINK;
        /// Addresses that get the changes of the set as JSON.
        #[serde(default)]
        webhook: Vec<WebhookFile> = [], table WEBHOOK;
        /// Digests to compute: `md5`, `sha-256` or `both`. SHA-256 costs about three times as much as MD5.
        digests: Option<String> = "md5", flag "--digests";
        /// How long a path must be unchanged before it is read: files that may still be open for writing, and deletions.
        debounce: Option<Time> = "200ms", flag "--debounce";
        /// Wait also for files whose writer has finished, or that were moved into place. Otherwise they are read at once.
        wait_for_quiet: Option<bool> = false, flag "--wait-for-quiet";
        /// How long deletions are held when most of the set is missing; `0s` for not at all.
        hold_deletions: Option<Time> = "7d";
        /// Time between full scans, `0s` for none but the first; events find changes in between.
        rescan: Option<Time> = "1h", flag "--rescan";
        /// Time between scans that read every file, even if they seem unchanged; `0s` for none. For `sparql`: time
        /// between polls that rely on no version.
        reread: Option<Time> = "0s";
        /// Use the system's change events. Set `false` on network file systems, and shorten `rescan`.
        events: Option<bool> = true, flag "--no-events";
        /// Changes in one Change List, 1 to 50000.
        changes_per_list: Option<u32> = 5000, flag "--changes-per-list";
        /// Record the initial contents of the set as changes. Otherwise these are a list, and change feeds ([emm.md](emm.md)) have
        /// only later changes. Fixed once the set exists.
        initial_changes: Option<bool> = false;
        /// The type of the files in change feeds, such as `Manifest`. Default: by their media types.
        object_type: Option<String>;
        /// Entities only: the IRIs of the predicates of labels, or their names with a usual prefix such as
        /// `skos:prefLabel`, the best first: for pages, titles in feeds, and the feed of changes of labels
        /// ([emm.md](emm.md)). Default: `skos:prefLabel`, `rdfs:label` and the like.
        #[serde(default)]
        label_predicates: Vec<String> = [];
        /// Entities only: languages of labels in feeds and pages, the best first: `["de", "en"]`. Readers of pages get
        /// labels in their own languages first.
        #[serde(default)]
        languages: Vec<String> = ["en"];
        /// The node that the set's change sets are published to, if `[xmpp]` has an account. Default: the set's name.
        xmpp_node: Option<String>;
        /// Dumps: packages of all resources, and of changes ([dumps.md](dumps.md)). Default: no dumps.
        dumps: Option<DumpsFile>, table DUMPS, flag "--dumps", env "ABREAST_DUMPS";
        /// Earlier versions to publish ([versions.md](versions.md)): a number of them, `"all"`, or limits. Default: none, or
        /// as long as Change Dumps need them.
        versions: Option<VersionsFile>, table VERSIONS, flag "--versions", env "ABREAST_VERSIONS";
    }
}

settings! {
    /// A rule for links of resources ([links.md](links.md)).
    RULE RuleFile "[[set.links]]" {
        /// Which resources: `*.pdf` in any folder, or `records/**/*.xml` for the whole path.
        pattern: Needed<String>, key "match";
        /// Relation: a registered name or a URI.
        rel: Needed<String>;
        /// The target; `{stem}`, `{name}`, `{ext}`, `{dir}`, `{path}` and `{uri}` stand for parts of the resource's path.
        href: Needed<String>;
        /// Media type of the target.
        media_type: Option<String>, key "type";
        /// Content coding of the target.
        encoding: Option<String>;
        /// Priority among links of one relation, 1 to 999999.
        pri: Option<u32>;
        /// A name of the target for people.
        title: Option<String>;
        /// Only where the target is a published file of the set.
        if_exists: Option<bool> = false;
    }
}

settings! {
    /// A category of files in documents of ResourceSync 0.1 ([resourcesync-0.1.md](resourcesync-0.1.md)): a `uri`, perhaps
    /// with a `title`, or a `word`. In the other documents it is a link with the relation
    /// `http://purl.org/dc/terms/subject`.
    CATEGORY CategoryFile "[[set.categories]]" {
        /// Which resources: `*.pdf` in any folder, or `records/**/*.xml` for the whole path.
        pattern: Needed<String>, key "match";
        /// The URI of the category; it may have the placeholders of links.
        uri: Option<String>;
        /// Name of the category for people.
        title: Option<String>;
        /// A word, for a category without a URI.
        word: Option<String>;
    }
}

settings! {
    /// The documents of ResourceSync 0.1 ([resourcesync-0.1.md](resourcesync-0.1.md)).
    RESOURCESYNC_0_1 OptionsFile "`resourcesync_0_1`" {
        /// The base URL at which the same resources are offered over OAI-PMH.
        oai_pmh: Option<String>;
        /// Name the Sitemap in robots.txt, although search engines may refuse its elements.
        robots: Option<bool> = false;
    }
}

settings! {
    /// A link of the set as a whole, on its Capability List ([links.md](links.md)).
    SET_LINK SetLinkFile "[[set.set_links]]" {
        /// Relation: a registered name or a URI.
        rel: Needed<String>;
        /// The target.
        href: Needed<String>;
        /// Media type of the target.
        media_type: Option<String>, key "type";
    }
}

settings! {
    /// An address that gets the changes of the set as JSON, signed ([push.md](push.md)).
    WEBHOOK WebhookFile "[[set.webhook]]" {
        /// The address.
        url: Needed<String>;
        /// A file with the secret: `whsec_` and base64, or any text. Further lines are further secrets, up to 4: each request
        /// has a signature for each. If no secret is given here, `ABREAST_WEBHOOK_SECRET` is used.
        secret_file: Option<PathBuf>;
        /// A shell command that prints the same.
        secret_command: Option<String>;
    }
}

settings! {
    /// Copies of the Resource List at intervals, if something changed, and closed Change Lists
    /// ([archives.md](archives.md)).
    ARCHIVES ArchivesFile "`archives`" {
        /// Time between two archived Resource Lists.
        every: Needed<Time>;
        /// Number of archived Resource Lists, 1 to 10000.
        keep: Option<u32> = 52;
    }
}

settings! {
    /// Packages of all resources, and of changes ([dumps.md](dumps.md)).
    DUMPS DumpsFile "`dumps`" {
        /// Time between two Resource Dumps.
        every: Option<Time> = "1d";
        /// Make a Resource Dump only when one is requested, at most one in the time of `every`.
        on_demand: Option<bool> = false;
        /// Bytes of resources in one package.
        part_size: Option<Size> = "1GiB", flag "--dump-part-size";
        /// Number of Resource Dumps, the newest included.
        keep: Option<usize> = 2;
        /// Compression: `store` or `deflate`.
        compression: Option<String> = "store";
        /// Make Change Dumps too.
        changes: Option<bool> = false, flag "--change-dumps";
        /// Bytes of all packages of changes, of which the oldest are removed first.
        changes_size: Option<Size> = "10GiB";
    }
}

settings! {
    /// A SPARQL 1.1 endpoint with descriptions of entities ([rdf.md](rdf.md)). If no credentials are given
    /// here, `ABREAST_ENDPOINT_TOKEN`, `ABREAST_ENDPOINT_USER` with `ABREAST_ENDPOINT_PASSWORD`, or a login in the address
    /// are used.
    ENDPOINT EndpointFile "`endpoint`" {
        /// The address for queries.
        url: Needed<String>;
        /// Time between two polls.
        every: Option<Time> = "10m";
        /// The graph with the statements, or `*` for all named graphs. Default: the default graph.
        graph: Option<String>;
        /// A pattern that binds `?entity`, and perhaps `?version`: only entities with another version are described
        /// again. Default: all statements are fetched at once.
        entities: Option<String>;
        /// Entities described in one answer, 1 to 10000.
        batch: Option<usize> = 100;
        /// Longest time without a byte of an answer.
        timeout: Option<Time> = "5m";
        /// Most bytes of all statements, when they are fetched at once.
        max_size: Option<Size> = "16GiB";
        /// Log in as this user.
        user: Option<String>;
        /// The file with the password.
        password_file: Option<PathBuf>;
        /// The file with a bearer token.
        token_file: Option<PathBuf>;
        /// A PEM file with additional trusted certificates.
        ca_file: Option<PathBuf>;
    }
}

settings! {
    /// Limits of earlier versions, each optional; an empty table sets no limit ([versions.md](versions.md)). In place of the
    /// table, a number is its `count`, and `"all"` is an empty table.
    VERSIONS VersionsTable "`versions`" {
        /// Most versions of one resource, deletions and the current state included.
        count: Option<u32>;
        /// How long a version is kept after it was superseded.
        age: Option<Time>, flag "--versions-age";
        /// Most bytes of kept contents of the set, equal ones counted once.
        size: Option<Size>, flag "--versions-size";
    }
}

/// `versions` of a `[[set]]`: a number of versions, or a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number of 1 or more, `\"all\"`, or a table such as `{ count = 10, age = \"365d\" }`"
)]
pub(crate) enum VersionsFile {
    /// As `count` in the table.
    Count(u32),
    /// As an empty table.
    All(AllVersions),
    /// `{ count = 10, age = "365d", size = "10GB" }`
    Table(VersionsTable),
}

/// The word that stands for no bounds, as for `--versions`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum AllVersions {
    /// `"all"`
    #[serde(rename = "all")]
    All,
}
