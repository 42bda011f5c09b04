//! `[[set.webhook]]`: addresses that get the changes of a set as JSON, and their secrets.

use crate::config::access::Password;
use crate::config::settings::WebhookFile;
use abreast_hub::ReadKeys;
use abreast_websub::WebhookKey;
use abreast_webtypes::without_login;
use anyhow::{Result, bail};
use std::sync::Arc;

/// Most secrets of a webhook: the current secret and former secrets.
const SECRETS_MAX: usize = 4;
/// The secret of a webhook without `secret_file` and `secret_command`.
const VARIABLE: &str = "ABREAST_WEBHOOK_SECRET";

/// A webhook, checked.
#[derive(Clone, Debug)]
pub(crate) struct WebhookConfig {
    pub(crate) url: String,
    /// Where its secrets are, one in each line; each request has a signature for each.
    secrets: Password,
}

/// The webhooks of all sets.
pub(super) struct WebhookCheck {
    /// The address whose secret is in the environment.
    of_environment: Option<String>,
    /// Whether webhooks may have private addresses.
    allows_private: bool,
}

impl WebhookCheck {
    pub(super) fn new(allows_private: bool) -> Self {
        Self { of_environment: None, allows_private }
    }

    /// Checks the webhooks of a set. Every problem is added to the others; files that cannot be read are
    /// missing, since the other sets and webhooks do not need them.
    pub(super) fn check(
        &mut self,
        files: Vec<WebhookFile>,
        problems: &mut Vec<String>,
        missing: &mut Vec<String>,
    ) -> Vec<WebhookConfig> {
        let mut webhooks: Vec<WebhookConfig> = Vec::new();
        for (number, file) in files.into_iter().enumerate() {
            // The number leads to the line of the table.
            let number = number + 1;
            let mut problem = |key: &str, what: &str| {
                problems.push(format!("`set.webhook` {number}: `{key}`: {what}"));
            };
            let shown = without_login(&file.url).into_owned();
            if let Err(error) = abreast_websub::check_callback(&file.url) {
                let help = "help: for example https://me.example/changes";
                problem("url", &format!("`{shown}` cannot be a webhook: {error} ({help})"));
            } else if !self.allows_private && is_private(&file.url) {
                let help = "help: a public address, or `private_callbacks = true` in [hub]";
                problem("url", &format!("`{shown}` is a private address ({help})"));
            }
            if webhooks.iter().any(|other| other.url == file.url) {
                let help = "help: give all its secrets in one file";
                problem("url", &format!("`{shown}` is there twice ({help})"));
            }
            let environment = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
            let secrets = match (file.secret_file, file.secret_command, environment) {
                (Some(file), None, _) => Password::File(file),
                (None, Some(command), _) => Password::Command(command),
                (None, None, Some(text)) => {
                    // A receiver with the secret could send requests to the other address.
                    let first = self.of_environment.get_or_insert_with(|| file.url.clone());
                    if *first != file.url {
                        let help = "help: give each webhook a `secret_file`";
                        let first = without_login(first);
                        problem(
                            "secret_file",
                            &format!("`{VARIABLE}` is for {first} and {shown} ({help})"),
                        );
                    }
                    Password::Given(text)
                }
                (file, command, _) => {
                    let what = match (&file, &command) {
                        (Some(_), Some(_)) => "two secrets are given",
                        _ => "no secret is given",
                    };
                    let help = format!(
                        "help: give either `secret_file` or `secret_command`, or set {VARIABLE}"
                    );
                    problem("secret_file", &format!("{what} ({help})"));
                    continue;
                }
            };
            match secrets.check_text() {
                Ok(Some(text)) => {
                    if let Err(error) = keys_of(&text) {
                        let help = "help: one secret in each line: `whsec_` and base64, or text";
                        problem("secret_file", &format!("{error:#} ({help})"));
                    }
                }
                Ok(None) => {}
                Err(error) => missing.push(format!(
                    "`set.webhook` {number}: `secret_file`: {error:#} (help: name a file that this user may read)"
                )),
            }
            webhooks.push(WebhookConfig { url: file.url, secrets });
        }
        webhooks
    }
}

/// Whether the address itself is private. Hosts are resolved when a request is sent.
fn is_private(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => !abreast_net::is_global(address.into()),
        Some(url::Host::Ipv6(address)) => !abreast_net::is_global(address.into()),
        None => false,
    }
}

/// The keys of secrets, one in each line.
fn keys_of(text: &str) -> Result<Vec<WebhookKey>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = lines.map(WebhookKey::new).collect::<Result<Vec<_>, _>>()?;
    match keys.len() {
        0 => bail!("there is no secret"),
        number if number > SECRETS_MAX => bail!("there are more than {SECRETS_MAX} secrets"),
        _ => Ok(keys),
    }
}

impl WebhookConfig {
    /// Reads the keys, as the secrets are then.
    pub(super) fn keys(&self) -> ReadKeys {
        let secrets = self.secrets.clone();
        Arc::new(move || {
            let keys = secrets.read_text().and_then(|text| keys_of(&text));
            keys.map_err(|error| format!("{error:#}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, allows_private: bool) -> (Vec<WebhookConfig>, Vec<String>, Vec<String>) {
        #[derive(serde::Deserialize)]
        struct File {
            webhook: Vec<WebhookFile>,
        }
        let file: File = toml::from_str(text).expect("TOML");
        let (mut problems, mut missing) = (Vec::new(), Vec::new());
        let mut check = WebhookCheck::new(allows_private);
        let webhooks = check.check(file.webhook, &mut problems, &mut missing);
        (webhooks, problems, missing)
    }

    #[test]
    fn a_webhook_needs_a_public_address_and_secrets() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("secret_file = \"{}\"\n", path.display())
        };
        let one = file("one", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
        let url = "[[webhook]]\nurl = \"https://me.example/in\"\n";
        let private = "[[webhook]]\nurl = \"http://10.0.0.1/in\"\n";
        let (webhooks, problems, missing) = check(&format!("{url}{one}"), false);
        assert_eq!((webhooks.len(), problems, missing), (1, vec![], vec![]));
        assert!(!format!("{webhooks:?}").contains("MfKQ9"));
        assert_eq!(check(&format!("{private}{one}"), true).1, [""; 0]);
        let two = file("two", "whsec_bmV3\n\n  former text \n");
        let (webhooks, _, _) = check(&format!("{url}{two}"), false);
        let expected = ["new", "former text"].map(|text| WebhookKey::new(text).unwrap());
        assert_eq!(webhooks[0].keys()().unwrap(), expected);
        for (text, part) in [
            (url.to_owned(), "no secret is given"),
            (format!("{url}{one}secret_command = \"c\"\n"), "two secrets are given"),
            (format!("{url}{}", file("bad", "whsec_%\n")), "not base64"),
            (format!("{url}{}", file("blank", " \n")), "there is no secret"),
            (format!("{url}{}", file("many", "1\n2\n3\n4\n5\n")), "more than 4 secrets"),
            (
                format!("{url}{one}{url}{one}"),
                "`set.webhook` 2: `url`: `https://me.example/in` is there twice",
            ),
            (format!("{private}{one}"), "private address"),
            (format!("[[webhook]]\nurl = \"http://localhost/\"\n{one}"), "private address"),
            (format!("[[webhook]]\nurl = \"http://[::1]/\"\n{one}"), "private address"),
            (
                format!("[[webhook]]\nurl = \"https://me:hush@h.example/\"\n{one}"),
                "cannot be a webhook",
            ),
            (format!("[[webhook]]\nurl = \"ftp://h.example/\"\n{one}"), "cannot be a webhook"),
        ] {
            let (_, problems, _) = check(&text, false);
            assert!(problems.len() == 1 && problems[0].contains(part), "{text}: {problems:?}");
            assert!(!problems[0].contains("hush"), "{problems:?}");
        }
        let (webhooks, problems, missing) =
            check(&format!("{url}secret_file = \"/nowhere\"\n"), false);
        assert_eq!((webhooks.len(), problems.len()), (1, 0));
        assert!(missing[0].contains("cannot read `/nowhere`"), "{missing:?}");
        let command = format!("{url}secret_command = \"printf 'a\\nb\\n'\"\n");
        assert_eq!(check(&command, false).0[0].keys()().unwrap().len(), 2);
    }
}
