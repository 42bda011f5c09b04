//! The stored form of descriptions and notes: JSON that any tool can read.

use abreast_core::Description;
use serde_json::json;

/// Description of a resource: `[[type, …], label]`.
pub(crate) fn write(description: Option<&Description>) -> Option<String> {
    let description = description?;
    Some(json!([description.types, description.label]).to_string())
}

/// Reads what [`write`] wrote.
pub(crate) fn read(stored: &str) -> Result<Box<Description>, serde_json::Error> {
    let (types, label) = serde_json::from_str(stored)?;
    Ok(Box::new(Description { types, label }))
}

/// URIs to use instead of a deprecated resource: `[URI, …]`.
pub(crate) fn write_replacements(replaced_by: &[String]) -> String {
    json!(replaced_by).to_string()
}

/// Reads what [`write_replacements`] wrote.
pub(crate) fn read_replacements(stored: &str) -> Result<Vec<String>, serde_json::Error> {
    serde_json::from_str(stored)
}

/// Description that a writer adds to a change, `[summary, [URI, …]]`; `None` if empty.
pub(crate) fn write_note(summary: Option<&str>, replaced_by: &[String]) -> Option<String> {
    (summary.is_some() || !replaced_by.is_empty())
        .then(|| json!([summary, replaced_by]).to_string())
}

/// Reads what [`write_note`] wrote: the summary, and the URIs.
pub(crate) fn read_note(stored: &str) -> Result<(Option<String>, Vec<String>), serde_json::Error> {
    serde_json::from_str(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_and_notes_read_back() {
        let whole = Description {
            types: vec!["urn:a".into(), "urn:\"b".into()],
            label: Some("ä\n".into()),
        };
        for description in [Description::default(), whole] {
            assert_eq!(*read(&write(Some(&description)).unwrap()).unwrap(), description);
        }
        assert_eq!(write(None), None);
        let replaced_by = vec!["urn:c".to_owned()];
        assert_eq!(read_replacements(&write_replacements(&replaced_by)).unwrap(), replaced_by);
        assert_eq!(write_note(None, &[]), None);
        for (summary, replaced_by) in [(Some("gone"), &[][..]), (None, &replaced_by)] {
            let note = read_note(&write_note(summary, replaced_by).unwrap()).unwrap();
            assert_eq!(note, (summary.map(str::to_owned), replaced_by.to_vec()));
        }
    }
}
