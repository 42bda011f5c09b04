//! The OpenAPI document of this interface.

/// The document that describes this interface.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The document that describes this interface, with its public address: behind a proxy, this can
/// have a path.
pub(super) fn openapi(base: &str) -> String {
    let url = serde_json::to_string(base.trim_end_matches('/')).unwrap_or_default();
    OPENAPI.replacen("\"url\": \"/\"", &format!("\"url\": {url}"), 1)
}
