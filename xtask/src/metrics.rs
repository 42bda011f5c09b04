//! The page of metrics in `docs/metrics.md`, made from their table in the server.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};
use syn::{Expr, ExprLit, Item, Lit};

use crate::process::root;

const TABLE: &str = "app/server/src/observe/metrics.rs";

const HEAD: &str = "# Metrics

`/metrics` of `abreast serve`, `abreast hub` and, with `--admin-listen`, of `abreast sync --follow` has these metrics in the text format of Prometheus, and those of the process: `process_cpu_seconds_total`,
`process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_open_fds`, `process_max_fds`, `process_threads` and `process_start_time_seconds`. Totals begin at zero when the
program starts. A metric without a value yet is left out. Times are seconds since 1970, durations are seconds.

[packaging/monitoring](../packaging/monitoring) has a dashboard for Grafana (*Dashboards*, *New*, *Import*) and alert rules for Prometheus. Both expect a job with the
name `abreast`:

```yaml
scrape_configs:
  - job_name: abreast
    static_configs:
      - targets: [\"127.0.0.1:8080\"]
```

| Metric | Type | Labels | Meaning |
|---|---|---|---|
";

const TAIL: &str = "
This file is made from the code by `cargo xtask generate`.
";

/// The text of the file.
pub(crate) fn page() -> Result<String> {
    let code =
        fs::read_to_string(root().join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let file = syn::parse_file(&code).with_context(|| format!("cannot parse {TABLE}"))?;
    let table = file.items.iter().find_map(|item| match item {
        Item::Const(item) if item.ident == "METRICS" => Some(&*item.expr),
        _ => None,
    });
    let Some(Expr::Reference(reference)) = table else { bail!("{TABLE} has no `METRICS`") };
    let Expr::Array(rows) = &*reference.expr else { bail!("`METRICS` is not an array") };
    let mut text = HEAD.to_owned();
    for row in &rows.elems {
        let Expr::Call(row) = row else { bail!("a row of `METRICS` is not a call") };
        let values: Vec<_> = row.args.iter().collect();
        let (Expr::Path(function), [name, labels, help]) = (&*row.func, &values[..]) else {
            bail!("a row of `METRICS` is not a call with three values")
        };
        let kind = match function.path.require_ident()?.to_string().as_str() {
            "total" => "counter",
            "now" => "gauge",
            "spread" => "histogram",
            other => bail!("`{other}` is not a kind of metric"),
        };
        let Expr::Reference(labels) = labels else { bail!("labels are an array") };
        let Expr::Array(labels) = &*labels.expr else { bail!("labels are an array") };
        let labels = labels.elems.iter().map(literal).collect::<Result<Vec<_>>>()?;
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(
            text,
            "| `{}` | {kind} | {} | {} |",
            literal(name)?,
            labels.join(", "),
            literal(help)?
        )?;
    }
    text.push_str(TAIL);
    Ok(text)
}

fn literal(value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        _ => bail!("a value of `METRICS` is not a text"),
    }
}
