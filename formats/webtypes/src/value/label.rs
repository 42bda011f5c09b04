//! Labels of entities in several languages.

/// One label of an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// The language tag of the label; empty without one.
    pub language: String,
    /// The text of the label.
    pub text: String,
}

impl Label {
    /// A label without a language.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { language: String::new(), text: text.into() }
    }

    /// Sorts labels for a reader: labels in the reader's languages first, in their order (`en`
    /// includes `en-GB`), then labels without a language, then all others. The order of labels with
    /// the same rank does not change.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::Label;
    ///
    /// let label = |language: &str, text: &str| Label { language: language.into(), text: text.into() };
    /// let mut labels = vec![label("de", "Karten"), label("en-GB", "Maps")];
    /// Label::sort_for(&mut labels, &["en".to_owned()]);
    /// assert_eq!(labels[0].text, "Maps");
    /// ```
    pub fn sort_for(labels: &mut [Self], languages: &[String]) {
        labels.sort_by_key(|label| label.rank(languages));
    }

    /// The first label in the order of [`sort_for`](Self::sort_for), of the labels with visible text.
    pub fn best<'l, 's>(
        labels: &'l [Self],
        languages: impl IntoIterator<Item = &'s String, IntoIter: Clone>,
    ) -> Option<&'l Self> {
        let languages = languages.into_iter();
        let visible = labels.iter().filter(|label| label.is_visible());
        visible.min_by_key(|label| label.rank(languages.clone()))
    }

    /// Whether the text has other characters than white space.
    pub fn is_visible(&self) -> bool {
        !self.text.trim().is_empty()
    }

    fn rank<'s>(&self, languages: impl IntoIterator<Item = &'s String>) -> (usize, bool) {
        let mut languages = languages.into_iter();
        let found = languages.position(|range| matches(&self.language, range));
        (found.unwrap_or(usize::MAX), !self.language.is_empty())
    }
}

/// Whether a language tag is in a range of languages [rfc4647 §3.3.1].
fn matches(tag: &str, range: &str) -> bool {
    let start = tag.get(..range.len()).is_some_and(|start| start.eq_ignore_ascii_case(range));
    start && !range.is_empty() && matches!(tag.as_bytes().get(range.len()), None | Some(b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_label_is_in_the_language_of_the_reader() {
        let labels = ["", "de-AT", "en", "fr"]
            .map(|language| Label { language: language.into(), text: format!("in {language}") });
        for (languages, best) in [
            (&["de", "en"][..], "de-AT"),
            (&["es", "FR"], "fr"),
            (&["d"], ""),
            (&["es"], ""),
            (&[], ""),
        ] {
            let languages: Vec<String> = languages.iter().map(|&tag| tag.to_owned()).collect();
            let found = Label::best(&labels, &languages).map(|label| label.language.as_str());
            assert_eq!(found, Some(best), "{languages:?}");
            let mut sorted = labels.clone();
            Label::sort_for(&mut sorted, &languages);
            assert_eq!(sorted[0].language, best, "{languages:?}");
        }
        assert_eq!(Label::best(&[], &["en".to_owned()]), None);
        let blank = Label { language: "en".into(), text: " ".into() };
        assert_eq!(Label::best(&[blank, labels[1].clone()], &["en".to_owned()]), Some(&labels[1]));
        // A preferred language that no label has, before labels without a language.
        assert_eq!(Label::best(&labels[1..], &["es".to_owned()]), Some(&labels[1]));
    }
}
