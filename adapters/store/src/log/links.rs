//! Storage of a resource's links, as JSON that any tool can read: `[[target, rel, [[name, value],
//! …]], …]`.

use abreast_webtypes::Link;

type Stored = (String, String, Vec<(String, String)>);

/// The stored form; `None` for a resource without links.
pub(crate) fn write(links: &[Link]) -> Option<String> {
    if links.is_empty() {
        return None;
    }
    let stored: Vec<_> = links.iter().map(|link| (&link.target, &link.rel, &link.params)).collect();
    Some(serde_json::to_string(&stored).expect("strings can always be written as JSON"))
}

/// Reads the stored form, adding to `links`.
pub(crate) fn read(stored: &str, links: &mut Vec<Link>) -> Result<(), serde_json::Error> {
    let stored: Vec<Stored> = serde_json::from_str(stored)?;
    links.extend(stored.into_iter().map(|(target, rel, params)| Link { target, rel, params }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_read_back_as_they_were() {
        let links = vec![
            Link {
                target: "https://example.org/?a=\"b\"&c".into(),
                rel: "describedby up".into(),
                params: vec![],
            },
            Link {
                target: "ä\n".into(),
                rel: String::new(),
                params: vec![("type".into(), "text/html".into())],
            },
        ];
        let mut again = Vec::new();
        read(&write(&links).unwrap(), &mut again).unwrap();
        assert_eq!(again, links);
        assert_eq!(write(&[]), None);
    }
}
