//! Options of which one replaces another.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Options with an environment variable that alternatives on the command line replace.
pub(crate) fn replaced_variables(command: &clap::Command, given: &ArgMatches) -> Vec<String> {
    let is_flag = |id: &String| given.value_source(id) == Some(ValueSource::CommandLine);
    let variables = command.get_arguments().filter(|arg| arg.get_env().is_some());
    let ids = variables.map(|arg| arg.get_id().as_str().to_owned());
    ids.filter(|id| !is_flag(id) && alternatives(command, id).iter().any(is_flag)).collect()
}

/// The options that cannot be given together with one.
pub(crate) fn alternatives(command: &clap::Command, id: &str) -> Vec<String> {
    let of = |arg: &clap::Arg| -> Vec<String> {
        let others = command.get_arg_conflicts_with(arg).into_iter();
        others.map(|other| other.get_id().as_str().to_owned()).collect()
    };
    let mut found = Vec::new();
    for arg in command.get_arguments() {
        let others = of(arg);
        if arg.get_id() == id {
            found.extend(others);
        } else if others.iter().any(|other| other == id) {
            found.push(arg.get_id().as_str().to_owned());
        }
    }
    found
}
