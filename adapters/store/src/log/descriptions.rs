//! The stored form of descriptions and notes: JSON that any tool can read.

use abreast_core::{Description, State};
use abreast_webtypes::Label;
use serde_json::{Value, json};

/// Description of a resource: `[[type, …], labels]`. The labels are `null`, the text of the only label if
/// it is without a language, or `[[language, text], …]`.
pub(crate) fn write(description: Option<&Description>) -> Option<String> {
    let description = description?;
    let labels = match &*description.labels {
        [] => Value::Null,
        [Label { language, text }] if language.is_empty() => json!(text),
        labels => labels.iter().map(|label| json!([label.language, label.text])).collect(),
    };
    Some(json!([description.types, labels]).to_string())
}

/// Description of a resource that left the set, or `[[], null, media type]`.
pub(crate) fn write_removed(state: &State) -> Option<String> {
    let media_type = || Some(json!([[], null, state.media_type.as_ref()?]).to_string());
    write(state.description.as_deref()).or_else(media_type)
}

/// Reads what [`write`] or [`write_removed`] wrote.
pub(crate) fn read(stored: &str) -> Result<Box<Description>, serde_json::Error> {
    let plain = |text: Option<String>| text.map(Label::plain).into_iter().collect();
    if let Ok((types, text)) = serde_json::from_str(stored) {
        return Ok(Box::new(Description { types, labels: plain(text), media_type: None }));
    }
    if let Ok((types, all)) = serde_json::from_str::<(_, Vec<(String, String)>)>(stored) {
        let labels = all.into_iter().map(|(language, text)| Label { language, text }).collect();
        return Ok(Box::new(Description { types, labels, media_type: None }));
    }
    let (types, text, media_type) = serde_json::from_str(stored)?;
    Ok(Box::new(Description { types, labels: plain(text), media_type }))
}

/// URIs to use instead of a deprecated resource: `[URI, …]`.
pub(crate) fn write_replacements(replaced_by: &[String]) -> String {
    json!(replaced_by).to_string()
}

/// Reads what [`write_replacements`] wrote.
pub(crate) fn read_replacements(stored: &str) -> Result<Vec<String>, serde_json::Error> {
    serde_json::from_str(stored)
}

/// The parts of a change that the resource's state does not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// A sentence for readers of the change log.
    pub(crate) summary: Option<String>,
    /// URIs to use instead.
    pub(crate) replaced_by: Vec<String>,
    /// The types before the change, if it altered them.
    pub(crate) former_types: Option<Vec<String>>,
}

/// Note of a change, `[summary, [URI, …]]`, with `[type, …]` as third element if the types changed;
/// `None` if empty.
pub(crate) fn write_note(
    summary: Option<&str>,
    replaced_by: &[String],
    former_types: Option<&[String]>,
) -> Option<String> {
    match former_types {
        Some(types) => Some(json!([summary, replaced_by, types]).to_string()),
        None => (summary.is_some() || !replaced_by.is_empty())
            .then(|| json!([summary, replaced_by]).to_string()),
    }
}

/// Reads what [`write_note`] wrote.
pub(crate) fn read_note(stored: &str) -> Result<Note, serde_json::Error> {
    if let Ok((summary, replaced_by)) = serde_json::from_str(stored) {
        return Ok(Note { summary, replaced_by, former_types: None });
    }
    let (summary, replaced_by, types) = serde_json::from_str(stored)?;
    Ok(Note { summary, replaced_by, former_types: Some(types) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_and_notes_read_back() {
        let whole = Description {
            types: vec!["urn:a".into(), "urn:\"b".into()],
            labels: vec![Label::plain("ä\n")],
            media_type: None,
        };
        let in_two = Description {
            labels: vec![
                Label { language: "de".into(), text: "Karten".into() },
                Label::plain("[\"x\"]"),
            ],
            ..whole.clone()
        };
        for description in [Description::default(), whole, in_two] {
            assert_eq!(*read(&write(Some(&description)).unwrap()).unwrap(), description);
        }
        assert_eq!(write(None), None);
        let image = State { media_type: Some("image/png".to_owned()), ..State::default() };
        let removed = read(&write_removed(&image).unwrap()).unwrap();
        assert_eq!((removed.media_type, removed.types.len()), (image.media_type, 0));
        assert_eq!(write_removed(&State::default()), None);
        let replaced_by = vec!["urn:c".to_owned()];
        assert_eq!(read_replacements(&write_replacements(&replaced_by)).unwrap(), replaced_by);
        assert_eq!(write_note(None, &[], None), None);
        let types = [Vec::new(), vec!["urn:a".to_owned()]];
        for former_types in types.iter().map(Some).chain([None]) {
            for (summary, replaced_by) in [(Some("gone"), &[][..]), (None, &replaced_by)] {
                let former = former_types.map(Vec::as_slice);
                let note = read_note(&write_note(summary, replaced_by, former).unwrap()).unwrap();
                let (summary, replaced_by) = (summary.map(str::to_owned), replaced_by.to_vec());
                let former_types = former_types.cloned();
                assert_eq!(note, Note { summary, replaced_by, former_types });
            }
        }
    }
}
