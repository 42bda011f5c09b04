//! Numbers of bytes in options and settings.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

const EXPECTED: &str = "expected bytes such as `1000`, `10K`, `1.5MiB` or `2GB`";

/// Bytes in an option: a number, with or without a unit.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    abreast_net::parse_size(text).ok_or_else(|| EXPECTED.to_owned())
}

/// Bytes in a setting: a number, or a text with a unit.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct Size(pub(crate) u64);

impl std::fmt::Debug for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Size;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes such as `1000`, `10K`, `1.5MiB` or `2GB`")
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Size, E> {
                let size = u64::try_from(bytes).map(Size);
                size.map_err(|_| E::invalid_value(Unexpected::Signed(bytes), &self))
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(bytes))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                let size = abreast_net::parse_size(text).map(Size);
                size.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::command::args::Cli;
    use clap::{Arg, Command, CommandFactory as _};

    fn each_option(command: &Command, found: &mut Vec<Arg>) {
        found.extend(command.get_arguments().cloned());
        for inner in command.get_subcommands() {
            each_option(inner, found);
        }
    }

    #[test]
    fn every_size_and_time_of_an_option_has_a_unit() {
        let mut command = Cli::command();
        command.build();
        let mut options = Vec::new();
        each_option(&command, &mut options);
        let mut compared = 0;
        for option in options {
            let Some(unit) = option.get_value_names().and_then(|names| names.first()) else {
                continue;
            };
            assert!(!["MIB", "BYTES", "SECONDS", "MINUTES"].contains(&unit.as_str()), "{option}");
            let values: &[&str] = match unit.as_str() {
                "SIZE" => &["1500", "10K", "1.5MiB", "500 MB", "2g"],
                "TIME" => &["1m 30s", "90s", "1500ms", "2h", "1d"],
                _ => continue,
            };
            for value in values {
                let alone = Arg::new("it").value_parser(option.get_value_parser().clone());
                let parsed = Command::new("one").arg(alone).try_get_matches_from(["one", value]);
                assert!(parsed.is_ok(), "{option}: {value}: {parsed:?}");
                compared += 1;
            }
        }
        assert!(compared > 50, "{compared}");
    }
}
