//! Formats of patches, which make a new version of a resource from the stored version.

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON Patch.
    Json,
    /// Bytes to append to the stored bytes.
    Append,
    /// A binary difference, as made by `bsdiff`.
    Difference,
}

/// Whether patches of a media type can be applied.
pub(crate) fn is_known(media_type: &str) -> bool {
    Format::of(media_type).is_some()
}

impl Format {
    /// The format for a media type; parameters are ignored.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        let name = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            // The second name is in an example of the specification.
            "application/json-patch+json" | "application/json-patch" => Some(Self::Json),
            "application/x-append" => Some(Self::Append),
            "application/x-bsdiff43" => Some(Self::Difference),
            _ => None,
        }
    }
}
