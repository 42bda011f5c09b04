//! The API, asked by those who may not, or who send what cannot be.

use crate::api::{ApiWorld, Settings, json_of, write_request};
use crate::world::Reply;
use abreast_server::TrustedProxies;
use abreast_server::api::{Readers, Scope};
use serde_json::json;
use std::io::Read as _;
use std::time::{Duration, Instant};

const CHANGES: &str = "/api/v1/sets/records/changes";

fn kind(reply: &Reply) -> String {
    assert_eq!(reply.header("content-type"), "application/problem+json", "{}", reply.text());
    let problem = json_of(reply);
    assert_eq!(problem["status"].as_u64(), Some(u64::from(reply.status)));
    assert!(problem["title"].is_string() && problem["detail"].is_string());
    problem["type"].as_str().unwrap().strip_prefix("urn:abreast:problem:").unwrap().to_owned()
}

#[test]
fn nothing_is_written_without_a_token_that_may() {
    let world = ApiWorld::new(&Settings::default());
    let body: &[u8] = br#"[{"uri":"urn:x:1"}]"#;
    let post = |token: &str| world.served.send("POST", CHANGES, token, &[], body);
    let none = post("");
    assert_eq!((none.status, kind(&none).as_str()), (401, "token-missing"));
    assert!(none.header("www-authenticate").starts_with("Bearer"));
    assert_eq!(kind(&post("abreast_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")), "token-refused");
    assert_eq!(kind(&post(&world.token(Scope::Read, &[]))), "scope");
    assert_eq!(kind(&post(&world.token(Scope::Admin, &["set"]))), "scope");
    let basic = world.served.send("POST", CHANGES, "", &[("Authorization", "Basic YTpi")], body);
    assert_eq!(kind(&basic), "token-refused");
    let write = world.token(Scope::Write, &["records"]);
    let tokens = world.served.send("GET", "/api/v1/tokens", &write, &[], b"");
    assert_eq!(kind(&tokens), "scope");
    let content = world.served.send("PUT", "/api/v1/sets/set/content/x", &write, &[], b"x");
    assert_eq!(kind(&content), "scope");
    assert_eq!(world.positions(world.records), 0);
    assert_eq!(post(&write).status, 200);
}

#[test]
fn a_token_in_a_url_is_refused_even_if_it_is_right() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    for target in [
        format!("{CHANGES}?token={token}"),
        format!("{CHANGES}?access_token={token}"),
        format!("/api/v1/sets?x={token}"),
        format!("/api/v1/openapi.json?Token={token}"),
    ] {
        let reply = world.served.send("GET", &target, &token, &[], b"");
        assert_eq!((reply.status, kind(&reply).as_str()), (400, "token-in-url"), "{target}");
        assert!(reply.text().contains("revoke"));
        assert!(!reply.text().contains(&token), "it is not said again");
    }
    let target = "/api/v1/sets/records/resource?uri=https%3A%2F%2Fexample.org%2Fabreast_notes_of_the_second_quarter.txt";
    assert_eq!(
        world.served.send("PUT", target, &token, &[], b"{}").status,
        200,
        "not all that begins so is a token"
    );
}

#[test]
fn reading_can_be_closed_to_those_without_a_token() {
    let world = ApiWorld::new(&Settings { readers: Readers::Tokens, ..Settings::default() });
    assert_eq!(kind(&world.served.get("/api/v1/sets")), "token-missing");
    let token = world.token(Scope::Read, &["records"]);
    assert_eq!(world.served.send("GET", CHANGES, &token, &[], b"").status, 200);
    assert_eq!(
        kind(&world.served.send("GET", "/api/v1/sets/set/changes", &token, &[], b"")),
        "scope"
    );
    let sets = world.served.send("GET", "/api/v1/sets", &token, &[], b"").text();
    assert!(sets.contains("\"records\"") && !sets.contains("\"set\""), "{sets}");
    assert_eq!(world.served.get("/api/v1/openapi.json").status, 200);
    assert_eq!(
        world.served.get("/records/changelist.xml").status,
        200,
        "what is published stays public"
    );
}

#[test]
fn pages_of_browsers_do_not_write_where_programs_need_no_token() {
    let world = ApiWorld::new(&Settings { local: true, ..Settings::default() });
    let body: &[u8] = br#"[{"uri":"urn:x:1"}]"#;
    let post = |host: &str, more: &str| {
        let head = format!(
            "POST {CHANGES} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n{more}\r\n",
            body.len()
        );
        world.served.answers_to(&[head.as_bytes(), body].concat()).remove(0)
    };
    assert_eq!(kind(&post("rebound.example.org:8080", "Connection: close\r\n")), "browser");
    assert_eq!(
        kind(&post("127.0.0.1", "Origin: https://evil.example\r\nConnection: close\r\n")),
        "browser"
    );
    assert_eq!(
        kind(&post("127.0.0.1", "Sec-Fetch-Site: cross-site\r\nConnection: close\r\n")),
        "browser"
    );
    for added in [
        "X-Forwarded-For: 203.0.113.9",
        "Forwarded: for=203.0.113.9",
        "X-Real-IP: 203.0.113.9",
        "Via: 1.1 p",
    ] {
        assert_eq!(
            kind(&post("127.0.0.1", &format!("{added}\r\nConnection: close\r\n"))),
            "browser",
            "{added}"
        );
    }
    assert_eq!(world.positions(world.records), 0);
    assert_eq!(post("localhost:8080", "Connection: close\r\n").status, 200);
    let path = world.temporary.path().join("tokens.json");
    std::fs::write(&path, "half a fi").unwrap();
    assert_eq!(
        kind(&post("localhost", "Connection: close\r\n")),
        "token-missing",
        "nobody knows whom it would let in"
    );
    std::fs::remove_file(path).unwrap();
    world.token(Scope::Read, &[]);
    assert_eq!(
        kind(&post("localhost", "Connection: close\r\n")),
        "token-missing",
        "with the first token all need one"
    );
}

#[test]
fn read_only_server_refuses_writes_with_a_reason() {
    let world = ApiWorld::new(&Settings { write: false, ..Settings::default() });
    let token = world.token(Scope::Admin, &[]);
    let reply = world.served.send("POST", CHANGES, &token, &[], b"[]");
    assert_eq!((reply.status, kind(&reply).as_str()), (403, "writing-off"));
    assert_eq!(world.served.get(CHANGES).status, 200);
}

#[test]
fn wrong_bodies_are_refused_with_what_is_wrong_and_where() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let post = |body: &[u8]| world.served.send("POST", CHANGES, &token, &[], body);
    for (body, status, part) in [
        (
            &br#"[{"uri":"urn:x:1","lenght":5}]"#[..],
            422,
            "unknown field `lenght`; did you mean `length`?",
        ),
        (br#"[{"uri":"urn:x:1","links":[{"rel":"up","hef":"x"}]}]"#, 422, "did you mean `href`?"),
        (br#"[{"uri":"urn:x:1","length":"5"}]"#, 422, "invalid type"),
        (br#"[{"uri":"urn:x:1","length":-5}]"#, 422, "invalid value"),
        (br#"[{"uri":"urn:x:1","length":99999999999999999999}]"#, 422, "line 1"),
        (br#"[{"uri":"urn:x:1","length":18446744073709551615}]"#, 422, "`length`"),
        (br#"[{"uri":"urn:x:1","change":"removed"}]"#, 422, "unknown variant `removed`"),
        (br#"[{"uri":"urn:x:1","change":"deleted","length":1}]"#, 422, "`change`"),
        (br#"[{"uri":"urn:x:1","hash":"sha-9:abc"}]"#, 422, "`hash`"),
        (br#"[{"uri":"urn:x:1","lastmod":"01.02.2026"}]"#, 422, "`lastmod`"),
        (br#"[{"uri":"urn:x:1","type":"text/html\r\nX: y"}]"#, 422, "`type`"),
        (br#"[{"uri":"https://x y/"}]"#, 422, "`uri`"),
        (br#"[{"uri":"relative"}]"#, 422, "`uri`: not absolute"),
        (br#"[{"length":1}]"#, 422, "`uri` is missing"),
        (br#"[{"uri":"urn:x:1","idempotency_key":"a b"}]"#, 422, "`idempotency_key`"),
        (b"[]", 400, "no changes"),
        (b"", 400, "no changes"),
        (b"\n\n", 400, "no changes"),
        (b"{\"uri\":\"urn:x:1\"}\n{\"uri\":", 400, "line 2"),
        (b"[{\"uri\":\"urn:x:1\"}", 400, "EOF"),
        (b"\xff\xfe", 400, "line 1"),
        (b"<xml/>", 400, "line 1"),
    ] {
        let reply = post(body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(reply.status, status, "{shown}: {}", reply.text());
        assert!(
            json_of(&reply)["detail"].as_str().unwrap().contains(part),
            "{shown}: {}",
            reply.text()
        );
    }
    assert_eq!(world.positions(world.records), 0);
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    assert_eq!(post(&deep).status, 422);
}

#[test]
fn too_much_is_refused_before_it_is_read() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let head = |target: &str, method: &str, length: u64| {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        );
        world.served.answers_to(head.as_bytes()).remove(0)
    };
    for reply in [
        head(CHANGES, "POST", 16 * 1024 * 1024 + 1),
        head("/api/v1/sets/records/resource?uri=urn:x:1", "PUT", 256 * 1024 + 1),
        head("/api/v1/sets/set/content/x", "PUT", (1 << 20) + 1),
    ] {
        assert_eq!(
            (reply.status, kind(&reply).as_str(), reply.header("connection").as_str()),
            (413, "too-large", "close")
        );
    }
    // In chunks, whose sum nobody said before.
    let mut client = world.served.connect();
    client.request(
        "PUT",
        "/api/v1/sets/set/content/x",
        &[("Authorization", &format!("Bearer {token}")), ("Transfer-Encoding", "chunked")],
    );
    let chunk = [b"10000\r\n".as_slice(), &vec![b'\n'; 0x10000], b"\r\n"].concat();
    for _ in 0..20 {
        let _ = client.send(&chunk);
    }
    assert_eq!(client.reply("PUT").unwrap().unwrap().status, 413);
    let many: Vec<_> = (0..10_001).map(|n| format!("{{\"uri\":\"urn:x:{n}\"}}")).collect();
    for many in [many.join("\n"), format!("[{}]", many.join(","))] {
        let refused = world.served.send("POST", CHANGES, &token, &[], many.as_bytes());
        assert_eq!(refused.status, 413);
    }
    assert!(!world.folder.join("x").exists());
    assert_eq!((world.positions(world.records), world.positions(world.files)), (0, 0));
    assert_eq!(
        std::fs::read_dir(&world.folder).unwrap().count(),
        1,
        "nothing is left of what was refused"
    );
}

#[test]
fn a_chunked_body_is_taken_and_its_connection_closed() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let request = format!(
        "PUT /api/v1/sets/set/content/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Transfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\n\r\nGET /set/r/x HTTP/1.1\nHost: x\n\n"
    );
    let replies = world.served.answers_to(request.as_bytes());
    assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [201]);
    assert_eq!(std::fs::read(world.folder.join("x")).unwrap(), b"a\nb");
}

#[test]
fn two_lengths_of_a_body_are_refused() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    for lengths in [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Content-Length: +3",
    ] {
        let request = format!(
            "PUT /api/v1/sets/set/content/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{lengths}\r\n\r\n\
             abcGET /set/r/old.txt HTTP/1.1\r\nHost: x\r\n\r\n"
        );
        let replies = world.served.answers_to(request.as_bytes());
        assert_eq!(replies.len(), 1, "{lengths}: {replies:?}");
        assert_eq!(replies[0].status, 400, "{lengths}");
    }
    assert!(!world.folder.join("x").exists());
}

#[test]
fn a_body_that_ends_early_leaves_nothing() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    let mut client = world.served.connect();
    client.request(
        "PUT",
        "/api/v1/sets/set/content/old.txt",
        &[("Authorization", &format!("Bearer {token}")), ("Content-Length", "100")],
    );
    client.send(b"only some").unwrap();
    client.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 2"));
    assert_eq!(std::fs::read(world.folder.join("old.txt")).unwrap(), b"old");
    assert_eq!(world.positions(world.files), 0);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let world =
        ApiWorld::new(&Settings { body_time: Duration::from_millis(300), ..Settings::default() });
    let token = world.token(Scope::Write, &[]);
    for (method, target) in [("POST", CHANGES), ("PUT", "/api/v1/sets/set/content/x")] {
        let mut client = world.served.connect();
        let bearer = format!("Bearer {token}");
        client.request(method, target, &[("Authorization", &bearer), ("Content-Length", "100")]);
        client.send(b"[").unwrap();
        let reply = client.reply(method).unwrap().unwrap();
        assert_eq!((reply.status, kind(&reply).as_str()), (408, "too-slow"));
        assert!(client.is_closed());
    }
    assert!(!world.folder.join("x").exists());
}

#[test]
fn slow_bodies_of_one_client_do_not_keep_others_waiting() {
    let world = ApiWorld::new(&Settings {
        trusted_proxies: TrustedProxies::parse(["127.0.0.1"]).unwrap(),
        ..Settings::default()
    });
    let bearer = format!("Bearer {}", world.token(Scope::Write, &[]));
    let record = json!({"change": "created", "uri": "http://example.org/x"}).to_string();
    for (method, target, body) in
        [("POST", CHANGES, record.as_str()), ("PUT", "/api/v1/sets/set/content/x", "x")]
    {
        let begin = |address: &str, length: usize, body: &str| {
            let mut client = world.served.connect();
            let length = length.to_string();
            let headers = [
                ("Authorization", bearer.as_str()),
                ("X-Forwarded-For", address),
                ("Content-Length", &length),
            ];
            client.request(method, target, &headers);
            client.send(body.as_bytes()).unwrap();
            client
        };
        let _slow: Vec<_> = (0..100).map(|_| begin("192.0.2.1", 100, "[")).collect();
        // Places are taken in the order of arrival; these are taken before the others come.
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        let reply = begin("192.0.2.2", body.len(), body).reply(method).unwrap().unwrap();
        assert!(reply.status < 300, "{target}: {} {}", reply.status, reply.text());
        assert!(begun.elapsed() < Duration::from_secs(10), "{target}: {:?}", begun.elapsed());
    }
}

#[test]
fn paths_lead_nowhere_but_into_the_folder() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    std::os::unix::fs::symlink(world.temporary.path(), world.folder.join("out")).unwrap();
    std::fs::create_dir(world.folder.join("kept")).unwrap();
    for (path, status) in [
        ("..%2fescaped", 422),
        ("%2e%2e/escaped", 422),
        ("a//b", 422),
        ("", 422),
        (".hidden", 422),
        ("a/.git/config", 422),
        (".old.txt.links.json", 422),
        ("a%00b", 422),
        ("x~", 422),
        ("out/escaped", 409),
        ("out", 409),
        ("old.txt/below", 409),
        ("old.txt/below/further", 409),
        ("kept", 409),
    ] {
        let target = format!("/api/v1/sets/set/content/{path}");
        let reply = world.served.send("PUT", &target, &token, &[], b"x");
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        let reply = world.served.send("DELETE", &target, &token, &[], b"");
        assert!(matches!(reply.status, 404 | 422), "{path}: {}", reply.text());
    }
    assert!(!world.temporary.path().join("escaped").exists());
    assert!(world.temporary.path().join("source.db").exists());
    assert_eq!(world.positions(world.files), 0);
    let long = format!("/api/v1/sets/set/content/{}", "a".repeat(256));
    assert_eq!(world.served.send("PUT", &long, &token, &[], b"x").status, 422);
    let none = world.served.send("PUT", "/api/v1/sets/records/content/x", &token, &[], b"x");
    assert_eq!((none.status, kind(&none).as_str()), (409, "conflict"));
}

#[test]
fn wrong_queries_are_refused_with_the_nearest_name() {
    let world = ApiWorld::new(&Settings::default());
    for (query, part) in [
        ("afer=1", "did you mean `after`?"),
        ("after=x", "`after`"),
        ("after=-1", "`after`"),
        ("after=+1", "`after`"),
        ("after=1&after=2", "twice"),
        ("limit=0", "`limit`"),
        ("limit=10001", "`limit`"),
        ("wait=31", "`wait`"),
        ("since=yesterday", "`since`"),
        ("since=2026-01-01T00:00:00Z&after=1", "both"),
    ] {
        let reply = world.served.get(&format!("{CHANGES}?{query}"));
        assert_eq!((reply.status, kind(&reply).as_str()), (400, "query"), "{query}");
        assert!(reply.text().contains(part), "{query}: {}", reply.text());
    }
    // As a client sends it whose store was lost.
    for after in ["1", "18446744073709551615"] {
        let reply = world.served.get(&format!("{CHANGES}?after={after}"));
        assert_eq!((reply.status, kind(&reply).as_str()), (409, "conflict"), "{after}");
        assert!(reply.text().contains("after the last change, 0"), "{}", reply.text());
    }
    for (target, allow) in [("/api/v1/sets", "GET, HEAD"), (CHANGES, "GET, HEAD, POST")] {
        let reply = world.served.ask("PATCH", target, &[]);
        assert_eq!((reply.status, reply.header("allow").as_str()), (405, allow));
    }
    for target in
        ["/apis", "/api/v2", "/api/v2/sets", "/api/v1/sets/none", "/api/v1/sets/none/changes"]
    {
        assert_eq!(world.served.get(target).status, 404, "{target}");
    }
}

#[test]
fn answers_are_no_pages() {
    let world = ApiWorld::new(&Settings::default());
    let token = world.token(Scope::Write, &[]);
    world.served.send(
        "PUT",
        "/api/v1/sets/set/content/a.html",
        &token,
        &[],
        b"<script>alert(1)</script>",
    );
    for target in ["/api/v1/sets", "/api/v1/sets/none", "/api/v1/sets/set/content/a.html", CHANGES]
    {
        let reply = world.served.get(target);
        assert!(reply.header("content-security-policy").contains("sandbox"), "{target}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{target}");
    }
    let mut client = world.served.connect();
    write_request(
        &mut client,
        "PUT",
        "/api/v1/sets/set/resource?uri=old.txt",
        &token,
        &[],
        b"{\"links\":[{\"rel\":\"x\"}]}",
    );
    assert_eq!(client.reply("PUT").unwrap().unwrap().status, 422);
}
