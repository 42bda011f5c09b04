//! Root elements and kinds of changes.

/// The root element: a list, or an index of lists of the same capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Root {
    /// `urlset`: a list of `url` entries.
    #[default]
    UrlSet,
    /// `sitemapindex`: a list of `sitemap` entries.
    SitemapIndex,
}

impl Root {
    /// Name of the root element.
    pub const fn element(self) -> &'static str {
        match self {
            Self::UrlSet => "urlset",
            Self::SitemapIndex => "sitemapindex",
        }
    }

    /// Name of the element of each entry.
    pub const fn entry_element(self) -> &'static str {
        match self {
            Self::UrlSet => "url",
            Self::SitemapIndex => "sitemap",
        }
    }
}

/// The kinds of changes of a resource [rs-core §12.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is new.
    Created,
    /// It is different.
    Updated,
    /// It is gone.
    Deleted,
}

impl Change {
    /// The value of the `change` attribute.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }

    /// Reads the value of a `change` attribute.
    pub fn from_token(token: &str) -> Option<Self> {
        match token {
            "created" => Some(Self::Created),
            "updated" => Some(Self::Updated),
            "deleted" => Some(Self::Deleted),
            _ => None,
        }
    }
}
