//! Forms as programs and people send them.

use super::*;
use proptest::prelude::*;

const CALLBACK: &str = "hub.callback=http%3A%2F%2Fexample.org%2Fin%3Fa%3D1%26hub.topic%3Dmine";

fn subscribe(rest: &str) -> Result<Subscribe, FormError> {
    let form = format!("hub.mode=subscribe&hub.topic=http://example.org/t&{CALLBACK}&{rest}");
    match Request::parse(form.as_bytes())? {
        Request::Subscribe(subscribe) => Ok(subscribe),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_subscription_is_read_and_what_is_unknown_ignored() {
    let read = subscribe(
        "hub.secret=s%00%ff&hub.lease_seconds=86400&foo=bar&hub.foo=hub.bar&hub.verify=sync",
    )
    .unwrap();
    assert_eq!(read.topic, "http://example.org/t");
    assert_eq!(read.callback, "http://example.org/in?a=1&hub.topic=mine");
    assert_eq!(read.secret.unwrap().as_bytes(), b"s\0\xff");
    assert_eq!(read.lease_seconds, Some(86_400));
}

#[test]
fn a_secret_is_counted_in_bytes() {
    assert_eq!(
        subscribe(&format!("hub.secret={}", "x".repeat(199)))
            .unwrap()
            .secret
            .unwrap()
            .as_bytes()
            .len(),
        199
    );
    assert_eq!(
        subscribe(&format!("hub.secret={}", "x".repeat(200))).unwrap_err(),
        FormError::Secret(200)
    );
    let error = subscribe(&format!("hub.secret={}", "%C3%A4".repeat(100))).unwrap_err();
    assert_eq!((error.code(), error), ("websub.secret", FormError::Secret(200)));
    assert_eq!(subscribe("hub.secret=").unwrap().secret, None);
}

#[test]
fn odd_leases_are_no_reason_to_refuse() {
    for (lease, seconds) in
        [("0", Some(0)), ("-1", Some(0)), ("999999999999999999999", Some(u64::MAX)), ("x", None)]
    {
        assert_eq!(
            subscribe(&format!("hub.lease_seconds={lease}")).unwrap().lease_seconds,
            seconds,
            "{lease}"
        );
    }
}

#[test]
fn topics_come_back_as_they_were_given() {
    for (sent, topic) in [
        ("http%3A%2F%2Fexample.org%2Ft%3Fa%3Db%26c%3D%2525d", "http://example.org/t?a=b&c=%25d"),
        ("http://example.org/a%2bb+", "http://example.org/a+b "),
        ("http://example.org/%25%32%30", "http://example.org/%20"),
    ] {
        let read =
            Request::parse(format!("hub.mode=unsubscribe&hub.topic={sent}&{CALLBACK}").as_bytes());
        if topic.ends_with(' ') {
            assert_eq!(read.unwrap_err().code(), "websub.topic");
        } else {
            let Ok(Request::Unsubscribe(read)) = read else { panic!("{read:?}") };
            assert_eq!(read.topic, topic);
        }
    }
}

#[test]
fn missing_repeated_or_invalid_fields_are_refused_with_text() {
    for (form, code) in [
        ("", "websub.missing"),
        ("hub.mode=subscribe", "websub.missing"),
        ("hub.mode=subscribe&hub.topic=&hub.callback=http://e/", "websub.missing"),
        ("hub.mode=subscribe&hub.topic=http://e/", "websub.missing"),
        ("hub.mode=Subscribe&hub.topic=http://e/&hub.callback=http://e/", "websub.mode"),
        ("hub.mode=denied&hub.topic=http://e/&hub.callback=http://e/", "websub.mode"),
        (
            "hub.mode=subscribe&hub.mode=unsubscribe&hub.topic=http://e/&hub.callback=http://e/",
            "websub.twice",
        ),
        (
            "hub.mode=subscribe&hub.topic=http://e/&hub.topic=http://f/&hub.callback=http://e/",
            "websub.twice",
        ),
        (
            "hub.mode=subscribe&hub.topic=http://e/&hub.callback=http://e/&hub.callback=http://f/",
            "websub.twice",
        ),
        ("hub.mode=subscribe&hub.topic=http://e/%ff&hub.callback=http://e/", "websub.encoding"),
        ("hub.mode=subscribe&hub.topic=t&hub.callback=http://e/", "websub.topic"),
        ("hub.mode=subscribe&hub.topic=http://e/&hub.callback=file:///etc", "websub.callback"),
        ("hub.mode=subscribe&hub.topic=http://e/&hub.callback=http://u:p@e/", "websub.callback"),
        ("hub.mode=publish", "websub.missing"),
        ("hub.mode=publish&hub.url=e", "websub.topic"),
    ] {
        assert_eq!(Request::parse(form.as_bytes()).unwrap_err().code(), code, "{form}");
    }
    let same = "hub.mode=subscribe&hub.mode=subscribe&hub.topic=http://e/&hub.topic=http://e/&hub.callback=http://e/";
    assert!(Request::parse(same.as_bytes()).is_ok());
}

#[test]
fn oversized_forms_are_refused() {
    assert_eq!(Request::parse(&vec![b'a'; MAX_FORM_LENGTH + 1]), Err(FormError::TooLong));
    assert_eq!(Request::parse("a&".repeat(MAX_PARAMETERS + 1).as_bytes()), Err(FormError::TooMany));
    let form = |count: usize| {
        let topics = (0..count)
            .map(|number| format!("&hub.url=http://e/{number}"))
            .collect::<Vec<_>>()
            .concat();
        format!("hub.mode=publish{topics}")
    };
    assert!(Request::parse(form(MAX_TOPICS).as_bytes()).is_ok());
    assert_eq!(Request::parse(form(MAX_TOPICS + 1).as_bytes()), Err(FormError::Topics));
}

#[test]
fn publishers_may_use_url_or_topic() {
    for form in [
        "hub.url=http://e/a",
        "hub.topic=http://e/a",
        "hub.url=http://e/a&hub.topic=http://e/a&hub.url=http://e/a",
    ] {
        let expected = Request::Publish(Publish { topics: vec!["http://e/a".to_owned()] });
        assert_eq!(
            Request::parse(format!("hub.mode=publish&{form}").as_bytes()),
            Ok(expected),
            "{form}"
        );
    }
}

#[test]
fn forms_are_recognised_by_their_media_type() {
    assert!(is_form("application/x-www-form-urlencoded"));
    assert!(is_form("Application/X-WWW-Form-Urlencoded ; charset=\"UTF-8\"; x=y"));
    for other in
        ["", "application/xml", "application/x-www-form-urlencoded;charset=latin1", "text/plain"]
    {
        assert!(!is_form(other), "{other}");
    }
}

proptest! {
    #[test]
    fn any_request_reads_back_as_written(
        path in "[!$-;=?-\\[\\]-~]{0,40}",
        query in "[!$-;=?-\\[\\]-~]{0,40}",
        secret in proptest::collection::vec(any::<u8>(), 0..200),
        lease_seconds: Option<u64>,
        topics in proptest::collection::hash_set("[a-z%&=+;?]{0,9}", 1..5),
    ) {
        let topic = format!("http://example.org/{path}");
        let callback = format!("https://example.org/in?{query}");
        let requests = [
            Request::Subscribe(Subscribe {
                topic: topic.clone(), callback: callback.clone(), secret: Secret::new(secret), lease_seconds,
            }),
            Request::Unsubscribe(Unsubscribe { topic, callback }),
            Request::Publish(Publish { topics: topics.iter().map(|topic| format!("http://e/{topic}")).collect() }),
        ];
        for request in requests {
            prop_assert_eq!(Request::parse(request.to_form().as_bytes()), Ok(request));
        }
    }

    #[test]
    fn no_form_panics(body: Vec<u8>, text in "(hub\\.|mode|topic|callback|secret|url|=|&|%|\\+|subscribe|publish|http://e/)*") {
        let _ = Request::parse(&body);
        if let Ok(request) = Request::parse(text.as_bytes()) {
            prop_assert_eq!(Request::parse(request.to_form().as_bytes()), Ok(request));
        }
    }
}
