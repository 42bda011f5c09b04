//! Operations of the API, their scopes and their status codes, as in the OpenAPI document.

use super::problem::{Problem, ProblemKind};
use crate::site::tokens::Scope;
use http::Method;

/// An operation of the API.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The scope required of a token; `None` if public.
    pub(crate) scope: Option<Scope>,
    /// Status codes of the responses.
    pub(crate) statuses: &'static [u16],
}

/// An operation with the parameters in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call<'p> {
    OpenApi,
    Tokens,
    Hub,
    HubTopics,
    /// By the number of the topic.
    HubTargets(i64),
    /// By the number of the target, as the following two.
    HubTarget(i64),
    HubReplay(i64),
    HubEnd(i64),
    Sets,
    Set(&'p str),
    ConfirmDeletions(&'p str),
    Dump(&'p str),
    Scan(&'p str),
    ReadChanges(&'p str),
    RecordChanges(&'p str),
    ImportEntities(&'p str),
    ReadRecord(&'p str),
    PutRecord(&'p str),
    DeleteRecord(&'p str),
    Push(&'p str),
    ReadContent(&'p str, &'p str),
    PutContent(&'p str, &'p str),
    DeleteContent(&'p str, &'p str),
}

const READ: Option<Scope> = Some(Scope::Read);
const WRITE: Option<Scope> = Some(Scope::Write);
const ADMIN: Option<Scope> = Some(Scope::Admin);

const fn operation(
    method: &'static str,
    path: &'static str,
    scope: Option<Scope>,
    statuses: &'static [u16],
) -> Operation {
    Operation { method, path, scope, statuses }
}

/// All operations of the API.
pub(crate) static OPERATIONS: [Operation; 23] = [
    operation("GET", "/api/v1/openapi.json", None, &[200, 400]),
    operation("GET", "/api/v1/tokens", Some(Scope::Admin), &[200, 400, 401, 403]),
    operation("GET", "/api/v1/hub", READ, &[200, 400, 401, 403, 404, 500, 503]),
    operation("GET", "/api/v1/hub/topics", READ, &[200, 400, 401, 403, 404, 500, 503]),
    operation(
        "GET",
        "/api/v1/hub/topics/{topic}/targets",
        READ,
        &[200, 400, 401, 403, 404, 500, 503],
    ),
    operation("GET", "/api/v1/hub/targets/{target}", READ, &[200, 400, 401, 403, 404, 500, 503]),
    operation(
        "POST",
        "/api/v1/hub/targets/{target}/end",
        ADMIN,
        &[200, 400, 401, 403, 404, 500, 503],
    ),
    operation(
        "POST",
        "/api/v1/hub/targets/{target}/replay",
        ADMIN,
        &[200, 400, 401, 403, 404, 500, 503],
    ),
    operation("GET", "/api/v1/sets", READ, &[200, 400, 401, 403, 500, 503]),
    operation("GET", "/api/v1/sets/{set}", READ, &[200, 400, 401, 403, 404, 500, 503]),
    operation("GET", "/api/v1/sets/{set}/changes", READ, &[200, 400, 401, 403, 404, 409, 500, 503]),
    operation(
        "POST",
        "/api/v1/sets/{set}/changes",
        WRITE,
        &[200, 400, 401, 403, 404, 408, 409, 413, 422, 500, 503],
    ),
    operation(
        "POST",
        "/api/v1/sets/{set}/deletions",
        ADMIN,
        &[200, 400, 401, 403, 404, 409, 500, 503],
    ),
    operation("POST", "/api/v1/sets/{set}/dumps", ADMIN, &[202, 400, 401, 403, 404, 409, 500, 503]),
    operation(
        "POST",
        "/api/v1/sets/{set}/entities",
        WRITE,
        &[200, 400, 401, 403, 404, 408, 409, 413, 422, 500, 503],
    ),
    operation(
        "POST",
        "/api/v1/sets/{set}/push",
        WRITE,
        &[200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 500, 503],
    ),
    operation("POST", "/api/v1/sets/{set}/scan", ADMIN, &[202, 400, 401, 403, 404, 409, 500, 503]),
    operation("GET", "/api/v1/sets/{set}/resource", READ, &[200, 400, 401, 403, 404, 500, 503]),
    operation(
        "PUT",
        "/api/v1/sets/{set}/resource",
        WRITE,
        &[200, 400, 401, 403, 404, 408, 409, 413, 422, 500, 503, 507],
    ),
    operation(
        "DELETE",
        "/api/v1/sets/{set}/resource",
        WRITE,
        &[200, 400, 401, 403, 404, 409, 412, 422, 500, 503, 507],
    ),
    operation(
        "GET",
        "/api/v1/sets/{set}/content/{path}",
        READ,
        &[200, 206, 304, 400, 401, 403, 404, 409, 412, 416, 500, 503],
    ),
    operation(
        "PUT",
        "/api/v1/sets/{set}/content/{path}",
        WRITE,
        &[200, 201, 400, 401, 403, 404, 408, 409, 412, 413, 422, 500, 503, 507],
    ),
    operation(
        "DELETE",
        "/api/v1/sets/{set}/content/{path}",
        WRITE,
        &[200, 400, 401, 403, 404, 409, 412, 422, 500, 503, 507],
    ),
];

/// Finds the operation for a request.
pub(crate) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Operation, Call<'p>), Problem> {
    let nothing = || {
        Problem::new(ProblemKind::NotFound, "no resource of the API has this address")
            .help("see /api/v1/openapi.json")
    };
    let rest = path.strip_prefix("/api/v1/").ok_or_else(nothing)?;
    let mut parts = rest.splitn(3, '/');
    let head = parts.next().unwrap_or_default();
    let (slug, tail) = (parts.next(), parts.next());
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let choose = |template: &'static str, calls: &[(&str, Call<'p>)]| {
        let call = calls.iter().find(|(name, _)| *name == method.as_str());
        let allow = match calls {
            [("GET", _)] => "GET, HEAD",
            [("GET", _), ("POST", _)] => "GET, HEAD, POST",
            [("POST", _)] => "POST",
            _ => "GET, HEAD, PUT, DELETE",
        };
        let (name, call) = call.ok_or_else(|| {
            Problem::new(
                ProblemKind::Method,
                format!("{} is not allowed here", method.as_str().escape_debug()),
            )
            .allow(allow)
        })?;
        let operation = OPERATIONS
            .iter()
            .find(|one| one.method == *name && one.path == template)
            .ok_or_else(nothing)?;
        Ok((operation, *call))
    };
    match (head, slug, tail) {
        ("openapi.json", None, None) => choose("/api/v1/openapi.json", &[("GET", Call::OpenApi)]),
        ("tokens", None, None) => choose("/api/v1/tokens", &[("GET", Call::Tokens)]),
        ("hub", what, of) => hub_call(what, of, &choose).unwrap_or_else(|| Err(nothing())),
        ("sets", None, None) => choose("/api/v1/sets", &[("GET", Call::Sets)]),
        ("sets", Some(set), None) => choose("/api/v1/sets/{set}", &[("GET", Call::Set(set))]),
        ("sets", Some(set), Some("changes")) => choose(
            "/api/v1/sets/{set}/changes",
            &[("GET", Call::ReadChanges(set)), ("POST", Call::RecordChanges(set))],
        ),
        ("sets", Some(set), Some("deletions")) => {
            choose("/api/v1/sets/{set}/deletions", &[("POST", Call::ConfirmDeletions(set))])
        }
        ("sets", Some(set), Some("dumps")) => {
            choose("/api/v1/sets/{set}/dumps", &[("POST", Call::Dump(set))])
        }
        ("sets", Some(set), Some("entities")) => {
            choose("/api/v1/sets/{set}/entities", &[("POST", Call::ImportEntities(set))])
        }
        ("sets", Some(set), Some("scan")) => {
            choose("/api/v1/sets/{set}/scan", &[("POST", Call::Scan(set))])
        }
        ("sets", Some(set), Some("push")) => {
            choose("/api/v1/sets/{set}/push", &[("POST", Call::Push(set))])
        }
        ("sets", Some(set), Some("resource")) => choose(
            "/api/v1/sets/{set}/resource",
            &[
                ("GET", Call::ReadRecord(set)),
                ("PUT", Call::PutRecord(set)),
                ("DELETE", Call::DeleteRecord(set)),
            ],
        ),
        ("sets", Some(set), Some(tail)) => {
            let path = tail.strip_prefix("content/").ok_or_else(nothing)?;
            choose(
                "/api/v1/sets/{set}/content/{path}",
                &[
                    ("GET", Call::ReadContent(set, path)),
                    ("PUT", Call::PutContent(set, path)),
                    ("DELETE", Call::DeleteContent(set, path)),
                ],
            )
        }
        _ => Err(nothing()),
    }
}

type Choice<'p> = Result<(&'static Operation, Call<'p>), Problem>;
/// Selects the operation for the request's method from the operations at an address.
type Choose<'c, 'p> = dyn Fn(&'static str, &[(&str, Call<'p>)]) -> Choice<'p> + 'c;

/// Operations below `/api/v1/hub`.
fn hub_call<'p>(
    what: Option<&str>,
    of: Option<&str>,
    choose: &Choose<'_, 'p>,
) -> Option<Choice<'p>> {
    // The store assigns numbers from 1; a sign is invalid.
    let number =
        |text: &str| text.parse().ok().filter(|number| *number > 0 && !text.starts_with('+'));
    Some(match (what, of) {
        (None, None) => choose("/api/v1/hub", &[("GET", Call::Hub)]),
        (Some("topics"), None) => choose("/api/v1/hub/topics", &[("GET", Call::HubTopics)]),
        (Some("topics"), Some(of)) => {
            let topic = number(of.strip_suffix("/targets")?)?;
            choose("/api/v1/hub/topics/{topic}/targets", &[("GET", Call::HubTargets(topic))])
        }
        (Some("targets"), Some(of)) => {
            if let Some(of) = of.strip_suffix("/replay") {
                choose(
                    "/api/v1/hub/targets/{target}/replay",
                    &[("POST", Call::HubReplay(number(of)?))],
                )
            } else if let Some(of) = of.strip_suffix("/end") {
                choose("/api/v1/hub/targets/{target}/end", &[("POST", Call::HubEnd(number(of)?))])
            } else {
                choose("/api/v1/hub/targets/{target}", &[("GET", Call::HubTarget(number(of)?))])
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn document_lists_every_operation_and_its_statuses() {
        let document: Value = serde_json::from_str(super::super::OPENAPI).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        let mut told = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in
                item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
            {
                let mut statuses: Vec<u16> = operation["responses"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(|status| status.parse().unwrap())
                    .collect();
                statuses.sort_unstable();
                let open = operation["security"].as_array().is_some_and(Vec::is_empty);
                told.push((method.to_uppercase(), path.clone(), open, statuses));
            }
        }
        told.sort();
        let mut known: Vec<_> = OPERATIONS
            .iter()
            .map(|one| {
                (
                    one.method.to_owned(),
                    one.path.to_owned(),
                    one.scope.is_none(),
                    one.statuses.to_vec(),
                )
            })
            .collect();
        known.sort();
        assert_eq!(told, known);
    }

    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        fn walk<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str));
                    fields.values().for_each(|value| walk(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| walk(value, found)),
                _ => {}
            }
        }
        let document: Value = serde_json::from_str(super::super::OPENAPI).unwrap();
        let mut references = Vec::new();
        walk(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            assert!(
                document.pointer(reference.strip_prefix('#').unwrap()).is_some(),
                "{reference}"
            );
        }
    }

    #[test]
    fn every_operation_is_reached_by_its_path() {
        for operation in &OPERATIONS {
            let path = operation.path.replace("{set}", "s").replace("{path}", "a/b");
            let path = path.replace("{topic}", "3").replace("{target}", "7");
            let found = find(&operation.method.parse().unwrap(), &path).unwrap().0;
            assert_eq!(found, operation);
        }
        let others = [
            "",
            "topics/1",
            "topics/x/targets",
            "targets",
            "targets/0",
            "targets/+1",
            "targets/1/x",
        ];
        let others = others.map(|path| format!("/api/v1/hub/{path}"));
        let known = [
            "/api",
            "/api/v1",
            "/api/v1/",
            "/api/v2/sets",
            "/api/v1/sets/s/",
            "/api/v1/sets/s/x",
            "/api/v1/x",
        ];
        for path in known.into_iter().chain(others.iter().map(String::as_str)) {
            assert!(find(&Method::GET, path).is_err(), "{path}");
        }
        assert!(find(&Method::PATCH, "/api/v1/sets").is_err());
    }
}
