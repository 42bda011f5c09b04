//! Admission of URIs: a document may list URIs on its own host, and on hosts that the user allows
//! [rs-core §7].

use abreast_webtypes::{absolute_fault, has_scheme};
use url::Url;

/// The reason why a URI is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The URI is on another host.
    Authority,
    /// No URI that can be requested, with why.
    Unusable(&'static str),
    /// Neither http nor https.
    Scheme,
    /// An http URI in a document from an https address.
    Downgrade,
}

impl Refusal {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Authority | Self::Scheme => "uri.authority",
            Self::Unusable(_) => "uri.syntax",
            Self::Downgrade => "http.downgrade",
        }
    }

    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Authority => {
                "not on the host of the list that names it\n  help: allow http and https hosts you trust with `--allow-host HOST`"
            }
            Self::Unusable(fault) => fault,
            Self::Scheme => "neither an http nor an https address, and requested in no case",
            Self::Downgrade => {
                "an https list names an http resource\n  help: accept that with `--allow-downgrade`"
            }
        }
    }
}

/// The rule for the URIs in a document.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    https: bool,
    authority: Option<(String, Option<u16>)>,
    allow_hosts: Vec<String>,
    allow_downgrade: bool,
    /// `scheme://authority/` admitted last; lists name one host most of the time.
    admitted: String,
}

impl Admission {
    pub(crate) fn new(document: &str, allow_hosts: &[String], allow_downgrade: bool) -> Self {
        let url = Url::parse(document).ok();
        Self {
            https: url.as_ref().is_some_and(|url| url.scheme() == "https"),
            authority: url.as_ref().and_then(authority),
            allow_hosts: allow_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            allow_downgrade,
            admitted: String::new(),
        }
    }

    pub(crate) fn check(&mut self, uri: &str) -> Result<(), Refusal> {
        if !self.admitted.is_empty() && uri.starts_with(&self.admitted) {
            return Ok(());
        }
        let is_web =
            |scheme: &str| ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
        if has_scheme(uri) && uri.split_once(':').is_some_and(|(scheme, _)| !is_web(scheme)) {
            return Err(Refusal::Scheme);
        }
        let after = uri.find("://").map_or(uri.len(), |at| at + 3);
        let end = uri[after..].find(['/', '?', '#']).map_or(uri.len(), |at| after + at);
        if let Some(fault) = absolute_fault(&uri[..end]) {
            return Err(Refusal::Unusable(fault));
        }
        // Readers disagree about these; none may decide which host is meant.
        if uri[..end].contains(['\\', '@', ' ', '\t', '\r', '\n']) {
            return Err(Refusal::Authority);
        }
        let url = Url::parse(&uri[..end]).map_err(|_| Refusal::Authority)?;
        let https = url.scheme() == "https";
        let found = authority(&url).ok_or(Refusal::Authority)?;
        let allowed = self.authority.as_ref() == Some(&found) || self.is_allowed(&found);
        if !allowed {
            return Err(Refusal::Authority);
        }
        if self.https && !https && !self.allow_downgrade {
            return Err(Refusal::Downgrade);
        }
        if uri.as_bytes().get(end) == Some(&b'/') {
            uri[..=end].clone_into(&mut self.admitted);
        }
        Ok(())
    }

    /// Whether the URI is https, or http is acceptable for this document.
    pub(crate) fn is_secure_enough(&self, uri: &str) -> bool {
        !self.https
            || self.allow_downgrade
            || uri.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }

    fn is_allowed(&self, (host, port): &(String, Option<u16>)) -> bool {
        let with_port = port.map(|port| format!("{host}:{port}"));
        self.allow_hosts
            .iter()
            .any(|allowed| allowed == host || Some(allowed) == with_port.as_ref())
    }
}

/// The host, and the port unless it is the default port of the scheme.
fn authority(url: &Url) -> Option<(String, Option<u16>)> {
    Some((url.host_str()?.to_ascii_lowercase(), url.port()))
}

/// Whether two URLs have scheme, host and port in common.
pub(crate) fn same_origin(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one.origin() == other.origin(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_documents_own_host_is_admitted() {
        let mut admission = Admission::new("http://source.example/list.xml", &[], false);
        for uri in [
            "http://source.example/a",
            "http://SOURCE.example:80/a",
            "https://source.example/a",
            "http://source.example",
        ] {
            assert_eq!(admission.check(uri), Ok(()), "{uri}");
        }
        for uri in [
            "http://evil.example/x",
            "http://source.example:8080/a",
            "http://source.example@evil.example/",
            "http://source.example.evil.example/",
            "http://evil.example\\@source.example/",
        ] {
            assert_eq!(admission.check(uri), Err(Refusal::Authority), "{uri}");
        }
        for (uri, fault) in [
            ("//source.example/a", "is not absolute"),
            ("/a", "is not absolute"),
            ("", "is not absolute"),
            ("http:/x", "has no `//` behind its scheme"),
            ("http:///x", "has no host"),
            ("http://:80/x", "has no host"),
            ("http://[zz]/x", "has a host that is not a name or an address"),
            ("http://source.example:99999/x", "has a port that is not a number up to 65535"),
            ("HTTP://source.example:x/x", "has a port that is not a number up to 65535"),
        ] {
            let refusal = Refusal::Unusable(fault);
            assert_eq!(admission.check(uri), Err(refusal), "{uri}");
            assert_eq!((refusal.code(), refusal.message()), ("uri.syntax", fault));
        }
        for uri in ["file:///etc/passwd", "data:text/plain,x", "ftp://source.example/x", "urn:x:y"]
        {
            assert_eq!(admission.check(uri), Err(Refusal::Scheme), "{uri}");
        }
    }

    #[test]
    fn other_hosts_and_http_below_https_need_leave() {
        let hosts = ["Other.example".to_owned(), "third.example:8080".to_owned()];
        let mut admission = Admission::new("https://source.example/list.xml", &hosts, false);
        assert_eq!(admission.check("https://other.example:1/x"), Ok(()));
        assert_eq!(admission.check("https://third.example:8080/x"), Ok(()));
        assert_eq!(admission.check("https://third.example/x"), Err(Refusal::Authority));
        assert_eq!(admission.check("http://source.example/x"), Err(Refusal::Downgrade));
        let mut admission = Admission::new("https://source.example/list.xml", &hosts, true);
        assert_eq!(admission.check("http://source.example/x"), Ok(()));
        assert_eq!(admission.check("file:///x"), Err(Refusal::Scheme));
    }
}
