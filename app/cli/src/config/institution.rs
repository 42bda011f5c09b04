//! The institution that the pages of a Source show: `[institution]`.

use crate::config::settings::InstitutionFile;
use crate::values::address::http_url;
use abreast_source::publish::{Accent, Institution};

/// Longest name of an institution, in bytes.
const NAME: usize = 200;

/// Checks the table, and appends its faults to `problems`.
pub(crate) fn check(file: Option<InstitutionFile>, problems: &mut Vec<String>) -> Institution {
    let file = file.unwrap_or_default();
    let mut url = |key: &str, url: Option<String>| {
        url.and_then(|url| {
            http_url(&url)
                .map_err(|error| problems.push(format!("`institution.{key}`: {error}")))
                .ok()
        })
    };
    let (url, logo) = (url("url", file.url), url("logo", file.logo));
    let name = file.name.unwrap_or_default();
    if name.len() > NAME {
        problems.push(format!("`institution.name`: longer than {NAME} bytes"));
    }
    let accent = file.accent.as_deref().map_or(Ok(Accent::default()), Accent::parse);
    let accent = accent.unwrap_or_else(|error| {
        problems.push(format!(
            "`institution.accent`: {error} (help: use a darker colour, such as `#1f4e79`)"
        ));
        Accent::default()
    });
    Institution { name, url, logo, contact: file.contact, accent }
}
