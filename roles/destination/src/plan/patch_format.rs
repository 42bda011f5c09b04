//! Formats of patches, which make a new version of a resource from the one that is kept.

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON Patch.
    Json,
    /// Bytes that come behind those kept.
    Append,
    /// A difference of bytes as `bsdiff` makes it.
    Difference,
}

/// Whether patches of a media type can be applied.
pub(crate) fn is_known(media_type: &str) -> bool {
    Format::of(media_type).is_some()
}

impl Format {
    /// By its media type; parameters do not matter.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        let name = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            // The second is how the specification's own example writes it.
            "application/json-patch+json" | "application/json-patch" => Some(Self::Json),
            "application/x-append" => Some(Self::Append),
            "application/x-bsdiff43" => Some(Self::Difference),
            _ => None,
        }
    }
}
