//! Media types of files, derived from file names.

/// Returns the media type for the extension of a file name; `application/octet-stream` if the
/// extension is unknown.
///
/// # Examples
/// ```
/// use abreast_source::media_type_of;
///
/// assert_eq!(media_type_of(b"subjects.ttl"), "text/turtle");
/// assert_eq!(media_type_of(b"scans/7.tif"), "image/tiff");
/// assert_eq!(media_type_of(b"README"), "application/octet-stream");
/// ```
pub fn media_type_of(name: &[u8]) -> &'static str {
    let extension =
        name.iter().rposition(|byte| *byte == b'.').map_or(&b""[..], |dot| &name[dot + 1..]);
    match extension {
        // Types that libraries and archives use, and that general tables lack.
        b"ttl" => "text/turtle",
        b"nt" => "application/n-triples",
        b"nq" => "application/n-quads",
        b"trig" => "application/trig",
        b"jsonld" => "application/ld+json",
        b"rdf" | b"owl" => "application/rdf+xml",
        // Frequent types, before the search in the general table.
        b"xml" => "application/xml",
        b"json" => "application/json",
        b"html" => "text/html",
        b"txt" => "text/plain",
        b"pdf" => "application/pdf",
        b"jpg" => "image/jpeg",
        b"png" => "image/png",
        b"" => "application/octet-stream",
        _ => std::str::from_utf8(extension)
            .ok()
            .and_then(|extension| mime_guess::from_ext(extension).first_raw())
            .unwrap_or("application/octet-stream"),
    }
}
