//! Entries of the log for the module `logging` of Python: the logger is `abreast`, or one below it.

use pyo3::prelude::*;
use std::fmt::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Entries below this level of Python are not made.
static LEVEL: AtomicI32 = AtomicI32::new(30);

/// Sends entries to Python, from the level on that the logger `abreast` has now.
///
/// # Errors
/// The module `logging` of Python is missing.
pub(crate) fn begin(py: Python<'_>) -> PyResult<()> {
    static ONCE: Once = Once::new();
    let logger = py.import("logging")?.call_method1("getLogger", ("abreast",))?;
    LEVEL.store(logger.call_method0("getEffectiveLevel")?.extract()?, Ordering::Relaxed);
    ONCE.call_once(|| {
        // Another part of the process may have a subscriber: it receives the entries.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Logs));
    });
    Ok(())
}

struct Logs;

impl<S: Subscriber> Layer<S> for Logs {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Other crates have many entries, and the level can change.
        if metadata.is_event() && metadata.target().starts_with("abreast") {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        level(*metadata.level()) >= LEVEL.load(Ordering::Relaxed)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        let (name, level) = (logger(metadata.target()), level(*metadata.level()));
        // Nothing can be done about a handler that fails.
        let _ = Python::try_attach(|py| {
            let logger = py.import("logging")?.call_method1("getLogger", (name,))?;
            logger.call_method1("log", (level, "%s", text.message + &text.fields)).map(drop)
        });
    }
}

/// `abreast.net.fetch` for `abreast_net::fetch`.
fn logger(target: &str) -> String {
    target.replacen('_', ".", 1).replace("::", ".")
}

/// The number of the level in Python.
const fn level(level: Level) -> i32 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

/// The message of an entry, and its fields as ` name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}
