//! Notifications, topics and hubs.

use crate::cases::inspect;
use crate::server::Server;
use crate::site::{Break, broken, day, urlset};
use Break::{AddFinding, Empty, ForHead, Header, Post, Remove, Replace};
use abreast_validator::{Mode, Options, check_document, text, validate};
use std::sync::atomic::AtomicBool;

fn ids(capability: &str, entries: &str) -> Vec<(u64, &'static str)> {
    let head =
        format!("<rs:md capability=\"{capability}\" from=\"{}\" until=\"{}\"/>\n", day(5), day(9));
    let found = check_document("n", &urlset(&(head + entries)), Mode::Normal);
    found.iter().map(|found| (found.line, found.rule.id)).collect()
}

/// The first entry is in line 4.
fn entry(md: &str) -> String {
    format!("<url><loc>http://example.org/a</loc><rs:md {md}/></url>\n")
}

fn change(name: &str, change: &str, time: u32) -> String {
    format!(
        "<url><loc>http://example.org/{name}</loc><rs:md change=\"{change}\" datetime=\"{}\"/></url>\n",
        day(time)
    )
}

#[test]
fn a_change_notification_given_as_a_file_is_judged_by_itself() {
    let good =
        [change("a", "created", 6), change("b", "updated", 6), change("a", "deleted", 9)].concat();
    assert_eq!(ids("change-notification", &good), []);
    assert_eq!(ids("change-notification", ""), []);
    let bad = [
        change("a", "created", 7),
        change("b", "created", 7),
        change("a", "updated", 7),
        change("b", "updated", 6),
        change("c", "updated", 10),
        change("d", "moved", 9),
        entry("length=\"1\""),
    ];
    let expected = [
        (6, "RSN-3-once"),
        (7, "RSCN-3-order"),
        (8, "RS-7-datetime-range"),
        (9, "RS-12.1-change-value"),
        (9, "RSCN-3-order"),
        (10, "RSCN-3-change"),
        (10, "RSCN-3-datetime"),
    ];
    let mut found = ids("change-notification", &bad.concat());
    found.sort_unstable();
    assert_eq!(found, expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notification.xml");
    let head = format!(
        "<rs:md capability=\"change-notification\" from=\"{}\" until=\"{}\"/>\n",
        day(9),
        day(5)
    );
    std::fs::write(&path, urlset(&head)).unwrap();
    let report =
        validate(&Options::new(vec![path.to_str().unwrap().to_owned()]), &AtomicBool::new(false));
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(
        (found, report.documents[0].name.as_str()),
        (vec!["RS-7-interval"], "Change Notification")
    );
}

#[test]
fn a_document_is_notified_once() {
    let time = |at: u32| {
        entry(&format!("change=\"created\" capability=\"resourcelist\" datetime=\"{}\"", day(at)))
    };
    let untimed = || entry("change=\"created\" capability=\"resourcelist\"");
    for second in [time(8), time(7), untimed()] {
        let found = ids("framework-notification", &(time(8) + &second));
        assert_eq!(found, [(5, "RSN-3-once")], "{second}");
    }
}

#[test]
fn framework_notification_has_only_changes_of_the_table() {
    for (capability, faulty) in [
        ("resourcelist", ["", "", "x"]),
        ("resourcedump", ["", "x", "x"]),
        ("changelist", ["", "", "x"]),
        ("changedump", ["", "", "x"]),
        ("capabilitylist", ["", "", ""]),
        ("description", ["", "", ""]),
        ("resourcelist-archive", ["", "", ""]),
        ("changedump-manifest", ["x", "x", "x"]),
        ("change-notification", ["x", "x", "x"]),
    ] {
        for (change, faulty) in ["created", "updated", "deleted"].into_iter().zip(faulty) {
            let found = ids(
                "framework-notification",
                &entry(&format!("change=\"{change}\" capability=\"{capability}\"")),
            );
            let expected: &[_] = if faulty.is_empty() { &[] } else { &[(4, "RSFN-2.1-change")] };
            assert_eq!(found, expected, "{capability} {change}");
        }
    }
    let time = |at: u32| {
        entry(&format!("change=\"created\" capability=\"resourcelist\" datetime=\"{}\"", day(at)))
    };
    // What was before `from` may be notified; what is after `until` cannot be known yet. Order is
    // not asked for.
    let other = time(2).replace("/a<", "/b<");
    assert_eq!(ids("framework-notification", &(time(8) + &other)), []);
    assert_eq!(ids("framework-notification", &time(10)), [(4, "RS-7-datetime-range")]);
    let own = entry("change=\"created\" capability=\"resourcelist\"")
        .replace("</url>", "<rs:ln rel=\"index\" href=\"http://example.org/a\"/></url>");
    assert_eq!(ids("framework-notification", &own), [(4, "RSFN-2-no-index")]);
    let at = entry("change=\"created\" capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"");
    assert_eq!(ids("framework-notification", &at), [(4, "RS-A-forbidden")]);
}

/// What the rules find in the good Source after some breaks, each once.
fn found(path: &str, breaks: &[Break]) -> Vec<&'static str> {
    let server = Server::start(|base| broken(base, breaks));
    let report = inspect(&server, path, |_| {});
    let mut found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn topic_without_notifications_is_no_fault() {
    let breaks = [Empty("/notify/change"), Empty("/notify/framework")];
    for path in ["/caps.xml", "/notify/change"] {
        let server = Server::start(|base| broken(base, &breaks));
        let report = inspect(&server, path, |_| {});
        assert!(report.findings.is_empty(), "{path}\n{}", text(&report));
        assert_eq!(report.read(), 23);
        assert_eq!(report.documents.iter().filter(|document| document.name == "topic").count(), 2);
    }
}

#[test]
fn an_empty_topic_leads_to_the_source() {
    let breaks = [Empty("/notify/change"), Remove("/.well-known/resourcesync")];
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/notify/change", |_| {});
    assert_eq!(report.read(), 22, "{}", text(&report));
    let alone = inspect(&server, "/notify/change", |options| options.walk = false);
    assert!(alone.findings.is_empty() && alone.read() == 1, "{}", text(&alone));
}

#[test]
fn faults_of_topics_are_the_same_from_every_address() {
    for path in ["/caps.xml", "/notify/framework", "/notify/change", "/rl1.xml"] {
        let link = |link| [Header("/notify/change", "Link", link)];
        assert_eq!(found(path, &[]), [""; 0]);
        assert_eq!(
            found(path, &link("<{B}/caps.xml>; rel=resourcesync")),
            ["RSN-4.1-hub", "RSN-4.1-self"]
        );
        let other = link("</notify/change>; rel=self, <{B}/hub2>; rel=hub");
        assert_eq!(found(path, &other), ["RSN-4.1-hub"], "relative targets are targets");
    }
    let two = "<{B}/notify/change>; rel=self, <{B}/notify/change>; rel=self, </hub>; rel=hub, <http://hub.example/>; rel=hub";
    assert_eq!(found("/caps.xml", &[Header("/notify/change", "Link", two)]), ["RSN-4.1-self"]);
    assert_eq!(
        found("/caps.xml", &[ForHead("/notify/change", "Status", "405 Not Allowed")]),
        ["RSN-4.1-answers"]
    );
    assert_eq!(
        found("/caps.xml", &[ForHead("/notify/change", "Content-Type", "text/html")]),
        ["RSN-4.1-head"]
    );
    let moved = [Header("/notify/change", "Location", "{B}/notify/framework")];
    assert!(found("/caps.xml", &moved).contains(&"RSN-4.1-answers"));
    assert_eq!(found("/caps.xml", &[Remove("/notify/framework")]), ["RSN-4.1-answers"]);
    let swapped = [Replace("/notify/change", "change-notification", "framework-notification")];
    assert!(found("/caps.xml", &swapped).contains(&"RS-6.1-capability-equal"));
    let page = [Replace(
        "/notify/change",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
        "<!DOCTYPE html>",
    )];
    assert_eq!(found("/caps.xml", &page), ["XML-2.8-doctype"]);
}

#[test]
fn topics_of_two_sets_are_two() {
    let second = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
        <rs:ln rel=\"up\" href=\"{B}/.well-known/resourcesync\"/><rs:ln rel=\"describedby\" href=\"{B}/set.html\"/>\
        <rs:md capability=\"capabilitylist\"/><url><loc>{B}/notify/change</loc><rs:md capability=\"change-notification\"/>\
        <rs:ln rel=\"hub\" href=\"{B}/hub\"/><rs:ln rel=\"hub\" href=\"http://hub.example/\"/></url></urlset>";
    let listed = "</url>\n<url><loc>{B}/caps2.xml</loc><rs:md capability=\"capabilitylist\"/>\
        <rs:ln rel=\"describedby\" href=\"{B}/set.html\"/></url>\n</urlset>";
    let breaks = [
        AddFinding("/caps2.xml", second),
        Replace("/.well-known/resourcesync", "</url>\n</urlset>", listed),
    ];
    assert_eq!(found("/caps.xml", &breaks), ["RSN-2-channels"]);
}

#[test]
fn document_that_became_an_index_later_is_no_fault() {
    let told = |to: &'static str| {
        found(
            "/caps.xml",
            &[
                Replace("/notify/framework", "<loc>{B}/cl2.xml", "<loc>{B}/cl.xml"),
                Replace("/notify/framework", "<rs:ln rel=\"index\" href=\"{B}/cl.xml\"/>", ""),
                Replace("/notify/framework", "datetime=\"2026-01-12", to),
            ],
        )
    };
    assert_eq!(told("datetime=\"2026-01-06"), ["RSFN-2-no-index"]);
    assert_eq!(told("datetime=\"2026-01-05"), [""; 0]);
    let wrong =
        [Replace("/notify/framework", "index\" href=\"{B}/rl.xml", "index\" href=\"{B}/cl.xml")];
    assert_eq!(found("/caps.xml", &wrong), ["RSFN-3-index"]);
    let none =
        [Replace("/notify/framework", "index\" href=\"{B}/rl.xml", "up\" href=\"{B}/rl.xml")];
    assert_eq!(found("/caps.xml", &none), ["RSFN-3-index"]);
}

#[test]
fn hubs_are_asked_only_where_we_may_and_every_refusal_will_do() {
    for good in [
        ("404 Not Found", "text/plain", "no"),
        ("400 Bad Request", "application/problem+json", "{}"),
    ] {
        assert_eq!(found("/caps.xml", &[Post("/hub", good)]), [""; 0], "{good:?}");
    }
    for bad in [
        ("200 OK", "text/plain", "fine"),
        ("500 Internal Server Error", "text/plain", "panic"),
        ("400 Bad Request", "text/plain", ""),
        ("400 Bad Request", "image/png", "x"),
    ] {
        assert_eq!(found("/caps.xml", &[Post("/hub", bad)]), ["WS-5.1.2-refusal"], "{bad:?}");
    }
    let server = Server::start(|base| broken(base, &[]));
    inspect(&server, "/caps.xml", |_| {});
    assert_eq!(server.requests().iter().filter(|path| *path == "/hub").count(), 1);
}
