//! Cells that cannot occur, each with its reason.

use super::table::{
    AUDITED, CALLBACK, CHAIN, DUMPS, EMM_0_1, EMM_1_0, EMM_ON, EVENTS, HUB, IIIF, LISTS, NODE, OLD,
    SDSHARE,
};

const PUSHED: &[&str] = &[HUB, EVENTS, NODE, CALLBACK];
const READ: &[&str] = &[LISTS, CHAIN, DUMPS, OLD, SDSHARE, EMM_0_1, EMM_1_0, EMM_ON, IIIF];
const FEEDS: &[&str] = &[EMM_0_1, EMM_1_0, EMM_ON, IIIF];
const WITHOUT_LIST: &[&str] = &[EMM_ON, IIIF];

const PAGES: &str =
    "a pushed document has no pages; those of the Source are read as in the columns of its lists";
const NO_LINKS: &str = "the index names all pages, which have no links";
const NO_LIST: &str = "the feed alone shows which entities there are";
const NO_SPANS: &str = "pages do not state which time they cover";
const ONE_WAY: &str = "no link leads to newer pages";
const COPIES: &str = "what was pushed changes nothing about it: as in the columns of lists";

/// The start of the names of rows, the columns, and the reason.
pub(super) const REASONS: &[(&str, &[&str], &str)] = &[
    ("circle: ", PUSHED, PAGES),
    ("endless: ", PUSHED, PAGES),
    ("hole: ", PUSHED, PAGES),
    ("overlap: ", PUSHED, "as `pushed: a notification is repeated`"),
    ("closed: ", PUSHED, PAGES),
    ("pruned: ", PUSHED, PAGES),
    ("rewritten: ", PUSHED, PAGES),
    ("older list: ", PUSHED, PAGES),
    ("newer list: ", PUSHED, PAGES),
    ("order: ", PUSHED, PAGES),
    ("fault of a page: ", PUSHED, PAGES),
    ("fault of the list", PUSHED, PAGES),
    ("aborted: ", PUSHED, PAGES),
    ("passing fault: a page", PUSHED, PAGES),
    ("passing fault: the list", PUSHED, PAGES),
    ("restored copy: ", PUSHED, COPIES),
    ("lost copy: ", PUSHED, COPIES),
    ("moved server: ", PUSHED, COPIES),
    ("types: a misspelt namespace", FEEDS, "names have no namespaces that could be misspelt"),
    ("lengths: ", FEEDS, "lengths are not stated"),
    ("lengths: ", &[SDSHARE], "lengths are not stated"),
    (
        "older list: it is older than the first page",
        &[SDSHARE],
        "servers list what is after the time that is asked for: nothing shows what they removed",
    ),
    (
        "older list: it is older than the first page",
        &[EMM_0_1, EMM_1_0],
        "a feed may begin after its full download: nothing shows what was removed",
    ),
    ("pushed: ", READ, "nothing is pushed"),
    ("circle: a page ", &[LISTS, DUMPS], NO_LINKS),
    ("circle: a later page ", &[LISTS, DUMPS], NO_LINKS),
    ("circle: the last page ", &[LISTS, DUMPS], NO_LINKS),
    ("circle: the newest page ", &[LISTS, DUMPS], NO_LINKS),
    ("circle: the newest page ", &[CHAIN, OLD, SDSHARE, EMM_0_1], ONE_WAY),
    ("circle: the index ", &[CHAIN, OLD, SDSHARE], "there is no index"),
    ("circle: the index ", FEEDS, "there is no index"),
    (
        "circle: the entry point is its own newest ",
        &[LISTS, DUMPS, CHAIN, OLD, SDSHARE, EMM_ON],
        "the address of the Source names no page, or only the oldest",
    ),
    (
        "circle: the entry point is its own oldest ",
        &[LISTS, DUMPS, CHAIN, OLD, SDSHARE, EMM_0_1],
        "the address of the Source does not name the oldest page",
    ),
    ("endless: empty pages behind ", &[LISTS, DUMPS, EMM_ON], "no page leads to older ones"),
    ("endless: pages of long ago ", &[LISTS, DUMPS, EMM_ON], "no page leads to older ones"),
    ("endless: empty pages after ", &[LISTS, DUMPS, CHAIN, OLD, SDSHARE, EMM_0_1], ONE_WAY),
    ("coarse: spans ", &[EMM_ON, IIIF], "there are neither spans nor a list of all"),
    ("future: the list of all", WITHOUT_LIST, NO_LIST),
    ("coarse: changes in ", &[SDSHARE], "Atom has no times that are coarser than seconds"),
    ("coarse: all in ", &[SDSHARE], "Atom has no times that are coarser than seconds"),
    ("late: ", &[SDSHARE], "servers leave out what is before the time that is asked for"),
    ("hole: ", &[OLD, SDSHARE], NO_SPANS),
    ("hole: ", FEEDS, NO_SPANS),
    ("closed: ", &[SDSHARE], "a fragments feed is never closed"),
    ("closed: ", FEEDS, "the Entry Point names the pages, and is read in each run"),
    (
        "pruned: pages are removed",
        WITHOUT_LIST,
        "what was never read cannot be known from the rest",
    ),
    ("older list: ", WITHOUT_LIST, NO_LIST),
    ("newer list: ", WITHOUT_LIST, NO_LIST),
    ("fault of the list of all: ", WITHOUT_LIST, NO_LIST),
    ("aborted: the list of all", WITHOUT_LIST, NO_LIST),
    (
        "restored server: ",
        PUSHED,
        "what is pushed is believed for 15 minutes, whatever the lists say",
    ),
    ("future: all times", &[OLD, NODE, CALLBACK], "`expires` in the future is a deletion to come"),
    ("circle: the index ", &[DUMPS], "a dump names packages and no documents"),
    ("types: one change ", FEEDS, "an activity of another type need not be a change"),
    ("restored server: ", WITHOUT_LIST, "nothing shows that an entity was lost in a restore"),
    ("fault of an entity: garbage", &[IIIF], "a file without a digest is taken as it is"),
    ("fault of an entity: ", &[DUMPS], "entities come in packages"),
    ("passing fault: an entity", &[DUMPS], "entities come in packages"),
    (
        "types: all entries ",
        &[LISTS, CHAIN, DUMPS, HUB, EVENTS, NODE, CALLBACK],
        "there are no entries for other protocols",
    ),
    ("types: all entries ", FEEDS, "as `types: all changes are of unknown types`"),
    (
        "unsigned: ",
        &[OLD, SDSHARE, NODE, CALLBACK],
        "an entry has no last modification except the time of the change",
    ),
    ("unsigned: ", FEEDS, "an activity has no last modification except its time"),
    (AUDITED, &[DUMPS], "an audit compares with a Resource List, which there is not"),
];
