//! The URLs of a Source and its sets, built from the configured public base only, never from a request.

use super::naming::Naming;

/// URLs of the Source as a whole.
///
/// # Examples
/// ```
/// use abreast_source::publish::SourceUrls;
///
/// let source = SourceUrls::new("https://repo.example/sync");
/// assert_eq!(source.base(), "https://repo.example/sync/");
/// assert_eq!(source.set("maps").base(), "https://repo.example/sync/maps/");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUrls {
    base: String,
}

impl SourceUrls {
    /// URLs below a public base such as `https://example.org/`; a final `/` is added.
    pub fn new(base: &str) -> Self {
        Self { base: format!("{}/", base.trim_end_matches('/')) }
    }

    /// The base, ending in `/`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The path below the base of a URL that begins with it.
    pub(crate) fn path_of(&self, url: &str) -> String {
        url.strip_prefix(&self.base).unwrap_or(url).to_owned()
    }

    /// The URLs of the set with this name in URLs.
    pub fn set(&self, slug: &str) -> SetUrls {
        SetUrls {
            base: format!("{}{slug}/", self.base),
            resources: None,
            entities: None,
            in_files: false,
        }
    }
}

/// The URLs of one set and its resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUrls {
    base: String,
    /// The base of resources, if not below that of documents.
    resources: Option<String>,
    /// The namespace of the entities that are the resources.
    entities: Option<String>,
    /// Whether everything is a file of a static site.
    in_files: bool,
}

impl SetUrls {
    /// The same documents, of resources that another server answers for; a final `/` is added.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::publish::SourceUrls;
    ///
    /// // The files are on another server than the lists.
    /// let set = SourceUrls::new("https://repo.example/sync/")
    ///     .set("maps")
    ///     .with_resources("https://files.example/maps");
    /// assert_eq!(set.base(), "https://repo.example/sync/maps/");
    /// assert_eq!(set.naming().uri("1571.tif"), "https://files.example/maps/1571.tif");
    /// ```
    #[must_use]
    pub fn with_resources(self, base: &str) -> Self {
        Self { resources: Some(format!("{}/", base.trim_end_matches('/'))), ..self }
    }

    /// The same documents, of entities: their addresses leave out the namespace, which may be empty.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::publish::SourceUrls;
    ///
    /// let set = SourceUrls::new("https://library.example/").set("subjects");
    /// let set = set.of_entities("https://id.example.org/subjects/");
    /// assert_eq!(
    ///     set.naming().uri("https://id.example.org/subjects/maps"),
    ///     "https://library.example/subjects/r/maps",
    /// );
    /// ```
    #[must_use]
    pub fn of_entities(self, namespace: &str) -> Self {
        Self { entities: Some(namespace.to_owned()), ..self }
    }

    /// The same, in a static site: what has the address of a folder on a server, or is chosen there
    /// by a query, is a file.
    #[must_use]
    pub fn in_files(self) -> Self {
        Self { in_files: true, ..self }
    }

    /// Whether everything is a file of a static site.
    pub(crate) fn are_in_files(&self) -> bool {
        self.in_files
    }

    /// The common prefix of its documents' URLs, ending in `/`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The base of the URIs of the set's own resources, ending in `/`.
    pub fn resources(&self) -> String {
        self.resources.clone().unwrap_or_else(|| format!("{}r/", self.base))
    }

    /// The names of the set's resources, with the base and the namespace of these URLs.
    pub fn naming(&self) -> Naming {
        let naming = Naming::new(self.resources());
        match &self.entities {
            Some(namespace) if self.in_files => naming.of_entities(namespace).in_files(),
            Some(namespace) => naming.of_entities(namespace),
            None => naming,
        }
    }
}
