//! Documents of a log that was restarted: every address in a document exists, also if nothing has
//! changed since the restart.

use crate::world::{BASE, World, body};
use abreast_core::{Beginning, Change, Description, NewSet, SetId, State, SystemClock, append};
use abreast_source::projection::emm::ChangeFeeds;
use abreast_source::projection::resourcesync_0_1::ResourceSync01;
use abreast_source::projection::sdshare::SdShare;
use abreast_source::publish::{PublishError, PublishedSet, Publisher, SourceUrls};
use abreast_source::static_site::{SiteOptions, write_site};
use abreast_source::versions::VersionUrls;
use abreast_store::SqliteLog;
use abreast_store::backup::restart_log;
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const CONCEPT: &str = "http://www.w3.org/2004/02/skos/core#Concept";
const PROFILES: [&str; 3] = ["emm/0.1", "emm/1.0", "iiif"];
const VIEWS: [&str; 6] = ["", "/newest", "/latest", "/patches", "/labels", "/type/Concept"];

/// A set of files, and a set of entities.
struct Place {
    world: World,
    entities: SetId,
}

impl Place {
    fn new() -> Self {
        let world = World::begun();
        let beginning = Beginning::Log;
        let new = NewSet { slug: "entities".into(), beginning, ..NewSet::default() };
        let entities = world.log.open_set(&new).unwrap().id;
        Self { world, entities }
    }

    fn change(&self, count: usize) {
        for number in 0..count {
            let description = Description {
                types: vec![CONCEPT.to_owned()],
                labels: Vec::new(),
                media_type: None,
            };
            let state = State {
                modified: Timestamp::from_seconds(number as i64),
                description: Some(Box::new(description)),
                ..State::default()
            };
            let (log, name) = (&*self.world.log, number % 4);
            let key = format!("http://id.example/{name}");
            append(log, self.entities, vec![Change::put(&key, state.clone())]).unwrap();
            append(log, self.world.set, vec![Change::put(name.to_string(), state)]).unwrap();
        }
    }

    fn restart(&mut self) {
        let path = self.world.temporary.path().join("source.db");
        // Only one program can open the store.
        self.world.log =
            Arc::new(abreast_store::SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
        restart_log(&path, Timestamp::from_seconds(0)).unwrap();
        self.world.log = Arc::new(SqliteLog::open(&path, Arc::new(SystemClock)).unwrap());
    }

    fn publisher(&self, per_page: u64, in_files: bool) -> Publisher {
        let (world, source) = (&self.world, SourceUrls::new(BASE));
        let urls = [source.set("set"), source.set("entities").of_entities("http://id.example/")];
        let urls = urls.map(|urls| if in_files { urls.in_files() } else { urls });
        let [files, entities] = urls;
        let versions = VersionUrls::new(&source, "entities", entities.naming());
        let sets = [
            PublishedSet { urls: files, ..world.published() },
            PublishedSet {
                versions: Some(versions).filter(|_| !in_files),
                ..PublishedSet::new(self.entities, "entities", entities)
            },
        ];
        let folder = world.temporary.path().join("documents");
        let publisher = Publisher::new(Arc::clone(&world.log), source, sets, folder)
            .unwrap()
            .with_projection(ChangeFeeds::default().with_positions_per_page(per_page))
            .with_projection(ResourceSync01::default());
        if in_files { publisher } else { publisher.with_projection(SdShare::default()) }
    }
}

/// Reads every linked document, starting at the well-known addresses, and returns the number of
/// documents.
fn crawl(publisher: &Publisher) -> usize {
    let begins = [".well-known/resourcesync", ".well-known/host-meta", "robots.txt", "sdshare"];
    let mut waiting: Vec<String> = begins.map(|path| format!("{BASE}{path}")).into();
    for set in ["set", "entities"] {
        let feeds = PROFILES.iter().flat_map(|profile| {
            VIEWS.iter().map(move |view| format!("{BASE}{set}/{profile}{view}"))
        });
        waiting.extend(feeds.filter(|url| publisher.is_document(&url[BASE.len()..])));
    }
    let (mut seen, mut documents) = (BTreeSet::new(), 0);
    while let Some(url) = waiting.pop() {
        let address = url.split('#').next().unwrap();
        if !seen.insert(address.to_owned()) {
            continue;
        }
        let path = &address[BASE.len()..];
        let document = match path.split_once('?') {
            Some((path, query)) if publisher.takes_query(path, query) => {
                publisher.queried(path, query)
            }
            // Addresses of resources and of topics are not documents.
            _ if !publisher.is_document(path) => continue,
            _ => publisher.document(path),
        };
        // Earlier descriptions are not stored permanently.
        let is_patch = path.ends_with("/instrument/1");
        let document = match document {
            Err(PublishError::NotKept) if is_patch => continue,
            other => other.unwrap_or_else(|error| panic!("{url}: {error}")),
        };
        documents += 1;
        let text = String::from_utf8(body(document.plain())).unwrap().replace("&amp;", "&");
        let named = text.split(BASE).skip(1).map(|rest| {
            let end = rest.find(['"', '\'', '<', '>', '\\', ' ', '\n', '\r']);
            format!("{BASE}{}", &rest[..end.unwrap_or(rest.len())])
        });
        waiting.extend(named);
    }
    documents
}

#[test]
fn whatever_a_document_names_is_there() {
    for before in [0, 3, 10, 11] {
        let mut place = Place::new();
        place.change(before);
        for (restarts, changes) in [(0, 0), (1, 0), (0, 1), (0, 9), (2, 0), (0, 10)] {
            for _ in 0..restarts {
                place.restart();
            }
            place.change(changes);
            for per_page in [1, 5, 7, 1_000] {
                let documents = crawl(&place.publisher(per_page, false));
                // At least an Entry Point and a page for each of the 2 * 3 feeds and their views.
                assert!(documents >= 50, "{documents}");
            }
        }
    }
}

#[test]
fn there_are_no_pages_of_the_log_before() {
    let mut place = Place::new();
    place.change(12);
    place.restart();
    let head = place.world.log.head(place.entities).unwrap();
    assert!(!head.has_changes() && head.position.0 > 12);
    let publisher = place.publisher(5, false);
    let there = |profile: &str, view: &str, number: u64| {
        publisher.document(&format!("entities/{profile}{view}/page/{number}")).is_ok()
    };
    let last = head.position.0 / 5 + 1;
    for profile in PROFILES {
        for view in if profile == "iiif" { &VIEWS[..1] } else { &VIEWS } {
            assert!(there(profile, view, last), "{profile}{view}");
            for other in [1, 2, 3, last - 1, last + 1] {
                assert!(!there(profile, view, other), "{profile}{view}: page {other}");
            }
        }
    }
}

#[test]
fn a_static_site_has_whatever_its_documents_name() {
    let mut place = Place::new();
    place.change(11);
    for changes in [0, 1, 9] {
        place.change(changes);
        let site = place.world.temporary.path().join("site");
        let publisher = place.publisher(5, true);
        write_site(&publisher, &site, SiteOptions::default(), &AtomicBool::new(false)).unwrap();
        drop(publisher);
        for profile in PROFILES {
            let feed = site.join(format!("entities/{profile}"));
            let read = |path: &str| -> serde_json::Value {
                serde_json::from_slice(&std::fs::read(feed.join(path)).unwrap()).unwrap()
            };
            let entry = read("collection.json");
            for end in ["first", "last"] {
                let url = entry[end]["id"].as_str().unwrap();
                let (_, page) = url.split_once(&format!("{profile}/")).unwrap();
                assert_eq!(read(page)["id"], *url);
            }
        }
        place.restart();
    }
}
