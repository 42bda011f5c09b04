//! Documents that list only resources on another server than the copy's resources.

use crate::copy::common_base::authority_root;
use crate::copy::key;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use abreast_store::mirror::Mirror;

/// Whether all listed resources are on another server than all stored resources.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The server of the copy, with a slash at the end.
    server: Option<String>,
    /// A listed resource is on that server, or is stored in the copy.
    has_stayed: bool,
    /// The other server, if the copy contains a resource with the same path.
    to: Option<String>,
}

impl Left {
    /// The condition before documents are read.
    pub(crate) fn new(mirror: &Mirror) -> Result<Self, Error> {
        let server = mirror.meta(key::BASE)?.as_deref().and_then(authority_root);
        Ok(Self { server, ..Self::default() })
    }

    /// Examines a listed resource.
    pub(crate) fn note(&mut self, mirror: &Mirror, uri: &str, is_kept: bool) -> Result<(), Error> {
        let Some(server) = self.server.as_deref().filter(|_| !self.has_stayed) else {
            return Ok(());
        };
        let root = authority_root(uri).filter(|_| !is_kept && !uri.starts_with(server));
        let Some((path, root)) =
            root.and_then(|root| Some((uri.strip_prefix(root.as_str())?, root)))
        else {
            self.has_stayed = true;
            return Ok(());
        };
        if self.to.is_none() && mirror.row(&[server, path].concat())?.is_some() {
            self.to = Some(root);
        }
        Ok(())
    }

    /// Whether a resource is on the server of the copy with the other scheme: http instead of
    /// https, or https instead of http.
    pub(crate) fn is_of_other_scheme(&self, uri: &str) -> bool {
        let authority = |url: &str| {
            url.split_once("://").map(|(scheme, rest)| (scheme.to_owned(), rest.to_owned()))
        };
        let own = self.server.as_deref().and_then(authority);
        own.zip(authority(uri))
            .is_some_and(|(own, other)| own.0 != other.0 && other.1.starts_with(own.1.as_str()))
    }

    /// # Errors
    /// No listed resource is on the server of the copy, and the other server has the same
    /// resources.
    pub(crate) fn check(&self, options: &SyncOptions, document: &str) -> Result<(), Error> {
        let (Some(server), Some(to), false) = (&self.server, &self.to, self.has_stayed) else {
            return Ok(());
        };
        let message =
            format!("{document} names only resources of {to}, and what is kept is of {server}");
        let rest =
            authority_root(&options.url).and_then(|root| options.url.strip_prefix(root.as_str()));
        let is_downgrade = server.starts_with("https:") && to.starts_with("http:");
        let (url, option) = if is_downgrade {
            (options.url.clone(), " --allow-downgrade")
        } else {
            (format!("{to}{}", rest.unwrap_or_default()), "")
        };
        Err(Error::new("list.elsewhere", ExitCode::SourceInvalid, message).with_help(format!(
            "nothing was changed; if the Source has moved, run `abreast sync {url} {} --moved{option}`, with its own new \
             address if that is another one: the copy is kept",
            options.folder.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_store::mirror::Row;

    #[test]
    fn resources_have_left_if_none_stayed_and_some_are_kept() {
        let mirror = Mirror::scratch().unwrap();
        mirror.set_meta(key::BASE, Some("http://h.example/d/")).unwrap();
        let uri = "http://h.example/d/a".to_owned();
        mirror.put_row(&Row { uri, ..Row::default() }).unwrap();
        let has_left = |uris: &[(&str, bool)]| {
            let mut left = Left::new(&mirror).unwrap();
            for (uri, is_kept) in uris {
                left.note(&mirror, uri, *is_kept).unwrap();
            }
            let options = SyncOptions::new("http://h.example/caps.xml", "copy");
            left.check(&options, "list").err()
        };
        let moved = ("https://h.example/d/a", false);
        let error = has_left(&[moved]).unwrap();
        let help = error.help().unwrap();
        assert!(help.contains("abreast sync https://h.example/caps.xml copy --moved"), "{help}");
        assert!(has_left(&[moved, ("http://h.example/d/b", false)]).is_none(), "one stayed");
        assert!(has_left(&[moved, ("http://other.example/x", true)]).is_none(), "one is kept");
        assert!(has_left(&[("https://h.example/x", false)]).is_none(), "others");
        assert!(has_left(&[]).is_none());
        let left = Left::new(&mirror).unwrap();
        assert!(left.is_of_other_scheme("https://h.example/x"));
        assert!(!left.is_of_other_scheme("https://h.example.org/x"));
        assert!(!left.is_of_other_scheme("http://h.example/x"));
    }
}
