//! Scenarios of copies of a Source of ResourceSync 0.1: what the Source publishes, what happens, and
//! what the copy contains and reports.

use crate::copy::{Copy, Ran};
use crate::rs01::{DUMP, copy_at, copy_of, some};
use crate::rs01_source::{OldSource, Shape, link, modified};
use abreast_destination::{AuditReport, Dumps, ItemAction};
use abreast_testkit::pages::Answer;
use std::collections::BTreeMap;

const MODIFIED_NOT: Shape = Shape { modified: false, ..Shape::DEFAULT };
const ETAGS_NOT: Shape = Shape { etags: false, ..Shape::DEFAULT };
const FIXITY_NOT: Shape = Shape { fixity: false, ..Shape::DEFAULT };

/// Rows: a name, the shapes of Sources, and the steps of the scenario. [`Scenario::step`] has the
/// meaning of each step.
const SCENARIOS: [(&str, &[Shape], &str); 33] = [
    (
        "a copy begins with the Sitemap and follows change sets, with a resource that changed twice \
         and another that came and went",
        &[Shape::DEFAULT],
        "some 7; run equal mode=Baseline created=7; log; run equal; log *=1
         set /f00 changed; set /new 1; delete /f01; set /gone 1; delete /gone
         set /f00 changed again; set /last 1
         run equal mode=Incremental created=2 updated=1 deleted=1 cursor=now
         log no=/s* /c*=3; audit exit=0",
    ),
    (
        "every shape of Sitemap and change sets is followed",
        &[
            Shape { sitemaps: 3, ..Shape::DEFAULT },
            MODIFIED_NOT,
            Shape { typed: false, ..Shape::DEFAULT },
            FIXITY_NOT,
            Shape { unordered: true, ..Shape::DEFAULT },
            Shape { is_fine: false, step: 1, ..Shape::DEFAULT },
            Shape { is_zoneless: true, ..Shape::DEFAULT },
            Shape { tombstones: true, ..Shape::DEFAULT },
            ETAGS_NOT,
            Shape { per_set: 1, ..Shape::DEFAULT },
            Shape { per_set: 1_000, prev: false, ..Shape::DEFAULT },
        ],
        "some 5; run equal; delete /f00; set /f01 changed; run equal mode=Incremental
         set /x 1; set /f01 again; delete /x; set /y 1; run equal
         snapshot; run equal deleted=0; audit exit=0",
    ),
    (
        "removed change sets lead to a comparison",
        &[Shape::DEFAULT],
        "some 5; run equal; new 9; delete /f00; prune; snapshot
         run equal has=gap mode=Baseline; run not=gap",
    ),
    (
        "a Source that was restored from a backup leads to a comparison",
        &[Shape::DEFAULT],
        "some 2; run equal; set /lost 1; run equal
         restart; some 2; wait 3; set /other 1; snapshot; run equal has=gap gone=1",
    ),
    (
        "a comparison that failed is made by the next run, although the last known change is superseded",
        &[Shape::DEFAULT],
        "some 2; run equal; set /lost 1; set /f00 lost; run equal
         restart; some 2; wait 3; snapshot; save /s.xml; status /s.xml 500; run failed has=gap
         restore /s.xml; wait 3; set /f00 newer; run equal",
    ),
    (
        "deletions that wait for a broken chain are made at last: the resource may be newer than the \
         Sitemap",
        &[Shape::DEFAULT],
        "set /a 1; set /b 1; snapshot; run equal; set /lost 1; run equal
         restart; set /a 1; set /b 1; wait 3; snapshot; save /s.xml; status /s.xml 500
         run failed has=gap; restore /s.xml; new 9; save /c/1.xml; body /c/1.xml <urlset
         run failed has=list.chain path=lost; restore /c/1.xml; run; run equal",
    ),
    (
        "a missing set of changes of one time is a gap, although the next set has that time too",
        &[Shape { per_set: 2, step: 0, ..Shape::DEFAULT }],
        "set /a 1; snapshot; run equal; set /b 1; set /c 1; status /c/0.xml 404
         run failed has=gap; publish; run equal",
    ),
    (
        "another set in the place of the one read last is a restore, if the first set is removed",
        &[Shape { per_set: 2, ..Shape::DEFAULT }],
        "set /a 1; set /b 1; set /lost 1; snapshot; run equal
         restart; wait 9; set /a 2; set /b 2; set /other 2; snapshot; remove /c/0.xml
         run equal has=gap",
    ),
    (
        "an empty set without a time has no usable validators: both histories have the same one",
        &[Shape { per_set: 2, modified: false, ..Shape::DEFAULT }],
        "set /a 1; set /b 1; snapshot; run equal; save /c.xml
         restart; wait 9; set /a 2; set /other 2; snapshot; is-saved /c.xml; run equal",
    ),
    (
        "a failing change set is no gap",
        &[Shape::DEFAULT],
        "some 2; run equal; new 6; save /c/1.xml; status /c/1.xml 503; log
         run failed; log no=/s.xml; restore /c/1.xml; run equal mode=Incremental",
    ),
    (
        "late changes hide no change sets: the Sitemap is hours old, and change sets have old times",
        &[Shape { late: true, ..Shape::DEFAULT }],
        "some 1; new 12; run equal; audit exit=0",
    ),
    (
        "changes between Sitemap and change sets are found later, with the next Sitemap",
        &[Shape::DEFAULT, ETAGS_NOT],
        "some 2; wait 10; new 5; prune; run has=gap differs; run exit=0 not=gap
         snapshot; run equal; run not=gap",
    ),
    (
        "changes between Sitemap and an empty change set are found later",
        &[Shape::DEFAULT],
        "some 2; wait 10; new 4; prune; run has=gap differs; run exit=0 not=gap
         snapshot; run equal; run not=gap",
    ),
    (
        "an old Sitemap deletes nothing that came after it, too late for a replay of the changes",
        &[Shape::DEFAULT, MODIFIED_NOT],
        "some 12; dated /s.xml Fri, 02 Jan 2026 00:00:00 GMT; run equal; wait 10
         set /late0 late; run equal; set /late1 late; run equal
         set /late2 late; run equal; set /late3 late; run equal
         set /more 1; set /more2 1; prune; run has=gap deleted=0
         snapshot; baseline; run equal",
    ),
    (
        "audits take the newer of two changes of one time",
        &[Shape { is_fine: false, step: 0, per_set: 1, ..Shape::DEFAULT }],
        "some 3; set /x 1; delete /x; delete /f00; set /f00 again; run equal; audit exit=0",
    ),
    (
        "dumps are used when they are asked for",
        &[Shape::DEFAULT],
        "link /d.warc.gz; link /d.zip; some 5; dump /d.zip 1; always; run equal; log no=/f*
         set /later 1; run equal",
    ),
    (
        "a dump in the making that is asked for is waited for briefly",
        &[Shape::DEFAULT],
        "link /d.zip; some 1; making /d.zip; always; run equal has=http.making; log */d.zip=2",
    ),
    (
        "a dump in the making that pays off is waited for briefly",
        &[Shape::DEFAULT],
        "link /d.zip; some 60; making /d.zip; run equal has=http.making; log */d.zip=2",
    ),
    (
        "changes between dump and change sets are found later, with the next dump",
        &[Shape::DEFAULT],
        "set-link dump /d.zip; some 6; remove /s.xml; dump /d.zip 1; wait 10; new 5; prune
         copy /c.xml; run has=gap differs; run exit=0 not=gap
         dump /d.zip 2; run equal; run not=gap",
    ),
    (
        "the parts of a dump are one, and if one is missing, deletions are not known",
        &[Shape::DEFAULT],
        "set-link dump /d1.warc.gz; set-link dump /d1.zip; set-link dump /d2.zip
         set-link dump /d3.zip; some 6; remove /s.xml; parts 3; copy /c.xml; run equal; log no=/f*
         delete /f01; parts 3; baseline; run equal deleted=1
         status /d2.zip 404; run failed unchanged",
    ),
    (
        "the parts of a dump that a Sitemap links to are one",
        &[Shape::DEFAULT],
        "link /d1.zip; link /d2.zip; link /d3.zip; some 6; parts 3; always; run equal; log no=/f*",
    ),
    (
        "a part of a dump leads to the other parts and to the changes, not to another form",
        &[Shape::DEFAULT],
        "link /d1.warc.gz; link /d1.zip; link /d2.zip; link /d3.zip; link /d1.zip; some 6; parts 3
         body /robots.txt Sitemap: BASE/s.xml
         copy /d2.zip; run equal has=discover.found; log no=/f*
         set /f00 changed; delete /f01; run equal mode=Incremental",
    ),
    (
        "all parts of a dump that a page links to are the dump",
        &[Shape::DEFAULT],
        "some 6; parts 2
         body /page <!DOCTYPE html><html><head><link rel='DUMP' href='/d1.zip'><link rel='DUMP' href='/d2.zip'></head></html>
         copy /page; run equal",
    ),
    (
        "dumps of servers without HEAD are read, with change sets",
        &[Shape::DEFAULT],
        "set-link dump /d1.zip; set-link dump /d2.zip; some 6; remove /s.xml; parts 2
         head 403; copy /c.xml; run equal; set /f00 changed; run equal; audit exit=0
         head 405; copy /c.xml; run equal; set /f00 changed again; run equal; audit exit=0
         head 501; copy /c.xml; run equal; set /f00 changed last; run equal; audit exit=0",
    ),
    (
        "dumps of servers without HEAD are read, with a Sitemap",
        &[Shape::DEFAULT],
        "link /d1.zip; some 3; parts 1; head 403; always; run equal; log no=/f*
         head 405; copy /s.xml; always; run equal; log no=/f*
         head 501; copy /s.xml; always; run equal; log no=/f*",
    ),
    (
        "a Sitemap without a change set keeps the known one",
        &[Shape::DEFAULT],
        "set-link sitemap /s.xml; some 3
         replace /s.xml current http://www.openarchives.org/rs/changeset => next
         copy /c.xml; run equal mode=Baseline; set /f00 changed; run equal mode=Incremental",
    ),
    (
        "an audit without digests takes what a change set brought, and finds local changes",
        &[FIXITY_NOT],
        "some 3; run equal; wait 3; set /f01 changed; run equal; snapshot
         audit-times exit=0 same=3; alter f01; audit-times updated=1",
    ),
    (
        "an audit without digests takes a change with a time of the server",
        &[FIXITY_NOT],
        "some 3; run equal; wait 3; set /f01 changed
         dated /f01 Thu, 01 Jan 2026 00:00:07 GMT; run equal; snapshot
         audit-times exit=0 same=3; alter f01; audit-times updated=1",
    ),
    (
        "change sets that moved are found in the Sitemap",
        &[Shape::DEFAULT],
        "some 4; run equal; set /f00 changed; remove /c.xml; run code=http.status
         set /f01 0; snapshot; moved /c.xml /moved.xml; moved /s.xml /s.xml; remove /c.xml
         run equal has=gap
         set /f01 1; snapshot; moved /c.xml /moved.xml; moved /s.xml /s.xml; remove /c.xml
         run equal not=gap",
    ),
    (
        "a change set leads to where the current one is now",
        &[Shape::DEFAULT],
        "some 4; run equal; set /f00 changed
         moved /c.xml /moved.xml; moved /c.xml /c.xml; save /c.xml; run equal mode=Incremental
         set /f01 0; moved /c.xml /moved.xml; restore /c.xml; run equal mode=Incremental
         set /f01 1; moved /c.xml /moved.xml; restore /c.xml; run equal mode=Incremental",
    ),
    (
        "change sets lead to the Sitemap of their site; without one, only the changes are available",
        &[Shape::DEFAULT],
        "some 4; set /f00 changed
         copy /c.xml; run has=gap content; copy /c/0.xml; run has=gap content
         body /robots.txt Sitemap: BASE/other.xmlLFSitemap: BASE/s.xmlLF
         copy /c.xml; run equal not=gap mode=Baseline
         copy /c/0.xml; run equal not=gap mode=Baseline
         remove /robots.txt; lead /c.xml /s.xml; copy /c.xml; run equal not=gap",
    ),
    (
        "categories that change sets do not list are those of the Sitemap",
        &[Shape::DEFAULT],
        "category /frog Frogs; set /frog a frog; set /fish a fish; snapshot
         category /frog; set /frog a frog of no stated category; choose Frogs
         run exit=0; file frog a frog of no stated category; audit exit=0
         set /frog2 a frog, too; set /fish still a fish; run has=filter.category paths=frog
         run not=gap; category /frog Frogs; category /frog2 Frogs; snapshot
         run exit=0 paths=frog,frog2; run not=gap",
    ),
    (
        "deletions to come are not applied, and hide no changes",
        &[Shape::DEFAULT],
        "some 2; run equal; set /f00 1
         replace /c.xml </urlset> => <url><loc>BASE/f00</loc><expires>2999-01-01T00:00:00Z</expires></url></urlset>
         run equal time.future=1 not=gap; audit exit=0; set /new 1
         replace /c.xml </urlset> => <url><loc>BASE/f00</loc><expires>2999-01-01T00:00:00Z</expires></url></urlset>
         run equal time.future=1 not=gap; audit exit=0",
    ),
];

/// A Source and its copy in the middle of a scenario.
struct Scenario {
    source: OldSource,
    /// The copy, from the first step that needs one.
    copy: Option<Copy>,
    saved: BTreeMap<String, Vec<u8>>,
    /// Name, shape and current step, for failures.
    place: String,
}

impl Scenario {
    fn copy(&mut self) -> &mut Copy {
        self.copy.get_or_insert_with(|| copy_of(&self.source))
    }

    fn page(&self, path: &str) -> String {
        String::from_utf8(self.source.server.page(path)).unwrap()
    }

    fn step(&mut self, step: &str) {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let number = || first.parse::<usize>().unwrap();
        let source = &mut self.source;
        match verb {
            // This number of resources `/f00`, `/f01` and so on, and a Sitemap with them.
            "some" => some(source, number()),
            // This number of resources `/n00`, `/n01` and so on, only in change sets.
            "new" => (0..number()).for_each(|number| source.set(&format!("/n{number:02}"), "new")),
            "set" => source.set(first, second),
            "delete" => source.delete(first),
            "snapshot" => source.snapshot(),
            "prune" => source.prune(),
            "restart" => source.restart(),
            "wait" => source.wait(number() as u64),
            "publish" => source.publish(),
            // The category of a resource in later changes and Sitemaps, or none.
            "category" => {
                let meta = format!("<xhtml:meta name=\"DC.subject\" content=\"{second}\"/>");
                let more = if second.is_empty() { String::new() } else { meta };
                source.more.insert(first.to_owned(), more);
            }
            "link" => source.links += &link(DUMP, first),
            "set-link" => {
                source.set_links += &link(if first == "dump" { DUMP } else { first }, second);
            }
            // Documents are replaced on the server only.
            "dump" => {
                let etag = format!("\"{second}\"");
                source.server.put(first, Answer::ok(source.dump()).header("etag", &etag));
            }
            // This number of parts of a dump, `/d1.zip` and so on.
            "parts" => {
                for part in 0..number() {
                    let body = source.part_of_dump(&modified(&source.now()), (part, number()));
                    source.server.put(&format!("/d{}.zip", part + 1), Answer::ok(body));
                }
            }
            // The status of the answers to HEAD.
            "head" => source.server.head(number() as u16),
            "body" => {
                let body = second
                    .replace("BASE", &source.server.base)
                    .replace("DUMP", DUMP)
                    .replace("LF", "\n");
                source.server.body(first, body);
            }
            "making" => {
                let answer = Answer::status(202).header("retry-after", "3600");
                source.server.put(first, answer.header("content-length", "0"));
            }
            "remove" => source.server.remove(first),
            "status" => source.server.put(first, Answer::status(second.parse().unwrap())),
            "dated" => {
                let answer = Answer::ok(source.server.page(first));
                source.server.put(first, answer.header("last-modified", second));
            }
            // A link in the headers of a document to a Sitemap.
            "lead" => {
                let answer = Answer::ok(source.server.page(first));
                let link = format!("<{second}>; rel=\"sitemap\"");
                source.server.put(first, answer.header("link", &link));
            }
            "is-saved" => assert_eq!(source.server.page(first), self.saved[first]),
            "save" => {
                self.saved.insert(first.to_owned(), source.server.page(first));
            }
            "restore" => source.server.body(first, self.saved[first].clone()),
            // A document at another path, in which the change sets have moved.
            "moved" => {
                let moved = self.page(first).replace("/c.xml", "/moved.xml");
                self.source.server.body(second, moved);
            }
            "replace" => {
                let (from, to) = second.split_once(" => ").unwrap();
                let to = to.replace("BASE", &source.server.base);
                assert!(self.page(first).contains(from), "{}", self.place);
                self.source.server.body(first, self.page(first).replace(from, &to));
            }
            // From here, the copy starts at this path.
            "copy" => self.copy = Some(copy_at(source, source.server.url(first))),
            "always" => self.copy().options.dumps = Dumps::Always,
            "baseline" => self.copy().options.baseline = true,
            "choose" => self.copy().options.categories = vec![first.to_owned()],
            "file" => {
                let text = self.copy().read(first);
                assert_eq!(text.as_deref(), Some(second), "{}", self.place);
            }
            "alter" => std::fs::write(self.copy().folder().join(first), "altered").unwrap(),
            "run" => {
                let before = self.copy().texts();
                let ran = self.copy().try_run();
                rest.split_terminator(' ').for_each(|want| self.assert_ran(want, &ran, &before));
            }
            "audit" => Self::assert_audit(rest, &self.copy().audit(true), &self.place),
            "audit-times" => Self::assert_audit(rest, &self.copy().audit(false), &self.place),
            "log" => self.assert_log(rest),
            _ => panic!("{}: unknown step", self.place),
        }
    }

    /// Asserts a property of a run: a word, or a key and its value.
    fn assert_ran(&self, want: &str, ran: &Ran, before: &BTreeMap<String, String>) {
        let (key, value) = want.split_once('=').unwrap_or((want, ""));
        let (texts, expected) = (self.copy.as_ref().unwrap().texts(), self.source.texts());
        let is_right = match key {
            "equal" => ran.exit() == 0 && texts == expected,
            "content" => texts == expected,
            "path" => texts.contains_key(value),
            "paths" => texts.keys().map(String::as_str).eq(value.split(',')),
            "unchanged" => texts == *before,
            "differs" => texts != expected,
            "failed" => ran.exit() != 0,
            "exit" => ran.exit().to_string() == value,
            "code" => ran.code() == value,
            "has" => ran.has(value),
            "not" => !ran.has(value),
            // Number of resources that are reported as deleted.
            "gone" => ran.uris(ItemAction::Deleted).len().to_string() == value,
            "created" => ran.summary().created.to_string() == value,
            "updated" => ran.summary().updated.to_string() == value,
            "cursor" => ran.summary().cursor.as_deref() == Some(self.source.now().as_str()),
            "deleted" => ran.summary().deleted.to_string() == value,
            "mode" => format!("{:?}", ran.summary().mode) == value,
            // Number of reports with a code.
            code if code.contains('.') => ran.count(code).to_string() == value,
            _ => panic!("{}: unknown property {want}", self.place),
        };
        let Ran { result, reported, items, .. } = ran;
        assert!(is_right, "{}: {want}: {texts:?} {result:?} {items:?} {reported:?}", self.place);
    }

    fn assert_audit(wants: &str, report: &AuditReport, place: &str) {
        for want in wants.split(' ') {
            let (key, value) = want.split_once('=').unwrap();
            let found = match key {
                "exit" => u64::from(report.exit_code),
                "same" => report.same,
                "updated" => report.updated,
                _ => panic!("{place}: unknown property {want}"),
            };
            assert_eq!(found.to_string(), value, "{place}: {want}: {report:?}");
        }
    }

    /// Asserts the requests since the last step `log`: `no=` a path, or a path and a number. A `*`
    /// stands for the start or the end of a path.
    fn assert_log(&self, wants: &str) {
        let log = self.source.server.take_log();
        for want in wants.split_terminator(' ') {
            let (left, right) = want.split_once('=').unwrap();
            let (path, number) = if left == "no" { (right, "0") } else { (left, right) };
            let is_path = |asked: &&String| match (path.strip_prefix('*'), path.strip_suffix('*')) {
                (Some(end), _) => asked.ends_with(end),
                (_, Some(start)) => asked.starts_with(start),
                _ => *asked == path,
            };
            let found = log.iter().filter(is_path).count().to_string();
            assert_eq!(found, number, "{}: {want}: {log:?}", self.place);
        }
    }
}

#[test]
fn every_scenario_ends_as_its_row_says() {
    for (name, shapes, steps) in SCENARIOS {
        for shape in shapes {
            let source = OldSource::of(shape.clone());
            let place = String::new();
            let mut scenario = Scenario { source, copy: None, saved: BTreeMap::new(), place };
            for (number, step) in steps.split([';', '\n']).map(str::trim).enumerate() {
                scenario.place = format!("{name}: step {number}, {step} ({shape:?})");
                scenario.step(step);
            }
        }
    }
}
