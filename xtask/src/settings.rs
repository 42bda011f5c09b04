//! The reference of settings in `docs/configuration.md`, made from the declarations in `app/cli/src/config/settings/` and, of
//! mirrors, from the options of `abreast sync`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Expr, ExprLit, Field, GenericArgument, Ident, Item, ItemStruct, Lit, LitBool,
    LitStr, Meta, PathArguments, Token, Type, braced,
};

use crate::process::root;
use crate::tree;

const SOURCE: &str = "app/cli/src";
/// Files with declarations, in the order of the page.
const DECLARED: [&str; 2] = ["config/settings/server.rs", "config/settings/set.rs"];
/// The struct with the options of `sync`, and the list of those that are not allowed in files.
const OPTIONS: &str = "SyncArgs";
const NOT_FOR_FILES: &str = "NOT_FOR_FILES";

const HEAD: &str = "# Settings

Every table and key of the configuration file of `abreast serve --config FILE` and `abreast sync --config FILE`, with its type and
default. [abreast.example.toml](../abreast.example.toml) shows every key with a value.

Flags take precedence over environment variables, these over the file, and the file over defaults. `abreast config check FILE` reports
all errors of a file, and `abreast config show FILE --origin` prints every value and where it is set. Relative paths are relative to
the folder in which the command is started.

A *time* is a text with a unit, such as `200ms`, `30s`, `1h` or `7d`. A *size* is a number of bytes, or a text
such as `500MiB`, `10G` or `10GB`: `K`, `M`, `G` and `T` are powers of 1024 as `KiB` is, `kB` to `TB` powers of 1000; case is ignored. *Boolean* is `true` or `false`. A default in code is the value itself.

A running server applies a changed file at a [reload](reloading.md), except for keys and tables with *Restart* behind their meaning.

This file is made from the code by `cargo xtask generate`.
";

const MIRROR: &str = "\nA copy that `abreast sync` makes: a [job](filters.md#jobs). It has the first three keys, and the options of `abreast \
sync` with `_` for `-`.\n";

/// Keys of a mirror that are not options: their type, default and meaning.
const PLACES: [[&str; 4]; 3] = [
    ["name", "text", "the folder's name", "Name of the job"],
    ["url", "text", "*required*", "Any address of the Source"],
    ["folder", "text", "*required*", "The copy: a folder, or another target of `abreast sync`"],
];

/// A row of a table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    key: String,
    kind: String,
    default: String,
    flag: String,
    env: String,
    meaning: String,
}

/// A table that the macro `settings!` declares.
struct Declared {
    about: String,
    title: String,
    rows: Vec<Row>,
}

/// The text of the file.
pub(crate) fn page() -> Result<String> {
    let mut text = HEAD.to_owned();
    for file in DECLARED {
        for item in parsed(&root().join(SOURCE).join(file))? {
            let Item::Macro(item) = item else { continue };
            let Declared { about, title, rows } = item.mac.parse_body()?;
            let title = match title.as_str() {
                "" => "Keys outside tables".to_owned(),
                title if title.starts_with('[') => format!("`{title}`"),
                inner => format!("{inner} of a `[[set]]`"),
            };
            let _ = write!(text, "\n## {title}\n\n{about}\n\n");
            push_table(&mut text, rows);
        }
    }
    let mut rows: Vec<Row> = PLACES
        .iter()
        .map(|place| place.map(str::to_owned))
        .map(|[key, kind, default, meaning]| Row { key, kind, default, meaning, ..Row::default() })
        .collect();
    rows.extend(options_of_sync()?);
    let _ = write!(text, "\n## `[[mirror]]`\n{MIRROR}");
    push_table(&mut text, rows);
    Ok(text)
}

fn parsed(path: &std::path::Path) -> Result<Vec<Item>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file =
        syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
    Ok(file.items)
}

fn push_table(text: &mut String, rows: Vec<Row>) {
    let has_flag = rows.iter().any(|row| !row.flag.is_empty());
    let has_env = rows.iter().any(|row| !row.env.is_empty());
    let mut push = |[key, kind, default, flag, env, meaning]: [&str; 6]| {
        text.push('|');
        for (cell, is_shown) in [
            (key, true),
            (kind, true),
            (default, true),
            (flag, has_flag),
            (env, has_env),
            (meaning, true),
        ] {
            if is_shown {
                let space = if cell.is_empty() { "" } else { " " };
                let _ = write!(text, "{space}{cell} |");
            }
        }
        text.push('\n');
    };
    push(["key", "type", "default", "flag", "environment", "meaning"]);
    push(["---"; 6]);
    for Row { key, kind, default, flag, env, meaning } in rows {
        let (default, kind, meaning) = (cell(&default), cell(&kind), cell(&meaning));
        push([&code(&key), &kind, &default, &code(&flag), &code(&env), &meaning]);
    }
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A text in which nothing but code and links is markup.
fn cell(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| {
        if number % 2 == 0 && part != "*required*" {
            part.replace('*', "\\*").replace("\\*Restart\\*", "*Restart*")
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("`").replace('|', "\\|")
}

impl Parse for Declared {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let about = doc(&input.call(Attribute::parse_outer)?);
        let (_table, _type) = (input.parse::<Ident>()?, input.parse::<Ident>()?);
        let title = input.parse::<LitStr>()?.value();
        let (body, mut rows);
        braced!(body in input);
        rows = Vec::new();
        while !body.is_empty() {
            rows.push(body.parse()?);
        }
        // Fields that are no keys.
        input.parse::<TokenStream>()?;
        Ok(Self { about, title, rows })
    }
}

impl Parse for Row {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let text = doc(&input.call(Attribute::parse_outer)?);
        let (meaning, stated) = text.split_once("Default: ").unwrap_or((&text, ""));
        let mut row = Self {
            key: input.parse::<Ident>()?.to_string(),
            meaning: meaning.trim().trim_end_matches('.').to_owned(),
            default: stated.trim_end_matches('.').to_owned(),
            ..Self::default()
        };
        input.parse::<Token![:]>()?;
        let kind: Type = input.parse()?;
        row.kind = name_of(&kind);
        if is_a(&kind, "Needed") {
            row.default = String::from("*required*");
        }
        if input.parse::<Option<Token![=]>>()?.is_some() {
            let value = input.parse::<TokenTree>()?.to_string();
            if row.default.is_empty() {
                row.default = code(&value);
            }
        }
        while input.parse::<Option<Token![,]>>()?.is_some() {
            let what = input.parse::<Ident>()?;
            if what == "table" {
                input.parse::<Ident>()?;
                continue;
            }
            if what == "restart" {
                input.parse::<LitBool>()?;
                row.meaning.push_str(". *Restart*");
                continue;
            }
            let value = input.parse::<LitStr>()?.value();
            match what.to_string().as_str() {
                "key" => row.key = value,
                "flag" => row.flag = value,
                "env" => row.env = value,
                _ => {
                    return Err(syn::Error::new(
                        what.span(),
                        "expected key, table, flag, env or restart",
                    ));
                }
            }
        }
        input.parse::<Token![;]>()?;
        Ok(row)
    }
}

/// The options of `sync` that a file may have.
fn options_of_sync() -> Result<Vec<Row>> {
    let (mut structs, mut left_out) = (BTreeMap::new(), Vec::new());
    for path in tree::files(&root().join(SOURCE), &[".rs"])? {
        for item in parsed(&path)? {
            match item {
                Item::Struct(item) => drop(structs.insert(item.ident.to_string(), item)),
                Item::Const(item) if item.ident == NOT_FOR_FILES => left_out = texts(&item.expr),
                _ => {}
            }
        }
    }
    let mut rows = Vec::new();
    push_options(OPTIONS, &structs, &mut rows)?;
    rows.retain(|row| !left_out.contains(&row.key));
    Ok(rows)
}

/// The texts of a list.
fn texts(list: &Expr) -> Vec<String> {
    match list {
        Expr::Reference(list) => texts(&list.expr),
        Expr::Array(list) => list.elems.iter().map(literal).collect(),
        _ => Vec::new(),
    }
}

fn push_options(
    name: &str,
    structs: &BTreeMap<String, ItemStruct>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    // Some are parsed as another struct.
    let raw = structs.get(&format!("Raw{name}"));
    let options = raw.or_else(|| structs.get(name)).with_context(|| format!("no struct {name}"))?;
    for field in &options.fields {
        match option(field)? {
            Some(row) => rows.push(row),
            None if is_flattened(field) => push_options(&innermost(&field.ty), structs, rows)?,
            None => {}
        }
    }
    Ok(())
}

fn is_flattened(field: &Field) -> bool {
    let words =
        |attribute: &Attribute| attribute.parse_args::<Ident>().is_ok_and(|word| word == "flatten");
    field.attrs.iter().any(|attribute| attribute.path().is_ident("command") && words(attribute))
}

/// An option of clap; `None` for other fields.
fn option(field: &Field) -> Result<Option<Row>> {
    let Some(name) = field.ident.as_ref().map(Ident::to_string) else { return Ok(None) };
    let (text, is_list) = (doc(&field.attrs), is_a(&field.ty, "Vec"));
    let stated = text.split_once(" [default: ");
    let meaning = stated.map_or(text.clone(), |(before, rest)| {
        let (_, after) = rest.split_once(']').unwrap_or_default();
        format!("{before}{after}")
    });
    let default = stated.and_then(|(_, rest)| rest.split(']').next()).unwrap_or_default();
    let mut row = Row { key: name.clone(), meaning, default: default.to_owned(), ..Row::default() };
    let (mut value_name, mut repeats) = (String::new(), is_list);
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("arg")) {
        attribute.parse_nested_meta(|meta| {
            let value = if meta.input.peek(Token![=]) {
                literal(&meta.value()?.parse()?)
            } else {
                String::new()
            };
            match meta.path.require_ident()?.to_string().as_str() {
                "long" if value.is_empty() => row.flag = format!("--{}", name.replace('_', "-")),
                "long" => row.flag = format!("--{value}"),
                "env" => row.env = value,
                "value_name" => value_name = value,
                "default_value" | "default_value_t" => row.default = code(&value),
                "value_delimiter" => repeats = true,
                _ => {}
            }
            Ok(())
        })?;
    }
    row.kind = match innermost(&field.ty).as_str() {
        "bool" => "boolean".to_owned(),
        _ if repeats => format!("list of {}", code(&value_name)),
        _ => code(&value_name),
    };
    if row.kind == "boolean" && row.default.is_empty() {
        row.default = code("false");
    }
    Ok(Some(row).filter(|row| !row.flag.is_empty()))
}

/// A literal as text; nothing for other expressions.
fn literal(value: &Expr) -> String {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value(),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.to_string(),
        _ => String::new(),
    }
}

/// The documentation in one line.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(literal(&pair.value)),
        _ => None,
    });
    lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join(" ")
}

/// The last name of a type, and the first type that it is made of.
fn parts(kind: &Type) -> Option<(String, Option<&Type>)> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last()?;
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.first(),
        _ => None,
    };
    let inner = inner.and_then(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    });
    Some((last.ident.to_string(), inner))
}

fn is_a(kind: &Type, name: &str) -> bool {
    parts(kind).is_some_and(|(last, _)| last == name)
}

fn innermost(kind: &Type) -> String {
    match parts(kind) {
        Some((_, Some(inner))) => innermost(inner),
        Some((last, None)) => last,
        None => String::new(),
    }
}

/// The type of a key as the page calls it.
fn name_of(kind: &Type) -> String {
    match parts(kind) {
        Some((last, Some(inner))) if last == "Vec" => match name_of(inner).as_str() {
            "table" => "tables".to_owned(),
            one => format!("list of {one}s"),
        },
        Some((_, Some(inner))) => name_of(inner),
        Some((last, None)) => match last.as_str() {
            "String" => "text".to_owned(),
            "PathBuf" => "path".to_owned(),
            "bool" => "boolean".to_owned(),
            "u32" | "u64" | "usize" => "number".to_owned(),
            "VersionsFile" => "number, text or table".to_owned(),
            table if table.ends_with("File") || table == "Table" => "table".to_owned(),
            other => other.to_lowercase(),
        },
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_key_becomes_a_row() {
        let row = |text: &str| syn::parse_str::<Row>(text).unwrap();
        let given = row(
            "/// How long,\n/// `0s` for never.\nsome_time: Option<Time> = \"1h\", key \"time\", flag \"--time\", env \"TIME\";",
        );
        let expected = ["time", "time", "`\"1h\"`", "--time", "TIME", "How long, `0s` for never"];
        assert_eq!(given, of(expected));
        let needed = row("/// One.\nurls: Needed<Vec<String>>, table URLS;");
        assert_eq!(needed, of(["urls", "list of texts", "*required*", "", "", "One"]));
        let stated = row("/// Title. Default: the name.\n#[serde(default)]\ntitle: String;");
        assert_eq!(stated, of(["title", "text", "the name", "", "", "Title"]));
        assert!(syn::parse_str::<Row>("key: bool, falg \"--key\";").is_err());
    }

    #[test]
    fn an_option_becomes_a_row() {
        let item: ItemStruct = syn::parse_str(
            "struct SomeArgs {\n/// Limit bytes: 1|2 [default: none]; again\n\
             #[arg(long, value_name = \"RATE\", env = \"LIMIT\", value_parser = parse)]\nbw_limit: Vec<Rate>,\n\
             /// Times\n#[arg(short, long = \"tries\", value_name = \"N\", default_value_t = 5, value_parser = p(1..=6))]\nretries: u32,\n\
             /// Quiet\n#[arg(long)]\nquiet: bool,\n#[arg(skip)]\nother: bool }",
        )
        .unwrap();
        let mut rows = Vec::new();
        push_options("SomeArgs", &BTreeMap::from([("RawSomeArgs".to_owned(), item)]), &mut rows)
            .unwrap();
        let expected = [
            [
                "bw_limit",
                "list of `RATE`",
                "none",
                "--bw-limit",
                "LIMIT",
                "Limit bytes: 1|2; again",
            ],
            ["retries", "`N`", "`5`", "--tries", "", "Times"],
            ["quiet", "boolean", "`false`", "--quiet", "", "Quiet"],
        ];
        assert_eq!(rows, expected.map(of));
        assert_eq!(cell("'*.x' or `*.y` | z"), "'\\*.x' or `*.y` \\| z");
    }

    fn of(cells: [&str; 6]) -> Row {
        let [key, kind, default, flag, env, meaning] = cells.map(str::to_owned);
        Row { key, kind, default, flag, env, meaning }
    }
}
