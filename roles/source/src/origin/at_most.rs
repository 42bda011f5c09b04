//! JSON lists of which only the first items are stored in memory.

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// First items of a list, with the number of further items.
#[derive(Debug)]
pub struct AtMost<T, const MOST: usize> {
    /// Up to `MOST` items, in their order.
    pub items: Vec<T>,
    /// Number of further items, which are not in memory.
    pub more: usize,
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_seq(Items::<T, MOST>(PhantomData))
    }
}

struct Items<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
    type Value = AtMost<T, MOST>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Self::Value, A::Error> {
        let mut list = AtMost { items: Vec::new(), more: 0 };
        while list.items.len() < MOST {
            let Some(item) = input.next_element()? else { return Ok(list) };
            list.items.push(item);
        }
        while input.next_element::<IgnoredAny>()?.is_some() {
            list.more += 1;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_beyond_the_most_are_only_counted() {
        let read = |text: &str| serde_json::from_str::<AtMost<u8, 3>>(text);
        let kept = |text: &str| read(text).map(|list| (list.items, list.more)).unwrap();
        assert_eq!(kept("[1,2]"), (vec![1, 2], 0));
        assert_eq!(kept("[1,2,3]"), (vec![1, 2, 3], 0));
        assert_eq!(kept("[1,2,3,{},\"x\"]"), (vec![1, 2, 3], 2));
        assert!(read("{}").unwrap_err().to_string().contains("a list"));
        assert!(read("[1,2,3,").is_err());
    }
}
