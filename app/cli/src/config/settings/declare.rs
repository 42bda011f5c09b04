//! How settings are declared.

use toml::Value;

pub(super) use crate::values::sizes::Size;

/// A time with its unit, such as `30s`.
pub(super) type Time = String;
/// A value that must be there.
pub(super) type Needed<T> = T;

/// A table of the configuration file.
pub(crate) struct Table {
    /// As errors show it.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [Key],
}

/// The values of a table of the configuration file.
pub(crate) trait Declared {
    /// The declaration of the table.
    fn table() -> &'static Table;

    /// The values as text, in the order of the keys.
    fn values(&self) -> Vec<String>;

    /// The keys with different values, and both values. The value of an absent key is the default.
    fn different(&self, other: &Self) -> Vec<(&'static Key, [String; 2])> {
        let values = self.values().into_iter().zip(other.values());
        let shown = Self::table()
            .keys
            .iter()
            .zip(values)
            .map(|(key, (one, two))| (key, [one, two].map(|value| key.shown(&value))));
        shown.filter(|(_, [one, two])| one != two).collect()
    }
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Type, such as `Option<Time>`.
    pub(super) kind: &'static str,
    /// As TOML; `None` without a default, and if it depends on other settings.
    pub(super) default: Option<&'static str>,
    pub(crate) env: Option<&'static str>,
    #[cfg(test)]
    pub(super) flag: Option<&'static str>,
    /// The table of the value.
    pub(crate) inner: Option<&'static Table>,
    /// Only a start applies the value.
    pub(crate) is_of_start: bool,
}

impl Table {
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    /// Whether a key of this table, or of one in it, has this name and is such a key.
    pub(crate) fn has(&self, name: &str, is_such: fn(&Key) -> bool) -> bool {
        let inside = |key: &Key| key.inner.is_some_and(|inner| inner.has(name, is_such));
        self.keys.iter().any(|key| key.name == name && is_such(key) || inside(key))
    }

    /// Adds the defaults to values of this table.
    pub(crate) fn fill_in(&self, values: &mut toml::Table) {
        for key in self.keys {
            if let Some(value) = key.default().filter(|_| !values.contains_key(key.name)) {
                values.insert(key.name.to_owned(), value);
            }
        }
    }
}

impl Key {
    pub(crate) fn is_needed(&self) -> bool {
        self.kind.starts_with("Needed")
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.kind.contains("Vec")
    }

    pub(crate) fn is_time(&self) -> bool {
        self.kind.contains("Time")
    }

    /// The default as the program prints it.
    pub(crate) fn default(&self) -> Option<Value> {
        Some(self.printed(self.default?.parse().ok()?))
    }

    /// A value as text, without the `Some` of the type; `None` is replaced by the default.
    fn shown(&self, value: &str) -> String {
        let value =
            value.strip_prefix("Some(").and_then(|value| value.strip_suffix(')')).unwrap_or(value);
        match (value, self.default) {
            ("None", Some(default)) => default.to_owned(),
            _ => value.to_owned(),
        }
    }

    /// Equal times, and equal sizes, are printed equally.
    pub(super) fn printed(&self, value: Value) -> Value {
        let text = value.as_str().unwrap_or_default();
        let printed = if self.is_time() {
            let time = humantime::parse_duration(text).ok();
            time.map(|time| humantime::format_duration(time).to_string())
        } else if self.kind.contains("Size") {
            let bytes = value.as_integer().map(|bytes| bytes.to_string());
            bytes.or_else(|| Some(abreast_net::parse_size(text)?.to_string()))
        } else {
            None
        };
        printed.map_or(value, Value::from)
    }
}

/// Declares a table of the configuration file, and the type that it is read as.
///
/// A key has its meaning, type and default, then, if there are any, its name in the file, the table of its value, the
/// flag and the environment variable that replace it, and `restart true` if only a start applies the value. If the
/// default is not a value, the meaning has it after `Default: `.
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        $table:ident $file:ident $title:literal {
            $(
                $(#[doc = $doc:literal])*
                $(#[serde($absent:ident)])?
                $field:ident: $kind:ty $(= $default:tt)? $(, key $name:literal)? $(, table $inner:ident)?
                $(, flag $flag:literal)? $(, env $env:literal)? $(, restart $restart:literal)?;
            )*
        }
        $(with { $($more:tt)* })?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $file {
            $(
                $(#[doc = $doc])*
                $(#[serde($absent)])?
                $(#[serde(rename = $name)])?
                pub(crate) $field: $kind,
            )*
            $($($more)*)?
        }

        pub(crate) static $table: crate::config::settings::declare::Table = crate::config::settings::declare::Table {
            name: $title,
            keys: &[$(crate::config::settings::declare::Key {
                name: [$($name,)? stringify!($field)][0],
                kind: stringify!($kind),
                default: [$(Some(stringify!($default)),)? None][0],
                env: [$(Some($env),)? None][0],
                #[cfg(test)]
                flag: [$(Some($flag),)? None][0],
                inner: [$(Some(&$inner),)? None][0],
                is_of_start: [$($restart,)? false][0],
            }),*],
        };

        impl crate::config::settings::declare::Declared for $file {
            fn table() -> &'static crate::config::settings::declare::Table {
                &$table
            }

            fn values(&self) -> Vec<String> {
                vec![$(format!("{:?}", self.$field)),*]
            }
        }
    };
}
pub(super) use settings;
