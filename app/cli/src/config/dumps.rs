//! Configuration of dumps: `dumps` of a `[[set]]`, and the corresponding flags of `serve`.

use crate::config::settings::DumpsFile;
use crate::values::sizes::{Size, parse_size};
use abreast_source::dump::{Compression, DumpOptions};
use clap::Args;
use std::time::Duration;

/// The same as flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Dumps")]
pub(crate) struct DumpArgs {
    /// Package all resources at this interval, such as 1d, or `on-demand`: when requested, at most
    /// once a day [default: no dumps]
    #[arg(long, value_name = "TIME|on-demand", env = "ABREAST_DUMPS")]
    pub(crate) dumps: Option<String>,
    /// Also package every change
    #[arg(long, requires = "dumps")]
    pub(crate) change_dumps: bool,
    /// Bytes of resources in one package [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "dumps", value_parser = parse_size)]
    pub(crate) dump_part_size: Option<u64>,
}

impl DumpArgs {
    /// The flags, as the file would state them.
    pub(crate) fn to_file(&self) -> Option<DumpsFile> {
        let when = self.dumps.as_deref()?;
        let on_demand = when == "on-demand";
        Some(DumpsFile {
            every: (!on_demand).then(|| when.to_owned()),
            on_demand: Some(on_demand),
            part_size: self.dump_part_size.map(Size),
            changes: Some(self.change_dumps),
            ..DumpsFile::default()
        })
    }
}

/// Smallest package, and smallest limit of packages of changes.
const DUMP_SIZE_LEAST: u64 = 1 << 20;

/// The options, checked; every problem is added to the others.
pub(crate) fn check(
    file: Option<&DumpsFile>,
    digests: abreast_source::DigestPolicy,
    problems: &mut Vec<String>,
) -> Option<DumpOptions> {
    let file = file?;
    let mut options = DumpOptions { digests, ..DumpOptions::default() };
    options.scheduled = !file.on_demand.unwrap_or(false);
    options.changes = file.changes.unwrap_or(options.changes);
    match file.every.as_deref().map(humantime::parse_duration) {
        None => {}
        Some(Ok(every)) if every.as_secs() >= 1 => options.every = every,
        Some(_) => problems.push(format!(
            "`dumps.every`: `{}` is not a duration of a second or more (help: write it as `1d` or `6h`)",
            file.every.as_deref().unwrap_or_default()
        )),
    }
    for (key, size, value) in [
        ("part_size", file.part_size, &mut options.part_size),
        ("changes_size", file.changes_size, &mut options.changes_size),
    ] {
        match size {
            None => {}
            Some(size) if size.0 >= DUMP_SIZE_LEAST => *value = size.0,
            Some(size) => problems.push(format!(
                "`dumps.{key}`: {} bytes are less than 1MiB (help: write it as `500MiB` or `1GiB`)",
                size.0
            )),
        }
    }
    match file.keep {
        Some(0) => problems
            .push("`dumps.keep`: 0, but the newest is always kept (help: 1 or more)".to_owned()),
        Some(keep) => options.keep = keep,
        None => {}
    }
    match file.compression.as_deref() {
        None | Some("store") => {}
        Some("deflate") => options.compression = Compression::Deflate,
        Some(other) => problems
            .push(format!("`dumps.compression`: `{other}` is not known (help: store or deflate)")),
    }
    Some(options)
}

/// Default versions of a set with Change Dumps: each is kept until it is packaged.
pub(crate) fn versions_needed(
    options: Option<&DumpOptions>,
) -> Option<abreast_core::VersionPolicy> {
    let options = options.filter(|options| options.changes)?;
    let age = options.every.saturating_mul(2).saturating_add(Duration::from_secs(3_600));
    Some(abreast_core::VersionPolicy { age: Some(age), ..abreast_core::VersionPolicy::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(file: &DumpsFile) -> (DumpOptions, Vec<String>) {
        let mut problems = Vec::new();
        let options = check(Some(file), abreast_source::DigestPolicy::Md5, &mut problems).unwrap();
        (options, problems)
    }

    #[test]
    fn flags_equal_the_file() {
        let flags = |dumps: &str| DumpArgs {
            dumps: Some(dumps.to_owned()),
            change_dumps: true,
            dump_part_size: Some(2 << 20),
        };
        let (options, problems) = checked(&flags("6h").to_file().unwrap());
        assert!(problems.is_empty());
        assert_eq!((options.every, options.scheduled), (Duration::from_secs(6 * 3_600), true));
        assert_eq!((options.part_size, options.changes), (2 << 20, true));
        let (options, _) = checked(&flags("on-demand").to_file().unwrap());
        assert_eq!((options.every, options.scheduled), (Duration::from_secs(86_400), false));
        assert_eq!(
            versions_needed(Some(&options)).unwrap().age,
            Some(Duration::from_secs(49 * 3_600))
        );
        assert!(versions_needed(Some(&DumpOptions { changes: false, ..options })).is_none());
        assert!(check(None, abreast_source::DigestPolicy::Md5, &mut Vec::new()).is_none());
    }

    #[test]
    fn every_problem_is_reported() {
        let file = DumpsFile {
            every: Some("often".into()),
            part_size: Some(Size(1 << 10)),
            changes_size: Some(Size(0)),
            keep: Some(0),
            compression: Some("rar".into()),
            ..DumpsFile::default()
        };
        assert_eq!(checked(&file).1.len(), 5);
    }
}
