//! Obligations of every sink, and properties of single sinks.

use crate::contract::{self, Kept, contract, files, some};
use crate::copy::{Copy, Ran};
use crate::source::Source;
use abreast_destination::check::{CopyPlace, repair_copy};
use abreast_destination::{Event, LinesOptions, Output, SinkOptions, WarcOptions, sync};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use abreast_testkit::pages::Answer;
use abreast_warc::{Kind, read_record, skip_http_head};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

fn segments(copy: &Copy) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(copy.folder().join("archive"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// Reads the archive from its start, as a program without other data: the last record of each URI
/// is used.
pub(crate) fn archived(copy: &Copy, source: &Source) -> Kept {
    let mut out = Kept::new();
    let mut by_date: BTreeMap<(String, String), Vec<u8>> = BTreeMap::new();
    for segment in segments(copy) {
        let bytes = std::fs::read(segment).unwrap();
        let mut input = bytes.as_slice();
        while let Some(mut read) = read_record(&mut input).unwrap() {
            let Some(uri) = read.head.target().map(str::to_owned) else {
                read.block.finish().unwrap();
                continue;
            };
            let path = uri.strip_prefix(&source.server.base).unwrap().to_owned();
            let date = read.head.field("WARC-Date").unwrap().to_owned();
            let kind = read.head.kind().unwrap();
            let original = read
                .head
                .field("WARC-Refers-To-Target-URI")
                .zip(read.head.field("WARC-Refers-To-Date"))
                .map(|(uri, date)| (uri.to_owned(), date.to_owned()));
            if matches!(kind, Kind::Response | Kind::Revisit) {
                skip_http_head(&mut read.block).unwrap();
            }
            let mut body = Vec::new();
            read.block.read_to_end(&mut body).unwrap();
            if kind == Kind::Metadata {
                assert!(String::from_utf8(body).unwrap().starts_with("change: deleted"));
                out.remove(&path);
                continue;
            }
            if let Some(original) = original {
                assert_eq!(body, b"");
                body.clone_from(&by_date[&original]);
            }
            by_date.insert((uri, date), body.clone());
            out.insert(path, body);
        }
    }
    out
}

pub(crate) fn warc(_: &Path) -> SinkOptions {
    SinkOptions::Warc(WarcOptions::default())
}

#[test]
fn a_folder_keeps_the_contract() {
    contract(|_| SinkOptions::Folder, files);
}

#[test]
fn files_left_by_a_killed_run_are_recognised() {
    contract::kills::killed(|_| SinkOptions::Folder, files);
    contract::kills::killed_twice(|_| SinkOptions::Folder, files);
}

#[test]
fn a_packed_copy_keeps_the_contract() {
    contract(warc, archived);
}

#[test]
fn records_left_by_a_killed_run_are_cut_off() {
    contract::kills::killed(warc, archived);
    contract::kills::killed_twice(warc, archived);
}

#[test]
fn a_packed_copy_of_many_segments_keeps_the_contract() {
    contract(
        |_| {
            SinkOptions::Warc(WarcOptions {
                segment_bytes: 700,
                compression: 6,
                block_digest: true,
            })
        },
        archived,
    );
}

#[test]
fn the_same_payload_is_kept_once() {
    let mut source = Source::new();
    let texts: Vec<_> =
        (100..200).map(|number| format!("payload {number} of some length. ").repeat(20)).collect();
    // Resources with the same payload arrive together, over several connections.
    for (number, text) in texts.iter().enumerate() {
        for path in ["a", "b", "c", "d"] {
            source.set(&format!("/{number:03}{path}"), text);
        }
    }
    source.snapshot();
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    let bytes = std::fs::read(&segments(&copy)[0]).unwrap();
    for text in &texts {
        assert_eq!(memchr::memmem::find_iter(&bytes, text).count(), 1, "{}", &text[..12]);
    }
    assert_eq!(archived(&copy, &source), source.kept);
    assert_eq!(copy.audit(true).same, 400);
}

#[test]
fn only_wrong_bodies_of_a_digested_group_are_refused() {
    let mut source = some(70);
    source.server.body("/f003", "other bytes");
    source.server.put("/f005", Answer::status(404));
    source.server.body("/f010", "");
    let mut copy = Copy::kept_in(&source, warc);
    // All resources in order, through one connection.
    copy.options.limit_requests(1);
    let Ran { result, codes, .. } = copy.try_run();
    let summary = result.unwrap();
    assert_eq!((summary.created, summary.failed), (67, 3), "{codes:?}");
    assert_eq!(codes.iter().filter(|code| *code == "fixity.mismatch").count(), 2, "{codes:?}");
    for path in ["/f003", "/f005", "/f010"] {
        source.kept.remove(path);
    }
    assert_eq!(archived(&copy, &source), source.kept);
}

#[test]
fn a_torn_end_is_cut_off_and_unrecorded_records_fetched_again() {
    let mut source = some(20);
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    let segment = segments(&copy).pop().unwrap();
    let whole = std::fs::read(&segment).unwrap();
    // A run that was killed after it wrote the bytes, and before the database recorded them.
    let mut torn = whole.clone();
    torn.extend_from_slice(&whole[..whole.len() / 2 + 7]);
    std::fs::write(&segment, &torn).unwrap();
    let unknown = segment.with_file_name(
        segment
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replace("00000001.warc.gz", "00000002.warc.gz"),
    );
    std::fs::write(&unknown, b"torn").unwrap();
    std::fs::write(segment.with_file_name("stranger.warc.gz"), b"").unwrap();
    source.set("/f001", "changed");
    copy.run();
    assert_eq!(std::fs::read(&segment).unwrap()[..whole.len()], whole);
    assert!(!unknown.exists());
    assert!(segment.with_file_name("stranger.warc.gz").exists());
    assert_eq!(archived(&copy, &source), source.kept);
}

#[test]
fn an_archive_that_lost_its_end_is_repaired() {
    let mut source = some(12);
    let text = "in two places ".repeat(50);
    source.set("/same1", &text);
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    source.set("/f003", "changed");
    source.set("/same2", &text);
    copy.run();
    let segment = segments(&copy).pop().unwrap();
    for part in [1, 30, 50, 95, 0] {
        let bytes = std::fs::read(&segment).unwrap();
        if part == 0 {
            std::fs::remove_file(&segment).unwrap();
        } else {
            std::fs::write(&segment, &bytes[..bytes.len() * part / 100]).unwrap();
        }
        assert_eq!(copy.try_run().result.unwrap_err().code(), "warc.damaged");
        let (place, cancel) = (CopyPlace::find(copy.folder()).unwrap(), AtomicBool::new(false));
        let repair = |is_dry| {
            repair_copy(&place, &|_| true, is_dry, &cancel, &abreast_core::Meter::default())
                .unwrap()
        };
        assert_eq!(repair(true), repair(false));
        let ran = copy.try_run();
        assert_eq!((ran.exit(), copy.audit(true).exit_code), (0, 0), "{:?}", ran.codes);
        assert_eq!(archived(&copy, &source), source.kept);
        assert_eq!(repair(false), [""; 0]);
        // Each line of the index belongs to a record that starts at its offset.
        for line in index_lines(&copy) {
            let fields: serde_json::Value =
                serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
            let name = segment.with_file_name(fields["filename"].as_str().unwrap());
            let bytes = std::fs::read(name).unwrap();
            let offset: usize = fields["offset"].as_str().unwrap().parse().unwrap();
            let mut rest = &bytes[offset..];
            let record = read_record(&mut rest).unwrap().unwrap();
            assert_eq!(record.head.target(), fields["url"].as_str());
        }
    }
}

fn index_lines(copy: &Copy) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(copy.folder().join("indexes")).unwrap().flatten() {
        lines.extend(std::fs::read_to_string(entry.path()).unwrap().lines().map(str::to_owned));
    }
    lines.sort();
    lines
}

#[test]
fn without_its_state_a_packed_copy_is_read_not_fetched_again() {
    let mut source = some(12);
    let text = "in two places ".repeat(50);
    source.set("/same1", &text);
    source.set("/same2", &text);
    source.snapshot();
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    source.set("/f003", "changed");
    source.delete("/f004");
    copy.run();
    source.snapshot();
    let index = index_lines(&copy);
    // The last record is torn, and a stranger's file is there.
    let segment = segments(&copy).pop().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes.extend_from_slice(&bytes.clone()[..50]);
    std::fs::write(&segment, &bytes).unwrap();
    std::fs::write(segment.with_file_name("stranger.warc.gz"), b"").unwrap();
    std::fs::remove_dir_all(copy.folder().join(".abreast")).unwrap();
    source.server.take_log();
    let summary = copy.run();
    assert_eq!((summary.created, summary.updated, summary.deleted), (0, 0, 0));
    assert!(
        source
            .server
            .take_log()
            .iter()
            .all(|path| !path.starts_with("/f") && !path.starts_with("/same"))
    );
    assert_eq!(index_lines(&copy), index);
    assert_eq!((copy.audit(true).exit_code, copy.audit(true).same), (0, 13));
    std::fs::remove_file(segment.with_file_name("stranger.warc.gz")).unwrap();
    source.set("/f005", "later");
    copy.run();
    assert_eq!(archived(&copy, &source), source.kept);
}

#[test]
fn a_full_audit_finds_damaged_records_a_run_lost_segments() {
    let source = some(5);
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    let segment = segments(&copy).pop().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(6).position(|window| window == b"file 3").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    assert_eq!(copy.audit(false).exit_code, 0);
    let report = copy.audit(true);
    assert_eq!((report.same, report.missing, report.exit_code), (4, 1, 1));
    std::fs::write(&segment, &bytes[..bytes.len() / 2]).unwrap();
    assert!(copy.audit(false).missing > 0);
    assert_eq!(copy.try_run().result.unwrap_err().code(), "warc.damaged");
}

#[test]
fn the_index_names_every_capture_in_order() {
    let mut source = some(30);
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    source.set("/f007", "changed");
    source.set("/F031", "new");
    copy.run();
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(copy.folder().join("indexes")).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let own: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(own.is_sorted(), "{text}");
        lines.extend(own);
    }
    assert_eq!(lines.len(), 32);
    for line in lines {
        let (_, json) = line.split_once(" {").unwrap();
        let fields: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
        let number = |name: &str| fields[name].as_str().unwrap().parse::<usize>().unwrap();
        let segment =
            std::fs::read(copy.folder().join("archive").join(fields["filename"].as_str().unwrap()))
                .unwrap();
        let mut member = &segment[number("offset")..number("offset") + number("length")];
        let read = read_record(&mut member).unwrap().unwrap();
        assert_eq!(read.head.target(), fields["url"].as_str());
        read.block.finish().unwrap();
        assert_eq!(member, b"");
    }
}

#[test]
fn republished_files_state_their_origin() {
    let mut source = some(2);
    // Hidden files that would describe other files are not accepted from a Source.
    source.set("/.f000.links.json", "[]");
    source.snapshot();
    let original = "<rs:ln rel=\"via\" href=\"http://original.example/one\" modified=\"2013-01-03T07:00:00Z\" length=\"7\"/>";
    let entry =
        source.entry("/f001", b"file 1 x", "").replace("</url>", &format!("{original}</url>"));
    let list: String = [
        source.entry("/f000", b"file 0 ", ""),
        entry,
        source.entry("/.f000.links.json", b"[]", ""),
    ]
    .concat();
    let attributes = format!("capability=\"resourcelist\" at=\"{}\"", source.now());
    source.server.body("/resourcelist.xml", document("urlset", &attributes, &list));
    let mut copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    copy.options.republish = true;
    let Ran { result, codes, .. } = copy.try_run();
    assert_eq!((result.unwrap().created, codes), (2, vec!["via.name".to_owned()]));
    let links = |name: &str| -> serde_json::Value {
        serde_json::from_slice(
            &std::fs::read(copy.folder().join(format!(".{name}.links.json"))).unwrap(),
        )
        .unwrap()
    };
    let own = &links("f000")[0];
    assert_eq!((own["rel"].as_str(), own["length"].as_u64()), (Some("via"), Some(7)));
    assert_eq!(own["href"].as_str(), Some(source.server.url("/f000").as_str()));
    assert_eq!(own["hash"].as_str(), Some(format!("md5:{}", md5_hex(b"file 0 ")).as_str()));
    let kept = &links("f001")[0];
    assert_eq!(
        (kept["href"].as_str(), kept["length"].as_u64()),
        (Some("http://original.example/one"), Some(7))
    );

    // Links that somebody added to the file remain; the origin follows the resource.
    let sidecar = copy.folder().join(".f000.links.json");
    std::fs::write(
        &sidecar,
        r#"[{"rel":"via","href":"http://old.example/"},{"rel":"describedby","href":"f001"}]"#,
    )
    .unwrap();
    source.set("/f000", "changed");
    source.delete("/f001");
    source.delete("/.f000.links.json");
    assert_eq!(copy.run().exit_code, 0);
    let now = links("f000");
    assert_eq!(
        (now[0]["length"].as_u64(), now[1]["rel"].as_str(), now.as_array().unwrap().len()),
        (Some(7), Some("describedby"), 2)
    );
    assert_eq!(now[0]["hash"].as_str(), Some(format!("md5:{}", md5_hex(b"changed")).as_str()));
    assert!(!copy.folder().join(".f001.links.json").exists());
    source.snapshot();
    assert_eq!(copy.audit(true).exit_code, 0);
    source.delete("/f000");
    copy.run();
    assert_eq!(links("f000"), serde_json::json!([{"rel": "describedby", "href": "f001"}]));
}

/// The bytes that a program at the other end of a pipe receives.
#[derive(Clone, Default)]
struct Pipe {
    taken: std::sync::Arc<Mutex<Vec<u8>>>,
    broken: std::sync::Arc<AtomicBool>,
}

impl std::io::Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.broken.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.taken.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Pipe {
    /// The lines written since the last call, by URI.
    fn lines(&self, source: &Source) -> BTreeMap<String, serde_json::Value> {
        let text = String::from_utf8(std::mem::take(&mut *self.taken.lock().unwrap())).unwrap();
        text.lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                (
                    line["uri"]
                        .as_str()
                        .unwrap()
                        .strip_prefix(&source.server.base)
                        .unwrap()
                        .to_owned(),
                    line,
                )
            })
            .collect()
    }
}

fn lines(source: &Source, content_bytes_max: Option<u64>) -> (Copy, Pipe) {
    let pipe = Pipe::default();
    let options = LinesOptions { output: Output::new(pipe.clone()), content_bytes_max };
    (Copy::kept_in(source, |_| SinkOptions::Lines(options)), pipe)
}

#[test]
fn a_stream_reports_each_change_without_fetching_anything() {
    let mut source = some(3);
    let (copy, pipe) = lines(&source, None);
    assert_eq!(copy.run().created, 3);
    let told = pipe.lines(&source);
    assert_eq!(told.len(), 3);
    let line = &told["/f002"];
    assert_eq!((line["change"].as_str(), line["length"].as_u64()), (Some("created"), Some(9)));
    assert_eq!(line["hash"].as_str(), Some(format!("md5:{}", md5_hex(b"file 2 xx")).as_str()));
    assert!(source.server.take_log().iter().all(|path| !path.starts_with("/f")));
    source.set("/f000", "changed");
    source.delete("/f001");
    copy.run();
    let told = pipe.lines(&source);
    assert_eq!(
        (told["/f000"]["change"].as_str(), told["/f001"]["change"].as_str()),
        (Some("updated"), Some("deleted"))
    );
    assert_eq!((told.len(), told["/f001"]["datetime"].as_str()), (2, Some(source.now().as_str())));
    copy.run();
    assert_eq!(pipe.lines(&source).len(), 0);
}

#[test]
fn a_stream_with_contents_has_verified_ones_up_to_a_length() {
    let mut source = some(5);
    let (copy, pipe) = lines(&source, Some(10));
    copy.run();
    let told = pipe.lines(&source);
    assert_eq!(told["/f002"]["content"].as_str(), Some("ZmlsZSAyIHh4"));
    assert_eq!(told["/f002"]["verified"].as_bool(), Some(true));
    assert_eq!(told["/f004"].get("content"), None);
    assert!(!source.server.take_log().contains(&"/f004".to_owned()));
    source.set("/f000", "right");
    source.server.body("/f000", "wrong");
    assert_eq!(copy.run().exit_code, 3);
    assert_eq!(pipe.lines(&source).len(), 0);
}

#[test]
fn changes_that_a_stream_did_not_accept_are_sent_again() {
    let source = some(3);
    let (copy, pipe) = lines(&source, None);
    pipe.broken.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(copy.try_run().result.unwrap_err().exit_code().number(), 13);
    pipe.broken.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(copy.run().exit_code, 0);
    assert_eq!(pipe.lines(&source).len(), 3);
}

#[test]
fn changes_of_a_killed_run_have_another_line() {
    let mut source = some(3);
    let (copy, pipe) = lines(&source, None);
    copy.run();
    pipe.lines(&source);
    source.set("/new", "1");
    source.set("/f000", "other");
    source.delete("/f001");
    crate::contract::kills::run_killed(&copy);
    assert_eq!(pipe.lines(&source).len(), 3, "these were taken");
    source.delete("/new");
    source.set("/f000", "file 0 ");
    source.set("/f001", "file 1 x");
    copy.run();
    let lines = pipe.lines(&source);
    let action = |path: &str| lines[path]["change"].as_str();
    assert_eq!(action("/new"), Some("deleted"));
    assert_eq!(action("/f000"), Some("updated"));
    assert_eq!((action("/f001"), lines.len()), (Some("updated"), 3));
}

#[test]
fn stored_headers_omit_those_of_the_transfer() {
    let mut source = some(1);
    let body = "<p>hello</p>";
    source.set("/page.html", body);
    source.snapshot();
    let answer = Answer::ok(body)
        .header("content-type", "text/html; charset=utf-8")
        .header("x-made-by", "hand")
        .header("set-cookie", "secret=1");
    source.server.put("/page.html", answer);
    let copy = Copy::kept_in(&source, warc);
    copy.run();
    let bytes = std::fs::read(&segments(&copy)[0]).unwrap();
    let mut input = bytes.as_slice();
    let mut heads = Vec::new();
    while let Some(mut read) = read_record(&mut input).unwrap() {
        if read.head.kind() == Some(Kind::Response) {
            let digest = read.head.field("WARC-Payload-Digest").unwrap().to_owned();
            assert!(digest.starts_with("md5:"), "{digest} {}", md5_hex(b""));
            heads.push(String::from_utf8(skip_http_head(&mut read.block).unwrap()).unwrap());
        }
        read.block.finish().unwrap();
    }
    let head = heads.iter().find(|head| head.contains("text/html")).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("x-made-by: hand\r\n") && head.contains("Content-Length: 12\r\n"),
        "{head}"
    );
    assert!(!head.contains("set-cookie"), "{head}");
}

#[test]
fn a_run_continues_after_one_whose_observer_panicked() {
    let source = some(200);
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    let observer =
        |event: &Event<'_>| assert!(!matches!(event, Event::Item(_)), "an observer's own fault");
    let run = || sync(&copy.options, &observer, &AtomicBool::new(false));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    assert_eq!(copy.run().exit_code, 0);
    assert_eq!(files(&copy, &source), source.kept);
}

#[test]
fn failed_items_of_a_killed_run_have_no_other_line() {
    let mut source = some(3);
    let (copy, pipe) = lines(&source, Some(1_000));
    source.set("/new", "1");
    source.set("/f000", "other");
    for path in ["/new", "/f000"] {
        source.server.put(path, Answer::status(404));
    }
    let Ran { result, .. } = copy.try_run();
    assert_eq!(result.unwrap().exit_code, 3);
    assert_eq!(pipe.lines(&source).len(), 2, "the others");
    // As if another run had started and was killed before it tried anything.
    let path = copy.folder().join(".abreast/mirror.db");
    let mirror = abreast_store::mirror::Mirror::open(&path).unwrap();
    mirror.set_meta("finished", None).unwrap();
    drop(mirror);
    source.delete("/new");
    source.delete("/f000");
    copy.run();
    let lines = pipe.lines(&source);
    assert!(lines.is_empty(), "nobody knows of these: {lines:?}");
}
