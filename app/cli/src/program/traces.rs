//! Traces over OTLP, as the environment variables of OpenTelemetry configure them.

use abreast_net::{BodyWanted, Message, Propagation, Sender, SenderOptions, TRACE};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HeaderExtractor, HeaderInjector, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;
use tracing::Span;
use tracing::subscriber::{NoSubscriber, with_default};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};

/// Longest time to send the last spans when the program ends.
const LAST_SPANS: Duration = Duration::from_secs(5);
/// Largest answer of a collector.
const ANSWER_BYTES: usize = 1 << 20;
/// Spans are recorded if one of these is set.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

type Traces = Box<dyn Layer<Registry> + Send + Sync>;

/// The layer that records spans, if the environment has the address of a collector; or the reason
/// why its configuration cannot be used.
pub(crate) fn layer() -> (Option<Traces>, Option<String>) {
    if !ENDPOINTS.iter().any(is_set) {
        return (None, None);
    }
    match recorder() {
        Ok(layer) => (Some(layer), None),
        Err(error) => (None, Some(format!("{error:#}"))),
    }
}

fn is_set(name: &&str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn recorder() -> anyhow::Result<Traces> {
    let mut exporter = SpanExporter::builder().with_http().with_http_client(Collector::new()?);
    if !is_set(&PROTOCOL) {
        exporter = exporter.with_protocol(Protocol::HttpBinary);
    }
    let exporter = exporter.build()?;
    let mut resource = Resource::builder();
    if !is_set(&"OTEL_SERVICE_NAME") {
        resource = resource.with_service_name("abreast");
    }
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.with_attribute(version).build())
        .build();
    let tracer = provider.tracer("abreast");
    let _ = PROVIDER.set(provider);
    Propagation { inject, extract }.install();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| metadata.target() == TRACE));
    Ok(layer.boxed())
}

/// Sends the last spans.
pub(crate) fn end() {
    if let Some(provider) = PROVIDER.get() {
        let _ = provider.shutdown_with_timeout(LAST_SPANS);
    }
}

fn inject(span: &Span, headers: &mut http::HeaderMap) {
    TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(headers));
}

fn extract(span: &Span, headers: &http::HeaderMap) {
    let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    let _ = span.set_parent(parent);
}

/// The collector, asked by the client of the other requests.
struct Collector {
    runtime: tokio::runtime::Runtime,
    sender: Sender,
}

impl Collector {
    fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // The address is from the operator.
        let options = SenderOptions { public_only: false, ..SenderOptions::default() };
        Ok(Self { runtime, sender: Sender::new(options)? })
    }

    fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, HttpError> {
        let to = self.sender.recipient(&request.uri().to_string())?;
        let (parts, body) = request.into_parts();
        let message = Message { headers: parts.headers, common: None, body };
        let sent = self.sender.post(&to, message, BodyWanted::Whole(ANSWER_BYTES));
        // No spans of requests that send spans.
        let answer = with_default(NoSubscriber::new(), || self.runtime.block_on(sent))?;
        let mut response = http::Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

impl Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Collector")
    }
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: http::Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        // Only the thread that exports waits here.
        let answer = self.send(request);
        Box::pin(std::future::ready(answer))
    }
}
