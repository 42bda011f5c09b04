//! The person who reads a page: preferred languages.

/// Most languages in the query of a page.
const LANGUAGES: usize = 16;
/// Longest language tag in the query of a page, in bytes.
const TAG_BYTES: usize = 35;

/// Languages of the reader of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    languages: Vec<String>,
    /// The languages as the address of the page has them: `de` or `de,en`.
    in_address: String,
}

impl Reader {
    /// A reader whose browser prefers these languages, the first most.
    pub const fn of_browser(languages: Vec<String>) -> Self {
        Self { languages, in_address: String::new() }
    }

    /// A reader who chose languages in the address of the page, with commas between them; `None` if one
    /// is not a language tag.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::publish::Reader;
    ///
    /// let reader = Reader::of_address("de,en").unwrap();
    /// assert_eq!(reader.languages(), ["de", "en"]);
    /// assert!(Reader::of_address("de en").is_none());
    /// ```
    pub fn of_address(text: &str) -> Option<Self> {
        let languages: Vec<String> = text.split(',').map(str::to_owned).collect();
        let is_tag = |tag: &String| tag.len() <= TAG_BYTES && abreast_rdf::is_language_tag(tag);
        let are_tags = languages.len() <= LANGUAGES && languages.iter().all(is_tag);
        are_tags.then(|| Self { languages, in_address: text.to_owned() })
    }

    /// The languages, the preferred first; empty if the reader does not prefer any.
    pub fn languages(&self) -> &[String] {
        &self.languages
    }

    /// The languages in the address of the page, which its links repeat; empty without any.
    pub(crate) fn in_address(&self) -> &str {
        &self.in_address
    }
}
