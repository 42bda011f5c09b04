//! Capabilities: the kinds of documents [rs-core §7].

use crate::sitemap::Root;

/// The kind of a document, or of the target of an entry of a Capability List.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Source Description: lists the sets of a Source [rs-core §8].
    Description,
    /// Capability List: lists the documents of a set [rs-core §9].
    CapabilityList,
    /// Resource List: all resources at one time [rs-core §10.1].
    ResourceList,
    /// Resource Dump: packages with all resources [rs-core §11.1].
    ResourceDump,
    /// Resource Dump Manifest [rs-core §11.2]
    ResourceDumpManifest,
    /// Change List: the changes of a period [rs-core §12.1].
    ChangeList,
    /// Change Dump: packages with changed resources [rs-core §13.1].
    ChangeDump,
    /// Change Dump Manifest [rs-core §13.2]
    ChangeDumpManifest,
    /// Resource List Archive: earlier Resource Lists [rs-archives].
    ResourceListArchive,
    /// Resource Dump Archive: earlier Resource Dumps [rs-archives].
    ResourceDumpArchive,
    /// Change List Archive: earlier Change Lists [rs-archives].
    ChangeListArchive,
    /// Change Dump Archive: earlier Change Dumps [rs-archives].
    ChangeDumpArchive,
    /// Change Notification: changes of resources, as sent to subscribers [rs-change-notification].
    ChangeNotification,
    /// Framework Notification: changes of documents, as sent to subscribers
    /// [rs-framework-notification].
    FrameworkNotification,
}

impl Capability {
    /// Every capability, in the order of the specifications.
    pub const ALL: [Self; 14] = [
        Self::Description,
        Self::CapabilityList,
        Self::ResourceList,
        Self::ResourceDump,
        Self::ResourceDumpManifest,
        Self::ChangeList,
        Self::ChangeDump,
        Self::ChangeDumpManifest,
        Self::ResourceListArchive,
        Self::ResourceDumpArchive,
        Self::ChangeListArchive,
        Self::ChangeDumpArchive,
        Self::ChangeNotification,
        Self::FrameworkNotification,
    ];

    /// The specification's name for a document with this capability, by its root.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::{Capability, Root};
    ///
    /// assert_eq!(Capability::ChangeList.name(Root::UrlSet), "Change List");
    /// assert_eq!(Capability::ChangeList.name(Root::SitemapIndex), "Change List Index");
    /// ```
    pub fn name(self, root: Root) -> String {
        let name = match self {
            Self::Description => "Source Description",
            Self::CapabilityList => "Capability List",
            Self::ResourceList => "Resource List",
            Self::ResourceDump => "Resource Dump",
            Self::ResourceDumpManifest => "Resource Dump Manifest",
            Self::ChangeList => "Change List",
            Self::ChangeDump => "Change Dump",
            Self::ChangeDumpManifest => "Change Dump Manifest",
            Self::ResourceListArchive => "Resource List Archive",
            Self::ResourceDumpArchive => "Resource Dump Archive",
            Self::ChangeListArchive => "Change List Archive",
            Self::ChangeDumpArchive => "Change Dump Archive",
            Self::ChangeNotification => "Change Notification",
            Self::FrameworkNotification => "Framework Notification",
        };
        if root == Root::SitemapIndex { format!("{name} Index") } else { name.to_owned() }
    }

    /// The value of the `capability` attribute.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::CapabilityList => "capabilitylist",
            Self::ResourceList => "resourcelist",
            Self::ResourceDump => "resourcedump",
            Self::ResourceDumpManifest => "resourcedump-manifest",
            Self::ChangeList => "changelist",
            Self::ChangeDump => "changedump",
            Self::ChangeDumpManifest => "changedump-manifest",
            Self::ResourceListArchive => "resourcelist-archive",
            Self::ResourceDumpArchive => "resourcedump-archive",
            Self::ChangeListArchive => "changelist-archive",
            Self::ChangeDumpArchive => "changedump-archive",
            Self::ChangeNotification => "change-notification",
            Self::FrameworkNotification => "framework-notification",
        }
    }

    /// Reads the value of a `capability` attribute, exactly as the specifications write it.
    pub fn from_token(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.token() == token)
    }

    /// Like [`Capability::from_token`] in any letter case; `true` when the case was wrong.
    ///
    /// Lenient: at least one published server program writes `capabilityList`.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::Capability;
    ///
    /// let (capability, is_other_case) = Capability::from_token_leniently("capabilityList").unwrap();
    /// assert_eq!(capability, Capability::CapabilityList);
    /// assert!(is_other_case);
    /// ```
    pub fn from_token_leniently(token: &str) -> Option<(Self, bool)> {
        let token = token.trim_ascii();
        Self::ALL
            .into_iter()
            .find(|capability| capability.token().eq_ignore_ascii_case(token))
            .map(|capability| (capability, capability.token() != token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back_in_any_case() {
        for capability in Capability::ALL {
            let token = capability.token();
            assert_eq!(Capability::from_token(token), Some(capability));
            assert_eq!(
                Capability::from_token_leniently(&token.to_uppercase()),
                Some((capability, true))
            );
            assert_eq!(Capability::from_token_leniently(token), Some((capability, false)));
        }
        assert_eq!(Capability::from_token_leniently("resource-list"), None);
    }
}
