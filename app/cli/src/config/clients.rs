//! Known clients of a server, and the requests that each client may have in flight: `[[known]]` and
//! `requests_per_client`.

use crate::config::settings::{File, KnownFile};
use crate::program::small_file::{self, CERTIFICATES_MAX};
use abreast_net::PublicKey;
use abreast_server::KnownClient;
use std::collections::HashSet;

/// The largest value of `requests_per_client` and of `share`.
const MOST: u64 = 10_000;
/// The default of `requests_per_client`.
const EACH: u64 = 64;
/// The default of `share`.
const SHARE: u64 = 10;
/// Longest name of a known client.
const NAME_MAX: usize = 64;

/// The limit of unknown clients, and the known clients.
#[derive(Clone, Debug)]
pub(crate) struct ClientsConfig {
    pub(crate) each: usize,
    pub(crate) known: Vec<KnownClient>,
}

/// Checks the keys of a file.
pub(crate) fn check(file: &File, problems: &mut Vec<String>) -> ClientsConfig {
    let each = file.requests_per_client.unwrap_or(EACH);
    if each > MOST {
        problems.push(format!(
            "`requests_per_client`: {each} is out of range (help: 1 to {MOST}, or 0 for no limit)"
        ));
    }
    let (mut names, mut tokens, mut thumbprints) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut known = Vec::new();
    for (number, client) in file.known.iter().enumerate() {
        let at = format!("`known.{number}`");
        let name = &client.name;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_word) {
            problems.push(format!(
                "{at}: `{name}` is not a name (help: 1 to {NAME_MAX} letters, digits, `.`, `_` and `-`)"
            ));
        }
        if !names.insert(name.as_str()) {
            problems.push(format!("{at}: two known clients have the name `{name}` (help: give each its own, or join them)"));
        }
        let share = client.share.unwrap_or(SHARE);
        if !(1..=MOST).contains(&share) {
            problems.push(format!("{at}: `share` is {share} (help: 1 to {MOST}: how many times as many requests as another client)"));
        }
        if client.key.is_none() && client.token.is_none() {
            problems.push(format!("{at}: `{name}` has neither `key` nor `token` (help: `key` is a file with its public key, `token` the name of its token of the API)"));
        }
        if let Some(token) = &client.token
            && !tokens.insert(token.as_str())
        {
            problems.push(format!("{at}: another known client has the token `{token}` (help: create one for each: `abreast token create`)"));
        }
        let keys = keys_of(client, &at, problems);
        for key in &keys {
            if !thumbprints.insert(key.thumbprint().to_owned()) {
                problems.push(format!(
                    "{at}: another known client has the key {} (help: each needs its own)",
                    key.thumbprint()
                ));
            }
        }
        known.push(KnownClient {
            name: name.clone(),
            keys,
            token: client.token.clone(),
            share: usize::try_from(share).unwrap_or(usize::MAX),
        });
    }
    ClientsConfig { each: usize::try_from(each).unwrap_or(usize::MAX), known }
}

fn keys_of(client: &KnownFile, at: &str, problems: &mut Vec<String>) -> Vec<PublicKey> {
    let Some(path) = &client.key else { return Vec::new() };
    let keys = small_file::bytes(path, CERTIFICATES_MAX).and_then(|text| {
        let keys = PublicKey::parse_all(&text);
        keys.map_err(|error| anyhow::anyhow!("`{}`: {error}", path.display()))
    });
    keys.unwrap_or_else(|error| {
        problems.push(format!("{at}: `key`: {error:#}"));
        Vec::new()
    })
}
