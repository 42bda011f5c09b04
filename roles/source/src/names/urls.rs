//! The URLs of a Source and its sets, built from the configured public base only, never from a request.

use super::naming::Naming;

/// URLs of a Source, from which the URLs of each set are derived.
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
    /// Creates the URLs below a public base such as `https://example.org/`; appends a missing final
    /// `/`.
    pub fn new(base: &str) -> Self {
        Self { base: format!("{}/", base.trim_end_matches('/')) }
    }

    /// Public base URL of the Source, ending in `/`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the path of a URL of this Source, without the base.
    pub(crate) fn path_of(&self, url: &str) -> String {
        url.strip_prefix(&self.base).unwrap_or(url).to_owned()
    }

    /// Returns the URLs of a set. `slug` is the name of the set in URLs.
    pub fn set(&self, slug: &str) -> SetUrls {
        SetUrls {
            base: format!("{}{slug}/", self.base),
            resources: None,
            entities: None,
            in_files: false,
        }
    }
}

/// URLs of the documents and the resources of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUrls {
    base: String,
    /// Base URL of the resources, if it differs from the base of the documents.
    resources: Option<String>,
    /// Namespace of the entities; `None` in a set of files.
    entities: Option<String>,
    /// Whether all documents and resources are files of a static site.
    in_files: bool,
}

impl SetUrls {
    /// Changes the base URL of the resources, which another server serves; appends a missing final
    /// `/`.
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

    /// Changes the resources to entities. Their addresses omit the namespace, which may be empty.
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

    /// Beginning of the IRIs of the set's entities; `None` for a set of files.
    pub fn namespace(&self) -> Option<&str> {
        self.entities.as_deref()
    }

    /// Changes the URLs to files of a static site, for documents that a server would serve at the
    /// address of a folder or select by a query.
    #[must_use]
    pub fn in_files(self) -> Self {
        Self { in_files: true, ..self }
    }

    /// Whether all documents and resources are files of a static site.
    pub(crate) fn are_in_files(&self) -> bool {
        self.in_files
    }

    /// Prefix of the URLs of all documents of the set, ending in `/`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Prefix of the URIs of resources that are served by the set, ending in `/`.
    pub fn resources(&self) -> String {
        self.resources.clone().unwrap_or_else(|| format!("{}r/", self.base))
    }

    /// Returns the naming of resources, with the base and the namespace of these URLs.
    pub fn naming(&self) -> Naming {
        let naming = Naming::new(self.resources());
        match &self.entities {
            Some(namespace) if self.in_files => naming.of_entities(namespace).in_files(),
            Some(namespace) => naming.of_entities(namespace),
            None => naming,
        }
    }
}
