//! The common start of the URIs of resources: the base of a copy for which neither the user nor the
//! Source gives a base.

use crate::copy::path_map::common_directory;

/// Number of servers that are counted at most; resources on other servers do not influence the
/// base.
const SERVERS_MAX: usize = 64;

/// The common start of URIs, counted by server: a single resource on another server must not change
/// the paths of all resources, so the server with the most resources decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonBase {
    /// Each server's deepest directory that contains all its resources, and their number.
    servers: Vec<(String, u64)>,
}

impl CommonBase {
    pub(crate) fn note(&mut self, uri: &str) {
        for (base, count) in &mut self.servers {
            if !uri.starts_with(base.as_str()) {
                let Some(shared) = common_directory(base, uri) else { continue };
                let length = shared.len();
                base.truncate(length);
            }
            *count += 1;
            return;
        }
        if let Some(base) = common_directory(uri, uri).filter(|_| self.servers.len() < SERVERS_MAX)
        {
            self.servers.push((base.to_owned(), 1));
        }
    }

    /// The directory of the server with the most resources. Among servers with equally many, the
    /// server of `source` has precedence, else the first one.
    pub(crate) fn of_most(&self, source: &str) -> Option<String> {
        let is_own = |base: &str| common_directory(base, source).is_some();
        let most = self.servers.iter().rev().max_by_key(|(base, count)| (*count, is_own(base)));
        most.map(|(base, _)| base.clone())
    }
}

/// Scheme, host and port of a URL, with a slash.
pub(crate) fn authority_root(url: &str) -> Option<String> {
    let parsed = url::Url::parse(url).ok()?;
    let at = url.find("://")? + 3;
    parsed.host_str()?;
    let end = url[at..].find(['/', '?', '#']).map_or(url.len(), |end| at + end);
    Some(format!("{}/", &url[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base_of(uris: &[&str]) -> Option<String> {
        let mut base = CommonBase::default();
        for uri in uris {
            base.note(uri);
        }
        base.of_most("http://h/feed")
    }

    #[test]
    fn a_base_is_what_all_have_in_common() {
        for (uris, base) in [
            (&[][..], None),
            (&["urn:a:b"], None),
            (&["http://h/a/b/c"], Some("http://h/a/b/")),
            (&["http://h/a/b/c", "http://h/a/b/d", "http://h/a/x"], Some("http://h/a/")),
            (&["http://h/a/b", "http://h/"], Some("http://h/")),
        ] {
            assert_eq!(base_of(uris).as_deref(), base);
        }
    }

    #[test]
    fn most_resources_decide_the_base() {
        for stray in
            ["file:///etc/passwd", "ftp://a.b/c", "http://a/x/y", "https://h/e/1", "urn:a:b"]
        {
            let uris = [stray, "http://h/e/1", "http://h/e/2"];
            assert_eq!(base_of(&uris).as_deref(), Some("http://h/e/"), "{stray}");
        }
        // The Source itself is a resource, in addition to the resources that it describes.
        let uris = ["http://h/set", "http://id/e/1", "http://id/e/2"];
        assert_eq!(base_of(&uris).as_deref(), Some("http://id/e/"));
        assert_eq!(base_of(&["http://a/x/y", "http://h/e/1"]).as_deref(), Some("http://h/e/"));
        assert_eq!(base_of(&["http://b/x/y", "http://a/e/1"]).as_deref(), Some("http://b/x/"));
    }
}
