//! Permanent redirects of documents, from which a copy notices that its set was renamed at the Source.

/// What a copy has of the Source, and the redirect that shows another address of all that.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// URIs of resources and documents of the copy; empty if redirects are followed without a check.
    pub(crate) known: Vec<String>,
    /// The redirect that ended the run.
    pub(crate) found: Option<Move>,
}

/// The beginning of the addresses of a set, before and after a rename; both end in `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Moves {
    /// Checks a permanent redirect.
    ///
    /// # Errors
    /// It is from the addresses that the copy knows to others of the same server: lists there would have other URIs.
    pub(crate) fn check(&mut self, url: &str, to: &str) -> Result<(), abreast_net::Error> {
        let found = Move::of(url, to).filter(|found| found.is_of(&self.known));
        if found.is_none() {
            return Ok(());
        }
        self.found = found;
        Err(abreast_net::Error::has_moved(url, to))
    }
}

impl Move {
    /// The change from one URL to another one of the same server, which ends in the same segments.
    fn of(url: &str, to: &str) -> Option<Self> {
        if !crate::request::admit::same_origin(url, to) {
            return None;
        }
        let same = url.bytes().rev().zip(to.bytes().rev()).take_while(|(one, two)| one == two);
        let end = url.get(url.len() - same.count()..)?;
        let rest = &end[end.find('/')? + 1..];
        let start = |url: &str| url.strip_suffix(rest).map(str::to_owned);
        Some(Self { from: start(url)?, to: start(to)? })
    }

    /// Whether any of these URIs changes. A whole server is not a set.
    fn is_of(&self, known: &[String]) -> bool {
        let has_path = self.from.splitn(4, '/').nth(3).is_some_and(|path| !path.is_empty());
        has_path && known.iter().any(|known| known.starts_with(&self.from))
    }

    /// The address after the change, if the change is of it.
    pub(crate) fn apply(&self, url: &str) -> Option<String> {
        url.strip_prefix(&self.from).map(|rest| [&self.to, rest].concat())
    }

    /// The name of the set after the change.
    pub(crate) fn name(&self) -> &str {
        self.to.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_is_found_in_a_redirect() {
        for (url, to, expected) in [
            ("http://h/papers/cl.xml", "http://h/articles/cl.xml", Some(("papers/", "articles/"))),
            ("http://h/papers/emm/1.0", "http://h/a/emm/1.0", Some(("papers/", "a/"))),
            ("http://h/x/p?since=2", "http://h/y/p?since=2", Some(("x/", "y/"))),
            ("http://h/x/p", "http://h/x/q", None),
            ("http://h/x/p", "https://h/y/p", None),
            ("http://h/x/p", "http://other/y/p", None),
            ("http://h/p", "http://h/p/", None),
        ] {
            let found = Move::of(url, to);
            let expected = expected.map(|(from, to)| Move {
                from: format!("http://h/{from}"),
                to: format!("http://h/{to}"),
            });
            assert_eq!(found, expected, "{url} {to}");
        }
        let found = Move::of("http://h/papers/cl.xml", "http://h/articles/cl.xml").unwrap();
        assert_eq!(found.apply("http://h/papers/r/x").as_deref(), Some("http://h/articles/r/x"));
        assert_eq!((found.apply("http://h/"), found.name()), (None, "articles"));
        assert!(found.is_of(&["http://h/papers/r/".to_owned()]));
        assert!(!found.is_of(&["http://h/papers-2/r/".to_owned()]));
        let whole = Move::of("http://h/cl.xml", "http://h/new/cl.xml").unwrap();
        assert!(!whole.is_of(&["http://h/r/x".to_owned()]), "a whole server");
    }
}
