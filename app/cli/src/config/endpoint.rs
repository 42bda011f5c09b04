//! `endpoint` of a `[[set]]`: the SPARQL endpoint that has its entities.

use crate::config::access::AccessArgs;
use crate::config::settings::EndpointFile;
use crate::program::errors::SecretError;
use abreast_source::origin::sparql::{EntityPattern, PendingSecret, QueryGraph, SparqlOptions};
use std::time::Duration;

/// The options, checked; every problem is added to the others.
pub(super) fn check(
    file: EndpointFile,
    reread: Duration,
    problems: &mut Vec<String>,
    missing: &mut Option<String>,
) -> SparqlOptions {
    let mut options = SparqlOptions::new("");
    options.reread = reread;
    for (key, text, value) in [
        ("every", &file.every, &mut options.every),
        ("timeout", &file.timeout, &mut options.net.idle_timeout),
    ] {
        match text.as_deref().map(humantime::parse_duration) {
            None => {}
            Some(Ok(time)) if time.as_secs() >= 1 => *value = time,
            Some(_) => problems.push(format!(
                "`endpoint.{key}`: `{}` is not a duration of a second or more (help: write it as `30s` or `10m`)",
                text.as_deref().unwrap_or_default()
            )),
        }
    }
    options.graph = match file.graph.as_deref() {
        None => QueryGraph::Default,
        Some("*") => QueryGraph::Any,
        Some(graph) => {
            if let Err(reason) = abreast_source::links::absolute_uri(graph) {
                problems.push(format!(
                    "`endpoint.graph`: `{graph}`: {reason} (help: the IRI of a named graph, or `*` for all of them)"
                ));
            }
            QueryGraph::Named(graph.to_owned())
        }
    };
    match file.entities.as_deref().map(EntityPattern::parse).transpose() {
        Ok(pattern) => options.entities = pattern,
        Err(error) => problems.push(format!("`endpoint.entities`: {error}")),
    }
    match file.batch {
        None => {}
        Some(batch) if (1..=10_000).contains(&batch) => options.batch = batch,
        Some(batch) => {
            problems.push(format!("`endpoint.batch`: {batch} is out of range (help: 1 to 10000)"));
        }
    }
    options.max_bytes = file.max_size.map_or(options.max_bytes, |size| size.0);
    if file.user.is_some() != file.password_file.is_some() {
        problems.push(
            "`endpoint.user`: a user and the file with the password belong together (help: give `user` and \
             `password_file`)"
                .to_owned(),
        );
        return options;
    }
    let access = AccessArgs {
        user: file.user,
        password_file: file.password_file,
        token_file: file.token_file,
        ca_file: file.ca_file,
        ignores_environment: true,
        ..AccessArgs::default()
    };
    let usable = abreast_net::check_url(&file.url).map_err(anyhow::Error::from);
    match usable.and_then(|()| access.apply_to_origin(&file.url, &mut options.net)) {
        Ok(url) => options.url = url,
        // The other sets are served all the same, and this one from its store.
        Err(error) if error.is::<SecretError>() => {
            if let Some(secret) = error.downcast_ref::<SecretError>() {
                let text = secret.text.lines().next().unwrap_or_default();
                *missing = Some(format!(
                    "`endpoint.{}`: {text} (help: name a file that this user may read)",
                    secret.option
                ));
            }
            options.url = crate::config::access::without_login(&file.url).0;
            options.secret = Some(PendingSecret::new(move |net| {
                let read = access.apply_to_origin(&file.url, net);
                read.map(drop).map_err(|error| format!("{error:#}"))
            }));
        }
        Err(error) => problems.push(format!(
            "`endpoint.url`: {error:#} (help: for example `https://id.example.org/sparql`)"
        )),
    }
    options
}
