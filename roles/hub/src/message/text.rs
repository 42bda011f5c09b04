//! Messages for clients and logs.

use crate::message::request::HubAnswer;
use abreast_core::{ErrorKind, LogError};
use abreast_websub::FormError;

/// Response to an invalid form.
pub(crate) fn no_request(error: &FormError) -> HubAnswer {
    let status = if matches!(error, FormError::TooLong) { 413 } else { 400 };
    HubAnswer::new(status, format!("{error} ({})\n", error.code()))
}

/// Response to a request that the store did not record.
pub(crate) fn not_stored(error: &LogError) -> HubAnswer {
    match error.kind() {
        ErrorKind::Busy | ErrorKind::Unavailable => {
            HubAnswer::later(503, 5, format!("not recorded: {error}\n"))
        }
        ErrorKind::Refused => HubAnswer::new(400, format!("{error}\n")),
        _ => {
            tracing::error!(error = %chain(error), "the hub's store failed");
            HubAnswer::later(503, 30, "the hub cannot store anything at the moment\n")
        }
    }
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text.push_str(": ");
            text.push_str(&inner);
        }
        cause = error.source();
    }
    text.replace('\n', " ")
}

/// A failed exchange as a short text, with its code.
pub(crate) fn failure(error: &abreast_net::Error) -> String {
    format!("{} ({})", chain(error), error.code())
}
