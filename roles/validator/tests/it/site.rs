//! A Source that keeps to every rule, and ways to break one.

use crate::server::{Answer, Answers};
use abreast_webtypes::{Algorithm, Digests};
use md5::{Digest as _, Md5};
use std::io::{Cursor, Write as _};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NS: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// A package: names and contents.
pub(crate) type Members = Vec<(String, Vec<u8>)>;

/// One way to break a rule.
#[derive(Clone)]
pub(crate) enum Break {
    /// In a document, every occurrence.
    Replace(&'static str, &'static str, &'static str),
    Remove(&'static str),
    AddFinding(&'static str, &'static str),
    Header(&'static str, &'static str, &'static str),
    /// A header for HEAD only; `Status` is the status.
    ForHead(&'static str, &'static str, &'static str),
    /// What POST is answered with: a status, a type, a text.
    Post(&'static str, (&'static str, &'static str, &'static str)),
    /// No content, the same headers.
    Empty(&'static str),
    Unconditional(&'static str),
    /// What a client gets that accepts something: a status and a type.
    Accept(&'static str, &'static str, (&'static str, &'static str)),
    /// The status of the first answer.
    Once(&'static str, &'static str),
    Members(&'static str, fn(&mut Members)),
    /// In a document, every occurrence, from its second answer on.
    Changed(&'static str, &'static str, &'static str),
    /// White space behind the document.
    Swell(&'static str, usize),
    /// A text so many times before the last end tag.
    Repeat(&'static str, &'static str, usize),
    /// A few documents only.
    Few,
    /// Files of a few bytes only.
    SmallFiles,
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut digests = Digests::default();
    digests.set(Algorithm::Md5, &Md5::digest(bytes));
    digests.to_string()
}

pub(crate) fn day(day: u32) -> String {
    format!("2026-01-{day:02}T00:00:00Z")
}

pub(crate) fn urlset(content: &str) -> Vec<u8> {
    format!("{HEAD}<urlset {NS}>\n{content}</urlset>\n").into_bytes()
}

fn sitemapindex(content: &str) -> Vec<u8> {
    format!("{HEAD}<sitemapindex {NS}>\n{content}</sitemapindex>\n").into_bytes()
}

pub(crate) fn pack(members: &Members) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        zip.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The resources: name and content.
const RESOURCES: [(&str, &str); 4] = [
    ("a.txt", "first"),
    ("b.txt", "second, longer"),
    ("c.txt", "third"),
    ("d.html", "<html><body>d</body></html>"),
];

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html",
        Some("zip") => "application/zip",
        Some("xml") => "application/xml",
        _ => "text/plain",
    }
}

fn resource(base: &str, (name, content): (&str, &str), more: &str) -> String {
    let (hash, length) = (hash(content.as_bytes()), content.len());
    let kind = media_type(name);
    format!(
        "<url><loc>{base}/r/{name}</loc><lastmod>{}</lastmod><rs:md hash=\"{hash}\" length=\"{length}\" type=\"{kind}\"{more}/></url>\n",
        day(1)
    )
}

fn change(base: &str, name: &str, change: &str, time: &str) -> String {
    format!(
        "<url><loc>{base}/r/{name}</loc><rs:md change=\"{change}\" datetime=\"{time}\"/></url>\n"
    )
}

/// The members of each package of the good Source.
pub(crate) fn packages(base: &str) -> Vec<(&'static str, Members)> {
    let up = format!("<rs:ln rel=\"up\" href=\"{base}/caps.xml\"/>\n");
    let mut all = Vec::new();
    for (path, names) in [("/p1.zip", 0..2), ("/p2.zip", 2..4)] {
        let mut manifest =
            format!("{up}<rs:md capability=\"resourcedump-manifest\" at=\"{}\"/>\n", day(10));
        let mut members = Vec::new();
        for (name, content) in &RESOURCES[names] {
            manifest += &resource(base, (name, content), &format!(" path=\"/files/{name}\""));
            members.push((format!("files/{name}"), content.as_bytes().to_vec()));
        }
        members.insert(0, ("manifest.xml".to_owned(), urlset(&manifest)));
        all.push((path, members));
    }
    let patch = "patch";
    let manifest = format!(
        "{up}<rs:md capability=\"changedump-manifest\" from=\"{}\" until=\"{}\"/>\n\
         <url><loc>{base}/r/a.txt</loc><rs:md change=\"created\" datetime=\"{}\" type=\"text/plain\" path=\"/1/a.txt\"/></url>\n\
         <url><loc>{base}/r/x.txt</loc><rs:md change=\"deleted\" datetime=\"{}\"/></url>\n\
         <url><loc>{base}/r/b.txt</loc><rs:md change=\"updated\" datetime=\"{}\" type=\"text/plain\" path=\"/1/b.txt\"/>\
         <rs:ln rel=\"http://www.openarchives.org/rs/terms/patch\" href=\"{base}/patch\" type=\"text/x-patch\" path=\"/1/b.patch\"/></url>\n",
        day(1),
        day(5),
        day(2),
        day(3),
        day(4)
    );
    all.push((
        "/c1.zip",
        vec![
            ("manifest.xml".to_owned(), urlset(&manifest)),
            ("1/a.txt".to_owned(), b"first".to_vec()),
            ("1/b.txt".to_owned(), b"second, longer".to_vec()),
            ("1/b.patch".to_owned(), patch.as_bytes().to_vec()),
        ],
    ));
    all
}

/// A whole Source without a fault.
pub(crate) fn good(base: &str) -> Answers {
    let mut files: Vec<(&str, Vec<u8>)> = Vec::new();
    let up = format!("<rs:ln rel=\"up\" href=\"{base}/caps.xml\"/>\n");
    let entry = |path: &str, md: &str| format!("<url><loc>{base}{path}</loc><rs:md {md}/></url>\n");
    let member =
        |path: &str, md: &str| format!("<sitemap><loc>{base}{path}</loc><rs:md {md}/></sitemap>\n");
    let capability =
        |path: &str, capability: &str| entry(path, &format!("capability=\"{capability}\""));
    let topic = |path: &str, capability: &str| {
        format!(
            "<url><loc>{base}{path}</loc><rs:md capability=\"{capability}\"/><rs:ln rel=\"hub\" href=\"{base}/hub\"/>\
             <rs:ln rel=\"hub\" href=\"http://hub.example/\"/></url>\n"
        )
    };
    files.push((
        "/.well-known/resourcesync",
        urlset(&format!(
            "<rs:ln rel=\"describedby\" href=\"{base}/about.html\"/>\n<rs:md capability=\"description\"/>\n\
             <url><loc>{base}/caps.xml</loc><rs:md capability=\"capabilitylist\"/>\
             <rs:ln rel=\"describedby\" href=\"{base}/set.html\"/></url>\n"
        )),
    ));
    files.push((
        "/caps.xml",
        urlset(&format!(
            "<rs:ln rel=\"up\" href=\"{base}/.well-known/resourcesync\"/>\n\
             <rs:ln rel=\"describedby\" href=\"{base}/set.html\"/>\n<rs:md capability=\"capabilitylist\"/>\n{}",
            [
                capability("/rl.xml", "resourcelist"),
                capability("/rd.xml", "resourcedump"),
                capability("/cl.xml", "changelist"),
                capability("/cd.xml", "changedump"),
                capability("/rla.xml", "resourcelist-archive"),
                capability("/cla.xml", "changelist-archive"),
                topic("/notify/change", "change-notification"),
                topic("/notify/framework", "framework-notification"),
            ]
            .concat()
        )),
    ));
    // Resource Lists.
    let at = format!("at=\"{}\"", day(10));
    files.push((
        "/rl.xml",
        sitemapindex(&format!(
            "{up}<rs:md capability=\"resourcelist\" {at} completed=\"{}\"/>\n{}{}",
            day(11),
            member("/rl1.xml", &at),
            member("/rl2.xml", &at)
        )),
    ));
    for (path, names) in [("/rl1.xml", 0..2), ("/rl2.xml", 2..4)] {
        let listed: String = RESOURCES[names].iter().map(|one| resource(base, *one, "")).collect();
        files.push((
            path,
            urlset(&format!(
                "{up}<rs:ln rel=\"index\" href=\"{base}/rl.xml\"/>\n<rs:md capability=\"resourcelist\" {at}/>\n{listed}"
            )),
        ));
    }
    // Change Lists.
    let span = |from: u32, until: Option<u32>| {
        let until = until.map_or(String::new(), |until| format!(" until=\"{}\"", day(until)));
        format!("from=\"{}\"{until}", day(from))
    };
    files.push((
        "/cl.xml",
        sitemapindex(&format!(
            "{up}<rs:md capability=\"changelist\" {}/>\n{}{}",
            span(1, None),
            member("/cl1.xml", &span(1, Some(5))),
            member("/cl2.xml", &span(5, None))
        )),
    ));
    let index = format!("<rs:ln rel=\"index\" href=\"{base}/cl.xml\"/>\n");
    let archives = format!("<rs:ln rel=\"archives\" href=\"{base}/cla.xml\"/>\n");
    let rich = format!(
        "<url><loc>{base}/r/b.txt</loc><lastmod>{}</lastmod><changefreq>daily</changefreq>\
         <rs:md change=\"updated\" datetime=\"{}\" hash=\"{}\" length=\"14\" type=\"text/plain\"/>\
         <rs:ln rel=\"duplicate\" href=\"http://mirror.example/b.txt\" pri=\"1\"/>\
         <rs:ln rel=\"alternate\" href=\"{base}/r/b.pdf\" type=\"application/pdf\"/>\
         <rs:ln rel=\"http://www.openarchives.org/rs/terms/patch\" href=\"{base}/patch\" type=\"text/x-patch\"/>\
         <rs:ln rel=\"memento\" href=\"{base}/old/b.txt\" modified=\"{}\"/>\
         <rs:ln rel=\"timegate\" href=\"{base}/timegate/b.txt\"/>\
         <rs:ln rel=\"via\" href=\"http://origin.example/b.txt\"/></url>\n",
        day(4),
        day(4),
        hash(b"second, longer"),
        day(4)
    );
    let (created, deleted) =
        (change(base, "a.txt", "created", &day(2)), change(base, "x.txt", "deleted", &day(3)));
    files.push((
        "/cl1.xml",
        urlset(&format!(
            "{up}{index}{archives}<rs:md capability=\"changelist\" {}/>\n{created}{deleted}{rich}",
            span(1, Some(5))
        )),
    ));
    let later =
        change(base, "c.txt", "created", &day(6)) + &change(base, "d.html", "updated", &day(7));
    files.push((
        "/cl2.xml",
        urlset(&format!(
            "{up}{index}<rs:md capability=\"changelist\" {}/>\n{later}",
            span(5, None)
        )),
    ));
    // Dumps, with copies of the manifests.
    let packages = packages(base);
    let dumped = |path: &str, more: &str, contents: &str| {
        let zip = pack(&packages.iter().find(|(name, _)| *name == path).unwrap().1);
        let (hash, length) = (hash(&zip), zip.len());
        format!(
            "<url><loc>{base}{path}</loc><rs:md type=\"application/zip\" length=\"{length}\" hash=\"{hash}\" {more}/>\
             <rs:ln rel=\"contents\" href=\"{base}{contents}\" type=\"application/xml\"/></url>\n"
        )
    };
    files.push((
        "/rd.xml",
        urlset(&format!(
            "{up}<rs:md capability=\"resourcedump\" {at}/>\n{}{}",
            dumped("/p1.zip", &at, "/p1.xml"),
            dumped("/p2.zip", &at, "/p2.xml")
        )),
    ));
    files.push((
        "/cd.xml",
        urlset(&format!(
            "{up}<rs:md capability=\"changedump\" {}/>\n{}",
            span(1, None),
            dumped("/c1.zip", &span(1, Some(5)), "/c1.xml")
        )),
    ));
    for (path, contents) in [("/p1.zip", "/p1.xml"), ("/p2.zip", "/p2.xml"), ("/c1.zip", "/c1.xml")]
    {
        let members = &packages.iter().find(|(name, _)| *name == path).unwrap().1;
        files.push((contents, members[0].1.clone()));
        files.push((path, pack(members)));
    }
    // Archives.
    files.push((
        "/rla.xml",
        urlset(&format!(
            "{up}<rs:md capability=\"resourcelist-archive\"/>\n{}{}",
            entry("/old-rl1.xml", &format!("at=\"{}\"", day(1))),
            entry("/old-rl2.xml", &format!("at=\"{}\"", day(2)))
        )),
    ));
    for (path, of) in [("/old-rl1.xml", 1), ("/old-rl2.xml", 2)] {
        let listed = resource(base, RESOURCES[0], "");
        files.push((
            path,
            urlset(&format!(
                "{up}<rs:md capability=\"resourcelist\" at=\"{}\"/>\n{listed}",
                day(of)
            )),
        ));
    }
    files.push((
        "/cla.xml",
        urlset(&format!(
            "{up}<rs:md capability=\"changelist-archive\"/>\n{}",
            entry("/old-cl.xml", &span(1, Some(1)))
        )),
    ));
    files.push((
        "/old-cl.xml",
        urlset(&format!("{up}<rs:md capability=\"changelist\" {}/>\n", span(1, Some(1)))),
    ));
    // Notifications.
    let told =
        change(base, "c.txt", "created", &day(6)) + &change(base, "d.html", "updated", &day(7));
    files.push((
        "/notify/change",
        urlset(&format!(
            "{up}<rs:md capability=\"change-notification\" {}/>\n{told}",
            span(5, Some(7))
        )),
    ));
    let told = |path: &str, md: &str, index: &str| {
        let index = match index {
            "" => String::new(),
            index => format!("<rs:ln rel=\"index\" href=\"{base}{index}\"/>"),
        };
        format!("<url><loc>{base}{path}</loc><rs:md {md} datetime=\"{}\"/>{index}</url>\n", day(12))
    };
    files.push((
        "/notify/framework",
        urlset(&format!(
            "{up}<rs:md capability=\"framework-notification\" {}/>\n{}",
            span(11, Some(12)),
            [
                told(
                    "/.well-known/resourcesync",
                    "change=\"updated\" capability=\"description\"",
                    ""
                ),
                told("/caps.xml", "change=\"updated\" capability=\"capabilitylist\"", ""),
                told("/rl1.xml", "change=\"created\" capability=\"resourcelist\"", "/rl.xml"),
                told("/rd.xml", "change=\"created\" capability=\"resourcedump\"", ""),
                told("/cl2.xml", "change=\"updated\" capability=\"changelist\"", "/cl.xml"),
                told("/caps-old.xml", "change=\"deleted\" capability=\"capabilitylist\"", ""),
            ]
            .concat()
        )),
    ));
    files.push(("/robots.txt", format!("User-agent: *\nSitemap: {base}/rl.xml\n").into_bytes()));
    let mut answers = Answers::new();
    for (name, content) in RESOURCES {
        let link = format!("<{base}/caps.xml>; rel=\"resourcesync\"");
        let mut answer = answer(name, content.as_bytes().to_vec());
        answer.headers.insert("Link".to_owned(), link);
        answers.insert(format!("/r/{name}"), answer);
    }
    for (path, body) in files {
        let mut answer = answer(path, body);
        if path.starts_with("/notify/") {
            let links = [("/hub", "hub"), (path, "self"), ("/caps.xml", "resourcesync")]
                .map(|(target, rel)| format!("<{base}{target}>; rel=\"{rel}\", "))
                .concat();
            answer.headers.insert("Link".to_owned(), links + "<http://hub.example/>; rel=\"hub\"");
        }
        answers.insert(path.to_owned(), answer);
    }
    let post = Some(("400 Bad Request", "text/plain; charset=utf-8", "hub.mode is missing"));
    answers.insert("/hub".to_owned(), Answer { post, ..Answer::default() });
    answers
}

fn answer(path: &str, body: Vec<u8>) -> Answer {
    let is_xml = path == "/.well-known/resourcesync" || path.starts_with("/notify/");
    let kind = if is_xml { "application/xml" } else { media_type(path) };
    typed(kind, body)
}

/// A body of a type, with what conditional requests need.
pub(crate) fn typed(kind: &str, body: Vec<u8>) -> Answer {
    let etag = etag(&body);
    let headers = [("Content-Type", kind), ("ETag", &etag), ("Last-Modified", MODIFIED)];
    let headers =
        headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Answer { body, headers, ..Answer::default() }
}

fn etag(body: &[u8]) -> String {
    format!("\"{}\"", &hash(body)[4..])
}

/// The good Source, broken in the ways given.
pub(crate) fn broken(base: &str, breaks: &[Break]) -> Answers {
    break_all(good(base), base, breaks)
}

pub(crate) fn break_all(mut answers: Answers, base: &str, breaks: &[Break]) -> Answers {
    for one in breaks {
        match one {
            Break::Replace(path, from, to) => {
                let answer = answers.get_mut(*path).unwrap();
                let text = String::from_utf8(answer.body.clone()).unwrap();
                let changed = text.replace(&from.replace("{B}", base), &to.replace("{B}", base));
                assert_ne!(changed, text, "{path} has no {from}");
                answer.body = changed.into_bytes();
                answer.headers.insert("ETag".to_owned(), etag(&answer.body));
            }
            Break::Remove(path) => assert!(answers.remove(*path).is_some(), "{path}"),
            Break::AddFinding(path, body) => {
                answers.insert(
                    (*path).to_owned(),
                    answer(path, body.replace("{B}", base).into_bytes()),
                );
            }
            Break::Header(path, name, value) => {
                let headers = &mut answers.get_mut(*path).unwrap().headers;
                if value.is_empty() {
                    headers.remove(*name).unwrap();
                } else {
                    headers.insert((*name).to_owned(), value.replace("{B}", base));
                }
            }
            Break::ForHead(path, name, value) => {
                let headers = &mut answers.get_mut(*path).unwrap().for_head;
                headers.insert((*name).to_owned(), value.replace("{B}", base));
            }
            Break::Post(path, post) => answers.get_mut(*path).unwrap().post = Some(*post),
            Break::Empty(path) => answers.get_mut(*path).unwrap().body.clear(),
            Break::Unconditional(path) => answers.get_mut(*path).unwrap().unconditional = true,
            Break::Accept(path, accept, (status, kind)) => {
                let mut other = typed(kind, Vec::new());
                other.headers.insert("Status".to_owned(), (*status).to_owned());
                answers.get_mut(*path).unwrap().by_accept = Some((accept, Box::new(other)));
            }
            Break::Once(path, status) => {
                let answer = answers.get_mut(*path).unwrap();
                let later = Some(Box::new(answer.clone()));
                *answer = Answer { later, ..Answer::default() };
                answer.headers.insert("Status".to_owned(), (*status).to_owned());
            }
            Break::Members(path, change) => {
                let mut members =
                    packages(base).into_iter().find(|(name, _)| name == path).unwrap().1;
                change(&mut members);
                answers.get_mut(*path).unwrap().body = pack(&members);
            }
            Break::Changed(path, from, to) => {
                let answer = answers.get_mut(*path).unwrap();
                let text = String::from_utf8(answer.body.clone()).unwrap();
                let later = text.replace(from, to);
                assert_ne!(later, text, "{path} has no {from}");
                answer.later = Some(Box::new(typed("application/xml", later.into_bytes())));
            }
            Break::Few | Break::SmallFiles => {}
            Break::Repeat(path, text, times) => {
                let answer = answers.get_mut(*path).unwrap();
                let end = answer.body.windows(2).rposition(|two| two == b"</").unwrap();
                let more = text.replace("{B}", base).repeat(*times).into_bytes();
                answer.body.splice(end..end, more);
            }
            Break::Swell(path, bytes) => {
                let answer = answers.get_mut(*path).unwrap();
                let line = [b' '; 1_023].as_slice();
                for _ in 0..bytes / 1_024 {
                    answer.body.extend_from_slice(line);
                    answer.body.push(b'\n');
                }
            }
        }
    }
    answers
}
