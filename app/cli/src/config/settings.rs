//! The settings of the configuration file, each declared once: its key and type, its default, its flag, its
//! environment variable and its meaning. `docs/configuration.md` is made from these declarations.

mod declare;
mod server;
mod set;

pub(crate) use declare::{Declared, Key, Table};
pub(crate) use server::{
    ApiFile, FILE, File, HubFile, InstitutionFile, KnownFile, NotifyFile, XmppFile,
};
pub(crate) use set::{
    AllVersions, CategoryFile, DumpsFile, EndpointFile, OptionsFile, RuleFile, SET, SetFile,
    SetLinkFile, VersionsFile, VersionsTable, WebhookFile,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServeConfig;
    use clap::Args as _;
    use toml::Value;

    const EXAMPLE: &str = include_str!("../../../../abreast.example.toml");

    /// Every table, the outer ones first.
    fn tables() -> Vec<&'static Table> {
        let mut tables = vec![&FILE];
        let mut at = 0;
        while let Some(table) = tables.get(at).copied() {
            tables.extend(table.keys.iter().filter_map(|key| key.inner));
            at += 1;
        }
        tables
    }

    /// The keys that a type is read from, as its error states them.
    fn keys_of<T: serde::de::DeserializeOwned>() -> Vec<String> {
        let error = toml::from_str::<T>("unknown = 1").map(drop).unwrap_err();
        let (_, keys) = error.message().split_once("expected ").unwrap();
        keys.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn keys_that_are_read_are_declared() {
        let read = [
            keys_of::<File>(),
            keys_of::<server::DatabaseFile>(),
            keys_of::<server::TlsFile>(),
            keys_of::<server::KnownFile>(),
            keys_of::<InstitutionFile>(),
            keys_of::<ApiFile>(),
            keys_of::<HubFile>(),
            keys_of::<NotifyFile>(),
            keys_of::<XmppFile>(),
            keys_of::<SetFile>(),
            keys_of::<set::ArchivesFile>(),
            keys_of::<EndpointFile>(),
            keys_of::<RuleFile>(),
            keys_of::<CategoryFile>(),
            keys_of::<OptionsFile>(),
            keys_of::<SetLinkFile>(),
            keys_of::<set::WebhookFile>(),
            keys_of::<DumpsFile>(),
            keys_of::<VersionsTable>(),
        ];
        let declared: Vec<_> = tables().iter().map(|table| table.names()).collect();
        assert_eq!(read.len(), declared.len());
        for (read, declared) in read.iter().zip(&declared) {
            assert_eq!(read, declared);
        }
        let mut keys = tables().into_iter().flat_map(|table| table.keys);
        assert!(keys.all(|key| !key.kind.contains(' ')), "types are recognised by their text");
    }

    /// A value that is not the default.
    fn another(key: &Key, default: &Value) -> Value {
        match (default, key.name) {
            (Value::Boolean(is), _) => (!is).into(),
            (Value::Integer(number), _) => (number + 1).into(),
            (_, "listen") => "127.0.0.1:8081".into(),
            (_, "access_log_format") => "json".into(),
            (_, "read") => "token".into(),
            (_, "accent") => "#7a1f2b".into(),
            (_, "submit") => "form".into(),
            (_, "signature") => "sha512".into(),
            (_, "digests") => "both".into(),
            (_, "origin") => "rdf".into(),
            (_, "compression") => "deflate".into(),
            _ if key.kind.contains("Time") => "6m".into(),
            _ if key.kind.contains("Size") => "2MiB".into(),
            (other, name) => panic!("`{name}` = {other}"),
        }
    }

    #[test]
    fn declared_defaults_are_those_in_effect() {
        let place = tempfile::tempdir().unwrap();
        let head = format!("data = {:?}\n", place.path().join(".store"));
        let set = format!("[[set]]\nfolder = {:?}\n", place.path());
        let mut compared = 0;
        for table in tables() {
            let more = match table.name {
                "[[known]]" => "name = \"a\"\ntoken = \"t\"\n",
                "[hub]" => "redirect = \"http://h.example/\"\n",
                "[xmpp]" => "jid = \"a@h.example\"\npassword_command = \"true\"\n",
                "[[set.links]]" => "match = \"*\"\nrel = \"describedby\"\nhref = \"x\"\n",
                "`archives`" => "every = \"8d\"\n",
                "`endpoint`" => "url = \"http://h.example/\"\n",
                _ => "",
            };
            let inner = table.name.trim_matches('`');
            let config = |line: &str| {
                let text = match table.name {
                    "" => format!("{head}{line}\n{set}"),
                    "[[set]]" => format!("{head}{set}{line}\n"),
                    "`endpoint`" => {
                        let origin = "[[set]]\nname = \"e\"\norigin = \"sparql\"\n";
                        format!("{head}{origin}[set.endpoint]\n{more}{line}\n")
                    }
                    name if name.starts_with('`') => {
                        format!("{head}{set}[set.{inner}]\n{more}{line}\n")
                    }
                    name if name.starts_with("[[set.") => {
                        format!("{head}{set}{name}\n{more}{line}\n")
                    }
                    name => format!("{head}{name}\n{more}{line}\n{set}"),
                };
                let config = File::parse(&text).and_then(ServeConfig::check);
                let set = config.as_ref().ok().map(|config| config.sets[0].clone());
                (set, format!("{:?}", config.map_err(|error| error.to_string())))
            };
            let is_of_set = table.name.starts_with(['`']) || table.name.starts_with("[[set");
            // Only a hub alone has a database.
            let is_left_out =
                table.name == "[database]" || table.name == "[xmpp]" && cfg!(not(feature = "xmpp"));
            for key in table.keys.iter().filter(|_| !is_left_out) {
                let Some(default) = key.default().filter(|default| !default.is_array()) else {
                    continue;
                };
                let with = |value: &Value| config(&format!("{} = {value}", key.name));
                let (name, shown) = (table.name, config(""));
                let set =
                    shown.0.unwrap_or_else(|| panic!("{name} without `{}`: {}", key.name, shown.1));
                let same = with(&default);
                assert_eq!(same.1, shown.1, "{name} `{}` = {default}", key.name);
                assert!(same.0.is_some_and(|same| same.is_as(&set)), "{name} `{}`", key.name);
                let other = another(key, &default);
                let changed = with(&other);
                assert_ne!(changed.1, shown.1, "{name} `{}` = {other}", key.name);
                // A reload opens the set again.
                if is_of_set {
                    let is_same = changed.0.is_some_and(|changed| changed.is_as(&set));
                    assert!(!is_same, "{name} `{}` = {other}", key.name);
                }
                compared += 1;
            }
        }
        assert!(compared > 30, "only {compared} defaults");
    }

    #[test]
    fn flags_and_variables_are_those_of_serve() {
        let command = crate::command::args::ServeArgs::augment_args(clap::Command::new("serve"));
        let flag = |arg: &clap::Arg| arg.get_long().map(|long| format!("--{long}"));
        let keys: Vec<&Key> = tables().iter().flat_map(|table| table.keys).collect();
        for key in keys.iter().filter(|key| key.flag.is_some() || key.env.is_some()) {
            let arg = command.get_arguments().find(|arg| flag(arg).as_deref() == key.flag);
            let arg = arg.unwrap_or_else(|| panic!("`{}`: {:?}", key.name, key.flag));
            assert_eq!(arg.get_env().map(|env| env.to_str().unwrap()), key.env, "{arg}");
        }
        // They choose the file, or are of one start.
        let others = ["--config", "--new-store", "--confirm-deletions", "--progress"];
        for flag in command.get_arguments().filter_map(flag) {
            let declared = keys.iter().filter(|key| key.flag == Some(&flag)).count();
            assert_eq!(declared, usize::from(!others.contains(&flag.as_str())), "{flag}");
        }
    }

    #[test]
    fn the_example_has_every_key_and_its_default() {
        let mut text = String::new();
        for line in EXAMPLE.lines() {
            let key =
                line.strip_prefix('#').filter(|key| key.contains(" = ") && !key.starts_with(' '));
            text.push_str(key.unwrap_or(line));
            text.push('\n');
        }
        let file: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(File::parse(&text).unwrap().set.len(), 4);
        assert_in_example(&FILE, &[&file], &text);
    }

    fn assert_in_example(table: &Table, values: &[&toml::Table], text: &str) {
        for key in table.keys {
            let place = format!("{} `{}`", table.name, key.name);
            let found = values.iter().find_map(|values| values.get(key.name));
            // The older spelling of another key.
            let Some(value) = found else {
                assert!(key.name == "records" && text.contains("`records = true`"), "{place}");
                continue;
            };
            if let Some(inner) = key.inner {
                let all = values.iter().filter_map(|values| values.get(key.name));
                let all = all.flat_map(|value| {
                    value.as_array().map_or(vec![value], |all| all.iter().collect())
                });
                assert_in_example(
                    inner,
                    &all.filter_map(Value::as_table).collect::<Vec<_>>(),
                    text,
                );
            } else if let Some(default) = key.default().filter(|default| !default.is_array()) {
                let comment = text.split(&format!("\n{} = ", key.name)).next().unwrap();
                let comment = comment.rsplit("\n\n").next().unwrap().lines().rev();
                let comment = comment.take_while(|line| line.starts_with('#'));
                let stated = format!("Default: {default}.");
                let is_stated = comment.into_iter().any(|line| line.ends_with(&stated));
                assert!(
                    key.printed(value.clone()) == default || is_stated,
                    "{place}: {value}, not {default}"
                );
            }
        }
    }
}
