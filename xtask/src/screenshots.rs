//! Pictures of the pages for people in `docs/images/`, taken in Chromium by the test of these pages.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, root, run};
use crate::tools::Tools;

/// Takes the pictures again.
pub(crate) fn take() -> Result<()> {
    let folder = root().join("docs/images");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let tools = Tools::prepare()?;
    let wanted = ["ABREAST_TEST_PYTHON", "ABREAST_TEST_CHROMIUM"];
    for missing in &tools.missing {
        if missing.variables.iter().any(|variable| wanted.contains(variable)) {
            bail!("{} is missing: {}", missing.what, missing.reason);
        }
    }
    let name = "web::pages_are_accessible_in_a_browser";
    let mut command = cargo(&["test", "-p", "abreast", "--test", "it", "--", "--exact", name]);
    command.envs(tools.found).env("ABREAST_SCREENSHOTS", &folder);
    run(&mut command)
}
