//! Conversion between the two orders of entities.
//!
//! A log has its keys in byte order. Sorted N-Triples have `<IRI> ` at the beginning of their
//! lines, so the end of an IRI counts as `>` there: `http://a/x#1` sorts before `http://a/x`, but
//! after it in the log.

use std::cmp::Ordering;

/// Compares two IRIs in the order of lines.
pub fn compare(one: &str, two: &str) -> Ordering {
    let (one, two) = (one.as_bytes(), two.as_bytes());
    let common = one.len().min(two.len());
    one[..common].cmp(&two[..common]).then_with(|| match (one.get(common), two.get(common)) {
        (None, Some(next)) => b'>'.cmp(next),
        (Some(next), None) => next.cmp(&b'>'),
        _ => Ordering::Equal,
    })
}

/// Sorts items from the order of keys into the order of lines.
///
/// Only an IRI that is a prefix of the next one can be out of place. Each waiting IRI is a prefix
/// of the following one, so at most as many items wait as an IRI has bytes.
#[derive(Debug)]
pub struct LineOrder<T> {
    waiting: Vec<(String, T)>,
}

impl<T> Default for LineOrder<T> {
    fn default() -> Self {
        Self { waiting: Vec::new() }
    }
}

impl<T> LineOrder<T> {
    /// Takes the next item in the order of keys; passes items that need not wait longer to `give`.
    ///
    /// # Errors
    /// An error of `give`.
    pub fn push<E>(
        &mut self,
        key: String,
        item: T,
        mut give: impl FnMut(String, T) -> Result<(), E>,
    ) -> Result<(), E> {
        let waits = |first: &String| {
            key.strip_prefix(first.as_str())
                .is_some_and(|rest| rest.as_bytes().first().is_some_and(|next| *next < b'>'))
        };
        while let Some((first, _)) = self.waiting.last()
            && !waits(first)
            && let Some((key, item)) = self.waiting.pop()
        {
            give(key, item)?;
        }
        self.waiting.push((key, item));
        Ok(())
    }

    /// Passes the remaining items to `give`.
    ///
    /// # Errors
    /// An error of `give`.
    pub fn finish<E>(mut self, mut give: impl FnMut(String, T) -> Result<(), E>) -> Result<(), E> {
        while let Some((key, item)) = self.waiting.pop() {
            give(key, item)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn keys_come_in_the_order_of_lines() {
        let mut keys: Vec<String> = [
            "http://a/",
            "http://a/x",
            "http://a/x#1",
            "http://a/x#1#2",
            "http://a/x/y",
            "http://a/x?q",
            "http://a/xy",
            "http://a/x~",
            "http://a",
            "http://b",
            "urn:a",
            "urn:a:b",
            "urn:a@",
            "urn:a.b",
        ]
        .map(str::to_owned)
        .into();
        keys.sort();
        let mut lines: Vec<String> = keys.iter().map(|key| format!("<{key}> ")).collect();
        lines.sort();
        let mut order = LineOrder::default();
        let mut found = Vec::new();
        let mut give = |key: String, ()| {
            found.push(format!("<{key}> "));
            Ok::<_, Infallible>(())
        };
        for key in &keys {
            order.push(key.clone(), (), &mut give).unwrap();
        }
        order.finish(&mut give).unwrap();
        assert_eq!(found, lines);
        for pair in lines.windows(2) {
            let iri = |line: &str| line[1..line.len() - 2].to_owned();
            assert_eq!(compare(&iri(&pair[0]), &iri(&pair[1])), Ordering::Less, "{pair:?}");
        }
    }
}
