//! Lists in JSON with a most number of items, which is enforced while they are read.

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// A list of at most that many items.
#[derive(Debug)]
pub struct AtMost<T, const MOST: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_seq(Items::<T, MOST>(PhantomData)).map(Self)
    }
}

struct Items<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a list of at most {MOST} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = input.next_element()? {
            if items.len() == MOST {
                return Err(de::Error::custom(format!("the list has more than {MOST} items")));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_list_is_refused() {
        let read = |text: &str| serde_json::from_str::<AtMost<u8, 3>>(text);
        assert_eq!(read("[1,2,3]").unwrap().0, [1, 2, 3]);
        let error = read("[1,2,3,4]").unwrap_err().to_string();
        assert!(error.starts_with("the list has more than 3 items"), "{error}");
        assert!(read("{}").unwrap_err().to_string().contains("a list of at most 3 items"));
    }
}
