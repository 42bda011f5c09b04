//! Properties of WebSub's readers for any input. Each function panics when one does not hold; fuzz
//! targets call nothing else.

use abreast_websub::{
    CallbackRequest, DiscoverySource, Event, EventError, EventReader, Intent, Key, LinksError,
    MAX_HUBS, MAX_TOPICS, Method, Mode, PublishedLinks, Request, Signature, SignatureError,
    denied_url, in_body, in_headers, is_confirmed, topic_links, verification_url, verify,
    write_event,
};

/// A request reads back as it is written, and so does a verification; the callback is kept.
pub fn form(bytes: &[u8]) {
    if let Ok(request) = Request::parse(bytes) {
        if let Request::Publish(publish) = &request {
            assert!((1..=MAX_TOPICS).contains(&publish.topics.len()));
        }
        if let Request::Subscribe(subscribe) = &request {
            let (topic, lease) = (&subscribe.topic, subscribe.lease_seconds);
            let url =
                verification_url(&subscribe.callback, Mode::Subscribe, topic, "challenge", lease);
            assert!(url.starts_with(&subscribe.callback) && !url.contains(['#', ' ', '\n']));
            let query = url.split_once('?').map_or("", |(_, query)| query);
            let (topic, challenge, lease_seconds) = (topic.clone(), "challenge".to_owned(), lease);
            let asked = Intent::Verify { mode: Mode::Subscribe, topic, challenge, lease_seconds };
            assert_eq!(Intent::parse(query), Ok(asked), "{url}");
        }
        // Written again it may be longer than a form may be.
        if let Ok(again) = Request::parse(request.to_form().as_bytes()) {
            assert_eq!(again, request);
        }
    }
    if let Ok(request) = CallbackRequest::parse(bytes)
        && let Ok(again) = CallbackRequest::parse(request.to_form().as_bytes())
    {
        assert_eq!(again, request);
    }
    let query = String::from_utf8_lossy(bytes);
    match Intent::parse(&query) {
        Ok(Intent::Verify { mode, topic, challenge, lease_seconds }) => {
            let url = verification_url("http://e/", mode, &topic, &challenge, lease_seconds);
            assert!(is_confirmed(200, challenge.as_bytes(), &challenge));
            let asked = Intent::Verify { mode, topic, challenge, lease_seconds };
            assert!(
                Intent::parse(&url[10..]).is_ok_and(|again| again == asked) || url.len() > 32_000
            );
        }
        Ok(Intent::Denied { topic, reason }) => {
            let url = denied_url("http://e/", &topic, reason.as_deref());
            let said = Intent::Denied { topic, reason };
            assert!(
                Intent::parse(&url[10..]).is_ok_and(|again| again == said) || url.len() > 32_000
            );
        }
        Err(_) => {}
    }
}

/// What is signed verifies, and only that; a header reads back as it is written. The first line is
/// the header, the rest the body.
pub fn signature(bytes: &[u8]) {
    let (value, body) = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or((bytes, &[][..]), |at| bytes.split_at(at));
    let value = String::from_utf8_lossy(value);
    if let Ok(signature) = value.parse::<Signature>() {
        assert_eq!(signature.to_string().parse::<Signature>(), Ok(signature));
        assert_eq!(signature.as_bytes().len(), signature.method().length());
        let made = Key::new(signature.method(), b"secret").sign(body);
        let verified = verify(b"secret", Method::Sha1, [&*value], body);
        assert_eq!(verified.is_ok(), made == signature);
    }
    for method in Method::ALL {
        let made = Key::new(method, bytes).sign(body).to_string();
        assert_eq!(verify(bytes, method, [made.as_str(), &*value], body), Ok(method));
        assert_eq!(
            verify(bytes, method, [made.as_str()], &[body, b"x"].concat()),
            Err(SignatureError::Wrong)
        );
    }
}

/// Links of a notification can be sent along and read back; hubs are few and lead somewhere; what a
/// page states in its body is not believed. The first line is a `Link` header, the rest content.
pub fn discovery(bytes: &[u8]) {
    let (links, body) = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or((bytes, bytes), |at| bytes.split_at(at));
    let links = String::from_utf8_lossy(links);
    if let Ok(read) = PublishedLinks::read([&*links]) {
        let value = topic_links(read.hubs.iter().map(String::as_str), &read.topic, &read.others);
        match PublishedLinks::read([value.as_str()]) {
            // Characters that a header cannot carry are written encoded: two hubs may become one,
            // none becomes two.
            Ok(again) => {
                assert!(
                    again.topic == read.topic && again.hubs.len() <= read.hubs.len(),
                    "{value}"
                );
            }
            Err(LinksError::Unreadable(_)) => {}
            Err(error) => panic!("{error}: {value}"),
        }
    }
    let found = [
        in_headers("http://example.org/a/b", [&*links]),
        in_body("http://example.org/a/b", "text/html", body),
        in_body("http://example.org/a/b", "application/atom+xml", body),
        in_body("http://example.org/a/b", "", body),
    ];
    for found in found.into_iter().filter_map(Result::ok).flatten() {
        assert!((1..=MAX_HUBS).contains(&found.hubs.len()));
        assert!(found.hubs.iter().chain([&found.topic]).all(|url| url.contains(':')), "{found:?}");
    }
    let in_its_body = [b"<p>", body].concat();
    assert_eq!(in_body("http://example.org/", "text/html", &in_its_body), Ok(None));
    let page = [b"<link rel=hub href=/h><link rel=self href=/s><body>", body].concat();
    let found = in_body("http://example.org/", "text/html", &page);
    assert!(
        matches!(found, Ok(Some(found)) if found.place == DiscoverySource::Page && found.hubs == ["http://example.org/h"])
    );
}

fn read(bytes: &[u8], piece: usize) -> (Vec<Event>, Option<EventError>) {
    let mut reader = EventReader::with_limit(4_096);
    let mut events = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        let fed = reader.feed(piece);
        events.extend(std::iter::from_fn(|| reader.next_event()));
        if let Err(error) = fed {
            return (events, Some(error));
        }
    }
    (events, None)
}

/// A stream reads the same however it is cut; its events can be written and read back.
pub fn events(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    for piece in [1, bytes.len() % 7 + 2] {
        assert_eq!(read(bytes, piece), whole, "in pieces of {piece}");
    }
    let mut events = whole.0;
    let mut stream = Vec::new();
    for event in &mut events {
        // Links with a relation of their own are not written by us.
        event.name.clear();
        event.id.retain(|character| !character.is_ascii_control());
        event.media_type.retain(|character| !character.is_ascii_control());
        write_event(&mut stream, &event.id, &event.media_type, &event.data);
    }
    let mut reader = EventReader::new();
    assert_eq!(reader.feed(&stream), Ok(()));
    let again: Vec<_> = std::iter::from_fn(|| reader.next_event()).collect();
    // An empty `id` is not written, so the one before it stays.
    if events.iter().all(|event| !event.id.is_empty()) {
        assert_eq!(again, events);
    }
    assert_eq!(again.len(), events.len());
}
