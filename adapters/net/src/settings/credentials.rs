//! Credentials by server, from `.netrc` files and options.

pub(crate) mod fuzz_property;

use url::Url;

use crate::address::error::Error;
use crate::address::origin::Origin;
use crate::address::secret::Authorization;

/// Credentials by scheme, host and port; `Debug` hides them.
///
/// The client sends them to an origin only if the request's own URL has this origin, never after a
/// redirect from another origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials(Vec<(String, Authorization)>);

impl Credentials {
    /// Adds credentials for the origin of a URL; the first ones added for an origin are used.
    ///
    /// # Errors
    /// `uri.syntax` when the URL does not have a valid host.
    pub fn add(&mut self, url: &str, authorization: Authorization) -> Result<(), Error> {
        let target = crate::address::origin::Target::split(url)?;
        let origin = Origin::parse(target.origin).map_err(|error| error.with_url(url))?;
        self.0.push((origin.key, authorization));
        Ok(())
    }

    /// Adds the entries of a `.netrc` file. An entry for a host applies to https at its default
    /// port, and to the origin of `url` if it has the same host; the `default` entry applies to the
    /// origin of `url` alone.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Credentials;
    ///
    /// let netrc = "machine repo.example login mirror password s3cret\n";
    /// let mut credentials = Credentials::default();
    /// credentials.add_netrc(netrc, "https://repo.example/capabilitylist.xml")?;
    /// assert!(!credentials.is_empty());
    /// # Ok::<(), abreast_net::Error>(())
    /// ```
    ///
    /// # Errors
    /// `uri.syntax` when the URL does not have a valid host.
    pub fn add_netrc(&mut self, text: &str, url: &str) -> Result<(), Error> {
        let own_host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        for entry in netrc(text) {
            let authorization = Authorization::basic(&entry.login, &entry.password);
            match entry.machine {
                None => self.add(url, authorization)?,
                Some(machine) => {
                    if own_host.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(&machine)) {
                        self.add(url, authorization.clone())?;
                    }
                    // Ignore an entry whose host is invalid.
                    let _ = self.add(&format!("https://{machine}/"), authorization);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn find(&self, origin_key: &str) -> Option<&Authorization> {
        self.0.iter().find(|(key, _)| key == origin_key).map(|(_, authorization)| authorization)
    }

    /// Whether the list of credentials is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

struct Entry {
    /// `None` for `default`.
    machine: Option<String>,
    login: String,
    password: String,
}

/// The entries with a password, in order. Macros are skipped.
fn netrc(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut in_macro = false;
    // A password may contain `#`, also as its first character, or be the word `login`.
    let mut is_value = false;
    let mut words = Vec::new();
    for line in text.lines() {
        if in_macro {
            in_macro = !line.trim().is_empty();
            continue;
        }
        for word in line.split_ascii_whitespace() {
            if !is_value && word.starts_with('#') {
                break;
            }
            if !is_value && word == "macdef" {
                in_macro = true;
                break;
            }
            is_value = !is_value && matches!(word, "machine" | "login" | "password" | "account");
            words.push(word);
        }
    }
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word {
            "default" => {
                entries.push(Entry {
                    machine: None,
                    login: String::new(),
                    password: String::new(),
                });
            }
            "machine" => {
                let machine = words.next().map(str::to_owned);
                if machine.is_some() {
                    entries.push(Entry { machine, login: String::new(), password: String::new() });
                }
            }
            "login" | "password" | "account" => {
                let Some(value) = words.next() else { break };
                if let Some(entry) = entries.last_mut() {
                    match word {
                        "login" => value.clone_into(&mut entry.login),
                        "password" => value.clone_into(&mut entry.password),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    entries.retain(|entry| !entry.login.is_empty() || !entry.password.is_empty());
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(credentials: &Credentials, origin: &str) -> Option<String> {
        credentials.find(origin).map(|found| found.value().to_str().unwrap().to_owned())
    }

    #[test]
    fn a_netrc_file_is_read_with_comments_macros_and_default() {
        let text = "# comment\nmachine museum.example login me password #1s\n\nmacdef init\nmachine trap login x password y\n\n\
                    machine archive.example\n  login you\n  password two # comment\nmachine none\ndefault login any password three";
        let mut credentials = Credentials::default();
        credentials.add_netrc(text, "http://museum.example:8080/list.xml").unwrap();
        let basic = |user: &str, password: &str| {
            Authorization::basic(user, password).value().to_str().unwrap().to_owned()
        };
        assert_eq!(sent(&credentials, "http://museum.example:8080"), Some(basic("me", "#1s")));
        assert_eq!(sent(&credentials, "https://museum.example:443"), Some(basic("me", "#1s")));
        assert_eq!(sent(&credentials, "http://museum.example:80"), None);
        assert_eq!(sent(&credentials, "https://archive.example:443"), Some(basic("you", "two")));
        assert_eq!(sent(&credentials, "http://archive.example:80"), None);
        assert_eq!(sent(&credentials, "https://trap:443"), None);
        let mut credentials = Credentials::default();
        credentials.add_netrc(text, "https://other.example/").unwrap();
        assert_eq!(sent(&credentials, "https://other.example:443"), Some(basic("any", "three")));
        assert!(!format!("{credentials:?}").contains("three"));
    }
}
