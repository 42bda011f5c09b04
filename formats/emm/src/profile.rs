//! The three specifications, and the types of activities.

/// A specification of change feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Entity Metadata Management API 0.1: the draft, which has Entity Patches and activities in
    /// separate documents [emm-0.1].
    Emm01,
    /// Entity Metadata Management API 1.0 [emm-1.0].
    #[default]
    Emm10,
    /// IIIF Change Discovery API 1.0, level 2 [iiif-discovery].
    Iiif1,
}

impl Profile {
    /// All profiles, from the oldest specification of Entity Metadata Management to IIIF.
    pub const ALL: [Self; 3] = [Self::Emm01, Self::Emm10, Self::Iiif1];

    /// The profile's name, as `abreast validate` and the documentation use it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emm01 => "emm-0.1",
            Self::Emm10 => "emm-1.0",
            Self::Iiif1 => "iiif-1",
        }
    }

    /// The URLs of `@context` in documents of the profile [emm-0.1 §3.1, emm-1.0 §2.2, iiif-discovery §3.2].
    pub const fn contexts(self) -> &'static [&'static str] {
        match self {
            Self::Emm01 => &["https://ld4.github.io/entity_metadata_management/0.1/context.json"],
            Self::Emm10 => {
                &["https://www.w3.org/ns/activitystreams", "https://emm-spec.org/1.0/context.json"]
            }
            Self::Iiif1 => &["http://iiif.io/api/discovery/1/context.json"],
        }
    }

    /// The media types of the profile's documents, the first for clients without preference.
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::Profile;
    ///
    /// let offered = Profile::Iiif1.media_types();
    /// let accept = "application/json";
    /// let content_type = offered.iter().find(|offer| **offer == accept).unwrap_or(&offered[0]);
    /// assert_eq!(*content_type, "application/json");
    /// assert!(offered[0].starts_with("application/ld+json"));
    /// ```
    pub const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Emm01 | Self::Emm10 => &[
                "application/activity+json",
                "application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\"",
                "application/json",
            ],
            Self::Iiif1 => &[
                "application/ld+json; profile=\"http://iiif.io/api/discovery/1/context.json\"",
                "application/json",
                "application/activity+json",
            ],
        }
    }
}

/// The type of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ActivityType {
    /// The entity is new, and was not known elsewhere.
    Create,
    /// The entity is new in the feed, and was known elsewhere before.
    Add,
    /// The description of the entity changed.
    #[default]
    Update,
    /// The entity still exists, but is deprecated.
    Deprecate,
    /// The entity left the feed, and exists elsewhere.
    Remove,
    /// The entity does not exist any more.
    Delete,
}

impl ActivityType {
    /// The value of `type` in a profile. IIIF does not have a deprecation: a deprecated resource is
    /// written as updated [iiif-discovery §3.3].
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::{ActivityType, Profile};
    ///
    /// // An authority file replaced one heading by another; the old one remains readable.
    /// let change = ActivityType::Deprecate;
    /// assert_eq!(change.name(Profile::Emm10), "Deprecate");
    /// assert_eq!(change.name(Profile::Iiif1), "Update");
    /// ```
    pub const fn name(self, profile: Profile) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Add => "Add",
            Self::Deprecate if !matches!(profile, Profile::Iiif1) => "Deprecate",
            Self::Update | Self::Deprecate => "Update",
            Self::Remove => "Remove",
            Self::Delete => "Delete",
        }
    }
}
