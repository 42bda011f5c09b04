//! Walks of a whole Source.

use crate::cases::inspect;
use crate::server::Server;
use crate::site::{Break, broken, good};
use abreast_validator::{Options, Severity, Share, ndjson, text, validate};
use std::sync::atomic::AtomicBool;

#[test]
fn each_address_is_asked_for_once() {
    let server = Server::start(good);
    inspect(&server, "/rl1.xml", |_| {});
    let requests = server.requests();
    for path in ["/rl2.xml", "/cl1.xml", "/p1.zip", "/c1.xml", "/r/a.txt", "/robots.txt"] {
        // A few documents are requested again, with a condition.
        let times = requests.iter().filter(|request| *request == path).count();
        assert!(times == 1 || times == 2 && path.contains(".xml"), "{path}: {times}");
    }
}

#[test]
fn every_address_of_a_source_leads_to_the_same_report() {
    let breaks =
        [Break::Replace("/cl1.xml", "datetime=\"2026-01-02T00", "datetime=\"2026-01-03T09")];
    let server = Server::start(|base| broken(base, &breaks));
    let reports: Vec<String> = ["/caps.xml", "/rl1.xml", "/old-cl.xml"]
        .iter()
        .map(|path| {
            let report = inspect(&server, path, |_| {});
            assert_eq!(report.count(Severity::Error), 1, "{}", text(&report));
            text(&report)
        })
        .collect();
    assert!(reports.iter().all(|report| *report == reports[0]), "{reports:#?}");
}

#[test]
fn a_page_that_links_to_the_source_is_a_start() {
    let breaks = [Break::AddFinding(
        "/",
        "<!DOCTYPE html><head><link rel=resourcesync href='{B}/caps.xml'></head>",
    )];
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
    assert!(report.read() >= 20);
}

#[test]
fn root_without_links_is_fine_if_the_source_is_found() {
    let page = [
        Break::AddFinding("/", "<!DOCTYPE html><title>hello</title>"),
        Break::AddFinding("/p.html", "<!DOCTYPE html>"),
    ];
    for (breaks, path, errors) in
        [(&page[..0], "/", 0), (&page, "/", 0), (&page, "/p.html", 0), (&page[..0], "/no", 1)]
    {
        let server = Server::start(|base| broken(base, breaks));
        let report = inspect(&server, path, |_| {});
        assert_eq!(report.count(Severity::Error), errors, "{path}\n{}", text(&report));
        assert!(report.read() >= 20);
    }
    let server =
        Server::start(|_| broken("", &page).into_iter().filter(|(path, _)| path == "/").collect());
    let report = inspect(&server, "/", |_| {});
    assert!(report.saw_nothing() && report.count(Severity::Error) == 1, "{}", text(&report));
}

#[test]
fn plain_sitemaps_of_robots_txt_are_read_if_nothing_else_is() {
    const PLAIN: Break = Break::AddFinding(
        "/plain.xml",
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{B}/a</loc></url></urlset>",
    );
    let robots = Break::Replace("/robots.txt", "/rl.xml", "/plain.xml");
    // Lines end as in any robots.txt, and may have comments.
    for line in ["/plain.xml", "/plain.xml # all", "/plain.xml\rAllow: /"] {
        let server = Server::start(|base| {
            let robots = Break::Replace("/robots.txt", "/rl.xml", line);
            let answers = broken(base, &[PLAIN, robots]).into_iter();
            answers
                .filter(|(path, _)| ["/robots.txt", "/plain.xml"].contains(&path.as_str()))
                .collect()
        });
        let report = inspect(&server, "/", |_| {});
        let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
        assert_eq!(found, ["RS-7-md"], "{line:?} {}", text(&report));
        let shown: Vec<_> =
            report.documents.iter().map(|one| (&*one.name, one.entries, one.read)).collect();
        assert_eq!(shown, [("plain Sitemap", 1, true)], "{line:?} {:#?}", report.documents);
        let is_named = !report.tried.iter().any(|(_, why)| why.contains("names no"));
        assert!(report.found_source() && is_named, "{line:?}");
    }
    // Beside a Source they are none of its documents.
    let server = Server::start(|base| broken(base, &[PLAIN, robots.clone()]));
    let report = inspect(&server, "/", |_| {});
    assert!(report.findings.is_empty() && report.read() > 20, "{}", text(&report));
}

#[test]
fn no_documents_and_no_faults_are_distinguished() {
    let server = Server::start(|_| crate::server::Answers::new());
    let report = inspect(&server, "/", |_| {});
    assert!(report.saw_nothing());
    assert_eq!(report.count(Severity::Error), 1, "{}", text(&report));
}

#[test]
fn limits_end_the_walk_and_are_reported() {
    let server = Server::start(good);
    let few = inspect(&server, "/caps.xml", |options| options.max_documents = 6);
    assert_eq!(few.limit, Some("--max-documents"));
    assert!(few.read() <= 6 && few.count(Severity::Warning) >= 1, "{}", text(&few));
    let more = inspect(&server, "/caps.xml", |options| options.max_documents = 20);
    assert!(more.limit.is_some() && more.sampled > 0, "what was read is sampled: {}", text(&more));
    let small = inspect(&server, "/caps.xml", |options| options.max_bytes = 2_000);
    assert_eq!(small.limit, Some("--max-bytes"), "{}", text(&small));
    let alone = inspect(&server, "/rl.xml", |options| options.walk = false);
    assert_eq!((alone.read(), alone.findings.len()), (1, 0), "{}", text(&alone));
}

#[test]
fn notes_are_made_only_where_they_matter() {
    let finds = |rule: &str, breaks: &[Break]| {
        let server = Server::start(|base| broken(base, breaks));
        let report = inspect(&server, "/caps.xml", |_| {});
        report.findings.iter().any(|found| found.rule.id == rule)
    };
    // Nobody continues from the time of a list where no changes are published.
    let older = Break::Replace("/rl1.xml", "at=\"2026-01-10", "at=\"2026-01-09");
    let no_list = Break::Replace("/caps.xml", "capability=\"changelist\"", "capability=\"x\"");
    let no_dump = Break::Replace("/caps.xml", "capability=\"changedump\"", "capability=\"x\"");
    assert!(finds("RS-10.2-at-later", &[older.clone(), no_dump.clone()]));
    assert!(!finds("RS-10.2-at-later", &[older, no_list, no_dump]));
    // Who has a package has its manifest.
    assert!(finds("HTTP-8.4.1-gzip", &[Break::Swell("/rl1.xml", 70 << 10)]));
    assert!(!finds("HTTP-8.4.1-gzip", &[Break::Swell("/p1.xml", 70 << 10)]));
}

#[test]
fn as_many_documents_as_allowed_are_read() {
    let server = Server::start(|base| {
        let list = format!(
            "<rs:md capability=\"resourcelist\" at=\"2026-01-10T00:00:00Z\"/><url><loc>{base}/r/a.txt</loc></url>"
        );
        let lists = |number| format!("<sitemap><loc>{base}/{number}.xml</loc></sitemap>");
        let index = (0..60).map(lists).collect::<String>();
        let index = crate::site::urlset(&format!(
            "<rs:md capability=\"resourcelist\" at=\"2026-01-10T00:00:00Z\"/>{index}"
        ));
        let index = String::from_utf8(index).unwrap().replace("urlset", "sitemapindex");
        let answer = |body: Vec<u8>| crate::server::Answer { body, ..Default::default() };
        let lists =
            (0..60).map(|number| (format!("/{number}.xml"), answer(crate::site::urlset(&list))));
        lists.chain([("/index.xml".to_owned(), answer(index.into_bytes()))]).collect()
    });
    for most in [1, 2, 30, 61] {
        let report = inspect(&server, "/index.xml", |options| options.max_documents = most);
        assert_eq!(report.read(), most, "{}", text(&report));
        let first = (0..60).take_while(|number| {
            report
                .documents
                .iter()
                .any(|document| document.read && document.url.ends_with(&format!("/{number}.xml")))
        });
        assert!(first.count() + 1 >= most, "the first are read: {}", text(&report));
        assert_eq!(report.limit, (most < 61).then_some("--max-documents"));
    }
}

#[test]
fn all_resources_are_compared_when_asked_for() {
    let server =
        Server::start(|base| broken(base, &[Break::Replace("/r/c.txt", "third", "drift")]));
    let report = inspect(&server, "/caps.xml", |options| options.sample = Share::All);
    assert_eq!(report.sampled, 4);
    assert!(
        report.findings.iter().any(|found| found.rule.id == "RS-7-hash-true"),
        "{}",
        text(&report)
    );
    let none = inspect(&server, "/caps.xml", |options| options.sample = Share::Some(0));
    assert!(none.sampled == 0 && none.findings.is_empty(), "{}", text(&none));
}

#[test]
fn packages_on_disk_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut members) = crate::site::packages("http://example.org").remove(0);
    let path = folder.path().join("package.zip");
    let check = |members: &crate::site::Members| {
        std::fs::write(&path, crate::site::pack(members)).unwrap();
        validate(&Options::new(vec![path.to_str().unwrap().to_owned()]), &AtomicBool::new(false))
    };
    let report = check(&members);
    assert!(report.findings.is_empty() && report.read() == 1, "{}", text(&report));
    members.pop();
    let report = check(&members);
    let found = &report.findings[0];
    assert_eq!(
        (found.rule.id, found.severity),
        ("RS-11.2-exists", Severity::Error),
        "{}",
        text(&report)
    );
    assert!(
        found.url.ends_with("package.zip!/manifest.xml") && found.line > 0,
        "{}",
        ndjson(&report)
    );
}

#[test]
fn a_stop_is_heeded() {
    let server = Server::start(good);
    let report = validate(&Options::new(vec![server.url("/caps.xml")]), &AtomicBool::new(true));
    assert!(report.cancelled && report.saw_nothing());
}

#[test]
fn a_source_that_changes_while_it_is_read_is_not_at_fault() {
    let breaks = [Break::Replace("/rl1.xml", "at=\"2026-01-10", "at=\"2026-01-11")];
    let finds = |later: bool| {
        let server = Server::start(|base| {
            let mut answers = broken(base, &breaks);
            if later {
                let index = answers.get_mut("/rl.xml").unwrap();
                let mut next = index.clone();
                next.headers.insert("ETag".to_owned(), "\"other\"".to_owned());
                index.later = Some(Box::new(next));
            }
            answers
        });
        // Nothing is asked for a second time but what has to be settled.
        let report = inspect(&server, "/rl.xml", |_| {});
        report.findings.iter().any(|found| found.rule.id == "RS-10.2-at")
    };
    assert!(finds(false));
    assert!(!finds(true));
}
