//! Lines of the log. An event is one line, with the set or the job that its thread works for.
//!
//! A thread works for a set or a job inside a span with the field `set` or `job`. Threads that it
//! starts continue the span.

use abreast_net::TRACE;
use serde_json::{Map, Value};
use std::fmt::{self, Debug};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// The spans of the current event, except spans of traces.
fn spans<'a, S, N>(context: &'a FmtContext<'_, S, N>) -> impl Iterator<Item = SpanRef<'a, S>>
where
    S: Subscriber + for<'b> LookupSpan<'b>,
    N: for<'b> FormatFields<'b> + 'static,
{
    let all = context.event_scope().into_iter().flatten();
    all.filter(|span| span.metadata().target() != TRACE)
}

/// A line for people.
pub(super) struct TextLines {
    pub(super) has_time: bool,
    /// The lines of a message are joined: the journal would make an entry of each.
    pub(super) is_joined: bool,
}

impl<S, N> FormatEvent<S, N> for TextLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.has_time {
            SystemTime.format_time(&mut line)?;
            line.write_char(' ')?;
        }
        write!(line, "{:>5} ", event.metadata().level())?;
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        if self.is_joined {
            text = text.split('\n').map(str::trim).collect::<Vec<_>>().join("; ");
        }
        line.write_str(&text)?;
        for span in spans(context) {
            let mut names = span.metadata().fields().iter();
            let is_new = names.any(|field| event.metadata().fields().field(field.name()).is_none());
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().filter(|_| is_new);
            if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
                write!(line, " {fields}")?;
            }
        }
        writeln!(line)
    }
}

/// A line for programs: a JSON object. The spans' fields are formatted as JSON too.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in spans(context) {
            let extensions = span.extensions();
            let formatted = extensions.get::<FormattedFields<N>>();
            let of_span = formatted.and_then(|text| serde_json::from_str(text).ok());
            for (name, value) in of_span.into_iter().flat_map(|fields: Map<String, Value>| fields) {
                fields.0.entry(name).or_insert(value);
            }
        }
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let metadata = event.metadata();
        let entry = serde_json::json!({
            "timestamp": time,
            "level": metadata.level().as_str(),
            "fields": fields.0,
            "target": metadata.target(),
        });
        writeln!(line, "{entry}")
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }
}
