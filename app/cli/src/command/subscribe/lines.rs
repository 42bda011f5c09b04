//! Notifications as lines of text.

use abreast_core::{Clock as _, SystemClock};
use abreast_destination::{NotificationContent, NotifiedChange};
use abreast_websub::Event;
use abreast_webtypes::Timestamp;
use base64::Engine as _;
use serde_json::{Map, Value, json};

pub(super) fn line(topic: &str, event: &Event) -> Value {
    let mut line = Map::new();
    let mut print_line = |name: &str, value: Value| drop(line.insert(name.to_owned(), value));
    print_line("type", json!("notification"));
    print_line("topic", json!(topic));
    match event.id.parse::<u64>() {
        Ok(offset) => print_line("offset", json!(offset)),
        Err(_) => print_line("offset", json!(event.id)),
    }
    print_line("received", json!(SystemClock.now().to_string()));
    print_line("media_type", json!(event.media_type));
    let content = NotificationContent::read(&event.data);
    if let Some(content) = content.or_else(|| NotificationContent::read_change_set(&event.data)) {
        print_line("capability", json!(content.capability));
        for (name, time) in [("from", content.from), ("until", content.until)] {
            if let Some(time) = time {
                print_line(name, instant(time));
            }
        }
        print_line("changes", content.changes.iter().map(change).collect());
    } else if let Ok(text) = std::str::from_utf8(&event.data) {
        print_line("text", json!(text));
    } else {
        print_line("base64", json!(base64::prelude::BASE64_STANDARD.encode(&event.data)));
    }
    Value::Object(line)
}

/// An item of a node, whose name is its offset.
#[cfg(feature = "xmpp")]
pub(super) fn item(node: &str, id: &str, payload: Option<&str>) -> Value {
    line(
        node,
        &Event {
            id: id.to_owned(),
            media_type: "application/xml".to_owned(),
            data: payload.unwrap_or_default().as_bytes().to_vec(),
            ..Event::default()
        },
    )
}

/// In the words of `abreast log`.
fn change(notified: &NotifiedChange) -> Value {
    let mut change = Map::new();
    let mut print_line =
        |name: &str, value: Option<Value>| value.map(|value| change.insert(name.to_owned(), value));
    print_line("datetime", notified.datetime.map(instant));
    print_line("change", notified.change.map(|change| json!(change)));
    print_line("uri", Some(json!(notified.uri)));
    print_line("capability", notified.capability.map(|capability| json!(capability)));
    print_line("lastmod", notified.lastmod.map(instant));
    print_line("length", notified.length.map(|length| json!(length)));
    print_line("type", notified.media_type.as_ref().map(|kind| json!(kind)));
    print_line("hash", notified.hash.as_ref().map(|hash| json!(hash)));
    Value::Object(change)
}

fn instant(time: Timestamp) -> Value {
    json!(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &[u8]) -> Event {
        Event {
            id: "7".to_owned(),
            media_type: "application/xml".to_owned(),
            data: data.to_vec(),
            ..Event::default()
        }
    }

    #[test]
    fn changes_are_printed_one_by_one() {
        let told = line(
            "http://x/topic",
            &event(
                br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
                    <rs:md capability="change-notification" from="2026-01-01T00:00:00Z" until="2026-01-02T00:00:00Z"/>
                    <url><loc>http://x/a</loc><rs:md change="updated" datetime="2026-01-02T00:00:00Z" length="3"/></url>
                    </urlset>"#,
            ),
        );
        assert_eq!(told["offset"], 7);
        assert_eq!(told["capability"], "change-notification");
        assert_eq!(told["changes"][0]["uri"], "http://x/a");
        assert_eq!(told["changes"][0]["change"], "updated");
        assert!(told.get("text").is_none());
    }

    #[test]
    fn change_sets_of_0_1_are_printed_like_other_notifications() {
        let printed = line(
            "t",
            &event(
                br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:r="http://www.openarchives.org/rs/terms/"
                    xmlns:x="http://www.w3.org/1999/xhtml" r:type="changeset">
                    <url><loc>http://x/a</loc><lastmod r:type="updated">2026-01-02T00:00:00Z</lastmod></url>
                    <url><loc>http://x/b</loc><expires r:type="deleted">2026-01-03T00:00:00Z</expires></url>
                    </urlset>"#,
            ),
        );
        assert_eq!(printed["capability"], "changeset", "{printed}");
        let changes = printed["changes"].as_array().unwrap();
        let found: Vec<_> =
            changes.iter().map(|change| (&change["uri"], &change["change"])).collect();
        assert_eq!(
            found,
            [(&json!("http://x/a"), &json!("updated")), (&json!("http://x/b"), &json!("deleted"))]
        );
        assert_eq!(changes[0]["datetime"], "2026-01-02T00:00:00Z");
        assert!(printed.get("text").is_none());
    }

    #[test]
    fn other_content_is_printed_unchanged() {
        assert_eq!(line("t", &event("héllo\n".as_bytes()))["text"], "héllo\n");
        assert_eq!(line("t", &event(b"<urlset/>"))["text"], "<urlset/>");
        assert_eq!(line("t", &event(b"\xff\xfe"))["base64"], "//4=");
    }
}
