//! Bodies of forms.

use crate::message::respond::{Answer, problem};
use http::StatusCode;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use std::time::Duration;

/// Most bytes of a form on a page for administrators.
pub(super) const MAX_FORM: usize = 4 * 1024;
/// Time limit for a form.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The fields of a form.
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the fields; else the refusal.
    pub(super) async fn read(body: Incoming) -> Result<Self, Answer> {
        let read = tokio::time::timeout(TIMEOUT, Limited::new(body, MAX_FORM).collect());
        match read.await {
            Ok(Ok(body)) => {
                let fields = url::form_urlencoded::parse(&body.to_bytes()).into_owned().collect();
                Ok(Self(fields))
            }
            Ok(Err(_)) => {
                let detail = format!("a form has at most {MAX_FORM} bytes");
                Err(problem(StatusCode::PAYLOAD_TOO_LARGE, &detail))
            }
            Err(_) => Err(problem(StatusCode::REQUEST_TIMEOUT, "the form did not come in time")),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}
