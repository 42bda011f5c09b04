//! Circles of files: in a circle each file imports another one, and the last imports the first.
//!
//! A reader has to understand all files of a circle together. Tests are left out, and a re-export
//! counts as an import of the file that declares the item. `xtask/circles.toml` lists the circles
//! that exist: the check fails if one is new or larger, and also if one is smaller than listed, so
//! that the list is reduced in the same commit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::process::root;
use crate::tree;

/// Names of files that have tests, or what tests share.
const OF_TESTS: [&str; 3] = ["tests.rs", "testing.rs", "fuzz_property.rs"];
/// Longest chain of re-exports that is followed.
const REEXPORTS_MAX: usize = 12;

/// The place of a module in its crate.
type Place = Vec<String>;

/// A path as it is imported, and whether others can import it from here.
struct Import {
    path: Vec<String>,
    is_public: bool,
}

/// One file.
#[derive(Default)]
struct File {
    declares: HashSet<String>,
    /// By the name that they have in this file.
    imports: HashMap<String, Vec<Import>>,
    /// Every other path in the code.
    paths: HashSet<Vec<String>>,
}

/// The list of the circles that exist.
const LIST: &str = "xtask/circles.toml";

/// Differences between the circles of the crates in these folders and the list.
pub(crate) fn faults(folders: &[&Path]) -> Result<Vec<String>> {
    let text =
        fs::read_to_string(root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let listed: BTreeMap<String, Vec<usize>> = toml::from_str(&text)?;
    let (mut faults, mut number, mut files) = (Vec::new(), 0, 0);
    for folder in folders {
        let circles = of_arrows(&arrows(&root().join(folder))?);
        let sizes: Vec<usize> = circles.iter().map(BTreeSet::len).collect();
        number += sizes.len();
        files += sizes.iter().sum::<usize>();
        let name = folder.display().to_string();
        let listed = listed.get(&name).cloned().unwrap_or_default();
        if sizes == listed {
            continue;
        }
        let is_worse =
            (0..sizes.len()).any(|at| listed.get(at).is_none_or(|size| sizes[at] > *size));
        let help = if is_worse {
            "move the shared part to a file that both import"
        } else {
            "write the smaller numbers into that list"
        };
        let files = circles.iter().map(|circle| {
            format!("\n    {}", circle.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
        });
        faults.push(format!(
            "  {name} has circles of {sizes:?} files, and {LIST} lists {listed:?}\n    help: {help}{}",
            files.collect::<String>()
        ));
    }
    println!("{number} circles of files, with {files} files");
    Ok(faults)
}

/// Prints the circles of each crate with the items that their files import from each other.
pub(crate) fn print(folders: &[String]) -> Result<()> {
    for folder in folders {
        let arrows = arrows(&root().join(folder))?;
        for circle in of_arrows(&arrows) {
            println!("{folder}: a circle of {} files", circle.len());
            for ((from, to), items) in &arrows {
                if circle.contains(from) && circle.contains(to) {
                    let items: Vec<&str> = items.iter().map(String::as_str).collect();
                    println!("    {from} -> {to}: {}", items.join(" "));
                }
            }
        }
    }
    Ok(())
}

/// The circles of files, the largest first.
fn of_arrows(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let graph = DiGraphMap::<&str, ()>::from_edges(
        arrows.keys().map(|(from, to)| (from.as_str(), to.as_str())),
    );
    let circles = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
    let mut circles: Vec<BTreeSet<String>> =
        circles.map(|circle| circle.into_iter().map(str::to_owned).collect()).collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The importing file and the imported one, as paths below `src` without `.rs`, with the items.
pub(crate) type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// Every import of a crate's files from each other.
pub(crate) fn arrows(folder: &Path) -> Result<Arrows> {
    let files = files_of(&folder.join("src"))?;
    let mut arrows = Arrows::new();
    for (place, file) in &files {
        let imports = file.imports.values().flatten().filter(|import| !import.is_public);
        let imports = imports.map(|import| absolute(&files, place, &import.path));
        let paths = file.paths.iter().map(|path| absolute_path(&files, place, path));
        for path in imports.chain(paths).flatten() {
            if let Some(other) = owner(&files, &path, 0).filter(|other| *other != place) {
                let item = path.get(other.len()..).unwrap_or_default().join("::");
                arrows.entry((shown(place), shown(other))).or_default().insert(item);
            }
        }
    }
    Ok(arrows)
}

fn shown(place: &Place) -> String {
    if place.is_empty() { "lib".to_owned() } else { place.join("/") }
}

fn files_of(src: &Path) -> Result<BTreeMap<Place, File>> {
    let mut files = BTreeMap::new();
    for path in tree::files(src, &[".rs"])? {
        let below = path.strip_prefix(src)?;
        let mut place: Place = below
            .iter()
            .map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned())
            .collect();
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if OF_TESTS.contains(&name.as_str()) || place.iter().any(|part| part == "testing") {
            continue;
        }
        if matches!(name.as_str(), "mod.rs" | "lib.rs" | "main.rs") {
            place.pop();
        }
        let parsed = syn::parse_file(&fs::read_to_string(&path)?)
            .with_context(|| format!("cannot parse {}", tree::shown(&path)))?;
        if is_of_tests(&parsed.attrs) {
            continue;
        }
        let mut file = File::default();
        file.visit_file(&parsed);
        // A binary beside its library: both have the place of the crate.
        let known: &mut File = files.entry(place).or_default();
        known.declares.extend(file.declares);
        known.paths.extend(file.paths);
        for (name, imports) in file.imports {
            known.imports.entry(name).or_default().extend(imports);
        }
    }
    Ok(files)
}

/// Whether code is compiled for tests alone.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
    })
}

impl File {
    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, is_public: bool) {
        let mut add = |name: &str, path: Vec<String>| {
            self.imports.entry(name.to_owned()).or_default().push(Import { path, is_public });
        };
        match tree {
            UseTree::Path(next) => {
                path.push(next.ident.to_string());
                self.import(&next.tree, path, is_public);
                path.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                let last = path.last().cloned().unwrap_or_default();
                add(&last, path.clone());
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                add(&name, [path.as_slice(), std::slice::from_ref(&name)].concat());
            }
            UseTree::Rename(rename) => {
                let name = rename.ident.to_string();
                add(&rename.rename.to_string(), [path.as_slice(), &[name]].concat());
            }
            UseTree::Glob(_) => add("*", path.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path, is_public);
                }
            }
        }
    }

    /// Paths in the text of a macro's call.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.paths.insert(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.paths.insert(std::mem::take(&mut path));
                    self.scan(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.paths.insert(std::mem::take(&mut path));
                }
            }
        }
        self.paths.insert(path);
    }
}

impl<'a> Visit<'a> for File {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, name) = match item {
            Item::Const(it) => (&it.attrs, Some(&it.ident)),
            Item::Enum(it) => (&it.attrs, Some(&it.ident)),
            Item::Fn(it) => (&it.attrs, Some(&it.sig.ident)),
            Item::Macro(it) => (&it.attrs, it.ident.as_ref()),
            Item::Static(it) => (&it.attrs, Some(&it.ident)),
            Item::Struct(it) => (&it.attrs, Some(&it.ident)),
            Item::Trait(it) => (&it.attrs, Some(&it.ident)),
            Item::Type(it) => (&it.attrs, Some(&it.ident)),
            Item::Union(it) => (&it.attrs, Some(&it.ident)),
            Item::Impl(it) => (&it.attrs, None),
            Item::Mod(it) => (&it.attrs, None),
            Item::Use(it) => (&it.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if is_of_tests(attributes) {
            return;
        }
        self.declares.extend(name.map(ToString::to_string));
        if let Item::Use(it) = item {
            let is_public = !matches!(it.vis, Visibility::Inherited);
            self.import(&it.tree, &mut Vec::new(), is_public);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_of_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.scan(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    /// Paths in attributes, such as the parser of an option of the command line.
    fn visit_meta_list(&mut self, list: &'a syn::MetaList) {
        self.scan(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}

/// A path of this crate from its root; `None` for one of another crate.
fn absolute(files: &BTreeMap<Place, File>, from: &Place, path: &[String]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut begin = from.clone();
    match first.as_str() {
        "crate" => return Some(rest.to_vec()),
        "self" => {}
        "super" => {
            begin.pop();
            let above = rest.iter().take_while(|part| *part == "super").count();
            begin.truncate(begin.len().saturating_sub(above));
            begin.extend_from_slice(&rest[above..]);
            return Some(begin);
        }
        child => {
            begin.push(child.to_owned());
            if !files.contains_key(&begin) {
                return None;
            }
        }
    }
    begin.extend_from_slice(rest);
    Some(begin)
}

/// The same for a path in code, which may begin with a name that is imported.
fn absolute_path(
    files: &BTreeMap<Place, File>,
    from: &Place,
    path: &[String],
) -> Option<Vec<String>> {
    let (first, rest) = path.split_first().filter(|(_, rest)| !rest.is_empty())?;
    absolute(files, from, path).or_else(|| {
        let import = files[from].imports.get(first)?.first()?;
        let mut begin = absolute(files, from, &import.path)?;
        begin.extend_from_slice(rest);
        Some(begin)
    })
}

/// The file that declares an item.
fn owner<'f>(files: &'f BTreeMap<Place, File>, path: &[String], depth: usize) -> Option<&'f Place> {
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]))?;
    let (place, file) = files.get_key_value(&path[..length])?;
    let Some(name) = path.get(length) else { return Some(place) };
    if file.declares.contains(name) || depth >= REEXPORTS_MAX {
        return Some(place);
    }
    let named = file.imports.get(name).into_iter().flatten().find_map(|import| {
        let mut whole = absolute(files, place, &import.path)?;
        whole.extend_from_slice(&path[length + 1..]);
        owner(files, &whole, depth + 1)
    });
    let of_all = || {
        file.imports.get("*").into_iter().flatten().find_map(|import| {
            let mut whole = absolute(files, place, &import.path)?;
            whole.extend_from_slice(&path[length..]);
            owner(files, &whole, depth + 1).filter(|owner| files[*owner].declares.contains(name))
        })
    };
    named.or_else(of_all).or(Some(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_through_names_re_exports_and_macros() {
        let folder = root().join("target/tmp/circles");
        let src = folder.join("src");
        fs::create_dir_all(src.join("sub")).unwrap();
        for (name, text) in [
            ("lib.rs", "mod one; mod two; mod three; mod four; mod five; mod sub;"),
            (
                "four.rs",
                "struct Args { #[arg(long, value_parser = crate::five::parse)] five: u64 }",
            ),
            ("five.rs", "use crate::four::Args; pub(crate) fn parse() {}"),
            ("one.rs", "use crate::sub::Inner; pub(crate) fn f() {}"),
            ("two.rs", "use crate::three; pub(crate) fn g() { three::h() }"),
            ("three.rs", "pub(crate) fn h() {} #[cfg(test)] mod tests { use crate::two::g; }"),
            ("sub/mod.rs", "mod inner; pub(crate) use inner::Inner;"),
            (
                "sub/inner.rs",
                "pub(crate) struct Inner; fn f() { println!(\"{:?}\", crate::one::f()) }",
            ),
        ] {
            fs::write(src.join(name), text).unwrap();
        }
        let circles = of_arrows(&arrows(&folder).unwrap());
        let expected = [["five", "four"], ["one", "sub/inner"]];
        let mut expected = expected.map(|files| BTreeSet::from(files.map(str::to_owned)));
        let mut circles = circles;
        circles.sort();
        expected.sort();
        assert_eq!(circles, expected);
    }
}
