//! Configuration of the HTTP API and of published links: `[api]`, `links` and `set_links`.

use crate::config::settings::{ApiFile, RuleFile, SetLinkFile};
use abreast_server::api::{Readers, Scope, is_local_host, read_tokens, tokens_path};
use abreast_source::links::{LinkRecord, Links, PublishedLinks, RuleOptions, read_links};
use anyhow::{Result, anyhow};
use clap::Args;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Default limit of an uploaded content.
const MAX_CONTENT: u64 = 1 << 30;

/// The same as a flag.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "API")]
pub(crate) struct ApiArgs {
    /// Accept changes through the API; a public address requires a token (`abreast token create`)
    #[arg(long, env = "ABREAST_API_WRITE")]
    pub(crate) api_write: bool,
}

impl ApiArgs {
    /// Values of the flags, which override those of the file.
    pub(crate) fn over(&self, file: Option<ApiFile>) -> Option<ApiFile> {
        if self.api_write {
            Some(ApiFile { write: Some(true), ..file.unwrap_or_default() })
        } else {
            file
        }
    }
}

/// The API, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiConfig {
    pub(crate) write: bool,
    pub(crate) readers: Readers,
    pub(crate) max_content: u64,
    /// Only programs on this machine connect.
    pub(crate) local: bool,
}

/// The links of one set, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LinksConfig {
    pub(crate) rules: Vec<RuleOptions>,
    pub(crate) set_links: Vec<LinkRecord>,
}

impl LinksConfig {
    /// The rules, for a set whose resources' URIs begin so.
    pub(crate) fn policy(&self, resources: &str) -> Result<Arc<Links>> {
        let links = Links::new(&self.rules, resources);
        links.map(Arc::new).map_err(|wrong| anyhow!("a rule for links is wrong: {}", wrong[0].1))
    }

    /// The links of the set as a whole.
    pub(crate) fn published(&self) -> Result<PublishedLinks> {
        read_links("", &self.set_links)
            .map(PublishedLinks)
            .map_err(|why| anyhow!("`set_links`: {why}"))
    }
}

/// True if only programs on this machine can connect. A local proxy makes a local server public;
/// then its base URL is not local.
pub(crate) fn is_local(listen: SocketAddr, base_url: Option<&str>) -> bool {
    let host = base_url
        .and_then(|base| url::Url::parse(base).ok())
        .and_then(|base| base.host_str().map(str::to_owned));
    listen.ip().is_loopback() && host.is_none_or(|host| is_local_host(&host))
}

/// Checks `[api]`; every problem is added to the others.
pub(crate) fn check(
    file: Option<ApiFile>,
    listen: SocketAddr,
    base_url: Option<&str>,
    data: Option<&Path>,
    problems: &mut Vec<String>,
) -> ApiConfig {
    let file = file.unwrap_or_default();
    let readers = match file.read.as_deref() {
        None | Some("anyone") => Readers::Anyone,
        Some("token") => Readers::Tokens,
        Some(other) => {
            problems.push(format!("`api.read`: `{other}` is not known (help: anyone or token)"));
            Readers::Tokens
        }
    };
    let local = is_local(listen, base_url);
    let write = file.write.unwrap_or(false);
    // The tokens of a database are read by the server.
    if let Some(data) = data {
        check_tokens(data, listen, write && !local, problems);
    }
    ApiConfig {
        write,
        readers,
        max_content: file.max_content.map_or(MAX_CONTENT, |size| size.0),
        local,
    }
}

/// Checks that the tokens in a folder can be read, and that one may write if that is needed.
fn check_tokens(data: &Path, listen: SocketAddr, needs_token: bool, problems: &mut Vec<String>) {
    let path = tokens_path(data);
    match read_tokens(&path) {
        Ok(tokens) if needs_token && !tokens.iter().any(|token| token.scope >= Scope::Write) => {
            let of = if listen.ip().is_loopback() { "`base_url`" } else { "`listen`" };
            problems.push(format!(
                "`api.write`: anyone who reaches this server could change what it publishes, since {of} is not of this \
                 machine alone and there is no token\n  help: abreast token create --name NAME --scope write --data {}",
                data.display()
            ));
        }
        Ok(_) => {}
        // The place of the store is wrong, and is reported as such; or no token is valid until they are repaired.
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotADirectory | std::io::ErrorKind::InvalidData
            ) => {}
        Err(error) => {
            let help = if crate::program::exit::is_denied(&error) {
                crate::program::there::help(&error)
            } else {
                "abreast token list --data DIR"
            };
            let path = path.display();
            problems
                .push(format!("`api`: cannot read the tokens `{path}`: {error} (help: {help})"));
        }
    }
}

/// Checks the links of a set; every problem is added to the others.
pub(crate) fn check_links(
    slug: &str,
    rules: Vec<RuleFile>,
    categories: Vec<RuleOptions>,
    set_links: Vec<SetLinkFile>,
    problems: &mut Vec<String>,
) -> LinksConfig {
    let mut rules: Vec<RuleOptions> = rules
        .into_iter()
        .map(|rule| RuleOptions {
            pattern: rule.pattern,
            link: LinkRecord {
                rel: rule.rel,
                href: rule.href,
                media_type: rule.media_type,
                encoding: rule.encoding,
                pri: rule.pri,
                title: rule.title,
                ..LinkRecord::default()
            },
            if_exists: rule.if_exists.unwrap_or(false),
        })
        .collect();
    if let Err(wrong) = Links::new(&rules, "https://example.org/") {
        problems.extend(
            wrong
                .into_iter()
                .map(|(number, why)| format!("`set.links` {number} of set `{slug}`: {why}")),
        );
    }
    rules.extend(categories);
    let set_links: Vec<LinkRecord> = set_links
        .into_iter()
        .map(|link| LinkRecord {
            rel: link.rel,
            href: link.href,
            media_type: link.media_type,
            ..LinkRecord::default()
        })
        .collect();
    if let Err(why) = read_links("", &set_links) {
        problems.push(format!("`set.set_links` of set `{slug}`: {why}"));
    }
    LinksConfig { rules, set_links }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_server::api::{new_token, write_tokens};

    fn problems(write: bool, listen: &str, base: Option<&str>, data: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        let file = ApiFile { write: Some(write), ..ApiFile::default() };
        check(Some(file), listen.parse().unwrap(), base, Some(data), &mut problems);
        problems
    }

    #[test]
    fn writing_on_a_public_address_needs_a_token() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        assert!(problems(true, "127.0.0.1:80", None, data).is_empty());
        assert!(problems(false, "0.0.0.0:80", Some("https://example.org/"), data).is_empty());
        for (listen, base) in [
            ("0.0.0.0:80", "http://127.0.0.1/"),
            ("192.0.2.1:80", "http://192.0.2.1/"),
            ("127.0.0.1:80", "https://example.org/"),
        ] {
            let told = problems(true, listen, Some(base), data).join("\n");
            assert!(
                told.contains("`api.write`") && told.contains("help: abreast token create"),
                "{listen}: {told}"
            );
        }
        for (scope, fits) in [(Scope::Read, false), (Scope::Write, true)] {
            let (_, token) = new_token("n", scope, Vec::new(), "").unwrap();
            write_tokens(&tokens_path(data), &[token]).unwrap();
            assert_eq!(
                problems(true, "0.0.0.0:80", Some("https://example.org/"), data).is_empty(),
                fits
            );
        }
    }

    #[test]
    fn bad_rules_are_reported_with_their_number() {
        let rule = |rel: &str| RuleFile {
            pattern: "*".into(),
            rel: rel.into(),
            href: "{stem}.xml".into(),
            media_type: None,
            encoding: None,
            pri: None,
            title: None,
            if_exists: None,
        };
        let mut problems = Vec::new();
        let rules = vec![rule("describedby"), rule("describedBy")];
        check_links("s", rules, Vec::new(), Vec::new(), &mut problems);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("`set.links` 2 of set `s`: `rel`"), "{problems:?}");
    }
}
