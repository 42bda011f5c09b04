//! Validation of the relation types of links: registered names and URIs [rs-core §14.1].

use super::is_absolute;
use abreast_webtypes::relation::REGISTERED;

/// Validates a list of relation types, separated by spaces.
///
/// # Examples
/// ```
/// use abreast_source::links::check_relation;
///
/// assert!(check_relation("describedby http://library.example/rel/shelf").is_ok());
/// let fault = check_relation("describeby").unwrap_err();
/// assert!(fault.ends_with("did you mean `describedby`?"));
/// ```
///
/// # Errors
/// The invalid relation type, with the most similar registered name.
pub fn check_relation(rel: &str) -> Result<(), String> {
    let mut any = false;
    for token in rel.split(' ').filter(|token| !token.is_empty()) {
        any = true;
        if token == "resourcesync" {
            return Err(
                "`rel`: `resourcesync` leads to the Capability List; it is stated by itself"
                    .to_owned(),
            );
        }
        let plain =
            token.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte));
        let known = REGISTERED.binary_search(&token).is_ok();
        if !plain || !(known || is_absolute(token)) {
            let nearest = crate::links::nearest::nearest(token, REGISTERED);
            let shown: String = token.chars().take(80).collect();
            return Err(format!(
                "`rel`: `{shown}` is neither a registered relation nor a URI; did you mean `{nearest}`?"
            ));
        }
    }
    if any {
        Ok(())
    } else {
        Err("`rel`: a link needs a relation, such as `describedby`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_relations_of_the_specification_are_known() {
        for rel in [
            "duplicate",
            "alternate",
            "canonical",
            "describedby",
            "describes",
            "profile",
            "collection",
            "via",
            "memento",
            "timegate",
            "timemap",
            super::super::PATCH,
            "describedby http://example.org/rel",
        ] {
            check_relation(rel).unwrap();
        }
    }

    #[test]
    fn a_misspelt_relation_is_refused_with_the_nearest_one() {
        for (rel, part) in [
            ("describedBy", "did you mean `describedby`?"),
            ("canonnical", "did you mean `canonical`?"),
            ("", "needs a relation"),
            ("  ", "needs a relation"),
            ("up \"x", "neither"),
            ("resourcesync", "by itself"),
        ] {
            let error = check_relation(rel).unwrap_err();
            assert!(error.contains(part), "{rel}: {error}");
        }
    }
}
