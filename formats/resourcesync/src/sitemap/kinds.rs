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
    /// The local name of the root element.
    pub const fn element(self) -> &'static str {
        match self {
            Self::UrlSet => "urlset",
            Self::SitemapIndex => "sitemapindex",
        }
    }

    /// The local name of the entries' elements.
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
    /// The resource is new in the set.
    Created,
    /// The content of the resource changed.
    Updated,
    /// The resource does not exist any more.
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

    /// Reads the value of a `change` attribute; `None` for a value that is not in the
    /// specification.
    pub fn from_token(token: &str) -> Option<Self> {
        match token {
            "created" => Some(Self::Created),
            "updated" => Some(Self::Updated),
            "deleted" => Some(Self::Deleted),
            _ => None,
        }
    }
}
