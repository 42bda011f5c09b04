//! Traces over OTLP: what each program records, and how traces continue in another one.

use crate::world::{Source, abreast};
use abreast_testkit::http::{Request, Server, answer, unused_address};
use abreast_testkit::run;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

fn collector() -> Server {
    Server::new(|_, stream| {
        let answer = answer("200 OK", "Content-Type: application/json\r\n", "{}");
        stream.write_all(answer.as_bytes()).is_ok()
    })
}

fn traced(mut command: Command, collector: &str, service: &str) -> Command {
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=library");
    command.env("OTEL_SERVICE_NAME", service).env("OTEL_BSP_SCHEDULE_DELAY", "50");
    command
}

/// A span, and the service that it is of.
type Recorded = (String, Value);

fn attribute<'a>(of: &'a Value, name: &str) -> Option<&'a Value> {
    let mut all = of["attributes"].as_array()?.iter();
    all.find(|attribute| attribute["key"] == name).map(|attribute| &attribute["value"])
}

fn spans(requests: &[Request]) -> Vec<Recorded> {
    let mut spans = Vec::new();
    for request in requests {
        assert_eq!(request.line(), "POST /v1/traces HTTP/1.1");
        assert_eq!(request.header("x-tenant"), Some("library"));
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        for resource in message["resourceSpans"].as_array().unwrap() {
            let service = attribute(&resource["resource"], "service.name").unwrap();
            let service = service["stringValue"].as_str().unwrap();
            for scope in resource["scopeSpans"].as_array().unwrap() {
                let all = scope["spans"].as_array().unwrap();
                spans.extend(all.iter().map(|span| (service.to_owned(), span.clone())));
            }
        }
    }
    spans
}

fn of<'a>(spans: &'a [Recorded], service: &str, is_it: impl Fn(&Value) -> bool) -> Vec<&'a Value> {
    let all = spans.iter().filter(|(name, span)| name == service && is_it(span));
    all.map(|(_, span)| span).collect()
}

#[test]
fn a_trace_has_the_run_its_requests_and_the_answers() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "four").unwrap();
    let collector = collector();
    let url = collector.url("");
    let log = temporary.path().join("log");
    let mut serve = traced(abreast(), &url, "source");
    serve.arg("serve").arg(&folder).args(["--listen", "127.0.0.1:0", "--name", "set"]);
    serve.args(["--trusted-proxy", "127.0.0.1"]);
    let source = Source::run_logged(&mut serve, &log);
    let mut sync = traced(abreast(), &url, "copy");
    let output = run(sync.args(["sync", &source.url(), "-v"]).arg(temporary.path().join("copy")));
    assert!(output.status.success());
    let is_request = |span: &Value| {
        attribute(span, "url.full").is_some_and(|url| url.to_string().ends_with("/a.txt\"}"))
    };
    let requests = collector.wait("the spans of both", |requests| {
        let spans = spans(requests);
        let sent = of(&spans, "copy", is_request);
        let answered =
            |span: &Value| sent.iter().any(|sent| span["parentSpanId"] == sent["spanId"]);
        !of(&spans, "copy", |span| span["name"] == "sync").is_empty()
            && !of(&spans, "source", |span| span["name"] == "scan").is_empty()
            && !of(&spans, "source", answered).is_empty()
    });
    let spans = spans(&requests);
    let ran = of(&spans, "copy", |span| span["name"] == "sync")[0];
    let sent = of(&spans, "copy", is_request)[0];
    assert_eq!(sent["traceId"], ran["traceId"]);
    assert_eq!((&sent["name"], &sent["kind"]), (&"GET".into(), &3.into()));
    let status = attribute(sent, "http.response.status_code").unwrap();
    assert!(status.to_string().contains("200"), "{status}");
    let answered = of(&spans, "source", |span| span["parentSpanId"] == sent["spanId"])[0];
    assert_eq!((&answered["traceId"], &answered["kind"]), (&sent["traceId"], &2.into()));
    let route = attribute(answered, "http.route").unwrap();
    assert!(route.to_string().contains("Resource"), "{route}");
    // Requests to the collector have no spans, and lines of the logs no names of spans.
    let to_collector = |span: &Value| span.to_string().contains(&url);
    assert!(of(&spans, "copy", to_collector).is_empty());
    let logs = fs::read_to_string(&log).unwrap() + &String::from_utf8_lossy(&output.stderr);
    assert!(!logs.contains("answer{") && !logs.contains("sync{"), "{logs}");
}

#[test]
fn without_a_collector_the_work_is_done() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "four").unwrap();
    let source = Source::start(&folder, 0, &[]);
    let nowhere = format!("http://{}", unused_address());
    for (number, collector) in [nowhere.as_str(), "no address"].into_iter().enumerate() {
        let copy = temporary.path().join(number.to_string());
        let begun = Instant::now();
        let mut sync = traced(abreast(), collector, "copy");
        let output = run(sync.args(["sync", &source.url()]).arg(&copy));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(begun.elapsed() < Duration::from_secs(30), "{collector}");
        assert_eq!(fs::read(copy.join("a.txt")).unwrap(), b"four");
    }
}
