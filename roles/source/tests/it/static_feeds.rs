//! Change feeds in static sites: their files, later builds, and builds that are stopped at any
//! point.

use crate::world::{BASE, World};
use abreast_core::{Beginning, Change, ChangeLog, Description, NewSet, SetId, State, SystemClock};
use abreast_source::projection::emm::{ChangeFeeds, FeedOptions};
use abreast_source::projection::{Projection, ResolvedDocument, SiteDocument};
use abreast_source::publish::{PublishError, PublishedSet, Publisher, SourceUrls};
use abreast_source::static_site::{SiteError, SiteOptions, SiteReport, write_site};
use abreast_store::{SqliteLog, SqliteOptions};
use abreast_testkit::folder::in_memory;
use abreast_webtypes::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PROFILES: [&str; 3] = ["emm/0.1", "emm/1.0", "iiif"];
/// Number of positions on a page.
const PER_PAGE: u64 = 3;

/// A static site of a set whose log contains every resource.
struct Place {
    temporary: tempfile::TempDir,
    log: Arc<dyn ChangeLog>,
    set: SetId,
}

impl Place {
    fn new() -> Self {
        let temporary = in_memory();
        let (log, set) = begun();
        Self { temporary, log, set }
    }

    fn site(&self) -> PathBuf {
        self.temporary.path().join("site")
    }

    /// Appends `count` changes of entities.
    fn change(&self, count: u64) {
        for _ in 0..count {
            let number = self.log.head(self.set).unwrap().position.0;
            let class = "http://www.w3.org/2004/02/skos/core#Concept";
            let description =
                Description { types: vec![class.to_owned()], labels: Vec::new(), media_type: None };
            let state = State {
                modified: Timestamp::from_seconds(number as i64),
                description: Some(Box::new(description)),
                ..State::default()
            };
            let key = format!("http://id.example/{}", number % 4);
            abreast_core::append(&*self.log, self.set, vec![Change::put(&key, state)]).unwrap();
        }
    }

    fn published(&self) -> PublishedSet {
        let urls = SourceUrls::new(BASE).set("set").of_entities("http://id.example/").in_files();
        PublishedSet::new(self.set, "set", urls)
    }

    /// A publisher of the feeds only, so that every document is part of a feed.
    fn publisher(&self, set: PublishedSet, feeds: impl Projection) -> Publisher {
        let folder = self.temporary.path().join("documents");
        Publisher::new(Arc::clone(&self.log), SourceUrls::new(BASE), [set], folder)
            .unwrap()
            .with_projections(vec![Box::new(feeds)])
    }

    fn build(&self) -> SiteReport {
        write(&self.publisher(self.published(), feeds()), &self.site())
    }

    fn assert_right(&self) {
        let last = self.log.head(self.set).unwrap().position.0;
        for profile in PROFILES {
            let found = walk(&self.site(), profile).unwrap();
            assert_eq!(numbers(&found), (1..=last).collect::<Vec<_>>(), "{profile}");
        }
    }
}

fn begun() -> (Arc<dyn ChangeLog>, SetId) {
    let log: Arc<dyn ChangeLog> = Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
    let new = NewSet { slug: "set".into(), beginning: Beginning::Log, ..NewSet::default() };
    let set = log.open_set(&new).unwrap().id;
    (log, set)
}

fn feeds() -> ChangeFeeds {
    ChangeFeeds::default().with_positions_per_page(PER_PAGE)
}

fn write(publisher: &Publisher, site: &Path) -> SiteReport {
    write_site(publisher, site, SiteOptions::default(), &AtomicBool::new(false)).unwrap()
}

/// Reads a document of the site, and checks that its `id` is its address.
fn read(site: &Path, url: &str) -> Value {
    let path = url.strip_prefix(BASE).unwrap_or_else(|| panic!("{url} is not of this site"));
    let bytes = std::fs::read(site.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(document["id"], url, "a document is at its address");
    document
}

fn id_of(document: &Value, name: &str) -> Option<String> {
    Some(document[name]["id"].as_str()?.to_owned())
}

/// The pages of a feed, read in both directions; `None` if the Entry Point does not exist yet.
fn walk(site: &Path, profile: &str) -> Option<Vec<Value>> {
    let entry = format!("set/{profile}/collection.json");
    if !site.join(&entry).exists() {
        return None;
    }
    let entry = read(site, &format!("{BASE}{entry}"));
    let along = |begin: &str, link: &str| {
        let (mut pages, mut next) = (Vec::new(), id_of(&entry, begin));
        while let Some(url) = next {
            let page = read(site, &url);
            assert_eq!(page["partOf"]["id"], entry["id"]);
            next = id_of(&page, link);
            pages.push(page);
        }
        pages
    };
    let (forward, mut back) = (along("first", "next"), along("last", "prev"));
    back.reverse();
    // A stopped build may have written pages that the Entry Point does not link to yet.
    assert_eq!(back, forward[..back.len()]);
    Some(forward)
}

fn items(page: &Value) -> &Vec<Value> {
    page["orderedItems"].as_array().unwrap()
}

/// Positions of all activities, from the fragments of their addresses; each address must be an
/// address of its page.
fn numbers(pages: &[Value]) -> Vec<u64> {
    let number = |page: &Value, item: &Value| {
        let (at, number) = item["id"].as_str().unwrap().split_once('#').unwrap();
        assert_eq!(page["id"], at);
        number.parse().unwrap()
    };
    pages.iter().flat_map(|page| items(page).iter().map(move |item| number(page, item))).collect()
}

/// The files of the feeds: names, bytes and inodes.
fn files(site: &Path) -> BTreeMap<String, (Vec<u8>, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![site.join("set")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(site).unwrap().to_string_lossy().into_owned();
            found.insert(name, (std::fs::read(&path).unwrap(), path.metadata().unwrap().ino()));
        }
    }
    found
}

#[test]
fn a_static_site_has_the_feeds_of_all_changes() {
    let place = Place::new();
    for count in [0, 1, 2, 1, 5, 3] {
        place.change(count);
        place.build();
        place.assert_right();
    }
    // 12 changes on 4 pages and an Entry Point, for each profile.
    assert_eq!(files(&place.site()).len(), 3 * 5);
    let entry = read(&place.site(), &format!("{BASE}set/emm/1.0/collection.json"));
    assert_eq!(entry["totalItems"], 12);
    // The feed contains all entities, so it does not link to a full download.
    assert_eq!(entry["url"]["href"], format!("{BASE}set/about.html"));
    let page = read(&place.site(), &format!("{BASE}set/emm/1.0/page/1.json"));
    let description = &items(&page)[1]["object"]["url"];
    assert_eq!(description["href"], format!("{BASE}set/r/1.nt"));
    assert_eq!(description["mediaType"], "application/n-triples");
}

#[test]
fn a_document_of_a_static_feed_has_one_path() {
    let place = Place::new();
    place.change(4);
    let publisher = place.publisher(place.published(), feeds());
    for path in ["set/iiif/collection.json", "set/emm/0.1/page/1.json", "set/emm/1.0/page/2.json"] {
        let document: Value = serde_json::from_slice(&publisher.bytes(path).unwrap()).unwrap();
        assert_eq!(document["id"], format!("{BASE}{path}"));
    }
    for path in [
        "emm/1.0",
        "emm/1.0/",
        "emm/1.0/page/1",
        "emm/1.0/page/01.json",
        "emm/1.0/page/1.json/",
        "emm/1.0/page/1.json.gz",
        "emm/1.0/collection",
        "emm/1.0collection.json",
        "emm/1.0/newest/collection.json",
        "emm/1.0/newest/page/1.json",
        "emm/1.0/activity/1",
        "emm/1.0/skip-to",
        "patch/1",
        "init",
    ] {
        assert!(!publisher.is_document(&format!("set/{path}")), "{path}");
    }
    assert!(matches!(publisher.bytes("set/iiif/page/3.json"), Err(PublishError::NotFound)));
}

#[test]
fn closed_pages_are_neither_made_nor_written_again() {
    let place = Place::new();
    place.change(7);
    place.build();
    let before = files(&place.site());
    assert_eq!(place.build().written, 0);
    // The next build does not read the closed pages.
    let closed = ["emm/0.1/page/1", "emm/1.0/page/2", "iiif/page/1"];
    let closed = closed.map(|path| place.site().join(format!("set/{path}.json")));
    for path in &closed {
        std::fs::write(path, "altered").unwrap();
    }
    place.change(1);
    let report = place.build();
    // The open page and the Entry Point of each profile.
    assert_eq!((report.written, report.unchanged), (6, 6));
    for path in &closed {
        assert_eq!(std::fs::read(path).unwrap(), b"altered");
    }
    let after = files(&place.site());
    for (name, file) in &before {
        let is_open = name.contains("/page/3") || name.ends_with("collection.json");
        assert_eq!(after[name].1 != file.1, is_open, "{name}");
    }
}

#[test]
fn closed_pages_of_another_origin_are_made_again() {
    let mut place = Place::new();
    place.change(7);
    place.build();
    let options = FeedOptions { object_type: Some("Manifest".into()), ..FeedOptions::default() };
    let of_manifests = place.published().with(Some(Arc::new(options)));
    let elsewhere = SourceUrls::new(BASE)
        .set("set")
        .of_entities("http://id.example/")
        .in_files()
        .with_resources("https://data.example/");
    let moved = PublishedSet::new(place.set, "set", elsewhere);
    assert_eq!(write(&place.publisher(of_manifests, feeds()), &place.site()).written, 0);
    assert!(write(&place.publisher(moved, feeds()), &place.site()).written >= 9);
    let page = read(&place.site(), &format!("{BASE}set/iiif/page/1.json"));
    assert_eq!(items(&page)[0]["object"]["url"]["href"], "https://data.example/0.nt");
    place.build();
    // The store is lost, and the record of the site remains: other changes have the same positions.
    (place.log, place.set) = begun();
    place.change(7);
    let expected = place.log.head(place.set).unwrap().time.to_string();
    place.build();
    place.assert_right();
    let first = read(&place.site(), &format!("{BASE}set/iiif/page/1.json"));
    let last = read(&place.site(), &format!("{BASE}set/iiif/page/3.json"));
    assert_eq!(items(&last)[0]["endTime"], expected);
    assert!(items(&first)[2]["endTime"].as_str() < items(&last)[0]["endTime"].as_str());
    let begun = place.log.head(place.set).unwrap().created.to_string();
    assert!(items(&first)[0]["endTime"].as_str() > Some(&begun), "{first:#}");
}

/// The feeds, in a build that is stopped after a number of documents.
struct Stopped {
    feeds: ChangeFeeds,
    left: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Projection for Stopped {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.feeds.resolve(publisher, path)
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        self.feeds.site(publisher)
    }
}

#[test]
fn links_lead_to_pages_wherever_a_build_is_stopped() {
    // From an open page to a full page, to the next page, and over several pages.
    for [before, more] in [[0, 1], [0, 10], [2, 1], [3, 1], [4, 9], [31, 5]] {
        for documents in 1.. {
            let place = Place::new();
            place.change(before);
            if before > 0 {
                place.build();
            }
            place.change(more);
            let stop = Arc::new(AtomicBool::new(false));
            let left = AtomicU64::new(documents);
            let stopped = Stopped { feeds: feeds(), left, stop: Arc::clone(&stop) };
            let publisher = place.publisher(place.published(), stopped);
            let result = write_site(&publisher, &place.site(), SiteOptions::default(), &stop);
            for profile in PROFILES {
                let found = walk(&place.site(), profile);
                assert!(found.is_some() || before == 0);
                // Changes may be missing, but no change is listed twice.
                let found = numbers(&found.unwrap_or_default());
                assert!(found.len() as u64 >= before);
                assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>());
            }
            let is_complete = result.is_ok();
            assert!(is_complete || matches!(result, Err(SiteError::Stopped)));
            place.build();
            place.assert_right();
            assert_eq!(place.build().written, 0);
            if is_complete {
                break;
            }
        }
    }
}

#[test]
fn feeds_of_files_lead_to_documents_of_the_site() {
    let mut world = World::new();
    world.write("old.json", "{}");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    let build = |world: &World, gzip| {
        world.scan();
        let urls = SourceUrls::new(BASE).set("set").in_files();
        let publisher =
            world.publisher_of(PublishedSet { urls, ..world.published() }).with_projection(feeds());
        let site = world.temporary.path().join("site");
        let options = SiteOptions { copy: true, gzip, reread: false };
        write_site(&publisher, &site, options, &AtomicBool::new(false)).unwrap()
    };
    for number in 0..7 {
        world.write(&format!("new {number}.json"), "[]");
    }
    build(&world, true);
    let site = world.temporary.path().join("site");
    for profile in PROFILES {
        let pages = walk(&site, profile).unwrap();
        assert_eq!(numbers(&pages), (1..=7).collect::<Vec<_>>());
        for item in pages.iter().flat_map(items) {
            let resource = item["object"]["id"].as_str().unwrap().strip_prefix(BASE).unwrap();
            assert!(site.join(resource.replace("%20", " ")).is_file(), "{resource}");
        }
        let entry = read(&site, &format!("{BASE}set/{profile}/collection.json"));
        let downloads = entry["url"].as_array().unwrap();
        assert_eq!(downloads[0]["href"], format!("{BASE}set/resourcelist.xml"));
        for link in downloads {
            assert!(
                site.join(link["href"].as_str().unwrap().strip_prefix(BASE).unwrap()).is_file()
            );
        }
        for path in [format!("set/{profile}/collection.json"), format!("set/{profile}/page/2.json")]
        {
            assert!(site.join(format!("{path}.gz")).is_file(), "{path}");
            for page in ["set/about.html", ".well-known/host-meta", ".well-known/host-meta.json"] {
                let text = std::fs::read_to_string(site.join(page)).unwrap();
                let has = text.contains(&format!("{BASE}{path}\""));
                assert_eq!(has, path.ends_with("collection.json"), "{path} in {page}");
            }
        }
    }
    let page = std::fs::read_to_string(site.join("set/about.html")).unwrap();
    assert!(page.contains("<th scope=\"row\">Change feed (EMM 1.0)</th><td><a href="), "{page}");

    // Store and record are lost: the build recognises the site, which has pages of the earlier
    // history.
    let names = |place: &Path| -> BTreeSet<String> { files(place).into_keys().collect() };
    let before = names(&site);
    std::fs::remove_dir_all(site.join(".abreast")).unwrap();
    let clock = Arc::new(SystemClock);
    let store = world.temporary.path().join("other.db");
    world.log = Arc::new(SqliteOptions::default().open(&store, clock).unwrap());
    world.set = world.log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
    world.scan();
    world.log.complete_import(world.set).unwrap();
    build(&world, true);
    assert_eq!(numbers(&walk(&site, "iiif").unwrap()), [0; 0]);
    assert_eq!(names(&site), before, "visitors with an old page find the others");
    build(&world, true);
    assert!(!site.join("set/iiif/page/2.json").exists());
    for number in 0..7 {
        world.write(&format!("new {number}.json"), "[1]");
    }
    build(&world, false);
    assert_eq!(numbers(&walk(&site, "emm/0.1").unwrap()), (1..=7).collect::<Vec<_>>());
}
