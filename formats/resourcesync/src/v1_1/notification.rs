//! Notifications: changes that are sent to subscribers [rs-change-notification §3]
//! [rs-framework-notification §3].
//!
//! A notification is a [`Document`] like a Change List, with a different capability. It is read as
//! every document is; this module checks whether it is one, and reports deviations from its
//! specification.

use super::{Capability, Change, Document, Entry, Root};

/// The faults of a document that should be a notification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotificationFault {
    /// The document is an index, which a notification cannot be.
    #[error("a notification is a `urlset`, never a `sitemapindex`")]
    Index,
    /// The document has another capability, or lacks one.
    #[error(
        "the capability is {}; expected change-notification or framework-notification",
        .0.map_or("none", Capability::token)
    )]
    Capability(Option<Capability>),
    /// An entry, by its line, lacks `change`.
    #[error("line {0}: an entry without `change`")]
    NoChange(u64),
    /// An entry of a Framework Notification, by its line, lacks the `capability` of its document.
    #[error("line {0}: an entry without `capability`: which document is it?")]
    NoCapability(u64),
    /// An entry, by its line, is older than one before it.
    #[error("line {0}: an entry older than one before it")]
    Order(u64),
    /// An entry, by its line, has a change that this kind of document does not allow
    /// [rs-framework-notification §2.1].
    #[error("line {0}: a {kind} is never notified as {change}", kind = .1.token(), change = .2.token())]
    NoSuchChange(u64, Capability, Change),
}

impl Document {
    /// The kind of the notification: [`Capability::ChangeNotification`] or
    /// [`Capability::FrameworkNotification`].
    ///
    /// # Errors
    /// [`NotificationFault::Index`] or [`NotificationFault::Capability`] if it is not a
    /// notification.
    pub fn notification_kind(&self) -> Result<Capability, NotificationFault> {
        match (self.head.root, self.head.capability) {
            (Root::SitemapIndex, _) => Err(NotificationFault::Index),
            (
                _,
                Some(kind @ (Capability::ChangeNotification | Capability::FrameworkNotification)),
            ) => Ok(kind),
            (_, other) => Err(NotificationFault::Capability(other)),
        }
    }

    /// All faults of the document as a notification; its entries can be used in spite of faults.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::{Document, NotificationFault};
    ///
    /// let notification = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    ///   xmlns:rs="http://www.openarchives.org/rs/terms/">
    ///   <rs:md capability="change-notification"/>
    ///   <url><loc>https://repo.example/item/1</loc></url>
    /// </urlset>"#;
    /// let document = Document::from_slice(notification)?;
    /// assert_eq!(document.notification_faults(), [NotificationFault::NoChange(4)]);
    /// # Ok::<(), abreast_resourcesync::v1_1::Error>(())
    /// ```
    pub fn notification_faults(&self) -> Vec<NotificationFault> {
        let kind = match self.notification_kind() {
            Ok(kind) => kind,
            Err(fault) => return vec![fault],
        };
        let mut faults = Vec::new();
        let mut newest = None;
        for entry in &self.entries {
            if entry.change.is_none() {
                faults.push(NotificationFault::NoChange(entry.line));
            }
            if kind == Capability::FrameworkNotification {
                faults.extend(framework_fault(entry));
            } else if let Some(time) = entry.datetime.map(|datetime| datetime.instant) {
                if newest.is_some_and(|newest| newest > time) {
                    faults.push(NotificationFault::Order(entry.line));
                }
                newest = newest.max(Some(time));
            }
        }
        faults
    }
}

/// Documents are never notified as deleted, and a Resource Dump is notified as created each time.
fn framework_fault(entry: &Entry) -> Option<NotificationFault> {
    let Some(capability) = entry.capability else {
        return Some(NotificationFault::NoCapability(entry.line));
    };
    let change = entry.change?;
    let told = match capability {
        Capability::ResourceList | Capability::ChangeList | Capability::ChangeDump => {
            change != Change::Deleted
        }
        Capability::ResourceDump => change == Change::Created,
        Capability::ResourceDumpManifest
        | Capability::ChangeDumpManifest
        | Capability::ChangeNotification
        | Capability::FrameworkNotification => false,
        // The specification only allows notifications of archives.
        _ => true,
    };
    (!told).then_some(NotificationFault::NoSuchChange(entry.line, capability, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(capability: &str, entries: &str) -> Document {
        let text = format!(
            "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'>\n\
             <rs:md capability='{capability}'/>\n{entries}</urlset>"
        );
        Document::from_slice(text.as_bytes()).unwrap()
    }

    fn entry(attributes: &str) -> String {
        format!("<url><loc>http://example.org/a</loc><rs:md {attributes}/></url>\n")
    }

    #[test]
    fn changes_are_notified_oldest_first() {
        let times = [
            "2026-01-01T00:00:02Z",
            "2026-01-01T00:00:02Z",
            "2026-01-01T00:00:01Z",
            "2026-01-01T00:00:01.5Z",
        ];
        let entries: String =
            times.map(|time| entry(&format!("change='updated' datetime='{time}'"))).concat();
        let read = document("change-notification", &entries);
        assert_eq!(read.notification_kind(), Ok(Capability::ChangeNotification));
        assert_eq!(
            read.notification_faults(),
            [NotificationFault::Order(5), NotificationFault::Order(6)]
        );
        let read = document("change-notification", &entry("length='1'"));
        assert_eq!(read.notification_faults(), [NotificationFault::NoChange(3)]);
    }

    #[test]
    fn each_kind_of_document_has_its_changes() {
        let faults = |capability: &str, change: &str| {
            let entry = entry(&format!("change='{change}' capability='{capability}'"));
            document("framework-notification", &entry).notification_faults().len()
        };
        for (capability, faulty) in [
            ("resourcelist", [0, 0, 1]),
            ("resourcedump", [0, 1, 1]),
            ("changelist", [0, 0, 1]),
            ("changedump", [0, 0, 1]),
            ("capabilitylist", [0, 0, 0]),
            ("description", [0, 0, 0]),
            ("changelist-archive", [0, 0, 0]),
            ("resourcedump-manifest", [1, 1, 1]),
            ("framework-notification", [1, 1, 1]),
        ] {
            assert_eq!(
                ["created", "updated", "deleted"].map(|change| faults(capability, change)),
                faulty,
                "{capability}"
            );
        }
        let read = document("framework-notification", &entry("change='created'"));
        assert_eq!(read.notification_faults(), [NotificationFault::NoCapability(3)]);
        assert_eq!(read.notification_kind(), Ok(Capability::FrameworkNotification));
    }

    #[test]
    fn other_documents_are_no_notifications() {
        let list = document("changelist", "");
        assert_eq!(
            list.notification_kind(),
            Err(NotificationFault::Capability(Some(Capability::ChangeList)))
        );
        assert_eq!(
            list.notification_faults()[0].to_string(),
            "the capability is changelist; expected change-notification or framework-notification"
        );
        let index = "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
            xmlns:rs='http://www.openarchives.org/rs/terms/'><rs:md capability='change-notification'/></sitemapindex>";
        let index = Document::from_slice(index.as_bytes()).unwrap();
        assert_eq!(index.notification_kind(), Err(NotificationFault::Index));
    }
}
