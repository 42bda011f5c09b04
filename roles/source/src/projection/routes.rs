//! Routes: each line of a table has the pattern of a path, by which the path is parsed and written.

use crate::publish::SetUrls;
use abreast_core::{Position, ShardId};
use abreast_webtypes::{Timestamp, decode_segment, encode_segment};
use std::fmt::Write as _;

/// A value in a path.
pub(super) trait PathValue: Sized {
    /// Parses the canonical form only, so that a document has one path.
    fn parse(text: &str) -> Option<Self>;
    /// Appends the canonical form to a path.
    fn write(&self, path: &mut String);
}

impl PathValue for u64 {
    fn parse(text: &str) -> Option<Self> {
        super::plain_number(text)
    }

    fn write(&self, path: &mut String) {
        let _ = write!(path, "{self}");
    }
}

macro_rules! numbered {
    ($($type:ident)+) => {$(
        impl PathValue for $type {
            fn parse(text: &str) -> Option<Self> {
                u64::parse(text).map(Self)
            }

            fn write(&self, path: &mut String) {
                self.0.write(path);
            }
        }
    )+};
}
numbered!(ShardId Position);

/// Microseconds since 1970.
impl PathValue for Timestamp {
    fn parse(text: &str) -> Option<Self> {
        i64::try_from(u64::parse(text)?).ok().map(Self::from_micros)
    }

    fn write(&self, path: &mut String) {
        let _ = write!(path, "{}", self.as_micros());
    }
}

/// A text as one segment, in any encoding.
impl PathValue for String {
    fn parse(text: &str) -> Option<Self> {
        let is_segment = !text.is_empty() && !text.contains('/');
        is_segment.then(|| Self::from_utf8(decode_segment(text.as_bytes())).ok()).flatten()
    }

    fn write(&self, path: &mut String) {
        encode_segment(self.as_bytes(), path);
    }
}

/// A document with a path for each of its values.
pub(super) trait Route: Sized {
    #[cfg(test)]
    const PATTERNS: &[&str];

    /// Parses a path without its base.
    fn parse_path(path: &str) -> Option<Self>;

    /// Appends the path to a URL.
    fn write_path(&self, url: &mut String);

    /// Parses a path below the public base into set and document; `find` returns the set with a
    /// name.
    fn parse_in_set<S>(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<(S, Self)> {
        let (slug, rest) = path.split_once('/')?;
        let document = Self::parse_path(rest)?;
        Some((find(slug)?, document))
    }

    /// URL below a base.
    fn url_below(&self, base: &str) -> String {
        let mut url = base.to_owned();
        self.write_path(&mut url);
        url
    }

    /// URL of the document in a set.
    fn url(&self, set: &SetUrls) -> String {
        self.url_below(set.base())
    }
}

/// The texts of the values in a path; each `{}` of the pattern stands for a value.
pub(super) fn values<'p, const N: usize>(pattern: &str, path: &'p str) -> Option<[&'p str; N]> {
    let mut literals = pattern.split("{}");
    let mut rest = path.strip_prefix(literals.next()?)?;
    let mut found = [""; N];
    for (value, literal) in found.iter_mut().zip(literals) {
        (*value, rest) = if literal.is_empty() { (rest, "") } else { rest.split_once(literal)? };
    }
    rest.is_empty().then_some(found)
}

/// An enum of documents, each with the pattern of its path.
macro_rules! routes {
    ($(#[$of_all:meta])* enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(($($value:ident: $type:ty),+))? = $pattern:literal,)+
    }) => {
        $(#[$of_all])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($(#[$doc])* $variant $(($($type),+))?,)+
        }

        impl $crate::projection::routes::Route for $name {
            #[cfg(test)]
            const PATTERNS: &[&str] = &[$($pattern),+];

            fn parse_path(path: &str) -> Option<Self> {
                use $crate::projection::routes::values;
                $(let found = values($pattern, path).and_then(|[$($($value),+)?]| {
                    Some(Self::$variant $(($(<$type as $crate::projection::routes::PathValue>::parse($value)?),+))?)
                });
                if found.is_some() {
                    return found;
                })+
                None
            }

            fn write_path(&self, url: &mut String) {
                match self {
                    $(Self::$variant $(($($value),+))? => {
                        let mut literals = $pattern.split("{}");
                        url.push_str(literals.next().unwrap_or_default());
                        $($(
                            $crate::projection::routes::PathValue::write($value, url);
                            url.push_str(literals.next().unwrap_or_default());
                        )+)?
                    })+
                }
            }
        }
    };
}
pub(super) use routes;

#[cfg(test)]
pub(super) mod tests {
    use super::Route;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    use std::cell::Cell;
    use std::fmt::Debug;

    /// Texts of which each type of values can parse one.
    const VALUES: [&str; 7] = [
        "0|[1-9][0-9]{0,17}",
        "[1-9][0-9]{0,9}-[1-9][0-9]{0,9}",
        "[1-9]-(2|4|64)-[12]",
        "rdf|nt|txt|ttl",
        "(resourcelist|changelist|resourcedump|changedump)-archive",
        "[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "\\PC{1,12}",
    ];

    /// Every document that is parsed from a path of a table has a path that is parsed as the same
    /// document, and every pattern has such documents.
    pub(in crate::projection) fn assert_read_back<R: Route + Debug + PartialEq>() {
        let config = Config { failure_persistence: None, ..Config::with_cases(64) };
        for pattern in R::PATTERNS {
            let read = Cell::new(0);
            let outcome = TestRunner::new(config.clone()).run(&VALUES, |values| {
                let mut literals = pattern.split("{}");
                let mut paths = vec![literals.next().unwrap_or_default().to_owned()];
                for literal in literals {
                    let with =
                        |value| paths.iter().map(move |path| format!("{path}{value}{literal}"));
                    paths = values.iter().flat_map(with).collect();
                }
                for route in paths.iter().filter_map(|path| R::parse_path(path)) {
                    read.set(read.get() + 1);
                    prop_assert_eq!(R::parse_path(&route.url_below("")), Some(route));
                }
                Ok(())
            });
            outcome.unwrap();
            assert!(read.get() > 0, "{pattern}");
        }
    }
}
