//! The API: what is recorded through it is durable, in the log once, and published.

use crate::world::{BASE, Client, Reply, Served};
use abreast_core::{ChangeLog, Clock, KeyRange, NewSet, PageRule, Position, SetId, SystemClock};
use abreast_folder::Folder;
use abreast_server::api::{Api, ApiOptions, Readers, Scope, new_token, read_tokens, write_tokens};
use abreast_server::{ServedSet, ServerOptions, Site, TrustedProxies};
use abreast_source::Representations;
use abreast_source::deposit::Deposit;
use abreast_source::links::{LinkRecord, Links, RuleOptions};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::watch::{Watch, WatchOptions};
use abreast_source::{IngestOptions, WatchState};
use abreast_store::SqliteLog;
use abreast_testkit::eventually;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A watched folder `set` and a set of records `records`.
pub(crate) struct ApiWorld {
    pub(crate) temporary: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) files: SetId,
    pub(crate) records: SetId,
    pub(crate) served: Served,
    _watch: Watch,
}

pub(crate) struct Settings {
    pub(crate) write: bool,
    pub(crate) readers: Readers,
    pub(crate) local: bool,
    pub(crate) max_content: u64,
    pub(crate) body_time: Duration,
    pub(crate) trusted_proxies: TrustedProxies,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            write: true,
            readers: Readers::Anyone,
            local: false,
            max_content: 1 << 20,
            body_time: Duration::from_secs(60),
            trusted_proxies: TrustedProxies::default(),
        }
    }
}

impl ApiWorld {
    pub(crate) fn new(settings: &Settings) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("old.txt"), "old").unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let log: Arc<dyn ChangeLog> =
            Arc::new(SqliteLog::open(&temporary.path().join("source.db"), clock).unwrap());
        let page_rule = PageRule { changes: 50, ..PageRule::default() };
        let open = |slug: &str| {
            log.open_set(&NewSet { slug: slug.into(), page_rule, ..NewSet::default() }).unwrap().id
        };
        let (files, records) = (open("set"), open("records"));
        log.complete_import(records).unwrap();
        let urls = SourceUrls::new(BASE);
        let rule = RuleOptions {
            pattern: "*.pdf".into(),
            link: LinkRecord {
                rel: "describedby".into(),
                href: "{stem}.xml".into(),
                ..LinkRecord::default()
            },
            if_exists: true,
        };
        let links = Arc::new(Links::new(&[rule], &urls.set("set").resources()).unwrap());
        let ingest = IngestOptions {
            settle: Duration::ZERO,
            links: Arc::clone(&links),
            ..IngestOptions::default()
        };
        let deposit = Deposit::new(Arc::clone(&log), files, ingest.clone());
        let options = WatchOptions {
            ingest,
            debounce: Duration::from_millis(20),
            ..WatchOptions::new(&folder)
        };
        let watch = Watch::start(options, Arc::clone(&log), files);
        let representations =
            Representations::of_folder(Folder::open(&folder).unwrap(), Arc::clone(watch.status()));
        let published = [
            PublishedSet {
                representations,
                watch: Arc::clone(watch.status()),
                ..PublishedSet::new(files, "set", urls.set("set"))
            },
            PublishedSet::new(records, "records", urls.set("records")),
        ]
        .map(Arc::new);
        let sets = [
            ServedSet {
                published: Arc::clone(&published[0]),
                title: "Files".into(),
                link: abreast_server::set_link(&published[0]).unwrap(),
                links,
                deposit: Some(Arc::new(deposit)),
                entities: None,
            },
            ServedSet {
                published: Arc::clone(&published[1]),
                title: "Records".into(),
                link: abreast_server::set_link(&published[1]).unwrap(),
                links: Arc::default(),
                deposit: None,
                entities: None,
            },
        ]
        .into_iter()
        .collect();
        let documents = temporary.path().join("documents");
        let publisher = Publisher::new(Arc::clone(&log), urls, published, documents).unwrap();
        let api = Api::new(ApiOptions {
            write: settings.write,
            readers: settings.readers,
            local: settings.local,
            max_content: settings.max_content,
            body_time: settings.body_time,
            ..ApiOptions::new(temporary.path().join("tokens.json"))
        });
        let site = Site {
            publisher,
            sets,
            api: Some(api.unwrap()),
            hub: None,
            memory: abreast_server::Memory::default(),
            followers: abreast_server::Followers::default(),
            store: None,
            metrics: Arc::new(String::new),
        };
        let trusted_proxies = settings.trusted_proxies.clone();
        let server = ServerOptions { trusted_proxies, ..ServerOptions::default() };
        let served = Served::start(site, server);
        eventually("the folder is watched", || {
            matches!(watch.status().state(), WatchState::Watching)
        });
        Self { temporary, folder, log, files, records, served, _watch: watch }
    }

    /// A new token, which the server knows by the time this returns.
    pub(crate) fn token(&self, scope: Scope, sets: &[&str]) -> String {
        let path = self.temporary.path().join("tokens.json");
        let mut tokens = read_tokens(&path).unwrap();
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        let (secret, token) = new_token("test", scope, sets, "2026-01-01T00:00:00Z").unwrap();
        tokens.push(token);
        write_tokens(&path, &tokens).unwrap();
        let bearer = format!("Bearer {secret}");
        eventually("the server reads its tokens again", || {
            self.served.ask("GET", "/api/v1/sets", &[("Authorization", &bearer)]).status == 200
        });
        secret
    }

    pub(crate) fn positions(&self, set: SetId) -> u64 {
        self.log.head(set).unwrap().position.0
    }

    /// The log as `kind key`.
    fn changes(&self, set: SetId) -> Vec<String> {
        let mut changes = Vec::new();
        self.log
            .read(set, Position(0), &mut |record| {
                changes.push(format!("{:?} {}", record.kind, record.key));
                ControlFlow::Continue(())
            })
            .unwrap();
        changes
    }
}

impl Served {
    /// A request with a body and a token.
    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        token: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut client = self.connect();
        write_request(&mut client, method, target, token, more, body);
        client.reply(method).unwrap().unwrap()
    }
}

pub(crate) fn write_request(
    client: &mut Client,
    method: &str,
    target: &str,
    token: &str,
    more: &[(&str, &str)],
    body: &[u8],
) {
    let (length, bearer) = (body.len().to_string(), format!("Bearer {token}"));
    let mut headers = vec![("Content-Length", length.as_str())];
    if !token.is_empty() {
        headers.push(("Authorization", &bearer));
    }
    headers.extend(more);
    client.request(method, target, &headers);
    // A server that refuses may close before all is written.
    let _ = client.send(body);
}

pub(crate) fn json_of(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|_| panic!("{}", reply.text()))
}

const ELSEWHERE: &str = "https://repository.example.net/item/1";
const ELSEWHERE_IN_QUERY: &str = "uri=https%3A%2F%2Frepository.example.net%2Fitem%2F1";

#[test]
fn records_are_published_with_all_their_metadata() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &["records"]);
    let target = format!("/api/v1/sets/records/resource?{ELSEWHERE_IN_QUERY}");
    let record = json!({
        "lastmod": "2026-02-03T04:05:06Z", "length": 8876, "type": "text/html",
        "hash": "md5:1584abdf8ebdc9802ac0c6a7402c03b6",
        "links": [
            {"rel": "duplicate", "href": "http://mirror.example.com/1", "pri": 1, "modified": "2026-02-03T04:05:06Z"},
            {"rel": "http://www.openarchives.org/rs/terms/patch", "href": "https://repository.example.net/p", "type": "application/json-patch+json"},
            {"rel": "collection", "href": "https://repository.example.net/all"},
        ],
    });
    let put = world.served.send("PUT", &target, &token, &[], record.to_string().as_bytes());
    assert_eq!(
        (put.status, json_of(&put)),
        (200, json!({"head": 1, "recorded": 1, "unchanged": 0}))
    );
    let again = world.served.send("PUT", &target, &token, &[], record.to_string().as_bytes());
    assert_eq!(json_of(&again), json!({"head": 1, "recorded": 0, "unchanged": 1}));

    let read = json_of(&world.served.get(&target));
    assert_eq!((read["uri"].as_str(), read["position"].as_u64()), (Some(ELSEWHERE), Some(1)));
    assert_eq!(read["links"].as_array().unwrap().len(), 3);

    let list = world.served.get("/records/resourcelist.xml").text();
    assert!(list.contains(&format!("<loc>{ELSEWHERE}</loc>")), "{list}");
    let mirror = "<rs:ln href=\"http://mirror.example.com/1\" modified=\"2026-02-03T04:05:06Z\" pri=\"1\" rel=\"duplicate\"/>";
    assert!(list.contains(mirror) && list.contains("rel=\"collection\""), "{list}");
    assert!(!list.contains("terms/patch\" type"), "patches belong to changes: {list}");
    let changes = world.served.get("/records/changelist.xml").text();
    assert!(
        changes.contains(mirror)
            && changes.contains("rel=\"http://www.openarchives.org/rs/terms/patch\""),
        "{changes}"
    );

    let deleted = world.served.send("DELETE", &target, &token, &[], b"");
    assert_eq!(json_of(&deleted)["recorded"], 1);
    assert_eq!(world.served.get(&target).status, 404);
    assert_eq!(
        world.changes(world.records),
        [format!("Create {ELSEWHERE}"), format!("Delete {ELSEWHERE}")]
    );
}

#[test]
fn records_read_from_the_log_can_be_sent_unchanged() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let line = |n: u64| format!("{{\"uri\":\"https://a.example/{n}\",\"length\":{n}}}");
    let lines = (0..120).map(line).collect::<Vec<_>>().join("\n");
    let sent =
        world.served.send("POST", "/api/v1/sets/records/changes", &token, &[], lines.as_bytes());
    assert_eq!(json_of(&sent)["recorded"], 120);

    let mut after = 0;
    let mut seen = Vec::new();
    loop {
        let page = json_of(
            &world.served.get(&format!("/api/v1/sets/records/changes?after={after}&limit=50")),
        );
        after = page["next"].as_u64().unwrap();
        assert_eq!(page["head"], 120);
        let changes = page["changes"].as_array().unwrap().clone();
        if changes.is_empty() {
            break;
        }
        seen.extend(changes);
    }
    assert_eq!(seen.len(), 120);
    let positions: Vec<_> =
        seen.iter().map(|change| change["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, (1..=120).collect::<Vec<_>>());
    // From an instant on: exactly what came after it, on whatever page.
    for at in [1, 50, 51, 77, 119] {
        let since = seen[at - 1]["datetime"].as_str().unwrap();
        let page = json_of(
            &world.served.get(&format!("/api/v1/sets/records/changes?since={since}&limit=1")),
        );
        assert_eq!(page["changes"][0]["position"].as_u64(), Some(at as u64 + 1));
    }
    let again = world.served.send(
        "POST",
        "/api/v1/sets/records/changes",
        &token,
        &[],
        json!(seen).to_string().as_bytes(),
    );
    assert_eq!(
        (again.status, json_of(&again)["recorded"].as_u64()),
        (200, Some(0)),
        "{}",
        again.text()
    );
    let lines = world.served.ask(
        "GET",
        "/api/v1/sets/records/changes",
        &[("Accept", "application/x-ndjson")],
    );
    assert_eq!(lines.text().lines().count(), 120);
    assert_eq!(lines.header("content-type"), "application/x-ndjson");
}

#[test]
fn waiting_reader_gets_the_next_change() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| json_of(&world.served.get("/api/v1/sets/records/changes?after=0&wait=20")));
        world.served.send(
            "POST",
            "/api/v1/sets/records/changes",
            &token,
            &[],
            br#"[{"uri":"urn:x:1"}]"#,
        );
        assert_eq!(waiting.join().unwrap()["changes"][0]["uri"], "urn:x:1");
    });
}

#[test]
fn a_batch_is_recorded_whole_or_not_at_all() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let batch = br#"[{"uri":"urn:x:1"},{"uri":"urn:x:2","lastmod":"soon"},{"uri":"b","length":1}]"#;
    let reply = world.served.send("POST", "/api/v1/sets/records/changes", &token, &[], batch);
    let problem = json_of(&reply);
    assert_eq!(
        (reply.status, reply.header("content-type").as_str()),
        (422, "application/problem+json")
    );
    assert_eq!(problem["errors"][0]["change"], 2);
    assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("`lastmod`"), "{problem}");
    assert_eq!(problem["errors"][1]["change"], 3);
    assert_eq!(world.positions(world.records), 0);
}

#[test]
fn concurrent_use_of_an_idempotency_key_records_once() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let body: &[u8] = br#"[{"uri":"urn:x:1","length":1},{"uri":"urn:x:1","length":2}]"#;
    let post = |key: &str, body: &[u8]| {
        world.served.send(
            "POST",
            "/api/v1/sets/records/changes",
            &token,
            &[("Idempotency-Key", key)],
            body,
        )
    };
    let recorded: u64 = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..8).map(|_| scope.spawn(|| post("one", body))).collect();
        senders
            .into_iter()
            .map(|sender| json_of(&sender.join().unwrap())["recorded"].as_u64().unwrap())
            .sum()
    });
    assert_eq!((recorded, world.positions(world.records)), (2, 2));
    let other = post("one", br#"[{"uri":"urn:x:2"}]"#);
    assert_eq!(
        (other.status, json_of(&other)["type"].as_str().unwrap().ends_with("key-reused")),
        (422, true)
    );
    assert_eq!(json_of(&post("two", br#"[{"uri":"urn:x:2"}]"#))["recorded"], 1);
    // A change's own key holds over requests.
    let own: &[u8] = br#"[{"uri":"urn:x:3","length":1,"idempotency_key":"mine"}]"#;
    assert_eq!(json_of(&post("three", own))["recorded"], 1);
    let moved: &[u8] = br#"[{"uri":"urn:x:3","length":7,"idempotency_key":"mine"}]"#;
    assert_eq!(json_of(&post("four", moved))["recorded"], 0);
}

#[test]
fn two_changes_of_a_batch_with_one_key_are_refused() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let post = |body: &str| {
        let target = "/api/v1/sets/records/changes";
        world.served.send("POST", target, &token, &[], body.as_bytes())
    };
    let change =
        |uri: &str| format!("{{\"uri\":\"{uri}\",\"length\":1,\"idempotency_key\":\"k\"}}");
    let refused = post(&format!("[{},{}]", change("urn:x:1"), change("urn:x:2")));
    assert_eq!((refused.status, world.positions(world.records)), (422, 0));
    let problem = json_of(&refused);
    assert_eq!(problem["errors"][0]["change"], 2, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("is that of change 1 as well"));
    // The same change twice is one that was sent again.
    let twice = post(&format!("[{},{}]", change("urn:x:1"), change("urn:x:1")));
    assert_eq!(json_of(&twice)["recorded"], 1);
}

#[test]
fn an_idempotency_key_used_for_another_resource_hides_nothing() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let send = |method: &str, number: u8, key: &str| {
        let target = format!("/api/v1/sets/records/resource?uri=urn:x:{number}");
        world.served.send(method, &target, &token, &[("Idempotency-Key", key)], b"{\"length\":1}")
    };
    assert_eq!(json_of(&send("PUT", 1, "one"))["recorded"], 1);
    assert_eq!(json_of(&send("PUT", 2, "two"))["recorded"], 1);
    assert_eq!(send("DELETE", 1, "one").status, 422, "it was for a PUT");
    assert_eq!(json_of(&send("DELETE", 1, "gone"))["recorded"], 1);
    assert_eq!(json_of(&send("DELETE", 1, "gone"))["recorded"], 0);
    let other = send("DELETE", 2, "gone");
    assert_eq!(
        (other.status, world.positions(world.records)),
        (422, 3),
        "it was for another resource"
    );
    // Nor does the log take one for the other, when the server has forgotten, or as here never
    // knew.
    let own: &[u8] = br#"[{"uri":"urn:x:3","length":1,"idempotency_key":"mine"}]"#;
    world.served.send("POST", "/api/v1/sets/records/changes", &token, &[], own);
    assert_eq!(json_of(&send("DELETE", 3, "mine"))["recorded"], 1);
}

#[test]
fn uploads_are_complete_and_recorded_once_in_a_watched_folder() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &["set"]);
    let target = "/api/v1/sets/set/content/new%20folder/a.pdf";
    // Bytes that a filter of lines must not touch, on a connection that is used again.
    let bodies = [b"one\n\r\ntwo\n".repeat(1_000), b"\n".repeat(70_000)];
    let mut client = world.served.connect();
    for (number, body) in bodies.iter().enumerate() {
        write_request(&mut client, "PUT", target, &token, &[], body);
        let reply = client.reply("PUT").unwrap().unwrap();
        assert_eq!(reply.status, if number == 0 { 201 } else { 200 }, "{}", reply.text());
        let told = json_of(&reply);
        assert_eq!(told["resource"]["length"].as_u64(), Some(body.len() as u64));
        assert_eq!(told["head"].as_u64(), Some(number as u64 + 1));
        assert_eq!(std::fs::read(world.folder.join("new folder/a.pdf")).unwrap(), *body);
        client.request("GET", "/set/r/new%20folder/a.pdf", &[]);
        let read = client.reply("GET").unwrap().unwrap();
        assert_eq!(
            (read.body.as_slice(), read.header("etag")),
            (body.as_slice(), reply.header("etag"))
        );
    }
    // A file that the watch sees after them: by then it has seen those, and recorded nothing.
    std::fs::write(world.folder.join("seen.txt"), "x").unwrap();
    eventually("the watch has caught up", || {
        world.changes(world.files).iter().any(|change| change == "Create seen.txt")
    });
    assert_eq!(
        world.changes(world.files),
        ["Create new%20folder/a.pdf", "Update new%20folder/a.pdf", "Create seen.txt"]
    );
    let deleted = world.served.send("DELETE", target, &token, &[], b"");
    assert_eq!((deleted.status, json_of(&deleted)["recorded"].as_u64()), (200, Some(1)));
    assert!(!world.folder.join("new folder/a.pdf").exists());
    assert_eq!(world.served.send("DELETE", target, &token, &[], b"").status, 404);
    let leftovers: Vec<_> = std::fs::read_dir(world.folder.join("new folder")).unwrap().collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn content_that_was_modified_since_a_date_is_not_replaced() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let date = [("If-Unmodified-Since", "Sun, 09 Sep 2001 01:46:39 GMT")];
    let send = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
        let target = "/api/v1/sets/set/content/a.txt";
        world.served.send(method, target, &token, headers, body).status
    };
    assert_eq!(send("PUT", &date, b"1"), 201, "there was none");
    assert_eq!(send("PUT", &date, b"2"), 412);
    assert_eq!(send("DELETE", &date, b""), 412);
    assert_eq!(std::fs::read(world.folder.join("a.txt")).unwrap(), b"1");
    assert_eq!(send("PUT", &[("If-Unmodified-Since", "Tue, 01 Sep 2099 20:30:00 GMT")], b"2"), 200);
}

#[test]
fn content_is_replaced_only_in_the_state_that_is_meant() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let put = |more: &[(&str, &str)], body: &[u8]| {
        world.served.send("PUT", "/api/v1/sets/set/content/a.txt", &token, more, body)
    };
    assert_eq!(put(&[("If-Match", "*")], b"1").status, 412);
    let first = put(&[("If-None-Match", "*")], b"1");
    assert_eq!(first.status, 201);
    assert_eq!(put(&[("If-None-Match", "*")], b"2").status, 412);
    let tag = first.header("etag");
    assert_eq!(put(&[("If-Match", &tag)], b"2").status, 200);
    let again = put(&[("If-Match", &tag)], b"3");
    assert_eq!(again.status, 412);
    let second = world.served.get("/set/r/a.txt").header("etag");
    let either = format!("{tag}, W/{second}");
    assert_eq!(put(&[("If-None-Match", &either)], b"3").status, 412);
    assert_eq!(std::fs::read(world.folder.join("a.txt")).unwrap(), b"2");
    assert_eq!(put(&[("If-None-Match", &tag)], b"3").status, 200);
    let record = "/api/v1/sets/records/resource?uri=urn:x:1";
    for method in ["PUT", "DELETE"] {
        let reply = world.served.send(method, record, &token, &[("If-None-Match", "*")], b"{}");
        assert_eq!(reply.status, 400, "a condition that is not looked at is not taken");
    }
}

#[test]
fn links_of_a_file_are_kept_beside_it_and_stated_everywhere() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let put = |body: Value| {
        world.served.send(
            "PUT",
            "/api/v1/sets/set/resource?uri=old.txt",
            &token,
            &[],
            body.to_string().as_bytes(),
        )
    };
    let own = format!("{BASE}set/r/other.xml");
    let reply =
        put(json!({"links": [{"rel": "describedby", "href": own, "type": "application/xml"}]}));
    assert_eq!(
        (reply.status, json_of(&reply)["recorded"].as_u64()),
        (200, Some(1)),
        "{}",
        reply.text()
    );
    assert!(world.folder.join(".old.txt.links.json").exists());
    let header = world.served.get("/set/r/old.txt").header("link");
    assert!(
        header.contains(&format!("<{own}>; rel=\"describedby\"; type=\"application/xml\"")),
        "{header}"
    );
    assert!(world.served.get("/set/resourcelist.xml").text().contains("rel=\"describedby\""));
    assert_eq!(world.served.get("/set/r/.old.txt.links.json").status, 404);

    // Written by hand, it says the same.
    let sidecar = r#"[{"rel":"license","href":"https://example.org/l"}]"#;
    std::fs::write(world.folder.join(".old.txt.links.json"), sidecar).unwrap();
    eventually("the watch sees it", || world.positions(world.files) == 2);
    assert!(world.served.get("/set/r/old.txt").header("link").contains("rel=\"license\""));

    let none = put(json!({"links": []}));
    assert_eq!(json_of(&none)["recorded"], 1);
    assert!(!world.folder.join(".old.txt.links.json").exists());
    assert_eq!(put(json!({"links": [], "length": 1})).status, 422, "a file says its own length");
    assert_eq!(put(json!({})).status, 422);
}

#[test]
fn a_link_to_what_must_exist_comes_and_goes_with_it() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let put = |path: &str| {
        world.served.send("PUT", &format!("/api/v1/sets/set/content/{path}"), &token, &[], b"x")
    };
    put("d/a.pdf");
    assert!(!world.served.get("/set/r/d/a.pdf").header("link").contains("describedby"));
    put("d/a.xml");
    let linked = |links: usize| {
        let mut found = None;
        world
            .log
            .scan(world.files, &KeyRange::default(), &mut |resource| {
                if resource.key == "d/a.pdf" {
                    found = Some(resource.state.links.len());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        found == Some(links)
    };
    eventually("the link is recorded", || linked(1));
    world.served.send("DELETE", "/api/v1/sets/set/content/d/a.xml", &token, &[], b"");
    eventually("the link is gone", || linked(0));
    let mut changes = world.changes(world.files);
    // The watch may see the file before the request is recorded.
    changes[1..3].sort();
    assert_eq!(
        changes,
        ["Create d/a.pdf", "Create d/a.xml", "Update d/a.pdf", "Delete d/a.xml", "Update d/a.pdf"]
    );
}

#[test]
fn api_write_is_never_overtaken_by_an_older_scan() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let mut client = world.served.connect();
    let mut last = 0;
    for version in 0..150_u64 {
        let body = version.to_string();
        write_request(
            &mut client,
            "PUT",
            "/api/v1/sets/set/content/hot.txt",
            &token,
            &[],
            body.as_bytes(),
        );
        let reply = client.reply("PUT").unwrap().unwrap();
        assert!(reply.status < 300, "{}", reply.text());
        last = json_of(&reply)["head"].as_u64().unwrap();
        // The watch, at 20 ms, looks in between.
        if version % 10 == 0 {
            std::thread::sleep(Duration::from_millis(15));
        }
    }
    std::fs::write(world.folder.join("seen.txt"), "x").unwrap();
    eventually("the watch has caught up", || {
        world.changes(world.files).iter().any(|change| change == "Create seen.txt")
    });
    assert_eq!((last, world.positions(world.files)), (150, 151));
}

#[test]
fn sets_and_the_openapi_document_are_served() {
    let world = ApiWorld::new(&Settings::default());
    let sets = json_of(&world.served.get("/api/v1/sets"));
    assert_eq!(
        (&sets["sets"][0]["kind"], &sets["sets"][1]["kind"]),
        (&json!("folder"), &json!("records"))
    );
    assert_eq!(sets["sets"][0]["capability_list"], format!("{BASE}set/capabilitylist.xml"));
    assert_eq!(json_of(&world.served.get("/api/v1/sets/records"))["count"], 0);
    let document = world.served.get("/api/v1/openapi.json");
    assert_eq!(json_of(&document)["openapi"], "3.1.0");
    let server = json_of(&document)["servers"][0]["url"].as_str().unwrap().to_owned();
    assert_eq!(
        format!("{server}/"),
        BASE,
        "paths begin behind the public address, whatever prefix it has"
    );
    assert_eq!(world.served.ask("HEAD", "/api/v1/sets", &[]).status, 200);
    let admin = world.token(Scope::Admin, &[]);
    let tokens = world.served.send("GET", "/api/v1/tokens", &admin, &[], b"").text();
    assert!(tokens.contains("\"scope\":\"admin\"") && !tokens.contains("sha256"), "{tokens}");
}

#[test]
fn held_deletions_are_shown_until_confirmed() {
    let world = ApiWorld::new(&Settings::default());
    let keys: Vec<String> = (0..12).map(|number| format!("file-{number}")).collect();
    for key in &keys {
        std::fs::write(world.folder.join(key), "1").unwrap();
    }
    let set = || json_of(&world.served.get("/api/v1/sets/set"));
    eventually("all are recorded", || set()["count"] == 13);
    let admin = world.token(Scope::Admin, &[]);
    let confirm = |token: &str| {
        world.served.send("POST", "/api/v1/sets/set/deletions", token, &[], b"").status
    };
    assert_eq!(confirm(&admin), 409, "nothing is held");
    for key in &keys {
        std::fs::remove_file(world.folder.join(key)).unwrap();
    }
    eventually("they are held", || world.served.get("/readyz").text().contains("is held"));
    // The rest of the set, and other sets, are served.
    let reply = world.served.get("/readyz");
    assert_eq!(reply.status, 200);
    let told = reply.text();
    assert!(told.contains(" of 13 resources is held: the files are gone"), "{told}");
    assert!(
        told.contains("POST /api/v1/sets/set/deletions with a token of scope `admin`"),
        "{told}"
    );
    assert_eq!(set()["state"], "held");
    assert!(set()["held_deletions"].as_u64() > Some(6), "{}", set());
    assert_eq!(confirm(&world.token(Scope::Write, &[])), 403);
    let answer = world.served.send("POST", "/api/v1/sets/set/deletions", &admin, &[], b"");
    assert_eq!(answer.status, 200);
    let confirmed = json_of(&answer);
    let now = (&confirmed["state"], &confirmed["count"], &confirmed["held_deletions"]);
    assert_eq!(now, (&json!("ready"), &json!(1), &json!(0)), "the deletions are recorded");
    assert_eq!(world.served.get("/readyz").text(), "ready\n");
}
