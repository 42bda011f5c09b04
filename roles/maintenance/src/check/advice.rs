//! Help for the codes of findings, the same as in docs/maintenance.md and docs/nodes.md.

/// The help for findings with a code. A code without help of its own has the help of a damaged store.
pub(crate) const fn advice(rule: &str) -> &'static str {
    match rule.as_bytes() {
        b"backup.damaged" => {
            "run `abreast backup --read-data` while the store is there: it replaces damaged contents; check the disk"
        }
        b"store.set" => {
            "nothing, if it is published again; `abreast set remove SET --data DIR` removes it with its history"
        }
        b"store.schema" => "use the newer program that wrote it",
        b"store.damaged" | b"store.row" => {
            "restore a backup, or stop the server and run `abreast repair`; check the disk, it may be failing"
        }
        b"contents.missing" | b"contents.length" | b"contents.digest" => {
            "stop the server and run `abreast repair`; versions whose bytes are lost are dropped, others come from a backup"
        }
        b"contents.index" => {
            "stop the server and run `abreast repair`, or start the server again: the index is rebuilt from the contents"
        }
        b"contents.record" => {
            "stop the server and run `abreast repair --read-data`: the content is written again"
        }
        b"contents.orphan" => {
            "nothing; the next start of the server or `abreast repair` may remove them"
        }
        b"dumps.unfinished" | b"dumps.record" | b"dumps.package" => {
            "stop the server and run `abreast repair`: the dump is dropped, and made again when it is due"
        }
        b"dumps.manifest" => {
            "nothing, or stop the server and run `abreast repair --read-data`: the manifest is taken from its package"
        }
        b"archives.record" => {
            "stop the server and run `abreast repair`, or start the server again: the record is made again from the lists"
        }
        b"archives.list" => {
            "restore the file from a backup, or stop the server and run `abreast repair --read-data`: the archived list is dropped"
        }
        b"tokens.record" => {
            "stop the server and run `abreast repair`: it restores the tokens, or lists those that are lost"
        }
        b"temporary.record" => "nothing: the files are read again",
        b"notified.record" | b"served.record" => {
            "stop the server and run `abreast repair`, or start the server again: the record is made again"
        }
        b"site.record" => {
            "move it away, and run `abreast build` again: it is made again from the store"
        }
        b"dumps.derived" => {
            "stop the server and run `abreast repair --read-data`: the file is dropped, and made again when it is asked for"
        }
        b"snapshots.record" | b"snapshots.digest" => {
            "stop the server and run `abreast repair --read-data`: the snapshot is dropped, and made again when it is asked for"
        }
        b"copy.missing" | b"copy.changed" | b"copy.digest" => {
            "run `abreast sync --baseline` (for digests with `--full`): it fetches them again, and keeps locally changed files as backups"
        }
        b"copy.name" => "run `abreast sync --baseline`: it gets its own name back",
        b"copy.unrecorded" => "run `abreast repair`, then `abreast sync --baseline`",
        b"copy.left-out" => "report it to the operator of the Source",
        b"copy.leftover" => "run `abreast repair`, which removes it",
        b"copy.segment" => {
            "restore the file; or remove the state folder .abreast and run `abreast sync` again"
        }
        b"copy.pending" | b"copy.failing" | b"copy.fault" => "run `abreast sync`",
        b"copy.held" => {
            "list them with `abreast sync --dry-run`, then allow them with `--max-delete`"
        }
        b"sets.missing" => "run `abreast sync --all-sets`",
        b"copy.elsewhere" => "run `abreast audit`",
        b"copy.path" => "run `abreast sync --baseline`",
        b"state.damaged" => "run `abreast repair`, then `abreast sync`",
        b"hub.notification" | b"hub.topic" | b"hub.damaged" => {
            "stop the server and run `abreast repair`: what follows the damage is kept, Destinations fetch the rest"
        }
        b"hub.topic-url" | b"hub.target" | b"hub.verification" => {
            "stop the server and run `abreast repair`: what cannot be known is dropped, subscribers renew it"
        }
        b"store.schema-old" => "start the program of this version once",
        _ => "stop the server and run `abreast repair`",
    }
}

/// The help for findings in a store that several nodes share.
pub(crate) const fn advice_of_shared(rule: &str) -> &'static str {
    match rule.as_bytes() {
        b"contents.missing" | b"contents.length" | b"contents.digest" => {
            "run `abreast repair --config FILE --from DIR` with a folder that has the files, or restore the object from its earlier versions"
        }
        _ => "stop all nodes and restore the database from a backup; check the disk of its server",
    }
}

#[cfg(test)]
mod tests {
    use super::{advice, advice_of_shared};

    #[test]
    fn only_contents_of_a_shared_store_are_repaired() {
        for rule in ["contents.missing", "contents.digest", "table.row", "log.head", "store.row"] {
            let is_repaired = advice_of_shared(rule).contains("abreast repair");
            assert_eq!(is_repaired, rule.starts_with("contents."), "{rule}");
        }
    }

    /// A finding without a help of its own gets that of a damaged store.
    #[test]
    fn the_help_of_each_finding_is_that_of_the_manual() {
        let manual = include_str!("../../../../docs/maintenance.md");
        let rows = manual.lines().filter_map(|row| row.strip_prefix("| `")?.split_once(" | "));
        let mut checked = 0;
        for (codes, rest) in rows {
            let action = rest.rsplit_once(" | ").map_or(rest, |(_, action)| action);
            for code in codes.split('`').filter(|code| code.contains('.')) {
                let help = advice(code);
                let may_repair = action.contains("repair") || action.starts_with("the same");
                assert!(may_repair || !help.contains("repair"), "{code}: {help}");
                assert!(
                    !action.contains("`sync") || help.contains("abreast sync"),
                    "{code}: {help}"
                );
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }
}
