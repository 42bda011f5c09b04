//! The pages at `/admin`: who may see them, what their forms do, and what they show.

use crate::world::{Source, abreast};
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually, run};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// A server with two sets, a webhook that nothing answers, and a job.
struct World {
    place: tempfile::TempDir,
    _child: Running,
    address: String,
}

impl World {
    fn start() -> Self {
        Self::run(&mut abreast())
    }

    fn run(command: &mut Command) -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().display();
        fs::create_dir(place.path().join("papers")).unwrap();
        for number in 0..20 {
            fs::write(place.path().join(format!("papers/{number}")), "text").unwrap();
        }
        let secret = place.path().join("secret");
        fs::write(&secret, "a secret of enough length\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let closed = unused_address();
        let config = format!(
            "data = \"{root}/data\"\n[notify]\ndebounce = \"30ms\"\n\
             [[set]]\nname = \"papers\"\nfolder = \"{root}/papers\"\ndebounce = \"30ms\"\nevents = false\nrescan = \"1d\"\n\
             dumps = {{ every = \"1d\", changes = true }}\n\
             [[set.webhook]]\nurl = \"http://{closed}/hook\"\nsecret_file = \"{root}/secret\"\n\
             [[set]]\nname = \"records\"\norigin = \"records\"\n\
             [[mirror]]\nname = \"elsewhere\"\nurl = \"http://{closed}/\"\nfolder = \"{root}/copy\"\n"
        );
        let path = place.path().join("abreast.toml");
        fs::write(&path, config).unwrap();
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&path);
        let Source { child, address, .. } = Source::run(command);
        Self { place, _child: child, address }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Creates a token, and waits until the server knows it.
    fn token(&self, name: &str, more: &[&str]) -> String {
        let mut command = abreast();
        command
            .args(["token", "create", "--name", name, "--data"])
            .arg(self.path("data"))
            .args(more);
        let made = String::from_utf8(run(&mut command).stdout).unwrap();
        let token = made.split_whitespace().find(|word| word.starts_with("abreast_")).unwrap();
        eventually("the server knows the token", || {
            !self.sign_in(token).1.contains("There is no such token")
        });
        token.to_owned()
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let address = &self.address;
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: text/html\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Headers of a form that a page of the server sends.
    fn page_headers(&self, more: &str) -> String {
        format!("Origin: http://{}\r\n{more}", self.address)
    }

    fn sign_in(&self, token: &str) -> (u16, String) {
        self.ask("POST", "/admin/sign-in", &self.page_headers(""), &format!("token={token}"))
    }

    /// The header with the cookie of a new administrator.
    fn cookie(&self, name: &str) -> String {
        let (status, answer) = self.sign_in(&self.token(name, &["--scope", "admin"]));
        assert_eq!(status, 303, "{answer}");
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        let (cookie, attributes) = cookie.split_once("\r\n").unwrap().0.split_once(';').unwrap();
        assert_eq!(attributes, " Max-Age=43200; HttpOnly; SameSite=Lax");
        assert!(!cookie.contains("abreast_admin=") && !cookie.contains("=abreast_"), "{cookie}");
        format!("Cookie: other=1; {cookie}\r\n")
    }

    fn page(&self, cookie: &str, path: &str) -> String {
        let (status, answer) = self.ask("GET", path, cookie, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

#[test]
fn only_administrators_see_the_pages() {
    let world = World::start();
    let (_, answer) = world.ask("GET", "/admin/sign-in", "", "");
    assert!(answer.contains("abreast token create --name NAME --scope admin --data DIR"));
    for (path, sign_in) in [("/admin/", "./sign-in"), ("/admin/sets/papers", "../sign-in")] {
        for cookie in ["", "Cookie: abreast_admin_00000000=\r\n", "Cookie: abreast_admin_x=y\r\n"] {
            let (status, answer) = world.ask("GET", path, cookie, "");
            assert_eq!(status, 303, "{path}");
            assert!(answer.contains(&format!("location: {sign_in}\r\n")), "{answer}");
        }
    }
    assert!(world.ask("GET", "/admin", "", "").1.contains("location: admin/\r\n"));
    // Neither other scopes nor single sets are enough.
    for (name, more) in [
        ("reader", &["--scope", "read"][..]),
        ("writer", &["--scope", "write"]),
        ("some", &["--scope", "admin", "--set", "papers"]),
    ] {
        let token = world.token(name, more);
        let (status, answer) = world.sign_in(&token);
        assert!(status == 403 && !answer.contains("set-cookie"), "{name}: {answer}");
        assert!(answer.contains(&format!("The token {name} does not have the scope admin")));
    }
    for wrong in ["", "abreast_nothing", &"x".repeat(1_000)] {
        assert_eq!(world.sign_in(wrong).0, 403);
    }
    assert_eq!(world.sign_in(&"x".repeat(5_000)).0, 413);
    let cookie = world.cookie("alice");
    let page = world.page(&cookie, "/admin/");
    for header in [
        "cache-control: no-store",
        "referrer-policy: same-origin",
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
    assert!(!page.contains("access-control-allow-origin"));
    let (headers, _) = page.split_once("\r\n\r\n").unwrap();
    assert!(!headers.contains("script-src"), "{headers}");
    assert_eq!(world.ask("PUT", "/admin/", &cookie, "").0, 405);
    // A token that is revoked ends its sessions.
    let data = world.path("data");
    assert!(
        run(abreast().args(["token", "revoke", "alice", "--data"]).arg(&data)).status.success()
    );
    eventually("the session has ended", || world.ask("GET", "/admin/", &cookie, "").0 == 303);
    let other = world.cookie("bob");
    let (_, answer) = world.ask("POST", "/admin/sign-out", &world.page_headers(&other), "");
    assert!(answer.contains("; Max-Age=0; HttpOnly"), "{answer}");
    assert_eq!(world.ask("GET", "/admin/", &other, "").0, 303, "the session has ended");
    // An administrator who is signed in does not sign in again, and no URL has a token.
    let again = world.cookie("carol");
    assert!(world.ask("GET", "/admin/sign-in", &again, "").1.contains("location: ./\r\n"));
    assert_eq!(world.ask("GET", "/admin/sign-in?token=x", "", "").0, 400);
}

#[test]
fn forms_of_other_pages_do_nothing() {
    let world = World::start();
    let cookie = world.cookie("alice");
    let path = "/admin/api/v1/sets/papers/scan";
    let own = format!("Origin: http://{}\r\n", world.address);
    for origin in [
        String::new(),
        "Origin: null\r\n".to_owned(),
        "Origin: https://evil.example\r\n".to_owned(),
        format!("{own}Sec-Fetch-Site: cross-site\r\n"),
        format!("{own}Sec-Fetch-Site: same-site\r\n"),
        format!("{own}Sec-Fetch-Site: none\r\n"),
    ] {
        let (status, answer) = world.ask("POST", path, &format!("{origin}{cookie}"), "");
        assert_eq!(status, 403, "{origin}: {answer}");
        let (status, _) = world.ask("POST", "/admin/sign-in", &origin, "token=x");
        assert_eq!(status, 403, "{origin}");
    }
    let own_headers = world.page_headers(&cookie);
    assert_eq!(world.ask("POST", path, &own_headers, "").0, 303);
    // Without a session, a form leads to the page to sign in.
    let (status, answer) = world.ask("POST", path, &world.page_headers(""), "");
    assert!(status == 303 && answer.contains("sign-in"), "{answer}");
    // Forms do what is for operators, and lead back to pages for administrators only.
    for path in ["sets/papers/changes", "sets/papers/push", "sets/papers/entities", "nothing"] {
        let (status, _) = world.ask("POST", &format!("/admin/api/v1/{path}"), &own_headers, "[]");
        assert_eq!(status, 404, "{path}");
    }
    for back in ["//evil.example", "https://evil.example/", "../../papers", "\\evil"] {
        let (_, answer) = world.ask("POST", path, &own_headers, &format!("back={back}"));
        assert!(answer.contains("location: ../../../../\r\n"), "{back}: {answer}");
    }
    let (_, answer) = world.ask("POST", path, &own_headers, "back=sets%2Fpapers%3Fdone%3Dscan");
    assert!(answer.contains("location: ../../../../sets/papers?done=scan\r\n"), "{answer}");
}

#[test]
fn administrators_scan_dump_and_confirm_deletions() {
    let world = World::start();
    let cookie = world.cookie("alice");
    let form = |path: &str| {
        let path = format!("/admin/api/v1/sets/{path}");
        world.ask("POST", &path, &world.page_headers(&cookie), "back=sets/papers?done=scan").0
    };
    eventually("the first dump is made", || {
        world.page(&cookie, "/admin/sets/papers").contains("resources-")
    });
    let page = world.page(&cookie, "/admin/sets/papers?done=scan");
    for part in ["Scan now", "Make dumps now", "The scan has been requested."] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("Confirm"), "{page}");
    let dumps = || world.page(&cookie, "/admin/sets/papers").matches("<th scope=\"row\">").count();
    let before = dumps();
    fs::write(world.path("papers/new"), "text").unwrap();
    eventually("the change is recorded", || {
        assert_eq!(form("papers/scan"), 303);
        world.page(&cookie, "/admin/sets/papers").contains("at most 1, now 1")
    });
    // The newest dump is younger than a day.
    assert_eq!(form("papers/dumps"), 303);
    eventually("both dumps are made", || dumps() >= before + 2);
    assert_eq!(
        (form("records/dumps"), form("records/scan"), form("missing/scan")),
        (409, 409, 404)
    );
    for entry in fs::read_dir(world.path("papers")).unwrap().skip(1) {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(form("papers/scan"), 303);
    eventually("deletions are held", || {
        let page = world.page(&cookie, "/admin/sets/papers");
        page.contains("Confirm 20 deletions") && page.contains("<dd>held</dd>")
    });
    let page = world.page(&cookie, "/admin/sets/papers");
    assert_eq!(page.matches("/papers/r/").count(), 20, "{page}");
    let report = run(abreast().arg("status").arg(world.path("data"))).stdout;
    let report = String::from_utf8(report).unwrap();
    assert_eq!(report.matches("/papers/r/").count(), 20, "{report}");
    let overview = world.page(&cookie, "/admin/");
    assert!(overview.contains("<strong>Set papers:</strong>"), "{overview}");
    assert!(overview.contains("<a href=\"./sets/papers\">See Set papers</a>"), "{overview}");
    // A requested scan has its line in the log, although it finds the same as the scan before.
    let scans = || world.page(&cookie, "/admin/log").matches("scanned folder=").count();
    let before = scans();
    assert_eq!(form("papers/scan"), 303);
    eventually("the scan is in the log", || scans() == before + 1);
    // Not 503, for which copies would wait.
    let lost = (0..20).find(|number| !world.path(&format!("papers/{number}")).exists()).unwrap();
    let lost = format!("/papers/r/{lost}");
    let is_explained = |path: &str| {
        let (status, answer) = world.ask("GET", path, "", "");
        assert_eq!(status, 404, "{path}: {answer}");
        answer.contains("its deletion is not confirmed")
    };
    assert!(is_explained(&lost) && !is_explained("/papers/r/never"));
    assert_eq!(form("papers/deletions"), 303);
    assert!(!is_explained(&lost));
    assert!(world.page(&cookie, "/admin/sets/papers").contains("<dt>Resources</dt><dd>1</dd>"));
    assert_eq!(world.ask("GET", "/admin/sets/missing", &cookie, "").0, 404);
    let log = world.page(&cookie, "/admin/log");
    let done = "carried out: POST /api/v1/sets/papers/deletions administrator=&quot;alice&quot;";
    assert!(log.contains(done), "{log}");
    // The log also has what programs request by token.
    let bearer =
        format!("Authorization: Bearer {}\r\n", world.token("robot", &["--scope", "admin"]));
    assert_eq!(world.ask("POST", "/api/v1/sets/papers/scan", &bearer, "").0, 202);
    assert_eq!(world.ask("POST", "/api/v1/sets/papers/deletions", &bearer, "").0, 409);
    let log = world.page(&cookie, "/admin/log");
    let robot = "administrator=&quot;robot&quot;";
    for line in [
        "carried out: POST /api/v1/sets/papers/scan",
        "refused: POST /api/v1/sets/papers/deletions",
    ] {
        assert!(log.contains(&format!("{line} {robot}")), "{log}");
    }
    // An error has a link to the pages.
    let (status, page) = world.ask("GET", "/admin/sets/missing", &cookie, "");
    assert_eq!(status, 404);
    assert!(page.contains("<a href=\"../\">Administration</a>"), "{page}");
}

#[test]
fn administrators_retry_and_end_deliveries() {
    let world = World::start();
    let cookie = world.cookie("alice");
    fs::write(world.path("papers/new"), "text").unwrap();
    let scan = "/admin/api/v1/sets/papers/scan";
    assert_eq!(world.ask("POST", scan, &world.page_headers(&cookie), "").0, 303);
    let failing = || world.page(&cookie, "/admin/deliveries");
    eventually("the delivery fails", || failing().contains("Failing longest"));
    let (_, rest) =
        failing().split_once("./targets/").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let target = rest.split('"').next().unwrap().to_owned();
    let page = || world.page(&cookie, &format!("/admin/targets/{target}"));
    let attempts = |page: &str| page.matches("<tr><td class=\"at\">").count();
    let before = attempts(&page());
    assert!(page().contains("<dt>Kind</dt><dd>webhook</dd>") && before >= 1, "{}", page());
    let form = |action: &str| {
        let path = format!("/admin/api/v1/hub/targets/{target}/{action}");
        world.ask("POST", &path, &world.page_headers(&cookie), "back=deliveries")
    };
    assert_eq!(form("replay").0, 303);
    eventually("the delivery is attempted again", || attempts(&page()) > before);
    // The failures before still count.
    let failed = format!("<dt>Failed attempts</dt><dd>{}", before + 1);
    assert!(page().contains(&failed) || attempts(&page()) > before + 1, "{}", page());
    assert!(world.page(&cookie, "/admin/").contains("<strong>Deliveries:</strong>"));
    assert_eq!(form("end").0, 303);
    assert_eq!(world.ask("GET", &format!("/admin/targets/{target}"), &cookie, "").0, 404);
    assert_eq!(form("replay").0, 404);
    for missing in ["targets/x", "targets/0", "topics/99", "topics/", "other", "sets/none"] {
        assert_eq!(world.ask("GET", &format!("/admin/{missing}"), &cookie, "").0, 404, "{missing}");
    }
}

#[test]
fn pages_for_administrators_can_be_switched_off() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("abreast.toml");
    let text = format!(
        "admin_pages = false\ndata = \"{}/data\"\n[[set]]\nname = \"records\"\norigin = \"records\"\n",
        place.path().display()
    );
    fs::write(&config, text).unwrap();
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
    let Source { child, address, .. } = Source::run(&mut command);
    let world = World { place, _child: child, address };
    for path in ["/admin", "/admin/", "/admin/sign-in", "/admin/log"] {
        let (status, answer) = world.ask("GET", path, "", "");
        assert_eq!(status, 404, "{path}: {answer}");
    }
    assert_eq!(world.sign_in("x").0, 404);
    assert_eq!(world.ask("GET", "/api/v1/sets/records", "", "").0, 200);
}

#[test]
fn the_log_is_shown_as_text() {
    let world = World::start();
    let cookie = world.cookie("alice");
    assert_eq!(world.sign_in("wrong").0, 403);
    let log = world.page(&cookie, "/admin/log?level=WARN");
    assert!(log.contains("could not sign in: There is no such token."), "{log}");
    assert!(log.contains("client=127.0.0.1"), "{log}");
    assert!(!log.contains("<td>INFO</td>"), "{log}");
    assert!(world.page(&cookie, "/admin/log").contains("<td>INFO</td>"));
    // The name of a resource cannot become markup.
    let name = "<img src=x onerror=alert(1)>";
    fs::write(world.path("papers").join(name), "x").unwrap();
    fs::set_permissions(world.path("papers").join(name), fs::Permissions::from_mode(0o200))
        .unwrap();
    for path in ["/admin/", "/admin/log", "/admin/sets/papers", "/admin/deliveries"] {
        assert!(!world.page(&cookie, path).contains("<img src=x"), "{path}");
    }
}

#[test]
fn the_log_has_no_logins() {
    let mut command = abreast();
    command.env("ABREAST_LOG", "debug");
    let world = World::run(&mut command);
    let cookie = world.cookie("alice");
    world.ask("GET", "/timegate/http://alice:s3cret@h.example/x%E2%80%AE", "", "");
    let log = world.page(&cookie, "/admin/log");
    assert!(log.contains("h.example/x") && !log.contains("s3cret"), "{log}");
}

#[test]
fn copies_of_the_configuration_are_listed() {
    let world = World::start();
    let page = world.page(&world.cookie("alice"), "/admin/");
    assert!(page.contains("<th scope=\"row\">elsewhere</th>"), "{page}");
    assert!(page.contains("Copy elsewhere:") && page.contains("no copy yet"), "{page}");
    let sets = world.page(&world.cookie("bob"), "/admin/sets/");
    assert!(sets.contains("../sets/papers\">") && sets.contains("../sets/records\">"), "{sets}");
}

#[test]
fn a_hub_alone_has_the_pages() {
    let place = tempfile::tempdir().unwrap();
    let mut command = abreast();
    command
        .args(["hub", "--open", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.path().join("data"));
    let (child, address) = crate::push::started_hub(&mut command);
    let world = World { place, _child: child, address };
    let cookie = world.cookie("alice");
    let page = world.page(&cookie, "/admin/");
    assert!(page.contains("Deliveries") && !page.contains("<h2>Sets</h2>"), "{page}");
    assert!(world.page(&cookie, "/admin/deliveries").contains("No topic has been published yet."));
    // No page has a link to a document of a Source.
    for path in ["/", "/missing", "/api/", "/admin/", "/admin/log"] {
        let (_, page) = world.ask("GET", path, &cookie, "");
        assert!(page.contains("WebSub hub"), "{path}: {page}");
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let base = format!("http://{}", world.address);
        for link in links.filter_map(|link| link.strip_prefix(&base)) {
            assert_eq!(world.ask("GET", link, "", "").0, 200, "{path}: {link}");
        }
    }
}

#[test]
fn followers_of_every_protocol_are_listed_with_their_lag() {
    let world = World::start();
    let cookie = world.cookie("alice");
    let ask = |path: &str, program: &str, more: &str| {
        let headers = format!("User-Agent: {program}\r\n{more}");
        world.ask("GET", path, &headers, "").0
    };
    eventually("the set is read", || ask("/papers/changelist.xml", "probe", "") == 200);
    // Requests for other documents, and requests that fail, are not of followers.
    for path in
        ["/papers/capabilitylist.xml", "/papers/", "/papers/r/1", "/papers/changelist/9.xml"]
    {
        ask(path, "other", "");
    }
    let newest = [
        ("/papers/changelist.xml", "lists/1.1"),
        ("/papers/v0.1/changeset.xml", "sets/0.1"),
        ("/papers/emm/1.0", "activities/1.0"),
        ("/papers/iiif", "iiif/1"),
        ("/papers/sdshare/fragments", "fragments/1.0"),
        ("/api/v1/sets/papers/changes?after=0", "api/1"),
    ];
    for (path, program) in newest {
        assert_eq!(ask(path, program, ""), 200, "{path}");
    }
    let mut stream = TcpStream::connect(&world.address).unwrap();
    write!(
        stream,
        "GET /papers/notify/change HTTP/1.1\r\nHost: {}\r\nUser-Agent: stream/1\r\nAccept: text/event-stream\r\n\r\n",
        world.address
    )
    .unwrap();
    let row = |page: &str, program: &str| {
        let (_, rest) = page.split_once(&format!("<td>{program}</td>"))?;
        Some(rest.split_once("</tr>")?.0.to_owned())
    };
    let page = || world.page(&cookie, "/admin/");
    eventually("the stream is open", || row(&page(), "stream/1").is_some());
    let now = page();
    assert_eq!(row(&now, "other"), None, "{now}");
    for (_, program) in newest {
        let row = row(&now, program).unwrap_or_else(|| panic!("{program}: {now}"));
        assert!(row.contains("<td>papers</td>") && row.ends_with("<td>0 changes</td>"), "{row}");
    }
    fs::write(world.path("papers/new"), "text").unwrap();
    let scan = "/admin/api/v1/sets/papers/scan";
    world.ask("POST", scan, &world.page_headers(&cookie), "");
    eventually("they are behind", || {
        let now = page();
        newest.iter().all(|(_, program)| row(&now, program).unwrap().ends_with("<td>1 change</td>"))
    });
    eventually("the stream was sent the notification", || {
        row(&page(), "stream/1").unwrap().ends_with("<td>0 notifications</td>")
    });
    let report = run(abreast().args(["status", "--json"]).arg(world.path("data"))).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    let followers = report["stores"][0]["followers"].as_array().unwrap();
    assert_eq!(followers.len(), newest.len() + 2, "{report:#}");
    drop(stream);
    eventually("the stream is closed", || row(&page(), "stream/1").is_none());
}
