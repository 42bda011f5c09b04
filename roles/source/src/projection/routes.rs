//! Routes: each line of a table has the pattern of a path, by which the path is parsed and written.

use abreast_core::{Position, ShardId};
use abreast_webtypes::Timestamp;

/// A value in a path.
pub(super) trait PathValue: Sized {
    /// Parses the canonical form only, so that a document has one path.
    fn parse(text: &str) -> Option<Self>;
    fn text(&self) -> String;
}

impl PathValue for u64 {
    fn parse(text: &str) -> Option<Self> {
        super::plain_number(text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl PathValue for ShardId {
    fn parse(text: &str) -> Option<Self> {
        u64::parse(text).map(Self)
    }

    fn text(&self) -> String {
        self.0.text()
    }
}

impl PathValue for Position {
    fn parse(text: &str) -> Option<Self> {
        u64::parse(text).map(Self)
    }

    fn text(&self) -> String {
        self.0.text()
    }
}

/// Microseconds since 1970.
impl PathValue for Timestamp {
    fn parse(text: &str) -> Option<Self> {
        i64::try_from(u64::parse(text)?).ok().map(Self::from_micros)
    }

    fn text(&self) -> String {
        self.as_micros().to_string()
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

/// The path with these values.
pub(super) fn path<const N: usize>(pattern: &str, values: [String; N]) -> String {
    let mut values = values.into_iter();
    let literals = pattern.split("{}").map(str::to_owned);
    literals
        .reduce(|path, literal| path + &values.next().unwrap_or_default() + &literal)
        .unwrap_or_default()
}

/// An enum of documents, each with the pattern of its path below the path of the set.
macro_rules! routes {
    ($(#[$of_all:meta])* enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(($($value:ident: $type:ty),+))? = $pattern:literal,)+
    }) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($(#[$doc])* $variant $(($($type),+))?,)+
        }

        impl $name {
            /// Parses a path below the path of the set.
            fn parse_in_set(path: &str) -> Option<Self> {
                use $crate::projection::routes::{PathValue as _, values};
                $(let found = values($pattern, path).and_then(|[$($($value),+)?]| {
                    Some(Self::$variant $(($(<$type>::parse($value)?),+))?)
                });
                if found.is_some() {
                    return found;
                })+
                None
            }

            /// URL of the document in a set.
            pub(super) fn url(self, set: &$crate::publish::SetUrls) -> String {
                use $crate::projection::routes::{PathValue as _, path};
                set.base().to_owned() + &match self {
                    $(Self::$variant $(($($value),+))? => path($pattern, [$($($value.text()),+)?]),)+
                }
            }
        }
    };
}
pub(super) use routes;
