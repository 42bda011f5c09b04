//! Links that lead from a resource to documents of its Source.

use super::resourcesync::links::in_header;
use super::resourcesync_0_1::site;

/// Whether links in the values of `Link` headers lead from a resource to documents of its Source, of either
/// version.
pub(crate) fn leads_on(values: &[String]) -> bool {
    values.iter().any(|value| !in_header(value).is_empty() || !site::in_header(value).is_empty())
}
