//! Parts of resources, and answers to "only if it changed" [rfc9110 §13, §14].

use crate::world::{Served, World};
use abreast_testkit::eventually;
use std::time::{Duration, SystemTime};

const SMALL: usize = 100;
/// Read from the disk in several chunks.
const LARGE: usize = 300_000;

fn content(length: usize) -> Vec<u8> {
    (0..length as u32).flat_map(u32::to_be_bytes).take(length).collect()
}

fn world() -> (World, Served) {
    let world = World::new();
    world.write("small.bin", content(SMALL));
    world.write("large.bin", content(LARGE));
    world.write("empty.bin", "");
    let served = world.serve();
    (world, served)
}

#[test]
fn one_range_is_answered_with_its_bytes() {
    let (_world, served) = world();
    for (name, length) in [("small.bin", SMALL), ("large.bin", LARGE)] {
        let all = content(length);
        let target = format!("/set/r/{name}");
        for (range, first, last) in [
            ("bytes=0-0".to_owned(), 0, 0),
            ("bytes=5-".to_owned(), 5, length - 1),
            ("bytes=-7".to_owned(), length - 7, length - 1),
            ("bytes=10-99999999".to_owned(), 10, length - 1),
            (format!("bytes=-{}", length * 2), 0, length - 1),
            (format!("bytes={}-{}", length - 1, length - 1), length - 1, length - 1),
            (format!("Bytes=, 1-2 ,{length}-"), 1, 2),
        ] {
            let reply = served.ask("GET", &target, &[("Range", &range)]);
            assert_eq!(reply.status, 206, "{range}");
            assert_eq!(reply.header("content-range"), format!("bytes {first}-{last}/{length}"));
            assert!(reply.body == all[first..=last], "{range}");
        }
        let behind = served.ask("GET", &target, &[("Range", &format!("bytes={length}-"))]);
        assert_eq!(
            (behind.status, behind.header("content-range")),
            (416, format!("bytes */{length}"))
        );
    }
    assert_eq!(served.ask("GET", "/set/r/empty.bin", &[("Range", "bytes=0-")]).status, 416);
    assert_eq!(served.ask("GET", "/set/r/empty.bin", &[("Range", "bytes=-1")]).status, 416);
}

/// The parts of a `multipart/byteranges` body: first, last, bytes.
fn parts(reply: &crate::world::Reply) -> Vec<(usize, usize, Vec<u8>)> {
    let kind = reply.header("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = &reply.body[..];
    let mut parts = Vec::new();
    loop {
        rest = rest.strip_prefix(delimiter.as_bytes()).unwrap();
        if rest == b"--\r\n" {
            return parts;
        }
        let end = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(rest[..end].to_vec()).unwrap();
        assert!(head.contains("Content-Type: application/octet-stream"), "{head}");
        let range = head.split("Content-Range: bytes ").nth(1).unwrap();
        let (first, last) = range.split('/').next().unwrap().split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let length = last - first + 1;
        parts.push((first, last, rest[end + 4..end + 4 + length].to_vec()));
        rest = &rest[end + 4 + length..];
    }
}

#[test]
fn several_ranges_are_answered_in_the_order_asked_for() {
    let (_world, served) = world();
    for (name, length) in [("small.bin", SMALL), ("large.bin", LARGE)] {
        let all = content(length);
        let wanted = [(length - 50, length - 1), (0, 9), (20, 29)];
        let header = format!("bytes={}-,0-9, 20-29,{length}-", length - 50);
        let reply = served.ask("GET", &format!("/set/r/{name}"), &[("Range", &header)]);
        assert_eq!(reply.status, 206);
        assert_eq!(reply.header("content-range"), "", "each part has its own");
        let parts = parts(&reply);
        assert_eq!(parts.len(), 3);
        for ((first, last, bytes), wanted) in parts.into_iter().zip(wanted) {
            assert_eq!((first, last), wanted);
            assert!(bytes == all[first..=last], "{name} {first}-{last}");
        }
    }
}

#[test]
fn greedy_ranges_are_answered_with_the_whole_once() {
    let (_world, served) = world();
    let ten_thousand: Vec<_> =
        (0..10_000).map(|number| format!("{}-{}", number * 2 % 90, number * 2 % 90)).collect();
    let seventeen: Vec<_> =
        (0..17).map(|number| format!("{}-{}", number * 2, number * 2)).collect();
    for range in [
        format!("bytes={}", ten_thousand.join(",")),
        format!("bytes={}", seventeen.join(",")),
        "bytes=0-50,40-60".to_owned(),
        "bytes=0-,0-,0-".to_owned(),
        "bytes=-5,-5".to_owned(),
        "bytes=5-2".to_owned(),
        "bytes=x".to_owned(),
        "lines=0-1".to_owned(),
        "bytes=0-18446744073709551616".to_owned(),
    ] {
        let reply = served.ask("GET", "/set/r/small.bin", &[("Range", &range)]);
        assert_eq!(reply.status, 200, "{}", &range[..range.len().min(40)]);
        assert!(reply.body == content(SMALL));
    }
}

#[test]
fn a_range_is_for_the_representation_the_client_knows() {
    let (_world, served) = world();
    let target = "/set/r/large.bin";
    let whole = served.get(target);
    let (tag, date) = (whole.header("etag"), whole.header("last-modified"));
    let status = |validator: &str| {
        served.ask("GET", target, &[("Range", "bytes=0-1"), ("If-Range", validator)]).status
    };
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    assert_eq!(status(&tag), 206);
    assert_eq!(status("\"another\""), 200);
    assert_eq!(status(&format!("W/{tag}")), 200, "weak validators are not for ranges");
    assert_eq!(status(&date), 200, "nor are dates here");
    assert_eq!(status("soon"), 200);
    // HEAD has no ranges [rfc9110 §14.2].
    assert_eq!(
        served.ask("HEAD", target, &[("Range", "bytes=0-1")]).header("content-length"),
        LARGE.to_string()
    );
}

/// The tag of a file, and its date once that stands for one state.
fn dated(served: &Served, target: &str) -> (String, String) {
    let mut whole = served.get(target);
    eventually("a date is sent", || {
        whole = served.get(target);
        !whole.header("last-modified").is_empty()
    });
    (whole.header("etag"), whole.header("last-modified"))
}

#[test]
fn a_date_stands_for_one_state_of_a_file() {
    let (world, served) = world();
    let target = "/set/r/small.bin";
    let status = |date: &str| served.ask("GET", target, &[("If-Modified-Since", date)]).status;
    let write = |name: &str, modified: SystemTime| {
        world.write(name, name);
        let file = std::fs::File::options().write(true).open(world.folder.join(name)).unwrap();
        file.set_modified(modified).unwrap();
    };
    let (_, date) = dated(&served, target);
    assert_eq!(status(&date), 304);
    // A second that is not over, however long the test takes.
    write("small.bin", SystemTime::now() + Duration::from_secs(3_600));
    let fresh = served.get(target);
    assert!(fresh.header("last-modified").is_empty(), "it may change again in this second");
    assert_eq!(status(&date), 200);
    // An older file takes its place.
    write("small.bin", SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
    let (_, date) = dated(&served, target);
    write("older", SystemTime::UNIX_EPOCH + Duration::from_secs(7));
    std::fs::rename(world.folder.join("older"), world.folder.join("small.bin")).unwrap();
    assert_eq!(status(&date), 200);
}

#[test]
fn conditions_are_judged_and_bad_dates_ignored() {
    let (_world, served) = world();
    let target = "/set/r/small.bin";
    let (tag, date) = dated(&served, target);
    let status = |headers: &[(&str, &str)]| {
        let reply = served.ask("GET", target, headers);
        assert_eq!(reply.header("etag"), tag, "{headers:?}");
        reply.status
    };
    let (early, late) = ("Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(status(&[("If-None-Match", &tag)]), 304);
    assert_eq!(status(&[("If-None-Match", &format!("W/{tag}"))]), 304);
    assert_eq!(
        status(&[("If-None-Match", "\"x\""), ("If-None-Match", &tag)]),
        304,
        "fields are one list"
    );
    assert_eq!(status(&[("If-None-Match", "*")]), 304);
    assert_eq!(status(&[("If-None-Match", "\"x\""), ("If-Modified-Since", late)]), 200);
    assert_eq!(status(&[("If-None-Match", "")]), 200);
    assert_eq!(status(&[("If-Modified-Since", &date)]), 304);
    assert_eq!(status(&[("If-Modified-Since", early)]), 200);
    assert_eq!(status(&[("If-Match", &tag)]), 200);
    assert_eq!(status(&[("If-Match", &format!("W/{tag}"))]), 412, "a weak tag does not match");
    assert_eq!(status(&[("If-Match", "\"x\"")]), 412);
    assert_eq!(status(&[("If-Unmodified-Since", early)]), 412);
    assert_eq!(status(&[("If-Unmodified-Since", &date)]), 200);
    for bad in
        ["", "0", "-1", "yesterday", "Thu, 01 Jan 1970", "Thu, 99 Foo 1970 25:61:61 GMT", "1e99"]
    {
        assert_eq!(status(&[("If-Modified-Since", bad)]), 200, "{bad}");
        assert_eq!(status(&[("If-Unmodified-Since", bad)]), 200, "{bad}");
    }
}
