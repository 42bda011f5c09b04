//! Coverage of the specifications: for each, a table in `conformance/*/manifest.toml` lists what shows that each
//! sentence is kept. Every rule, test and case it names must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::process::root;
use crate::tree;

/// The specifications with a table of requirements, by their keys in `docs/specs.toml`.
const SPECIFICATIONS: [&str; 6] =
    ["rs-core", "rs-0.1", "sdshare", "emm-0.1", "emm-1.0", "iiif-discovery"];
const CASES: &str = "conformance/resourcesync-1.1/manifest.toml";
const RULES: &str = "roles/validator/src/report/rules";
const RULE_CASES: &str = "roles/validator/tests/it";
const RULE_CASE_FILES: [&str; 4] =
    ["cases.rs", "sdshare.rs", "emm_cases.rs", "resourcesync_0_1.rs"];
/// What ids of rules begin with.
const RULE_PREFIXES: [&str; 17] = [
    "RS-", "RSA-", "RSN-", "RSCN-", "RSFN-", "RS01-", "SITEMAP-", "XML-", "HTTP-", "WALK-",
    "ATOM-", "PAGE-", "SDS-", "AS-", "WS-", "FETCH-", "IIIF-",
];

/// One sentence of the specification.
#[derive(Debug, Default)]
struct Requirement {
    /// The key of its specification, and its id there.
    id: String,
    cites: String,
    level: String,
    about: String,
    says: String,
    rules: Vec<String>,
    tests: Vec<String>,
    cases: Vec<String>,
}

impl Requirement {
    fn read(specification: &str, entry: &Table) -> Result<Self> {
        let word = |name: &str| {
            let value = entry.get(name).and_then(Value::as_str).map(str::to_owned);
            value.with_context(|| format!("{specification}: a requirement has no `{name}`"))
        };
        let list = |name: &str| {
            let values =
                entry.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let requirement = Self {
            id: format!("{specification} {}", word("id")?),
            cites: word("cites")?,
            level: word("level")?,
            about: word("about")?,
            says: word("says")?,
            rules: list("rules"),
            tests: list("tests"),
            cases: list("cases"),
        };
        let known = ["must", "should", "recommended", "may"].contains(&requirement.level.as_str())
            && ["document", "source", "destination"].contains(&requirement.about.as_str());
        if !known {
            bail!("`{}` has an unknown `level` or `about`", requirement.id);
        }
        Ok(requirement)
    }

    /// Whether it is covered, by a kind of evidence that can cover it.
    fn is_covered(&self) -> bool {
        match self.about.as_str() {
            // Behaviour of a reader is seen in a run only.
            "destination" => !self.tests.is_empty(),
            // Behaviour of a Source is shown when it publishes, or by documents of others.
            "source" => !self.tests.is_empty() || !self.rules.is_empty(),
            _ => !self.rules.is_empty(),
        }
    }
}

/// Names that the table may use.
#[derive(Default)]
struct Known {
    rules: BTreeSet<String>,
    broken_rules: BTreeSet<String>,
    cases: BTreeSet<String>,
    /// Names of test functions by file.
    tests: BTreeMap<String, BTreeSet<String>>,
}

/// `cargo xtask coverage`: lists all, then fails if a must is without.
pub(crate) fn run() -> Result<()> {
    let requirements = requirements()?;
    for one in &requirements {
        let mark = if one.is_covered() { " " } else { "!" };
        println!(
            "{mark} {:22} {:11} {:11} {:2} rules {:2} tests {:2} cases  {}",
            one.cites,
            one.level,
            one.about,
            one.rules.len(),
            one.tests.len(),
            one.cases.len(),
            one.says
        );
    }
    check()
}

/// Fails if a must is without, or the table names what does not exist.
pub(crate) fn check() -> Result<()> {
    let requirements = requirements()?;
    let mut faults = faults(&requirements, &known(&requirements)?);
    if !faults.is_empty() {
        faults.truncate(50);
        bail!("{} faults in conformance/*/manifest.toml\n  {}", faults.len(), faults.join("\n  "));
    }
    for level in ["must", "should", "recommended"] {
        let of_level: Vec<_> = requirements.iter().filter(|one| one.level == level).collect();
        let covered = of_level.iter().filter(|one| one.is_covered()).count();
        println!("{level}: {covered} of {}", of_level.len());
    }
    Ok(())
}

fn requirements() -> Result<Vec<Requirement>> {
    let mut requirements = Vec::new();
    for specification in SPECIFICATIONS {
        let path = format!("conformance/{specification}/manifest.toml");
        let table = read_table(&path)?;
        let entries = table.get("requirement").and_then(Value::as_array);
        let entries = entries.with_context(|| format!("{path} has no requirement"))?;
        for entry in entries.iter().filter_map(Value::as_table) {
            requirements.push(Requirement::read(specification, entry)?);
        }
    }
    Ok(requirements)
}

fn read_table(path: &str) -> Result<Table> {
    read(path)?.parse().with_context(|| format!("cannot read {path} as TOML"))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

/// The text of all files that declare rules of the validator.
fn rules_of_validator() -> Result<String> {
    let mut text = String::new();
    for file in tree::files(&root().join(RULES), &[".rs"])? {
        text.push_str(&read(&tree::shown(&file))?);
    }
    Ok(text)
}

fn known(requirements: &[Requirement]) -> Result<Known> {
    let cases = read_table(CASES)?;
    let cases = cases.get("case").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut rule_cases = String::new();
    for file in RULE_CASE_FILES {
        rule_cases += &read(&format!("{RULE_CASES}/{file}"))?;
    }
    let mut known = Known {
        rules: ids(&rules_of_validator()?, |line| {
            line.trim_start().split_once(": \"").map(|(_, rest)| rest)
        }),
        broken_rules: ids(&rule_cases, |line| {
            line.trim_start().trim_start_matches('(').strip_prefix('"')
        }),
        cases: cases
            .iter()
            .filter_map(|case| case.get("id")?.as_str())
            .map(str::to_owned)
            .collect(),
        tests: BTreeMap::new(),
    };
    for file in requirements
        .iter()
        .flat_map(|one| &one.tests)
        .filter_map(|test| Some(test.split_once("::")?.0))
    {
        if !known.tests.contains_key(file) {
            let exists = root().join(Path::new(file)).is_file();
            let text = if exists { read(file)? } else { String::new() };
            known.tests.insert(file.to_owned(), test_names(&text));
        }
    }
    Ok(known)
}

/// The rule ids that lines begin with, after what `find` cuts off.
fn ids<'t>(text: &'t str, find: impl Fn(&'t str) -> Option<&'t str>) -> BTreeSet<String> {
    let is_id = |id: &&str| {
        RULE_PREFIXES.iter().any(|prefix| id.starts_with(prefix)) && !id.contains(' ')
            || id.starts_with("EMM") && id.contains('-')
    };
    let found = text.lines().filter_map(find).filter_map(|rest| rest.split('"').next());
    found.filter(is_id).map(str::to_owned).collect()
}

/// The attribute of a test that does not run unless asked for.
const PASSED_OVER: &str = "#[ignore";

/// Functions below `#[test]`; comments and other attributes may stand between. A test that is
/// passed over by default shows nothing.
fn test_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (mut due, mut passed_over) = (false, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            due = true;
        } else if line.starts_with(PASSED_OVER) {
            passed_over = true;
        } else if let Some(rest) =
            line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "))
        {
            let counts = std::mem::take(&mut due) & !std::mem::take(&mut passed_over);
            if counts {
                names.extend(rest.split('(').next().map(str::to_owned));
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            (due, passed_over) = (false, false);
        }
    }
    names
}

fn faults(requirements: &[Requirement], known: &Known) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    if requirements.is_empty() {
        faults.push("there is no requirement".to_owned());
    }
    for one in requirements {
        let id = &one.id;
        if !one.cites.starts_with(id.split(' ').next().unwrap_or_default()) {
            faults.push(format!("`{id}` cites another specification: {}", one.cites));
        }
        if !seen.insert(id) {
            faults.push(format!("`{id}` is there twice"));
        }
        if one.level == "must" && !one.is_covered() {
            faults.push(format!(
                "`{id}` ({}) is a must that nothing covers: {}",
                one.cites, one.says
            ));
        }
        for rule in &one.rules {
            if !known.rules.contains(rule) {
                faults.push(format!("`{id}`: there is no rule `{rule}` in {RULES}"));
            } else if !known.broken_rules.contains(rule) {
                faults.push(format!("`{id}`: no case in {RULE_CASES} breaks the rule `{rule}`"));
            }
        }
        for case in one.cases.iter().filter(|case| !known.cases.contains(*case)) {
            faults.push(format!("`{id}`: there is no case `{case}` in {CASES}"));
        }
        for test in &one.tests {
            let exists = test.split_once("::").is_some_and(|(file, name)| {
                known.tests.get(file).is_some_and(|names| names.contains(name))
            });
            if !exists {
                faults.push(format!("`{id}`: there is no test `{test}`"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(text: &str) -> Requirement {
        let text = format!("id = \"x\"\ncites = \"s §7\"\nsays = \"s\"\n{text}");
        Requirement::read("s", &text.parse().unwrap()).unwrap()
    }

    fn told(text: &str) -> String {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let known = Known {
            rules: names(&["RS-1-a", "RS-2-b"]),
            broken_rules: names(&["RS-1-a"]),
            cases: names(&["c"]),
            tests: BTreeMap::from([("f.rs".to_owned(), names(&["t"]))]),
        };
        faults(&[requirement(text)], &known).join("\n")
    }

    #[test]
    fn a_must_needs_what_can_show_it() {
        assert_eq!(told("level = \"must\"\nabout = \"document\"\nrules = [\"RS-1-a\"]"), "");
        assert_eq!(told("level = \"must\"\nabout = \"source\"\ntests = [\"f.rs::t\"]"), "");
        for bare in [
            "about = \"document\"\ntests = [\"f.rs::t\"]",
            "about = \"destination\"\nrules = [\"RS-1-a\"]",
            "about = \"source\"\ncases = [\"c\"]",
        ] {
            assert!(
                told(&format!("level = \"must\"\n{bare}")).contains("nothing covers"),
                "{bare}"
            );
            assert_eq!(told(&format!("level = \"should\"\n{bare}")), "", "{bare}");
        }
    }

    #[test]
    fn missing_names_cover_nothing() {
        let with =
            |names: &str| told(&format!("level = \"should\"\nabout = \"document\"\n{names}"));
        assert!(with("rules = [\"RS-9-x\"]").contains("there is no rule"));
        assert!(with("rules = [\"RS-2-b\"]").contains("no case in"));
        assert!(with("cases = [\"d\"]").contains("there is no case"));
        assert!(with("tests = [\"f.rs::u\"]").contains("there is no test"));
        assert!(with("tests = [\"g.rs::t\"]").contains("there is no test"));
    }

    #[test]
    fn tests_are_functions_with_the_attribute() {
        let text = "fn helper() {}\n#[test]\n// why\nfn one() {}\n#[tokio::test]\nasync fn two() {}\nfn three() {}";
        assert_eq!(test_names(text), BTreeSet::from(["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn a_test_that_is_passed_over_covers_nothing() {
        for attributes in
            [format!("#[test]\n{PASSED_OVER}]"), format!("{PASSED_OVER} = \"slow\"]\n#[test]")]
        {
            let text = format!("{attributes}\nfn one() {{}}\n#[test]\nfn two() {{}}");
            assert_eq!(test_names(&text), BTreeSet::from(["two".to_owned()]));
        }
    }

    #[test]
    fn the_repository_has_rules_and_cases_that_are_found() {
        let known = known(&[]).unwrap();
        assert!(known.rules.len() > 100);
        let differ: Vec<_> = known.rules.symmetric_difference(&known.broken_rules).collect();
        assert!(differ.is_empty(), "rules without a case, or cases without a rule: {differ:?}");
    }
}
