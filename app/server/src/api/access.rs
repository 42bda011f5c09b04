//! Authorization of requests to the API.

use super::context::Context;
use super::operations::Call;
use super::problem::{Problem, ProblemKind};
use super::visible::VisibleSets;
use crate::site::api::Readers;
use crate::site::served::Site;
use crate::site::tokens::Scope;
use abreast_hub::Client;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Request};

/// Query parameters that may contain a token by mistake.
const TOKEN_NAMES: &[&str] =
    &["token", "access_token", "api_key", "apikey", "key", "authorization", "bearer"];
/// Characters of a token after its prefix.
const TOKEN_LENGTH: usize = 43;

/// Checks the authorization of a request before its body is read. Returns the sets that it may
/// read.
pub(super) fn check<B>(
    context: &Context<'_>,
    call: &Call<'_>,
    request: &Request<B>,
    client: Client,
) -> Result<VisibleSets, Problem> {
    refuse_tokens_in_url(request.uri().query().unwrap_or_default())?;
    let Some(scope) = context.operation.scope else { return Ok(VisibleSets::All) };
    let options = &context.api.options;
    if scope == Scope::Write && !options.write {
        return Err(Problem::new(ProblemKind::WritingOff, "this server's API is read-only")
            .help("set `write = true` under `[api]`, or start it with --api-write"));
    }
    let set = set_of(call);
    let headers = request.headers();
    let Some(secret) = secret(headers)? else {
        return anonymous(context, scope, reveals_addresses(call), headers, client)
            .map(|()| VisibleSets::All);
    };
    let Some(token) = context.api.tokens.find(secret) else {
        if context.api.tokens.is_damaged() {
            let damaged = "no token can be checked, since the server's file of tokens is damaged";
            return Err(Problem::new(ProblemKind::Store, damaged)
                .help("its operator stops the server and runs `abreast repair`"));
        }
        return Err(Problem::new(ProblemKind::TokenRefused, "there is no such token").help(
            "`abreast token list` shows which there are; `abreast token create` makes a new one",
        ));
    };
    // The list of sets is available to every token with permission to read a set.
    let lists = scope == Scope::Read && set.is_none() && !reveals_addresses(call);
    if !(lists || token.allows(scope, set)) {
        let wanted = match (scope, set) {
            (Scope::Admin, _) => "`admin` for all sets".to_owned(),
            (scope, Some(set)) => format!("`{}` for set `{}`", word(scope), set.escape_debug()),
            (scope, None) => format!("`{}` for all sets", word(scope)),
        };
        return Err(Problem::new(
            ProblemKind::Scope,
            format!("the token `{}` does not have the scope {wanted}", token.name),
        )
        .help("`abreast token create` makes one that has"));
    }
    // A token never restricts access to public data.
    let public = options.readers == Readers::Anyone || token.sets.is_empty();
    Ok(if public { VisibleSets::All } else { VisibleSets::Only(token.sets) })
}

/// The name of the token in these headers; `None` without a known token.
pub(super) fn name_of(context: &Context<'_>, headers: &HeaderMap) -> Option<String> {
    let secret = secret(headers).ok()??;
    Some(context.api.tokens.find(secret)?.name)
}

/// Whether a client that sends these headers may publish at the hub. `None` without a token: the
/// hub then verifies the client in other ways.
pub(crate) fn may_publish(site: &Site, headers: &HeaderMap) -> Option<bool> {
    if !headers.contains_key(AUTHORIZATION) {
        return None;
    }
    let secret = secret(headers).ok().flatten();
    let token = site.api.as_ref().zip(secret).and_then(|(api, secret)| api.tokens.find(secret));
    Some(token.is_some_and(|token| token.allows(Scope::Write, None)))
}

const fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read",
        Scope::Write => "write",
        Scope::Admin => "admin",
    }
}

fn set_of<'p>(call: &Call<'p>) -> Option<&'p str> {
    match *call {
        Call::OpenApi
        | Call::Tokens
        | Call::Hub
        | Call::HubTopics
        | Call::HubTargets(_)
        | Call::HubTarget(_)
        | Call::HubReplay(_)
        | Call::HubEnd(_)
        | Call::Sets => None,
        Call::Set(set)
        | Call::ConfirmDeletions(set)
        | Call::Dump(set)
        | Call::Scan(set)
        | Call::ReadChanges(set)
        | Call::RecordChanges(set)
        | Call::ImportEntities(set)
        | Call::ReadRecord(set)
        | Call::PutRecord(set)
        | Call::DeleteRecord(set)
        | Call::Push(set)
        | Call::ReadContent(set, _)
        | Call::PutContent(set, _)
        | Call::DeleteContent(set, _) => Some(set),
    }
}

/// Whether the answer contains callbacks, which are secret: a client that knows one could send
/// other content to it.
const fn reveals_addresses(call: &Call<'_>) -> bool {
    matches!(call, Call::HubTargets(_) | Call::HubTarget(_))
}

/// The token of the Authorization header.
fn secret(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        if headers.contains_key(AUTHORIZATION) {
            return Err(Problem::new(
                ProblemKind::TokenRefused,
                "there are two Authorization headers",
            ));
        }
        return Ok(None);
    };
    let value = value.to_str().unwrap_or_default();
    let (scheme, secret) = value.split_once(' ').unwrap_or((value, ""));
    let secret = secret.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || secret.is_empty() || secret.len() > 256 {
        return Err(Problem::new(
            ProblemKind::TokenRefused,
            "the Authorization header is not `Bearer TOKEN`",
        ));
    }
    Ok(Some(secret))
}

/// A request without a token: reading is allowed if all may read; writing is allowed for programs
/// on this machine until the first token is created.
fn anonymous(
    context: &Context<'_>,
    scope: Scope,
    private: bool,
    headers: &HeaderMap,
    client: Client,
) -> Result<(), Problem> {
    let options = &context.api.options;
    let missing = || {
        Problem::new(
            ProblemKind::TokenMissing,
            "this needs a token in the header `Authorization: Bearer TOKEN`",
        )
        .help("`abreast token create` makes one")
    };
    if scope == Scope::Read && options.readers == Readers::Anyone && !private {
        return Ok(());
    }
    if scope == Scope::Admin || !options.local || context.api.tokens.ever() {
        return Err(missing());
    }
    // A page in a local browser is not a local program, also if its host resolves to this address.
    let from_page = headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site");
    // A client of a proxy on this machine is not a local program either.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if from_page || client.is_forwarded() || !is_local_host(host) {
        return Err(Problem::new(
            ProblemKind::Browser,
            "without a token only programs on this machine are served",
        )
        .help("`abreast token create` makes a token"));
    }
    Ok(())
}

/// Whether this is a name of this machine, with or without a port.
pub fn is_local_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Refuses tokens in URLs, which logs and browser histories store.
pub(crate) fn refuse_tokens_in_url(query: &str) -> Result<(), Problem> {
    let named = query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        TOKEN_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
    });
    // Other URIs may contain the program's name without a token.
    let is_token =
        |rest: &str| rest.bytes().take_while(|byte| is_token_byte(*byte)).count() >= TOKEN_LENGTH;
    let shown = query.split(super::PREFIX).skip(1).any(is_token);
    if named || shown {
        return Err(Problem::new(
            ProblemKind::TokenInUrl,
            "URLs are kept in logs and histories: this token is not safe any more",
        )
        .help(
            "revoke it with `abreast token revoke`, and send the new one in the header `Authorization: Bearer TOKEN`",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:80", "[::1]:8080", "127.9.9.9"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org:80",
            "127.0.0.1.example.org",
            "10.0.0.1",
            "[2001:db8::1]",
        ] {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
