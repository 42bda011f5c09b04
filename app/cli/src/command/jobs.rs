//! Mirrors in a configuration file: jobs with the options of `sync`, and the origin of each value.
//!
//! A job is turned into a command line, so it has the same options, and is checked the same way.
//! Options given by flag or in the environment come first, and are left out.

mod command_line;
mod faults;
mod find;
mod job;
mod options;
mod places;
mod settings;

pub(crate) use find::{choose, find, read};
pub(crate) use job::{Job, Origin, PLACES, SECRETS};
pub(crate) use options::{command, nothing_given};
pub(crate) use places::in_published_folders;
pub(crate) use settings::Setting;

#[cfg(test)]
mod tests {
    use super::find::of_file;
    use super::options::{is_flag, options};
    use super::*;
    use crate::config::sync_args::SyncArgs;
    use anyhow::Result;
    use clap::ArgMatches;

    const FILE: &str = r#"
        [[mirror]]
        name = "papers"
        url = "https://papers.example.org/"
        folder = "/srv/papers"
        connections = 3
        filter = ["+ keep.tmp", "- *.tmp"]
        max_delete = "5%"
        follow = true
        immutable = false

        [[mirror]]
        url = "https://me:hush@other.example/"
        folder = "/srv/other"
    "#;

    fn jobs(text: &str) -> Result<Vec<Job>> {
        of_file::<SyncArgs>(
            &crate::config::read(text),
            &command::<SyncArgs>(),
            &given(&[]),
            crate::command::sync::problems,
        )
    }

    fn given(words: &[&str]) -> ArgMatches {
        let words = ["abreast", "--all", "--config=x"].iter().chain(words);
        command::<SyncArgs>().try_get_matches_from(words).unwrap()
    }

    #[test]
    fn a_job_has_the_options_of_sync_and_flags_come_first() {
        let jobs = jobs(FILE).unwrap();
        assert_eq!(
            jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
            ["papers", "other"]
        );
        let command = command::<SyncArgs>();
        let args: SyncArgs = jobs[0].args(&command, &given(&[])).unwrap();
        assert_eq!(args.mirror.places, ["https://papers.example.org/", "/srv/papers"]);
        assert!(args.follow && !args.immutable && args.mirror.connections == Some(3));
        assert!(format!("{:?}", args.mirror.filter).contains("+ keep.tmp"));
        let args: SyncArgs = jobs[0]
            .args(&command, &given(&["--connections", "7", "--json", "--exclude=a"]))
            .unwrap();
        assert!(args.mirror.connections == Some(7) && args.mirror.json);
        let rules = format!("{:?}", args.mirror.filter);
        assert!(
            rules.find("- a") < rules.find("+ keep.tmp"),
            "the user's rules are tried first: {rules}"
        );
        let settings = jobs[0].settings(&command, &given(&["--connections=7"])).unwrap();
        let of = |key: &str| {
            let setting = settings.iter().find(|setting| setting.key == key).unwrap();
            (setting.value.as_ref().unwrap().to_string(), setting.origin)
        };
        assert_eq!(of("connections"), ("\"7\"".to_owned(), Origin::Flag));
        assert_eq!(of("max_delete"), ("\"5%\"".to_owned(), Origin::File));
        assert_eq!(of("retries"), ("\"5\"".to_owned(), Origin::Default));
        assert_eq!(of("filter"), (r#"["+ keep.tmp", "- *.tmp"]"#.to_owned(), Origin::File));
        let shown = format!("{:?}", jobs[1].settings(&command, &given(&[])).unwrap());
        assert!(!shown.contains("hush"), "{shown}");
    }

    #[test]
    fn wrong_keys_and_values_of_a_job_are_faults_of_that_job() {
        let head = "[[mirror]]\nurl = \"http://h/\"\nfolder = \"f\"\n";
        for (more, part) in [
            (
                "conections = 3",
                "line 4: unknown key `conections` in `[[mirror]]` (help: did you mean `connections`?)",
            ),
            ("dry_run = true", "unknown key `dry_run`"),
            ("[[mirror]]\nurl = \"http://h/\"", "line 4: `folder`: missing"),
        ] {
            let jobs = jobs(&format!("{head}{more}\n")).unwrap();
            let faults: Vec<String> =
                jobs.iter().flat_map(|job| &job.own_faults).map(ToString::to_string).collect();
            assert!(faults.len() == 1 && faults[0].contains(part), "{faults:?}");
        }
        let twice = format!("{head}[[mirror]]\nurl = \"http://h/\"\nfolder = \"x/f\"\n");
        let error = jobs(&twice).unwrap_err().to_string();
        assert!(error.contains("two jobs are called `f`"), "{error}");
        for (more, part) in [
            ("connections = \"many\"", "many"),
            ("follow = \"yes\"", "true or false"),
            ("interval = [1]", "expected a text or a number"),
            ("filter = [\"nonsense\"]", "nonsense"),
            ("follow = true\nmax_bytes = \"1G\"", "max-bytes"),
        ] {
            let jobs = jobs(&format!("{head}{more}\n")).unwrap();
            let error = jobs[0]
                .args::<SyncArgs>(&command::<SyncArgs>(), &given(&[]))
                .unwrap_err()
                .to_string();
            assert!(error.contains("job `f`") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_jobs_of_the_example_configuration_are_usable() {
        let jobs = jobs(include_str!("../../../../abreast.example.toml")).unwrap();
        for job in &jobs {
            job.args::<SyncArgs>(&command::<SyncArgs>(), &given(&[])).unwrap();
        }
        assert_eq!(jobs.len(), 2);
    }

    #[test]
    fn the_reference_has_the_options_of_jobs() {
        let page = include_str!("../../../../docs/configuration.md");
        let (_, page) = page.split_once("## `[[mirror]]`").unwrap();
        let mut rows = page.lines().filter(|line| line.starts_with("| `"));
        for place in PLACES {
            assert!(rows.next().unwrap().starts_with(&format!("| `{place}` |")), "{place}");
        }
        for arg in options(&command::<SyncArgs>()) {
            let row = rows.next().unwrap();
            let cells: Vec<_> = row.split(" |").map(|cell| cell.trim_matches([' ', '|'])).collect();
            let code = |text: &str| format!("`{text}`");
            assert_eq!(cells[0], code(arg.get_id().as_str()));
            assert_eq!(cells[3], code(&format!("--{}", arg.get_long().unwrap())), "{row}");
            let env = arg.get_env().map(|env| code(env.to_str().unwrap())).unwrap_or_default();
            assert_eq!(cells[4], env, "{row}");
            if let ([default], false) = (arg.get_default_values(), is_flag(arg)) {
                assert_eq!(cells[2], code(default.to_str().unwrap()), "{row}");
            }
            assert_eq!(cells[1] == "boolean", is_flag(arg), "{row}");
        }
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn jobs_are_chosen_by_name() {
        let names = |names: &[&str], all| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(jobs(FILE).unwrap(), &names, all)
                .map(|jobs| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["other", "papers"], false).unwrap(), ["other", "papers"]);
        assert_eq!(names(&[], true).unwrap(), ["papers", "other"]);
        for (chosen, all) in [(&[][..], false), (&["none"][..], false), (&["papers"][..], true)] {
            assert!(names(chosen, all).is_err());
        }
        assert!(choose(Vec::new(), &[], true).is_err());
    }
}
