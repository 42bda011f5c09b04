//! Topics as publishers write them.

use super::*;
use proptest::prelude::*;

const URL: &str = "http://example.org/a/topic";

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may fail")]
fn found(place: DiscoverySource, topic: &str, hubs: &[&str]) -> Result<Discovered, DiscoverError> {
    Ok(Discovered {
        topic: topic.to_owned(),
        hubs: hubs.iter().map(|&hub| hub.to_owned()).collect(),
        place,
    })
}

fn page(html: &str) -> Result<Discovered, DiscoverError> {
    discover(URL, [], "text/html; charset=utf-8", html.as_bytes())
}

fn feed(xml: &str) -> Result<Discovered, DiscoverError> {
    discover(URL, [], "text/xml", xml.as_bytes())
}

#[test]
fn headers_come_first_and_several_fields_are_one() {
    let body =
        b"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='http://wrong/'/></feed>";
    let links = [
        "<http://h/>; rel=\"hub\"",
        "<topic?self=other>; rel=\"self\", </hub2>; rel=hub, <http://h/>; rel=HUB",
    ];
    let expected = found(
        DiscoverySource::Header,
        "http://example.org/a/topic?self=other",
        &["http://h/", "http://example.org/hub2"],
    );
    assert_eq!(discover(URL, links, "application/atom+xml", body), expected);
}

#[test]
fn headers_without_a_hub_leave_it_to_the_content() {
    let body = "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='/h'/><link rel='self' href='/t'/></feed>";
    let links = [
        "<http://example.org/x>; rel=self, <http://other/>; rel=hub; anchor=\"http://other/topic\"",
    ];
    let expected = found(DiscoverySource::Feed, "http://example.org/t", &["http://example.org/h"]);
    assert_eq!(discover(URL, links, "application/atom+xml", body.as_bytes()), expected);
}

#[test]
fn exactly_one_topic_is_named_in_a_place() {
    let both = ["<http://h/>; rel=hub, <http://e/a>; rel=self, <http://e/b>; rel=self"];
    assert!(matches!(in_headers(URL, both), Err(DiscoverError::Topics(_, _))));
    assert_eq!(in_headers(URL, ["<http://h/>; rel=hub"]), Err(DiscoverError::NoTopic));
    let same = ["<http://h/>; rel=hub, <http://e/a>; rel=self, <http://e/a>; rel=self"];
    assert_eq!(
        in_headers(URL, same).transpose().unwrap(),
        found(DiscoverySource::Header, "http://e/a", &["http://h/"])
    );
    let many = (0..=MAX_HUBS)
        .map(|number| format!("<http://h/{number}>; rel=hub, "))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(in_headers(URL, [many.as_str()]), Err(DiscoverError::Hubs));
}

#[test]
fn feeds_name_hubs_but_their_entries_do_not() {
    let rss = "<?xml version='1.0'?><rss xmlns:a='http://www.w3.org/2005/Atom'><channel><link>http://e/</link>\
        <a:link rel='self hub' href='http://e/rss?a=1&amp;b=2'/>\
        <item><a:link rel='hub' href='http://wrong/'/></item></channel></rss>";
    assert_eq!(
        feed(rss),
        found(DiscoverySource::Feed, "http://e/rss?a=1&b=2", &["http://e/rss?a=1&b=2"])
    );
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link rel='hub' href='http://wrong/'/></entry>\
        <link rel='self' href='/s'/><link rel='hub' href='/h'/><x:link xmlns:x='y' rel='hub' href='/no'/></feed>";
    assert_eq!(
        feed(atom),
        found(DiscoverySource::Feed, "http://example.org/s", &["http://example.org/h"])
    );
    assert_eq!(
        feed("<feed><link rel='hub' href='/h'/></feed>"),
        Err(DiscoverError::NoHub),
        "not Atom's link"
    );
}

#[test]
fn broken_feed_is_read_up_to_the_fault() {
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='/s'/><link rel='hub' href='/h'/><entry>";
    assert_eq!(
        feed(atom),
        found(DiscoverySource::Feed, "http://example.org/s", &["http://example.org/h"])
    );
    let bomb =
        "<!DOCTYPE feed [<!ENTITY a 'aaaa'>]><feed xmlns='http://www.w3.org/2005/Atom'>&a;</feed>";
    assert_eq!(feed(bomb), Err(DiscoverError::NoHub));
}

#[test]
fn pages_name_hubs_in_their_head() {
    let html = "<!doctype html><!-- <link rel=hub href=/no> --><html><head><title><link rel=hub href=/no></title>\
        <script>\"<link rel=hub href=/no>\"</script><meta charset=utf-8><LINK href='/h?a=1&amp;b=&#x32;' REL=\"x hub\">\
        <link rel = self href=/s/><link rel=stylesheet href=x></head><body><link rel=hub href=/no>";
    assert_eq!(
        page(html),
        found(DiscoverySource::Page, "http://example.org/s/", &["http://example.org/h?a=1&b=2"])
    );
    let base = "<base href='http://b/x/'><base href='http://c/'><link rel=hub href=h><link rel=self href=s>";
    assert_eq!(page(base), found(DiscoverySource::Page, "http://b/x/s", &["http://b/x/h"]));
}

#[test]
fn links_in_the_body_are_not_trusted() {
    for html in [
        "<html><head></head><body><link rel=hub href=/h><link rel=self href=/s>",
        "<html><head><title>x</title><p>Hello<link rel=hub href=/h><link rel=self href=/s>",
        "<html>Hello<link rel=hub href=/h><link rel=self href=/s>",
        "<html><head><script><link rel=hub href=/h><link rel=self href=/s>",
        "<html><head><a title='<link rel=hub href=/h>'><link rel=hub href=/h><link rel=self href=/s>",
    ] {
        assert_eq!(page(html), Err(DiscoverError::NoHub), "{html}");
    }
}

#[test]
fn content_type_selects_the_discovery_method() {
    let html = "<html><link rel=hub href=/h><link rel=self href=/s>";
    let expected = found(DiscoverySource::Page, "http://example.org/s", &["http://example.org/h"]);
    for content_type in ["text/html", "TEXT/HTML;x=y", "application/xhtml+xml", "text/xml", ""] {
        assert_eq!(discover(URL, [], content_type, html.as_bytes()), expected, "{content_type}");
    }
    for content_type in ["text/plain", "application/json", "image/png"] {
        assert_eq!(
            discover(URL, [], content_type, html.as_bytes()),
            Err(DiscoverError::NoHub),
            "{content_type}"
        );
    }
    let xml = "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub self' href='/h'/></feed>";
    assert!(discover(URL, [], "", xml.as_bytes()).is_ok());
}

#[test]
fn empty_topic_is_discovered_by_its_headers() {
    let links = ["<http://h/>; rel=hub, <http://e/t>; rel=self"];
    assert_eq!(
        discover(URL, links, "application/xml", b""),
        found(DiscoverySource::Header, "http://e/t", &["http://h/"])
    );
    assert_eq!(discover(URL, [], "application/xml", b""), Err(DiscoverError::NoHub));
}

#[test]
fn large_pages_are_read_in_part_and_in_time() {
    let mut html = "<html><head>".to_owned();
    html.push_str(&"<meta>".repeat(MAX_BODY_LENGTH / 6));
    html.push_str("<link rel=hub href=/h><link rel=self href=/s>");
    assert_eq!(page(&html), Err(DiscoverError::NoHub));
    for piece in
        ["<", "</", "<script>", "<!--", "<link ", "<link a=", "&", "<link rel='", "<title></t"]
    {
        let _ = page(&piece.repeat(MAX_BODY_LENGTH / piece.len()));
        let _ = page(&format!("<link {}", piece.repeat(MAX_BODY_LENGTH / piece.len())));
    }
}

proptest! {
    #[test]
    fn no_content_panics(
        body: Vec<u8>,
        html in "(<link |<base |<html>|<head>|</head>|<script>|</script|rel|href|=|\"|'|>|/|hub|self|&amp;|&#x26;| |<!--|-->|é){0,40}",
        kind in 0..4_usize,
    ) {
        let content_type = ["text/html", "application/atom+xml", "", "text/xml"][kind];
        let _ = discover(URL, [], content_type, &body);
        let _ = discover(URL, [], content_type, html.as_bytes());
    }

    #[test]
    fn links_of_a_publisher_are_found_in_all_formats(path in "[a-z0-9/?=&;%+,.~-]{0,30}") {
        let (topic, hub) = (format!("http://e/{path}"), format!("http://h/{path}"));
        let escaped = |text: &str| text.replace('&', "&amp;");
        let links = format!("<{topic}>; rel=\"self\", <{hub}>; rel=\"hub\"");
        let html = format!("<link rel=self href=\"{}\"><link rel=hub href='{}'>", escaped(&topic), escaped(&hub));
        let xml = format!("<feed xmlns=\"http://www.w3.org/2005/Atom\">{}</feed>", html.replace("rel=self", "rel='self'").replace("rel=hub", "rel='hub'").replace("'>", "'/>").replace("\">", "\"/>"));
        let xml = xml.replacen("Atom\"/>", "Atom\">", 1);
        prop_assert_eq!(discover(URL, [links.as_str()], "", b""), found(DiscoverySource::Header, &topic, &[&hub]));
        prop_assert_eq!(page(&html), found(DiscoverySource::Page, &topic, &[&hub]));
        prop_assert_eq!(feed(&xml), found(DiscoverySource::Feed, &topic, &[&hub]));
    }
}
