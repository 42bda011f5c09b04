//! Streams whole, cut and hostile.

use super::*;
use proptest::prelude::*;

fn read(stream: &[u8], piece: usize) -> Result<Vec<Event>, EventError> {
    let mut reader = EventReader::new();
    let mut events = Vec::new();
    for piece in stream.chunks(piece.max(1)) {
        reader.feed(piece)?;
        events.extend(std::iter::from_fn(|| reader.next_event()));
    }
    Ok(events)
}

fn data(stream: &str) -> Vec<String> {
    let events = read(stream.as_bytes(), usize::MAX).unwrap();
    events.into_iter().map(|event| String::from_utf8(event.data).unwrap()).collect()
}

#[test]
fn an_event_stands_in_plain_sight() {
    let mut out = Vec::new();
    write_retry(&mut out, Duration::from_secs(2));
    write_comment(&mut out, " here\n");
    write_event(&mut out, "7", "application/xml", b"<a>\n</a>\n");
    let expected = "retry: 2000\n: here\nid: 7\nmedia-type: application/xml\ndata: <a>\ndata: </a>\ndata: \n\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn streams_of_others_are_read_as_they_should_be() {
    assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
    assert_eq!(
        data(": comment\n\ndata:first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n"),
        ["first", "second", " third"]
    );
    assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
    assert_eq!(data("data:a\r\ndata:b\rdata:c\n\r\ndata:d\r\r"), ["a\nb\nc", "d"]);
    assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
    assert_eq!(data("event: x\n\nid: 5\n\n"), Vec::<String>::new());
}

#[test]
fn the_last_id_is_kept_and_a_retry_noted() {
    let mut reader = EventReader::new();
    reader
        .feed(b"id: 4\ndata: a\n\ndata: b\n\nid: 5\n\nid: 6\0\nretry: 30\nretry: x\nretry: 99999999999999999999\n")
        .unwrap();
    assert_eq!(reader.next_event().unwrap().id, "4");
    assert_eq!(reader.next_event().unwrap().id, "4");
    assert_eq!((reader.last_id(), reader.retry()), ("5", Some(Duration::from_millis(30))));
}

#[test]
fn oversized_or_invalid_events_end_the_stream() {
    let mut reader = EventReader::with_limit(10);
    reader.feed(b"data: a\n\n").unwrap();
    assert_eq!(reader.feed(b"data: 78901"), Err(EventError::TooLong(10)));
    assert_eq!(reader.feed(b"\n"), Err(EventError::TooLong(10)), "for ever");
    assert_eq!(reader.next_event().unwrap().data, b"a");
    let mut reader = EventReader::with_limit(10);
    assert_eq!(
        reader.feed(&b"data:a\n".repeat(9)),
        Err(EventError::TooLong(10)),
        "over many lines"
    );
    assert_eq!(EventReader::new().feed(b"event: base64\ndata: ?\n\n"), Err(EventError::Base64));
    assert_eq!(EventReader::new().feed(b"id: \xff\n"), Err(EventError::NotText));
    let long = format!("id: {}\n", "x".repeat(4 * 1_024 + 1));
    assert_eq!(EventReader::new().feed(long.as_bytes()), Err(EventError::Field));
}

#[test]
fn many_comments_take_no_room() {
    let mut reader = EventReader::with_limit(64);
    for _ in 0..10_000 {
        reader.feed(b":keep-alive\n").unwrap();
    }
}

proptest! {
    #[test]
    fn events_arrive_as_they_were_sent_however_cut(
        events in proptest::collection::vec(
            ("[0-9]{1,5}", "[a-z/+; =-]{1,20}", prop_oneof![any::<Vec<u8>>(), "[ a:\n\r]{0,20}".prop_map(String::into_bytes)]),
            0..5,
        ),
        piece in 1..50_usize,
    ) {
        let mut stream = Vec::new();
        for (id, media_type, data) in &events {
            write_event(&mut stream, id, media_type.trim(), data);
            write_comment(&mut stream, "");
        }
        let expected: Vec<_> = events
            .into_iter()
            .map(|(id, media_type, data)| Event { id, name: String::new(), media_type: media_type.trim().to_owned(), data })
            .collect();
        prop_assert_eq!(read(&stream, piece), Ok(expected));
    }

    #[test]
    fn any_stream_reads_the_same_however_cut(
        stream in "(data|id|event|base64|:| |\n|\r|x|retry|1|\u{feff}|ä){0,60}",
        piece in 1..9_usize,
    ) {
        prop_assert_eq!(read(stream.as_bytes(), piece), read(stream.as_bytes(), usize::MAX));
    }
}
