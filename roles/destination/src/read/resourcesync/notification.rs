//! Change Notifications [rs-change-notification §3].

use super::listed::listed;
use crate::plan::listed::Listed;
use crate::read::sitemap::pushed::{odd, read_strictly};
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, V1_1};
use abreast_webtypes::Timestamp;

/// A valid notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    /// The start of the interval whose changes the notification contains.
    pub(crate) from: Timestamp,
    /// The end of the interval whose changes the notification contains.
    pub(crate) until: Timestamp,
    head: Head,
    entries: Vec<Entry>,
}

impl Notification {
    /// The changes in their order; links are relative to `document`.
    pub(crate) fn changes<'a>(&'a self, document: &'a str) -> impl Iterator<Item = Listed<'a>> {
        self.entries.iter().map(move |entry| listed(document, &self.head, entry))
    }
}

/// Parses a notification strictly: if it is not valid, requesting the lists is safer.
pub(crate) fn read_notification(bytes: &[u8]) -> Result<Notification, String> {
    const NAME: &str = "a notification";
    let (head, entries) = read_strictly::<V1_1>(bytes, NAME)?;
    let odd = |what: &str| Err(odd(NAME, what));
    if head.root != Root::UrlSet || head.capability != Some(Capability::ChangeNotification) {
        return odd("it is no Change Notification");
    }
    let Some(from) = head.from.map(|from| from.instant) else {
        return odd("it does not state `from`");
    };
    let newest = entries.last().and_then(|entry| entry.datetime).map(|newest| newest.instant);
    let Some(until) = head.until.map(|until| until.instant).or(newest) else {
        return odd("it contains no changes and no time");
    };
    let mut last = from;
    for entry in &entries {
        let time = entry.datetime.map(|datetime| datetime.instant);
        match (time, entry.change) {
            (Some(time), Some(_))
                if entry.loc.starts_with("http") && (last..=until).contains(&time) =>
            {
                last = time;
            }
            _ => return odd(&format!("the entry in line {} is out of place", entry.line)),
        }
    }
    if from > until {
        return odd("it ends before it begins");
    }
    Ok(Notification {
        from,
        until,
        head: Head { capability: head.capability, ..Head::default() },
        entries,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_odd_is_not_read() {
        let document = |head: &str, entries: &str| {
            format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                 xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md {head}/>{entries}</urlset>"
            )
        };
        let entry = |time: &str| {
            format!(
                "<url><loc>http://e/a</loc><rs:md change=\"deleted\" datetime=\"2026-01-01T00:00:{time}Z\"/></url>"
            )
        };
        let head = |rest: &str| format!("capability=\"change-notification\" {rest}");
        let from = "from=\"2026-01-01T00:00:01Z\"";
        let whole = format!("{from} until=\"2026-01-01T00:00:03Z\"");
        let two = entry("02") + &entry("03");
        let read =
            |head: &str, entries: &str| read_notification(document(head, entries).as_bytes());
        assert_eq!(read(&head(&whole), &two).unwrap().entries.len(), 2);
        assert_eq!(
            read(&head(from), &two),
            read(&head(&whole), &two),
            "it ends with its last change"
        );
        for (head, entries) in [
            (head(&whole), entry("03") + &entry("02")),
            (head(&whole), entry("04")),
            (head(&whole), entry("00")),
            (head(&whole), entry("02").replace("change=\"deleted\"", "")),
            (head(&whole), entry("02").replace("http://e", "/e")),
            (head("until=\"2026-01-01T00:00:03Z\""), two.clone()),
            (head(&whole).replace("change-notification", "changelist"), two.clone()),
            (head(from), String::new()),
            (head("from=\"2026-01-01T00:00:05Z\" until=\"2026-01-01T00:00:03Z\""), String::new()),
        ] {
            assert!(read(&head, &entries).is_err(), "{head} {entries}");
        }
        for bytes in ["", "<urlset", "{}", "<!DOCTYPE a [<!ENTITY b \"c\">]><urlset>&b;</urlset>"] {
            assert!(read_notification(bytes.as_bytes()).is_err(), "{bytes}");
        }
    }
}
