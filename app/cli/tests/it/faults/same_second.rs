//! A hundred changes within one second, as Sources tell them that know whole seconds only: none is
//! lost.

use super::Copy;
use super::web::Web;
use abreast_destination::Mode;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::folder::files;
use abreast_testkit::{Random, seeds};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const CHANGES: usize = 100;
const SECOND: &str = "2026-01-01T00:00:05Z";

/// Changes of one second, in lists of a few each, every list but the last closed.
struct Lists {
    web: Web,
    page: usize,
    entries: Vec<String>,
    kept: BTreeMap<String, String>,
}

impl Lists {
    fn new(page: usize) -> Self {
        let web = Web::start();
        let mut kept = BTreeMap::new();
        let mut listed = String::new();
        for number in 0..7 {
            let path = format!("/d/f{number}");
            web.body(&path, "begin");
            let _ = write!(listed, "<url><loc>{}</loc></url>", web.url(&path));
            kept.insert(path, "begin".to_owned());
        }
        web.body(
            "/list.xml",
            document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &listed),
        );
        web.offer(&[("resourcelist", "/list.xml"), ("changelist", "/changes.xml")]);
        let lists = Self { web, page, entries: Vec::new(), kept };
        lists.publish();
        lists
    }

    /// One change; nothing but its place tells it from the others of that second.
    fn change(&mut self, random: &mut Random) {
        let path = format!("/d/f{}", random.below(9));
        let change = if random.below(4) == 0 && self.kept.remove(&path).is_some() {
            self.web.remove(&path);
            "deleted"
        } else {
            let body = format!("after change {}", self.entries.len());
            self.web.body(&path, body.as_str());
            if self.kept.insert(path.clone(), body).is_some() { "updated" } else { "created" }
        };
        let url = self.web.url(&path);
        self.entries.push(format!(
            "<url><loc>{url}</loc><rs:md change=\"{change}\" datetime=\"{SECOND}\"/></url>\n"
        ));
        self.publish();
    }

    fn publish(&self) {
        let pages: Vec<_> = self.entries.chunks(self.page).collect();
        let mut index = String::new();
        for number in 0..pages.len().max(1) {
            let from = if number == 0 { BEGIN } else { SECOND };
            let closed = number + 1 < pages.len();
            let until = if closed { format!(" until=\"{SECOND}\"") } else { String::new() };
            let attributes = format!("capability=\"changelist\" from=\"{from}\"{until}");
            let path = format!("/changes-{number}.xml");
            let entries = pages.get(number).map(|page| page.concat()).unwrap_or_default();
            self.web.body(&path, document("urlset", &attributes, &entries));
            let url = self.web.url(&path);
            let _ = writeln!(
                index,
                "<sitemap><loc>{url}</loc><rs:md from=\"{from}\"{until}/></sitemap>"
            );
        }
        let attributes = format!("capability=\"changelist\" from=\"{BEGIN}\"");
        self.web.body("/changes.xml", document("sitemapindex", &attributes, &index));
    }

    fn assert_copied(&self, folder: &Path, what: &str) {
        let found: BTreeMap<_, _> = files(folder)
            .into_iter()
            .map(|(path, bytes)| {
                (format!("/d/{}", path.display()), String::from_utf8(bytes).unwrap())
            })
            .collect();
        assert_eq!(found, self.kept, "{what}");
    }
}

#[test]
fn a_hundred_changes_of_one_second_are_all_applied() {
    for seed in seeds(1) {
        for (page, polled) in [(1, 2), (7, 3), (33, 10), (7, CHANGES)] {
            let what =
                format!("ABREAST_TEST_SEED={seed}, {page} in a list, polled after every {polled}");
            let (mut lists, mut random) = (Lists::new(page), Random::new(seed));
            let place = tempfile::tempdir().unwrap();
            let mut copy = Copy::of(lists.web.url("/caps.xml"), &place.path().join("copy"));
            copy.options.max_delete = abreast_destination::MaxDelete::parse("100%").unwrap();
            copy.options.base = Some(lists.web.url("/d/"));
            let first = copy.run();
            assert_eq!(first.summary().mode, Mode::Baseline, "{what}");
            lists.assert_copied(&copy.options.folder, &what);
            for number in 1..=CHANGES {
                lists.change(&mut random);
                if number % polled == 0 {
                    let ran = copy.run();
                    assert_eq!(
                        (ran.exit(), ran.summary().mode),
                        (0, Mode::Incremental),
                        "{what}: {:?}",
                        ran.codes
                    );
                    lists.assert_copied(&copy.options.folder, &format!("{what}, change {number}"));
                }
            }
        }
    }
}
