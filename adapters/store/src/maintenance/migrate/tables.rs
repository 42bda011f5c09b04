//! The tables of a store, in the order in which they are copied.

use crate::maintenance::migrate::sums;
use crate::maintenance::migrate::table::{Apart, Column, Derived, Kind, Part, Table};

const SETS: Table = Table {
    name: "sets",
    part: Part::Log,
    columns: &[
        Column::int("id"),
        Column::text("slug"),
        Column::int("created"),
        Column::int("restarted").sqlite("anew"),
        Column::flag("importing"),
        Column::flag("in_log").sqlite("begins"),
        Column::int("page_changes"),
        Column::int("page_age"),
        Column::flag("versions"),
        Column::int("versions_begun").sqlite("begun"),
        Column::int("versions_since").sqlite("kept_since"),
        Column::int("kept_bytes"),
        Column::int("counted_as"),
        Column::int("counted"),
        Column::int("aged"),
        Column::int("sized"),
    ],
    sqlite_order: &["id"],
    postgres_order: &[("id", Kind::Int)],
    // SQLite computes these values when a store is opened.
    derived: &[
        Derived::Number("position", 0),
        Derived::Number("time", 0),
        Derived::Number("resources", 0),
        Derived::Number("page", 1),
        Derived::Number("page_after", 0),
        Derived::Number("page_from", 0),
        Derived::Number("next_shard", 1),
        Derived::Number("revision", 1),
    ],
    sum: None,
    apart: None,
};

const RESOURCES: Table = Table {
    name: "resources",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::text("key"),
        Column::int("position"),
        Column::int("modified"),
        Column::int("length"),
        Column::text("media_type"),
        Column::text("encoding"),
        Column::bytes("digests"),
        Column::text("links"),
        Column::bytes("content"),
        Column::text("description"),
        Column::text("deprecated"),
        Column::bytes("witness"),
    ],
    sqlite_order: &["set_id", "key"],
    postgres_order: &[("set_id", Kind::Int), ("left(key, 500)", Kind::Text), ("key", Kind::Text)],
    derived: &[Derived::KeyHash(1)],
    sum: Some(sums::resource),
    apart: None,
};

const CHANGES: Table = Table {
    name: "changes",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::text("key"),
        Column::int("position"),
        Column::int("modified"),
        Column::int("length"),
        Column::text("media_type"),
        Column::text("encoding"),
        Column::bytes("digests"),
        Column::text("links"),
        Column::bytes("content"),
        Column::text("description"),
        Column::text("note"),
        Column::int("time"),
        Column::int("kind"),
    ],
    sqlite_order: &["set_id", "position"],
    postgres_order: &[("set_id", Kind::Int), ("position", Kind::Int)],
    derived: &[],
    sum: Some(sums::change),
    apart: None,
};

const TOMBSTONES: Table = Table {
    name: "tombstones",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::text("key").computed_by_postgres(
            "(SELECT changes.key FROM abreast.changes WHERE changes.set_id = tombstones.set_id \
             AND changes.position = tombstones.position)",
        ),
        Column::int("position"),
    ],
    sqlite_order: &["set_id", "position"],
    postgres_order: &[("set_id", Kind::Int), ("position", Kind::Int)],
    derived: &[Derived::KeyHash(1)],
    sum: None,
    apart: None,
};

const VERSIONS: Table = Table {
    name: "versions",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        // A resource with versions is in the set, or has left it.
        Column::text("key").computed_by_postgres(
            "coalesce((SELECT key FROM abreast.resources WHERE resources.set_id = versions.set_id \
             AND resources.key_hash = versions.key_hash), \
             (SELECT changes.key FROM abreast.tombstones JOIN abreast.changes USING (set_id, position) \
             WHERE tombstones.set_id = versions.set_id AND tombstones.key_hash = versions.key_hash))",
        ),
        Column::int("position"),
        Column::int("modified"),
        Column::int("length"),
        Column::text("media_type"),
        Column::text("encoding"),
        Column::bytes("digests"),
        Column::bytes("content"),
        Column::int("time"),
    ],
    sqlite_order: &["set_id", "key", "time"],
    postgres_order: &[("set_id", Kind::Int), ("key_hash", Kind::Bytes), ("time", Kind::Int)],
    derived: &[Derived::KeyHash(1)],
    sum: Some(sums::version),
    apart: None,
};

const PAGES: Table = Table {
    name: "pages",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::int("number"),
        Column::int("after"),
        Column::int("last"),
        Column::int("from_time"),
        Column::int("until_time"),
    ],
    sqlite_order: &["set_id", "number"],
    postgres_order: &[("set_id", Kind::Int), ("number", Kind::Int)],
    derived: &[],
    sum: None,
    apart: None,
};

const SHARDS: Table = Table {
    name: "shards",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::int("id"),
        Column::text("start_key"),
        Column::text("end_key"),
        Column::int("resources"),
        Column::int("bytes"),
        Column::int("version"),
        Column::int("time"),
        Column::flag("retired"),
    ],
    sqlite_order: &["set_id", "id"],
    postgres_order: &[("set_id", Kind::Int), ("id", Kind::Int)],
    derived: &[Derived::Number("revision", 1)],
    sum: None,
    apart: None,
};

const IDEMPOTENCY: Table = Table {
    name: "idempotency",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::text("key"),
        Column::int("position"),
        Column::int("time"),
    ],
    sqlite_order: &["set_id", "key"],
    postgres_order: &[("set_id", Kind::Int), ("key", Kind::Text)],
    derived: &[],
    sum: None,
    apart: None,
};

const CONTENTS: Table = Table {
    name: "contents",
    part: Part::Log,
    columns: &[
        Column::int("set_id"),
        Column::bytes("id"),
        Column::int("length"),
        Column::int("needed"),
    ],
    sqlite_order: &["id", "set_id"],
    postgres_order: &[("set_id", Kind::Int), ("id", Kind::Bytes)],
    derived: &[],
    sum: None,
    apart: None,
};

const TOPICS: Table = Table {
    name: "topics",
    part: Part::Hub,
    columns: &[
        Column::int("id"),
        Column::text("url"),
        Column::int("created"),
        Column::int("head"),
        Column::int("trimmed"),
        Column::int("bytes"),
        // The notifications are copied later: the value is not read again from SQLite.
        Column::int("time").computed_by_sqlite(
            "ifnull((SELECT time FROM notifications WHERE topic_id = topics.id \
                 AND offset = topics.head), created)",
        ),
    ],
    sqlite_order: &["id"],
    postgres_order: &[("id", Kind::Int)],
    derived: &[Derived::UrlHash("url_hash", 1), Derived::Number("revision", 1)],
    sum: Some(sums::topic),
    apart: None,
};

const NOTIFICATIONS: Table = Table {
    name: "notifications",
    part: Part::Hub,
    columns: &[
        Column::int("topic_id"),
        Column::int("number").sqlite("offset"),
        Column::int("time"),
        Column::text("media_type"),
        Column::text("links"),
        Column::int("after"),
        Column::int("last"),
        Column::bytes("body").computed_by_sqlite("bodies.bytes"),
    ],
    sqlite_order: &["topic_id", "offset"],
    postgres_order: &[("topic_id", Kind::Int), ("number", Kind::Int)],
    derived: &[],
    sum: Some(sums::notification),
    apart: Some(Apart {
        from: "notifications LEFT JOIN bodies ON bodies.id = body_id",
        insert: "INSERT INTO bodies (bytes) VALUES (?1)",
        column: 7,
        number: "body_id",
    }),
};

const TARGETS: Table = Table {
    name: "targets",
    part: Part::Hub,
    columns: &[
        Column::int("id").numbered_by(1),
        Column::text("address"),
        Column::int("topic_id"),
        Column::int("kind"),
        Column::bytes("secret"),
        Column::int("lease_until"),
        Column::int("created"),
    ],
    sqlite_order: &["id"],
    postgres_order: &[("id", Kind::Int)],
    derived: &[
        Derived::Shard(1),
        Derived::UrlHash("address_hash", 1),
        Derived::Number("revision", 1),
        Derived::Number("replayed", 0),
    ],
    sum: Some(sums::target),
    apart: None,
};

/// The number of the target in a row, and its address, which only SQLite reads.
const OF_TARGET: Column = Column::int("id").sqlite("target_id").numbered_by(1);
macro_rules! address_in {
    ($table:literal) => {
        Column::text("address")
            .computed_by_sqlite(concat!(
                "(SELECT address FROM targets WHERE targets.id = ",
                $table,
                ".target_id)"
            ))
            .computed_by_postgres("NULL")
            .uncompared()
    };
}

const PROGRESS: Table = Table {
    name: "progress",
    part: Part::Hub,
    columns: &[
        OF_TARGET,
        address_in!("progress"),
        Column::int("generation"),
        Column::int("cursor"),
        Column::int("attempts"),
        Column::int("first_failed"),
        Column::int("next_at"),
        Column::int("sent_offset"),
        Column::int("sent_number"),
        Column::int("sent_time"),
        Column::int("sent_status"),
        Column::int("sent_micros"),
        Column::int("failures")
            .computed_by_sqlite(
                "ifnull((SELECT max(seq) FROM attempts WHERE attempts.target_id = progress.target_id), 0)",
            )
            .uncompared(),
        Column::int("letters")
            .computed_by_sqlite("(SELECT count(*) FROM dead WHERE dead.target_id = progress.target_id)")
            .uncompared(),
        Column::int("last_letter")
            .computed_by_sqlite(
                "ifnull((SELECT max(dead.id) FROM dead WHERE dead.target_id = progress.target_id), 0)",
            )
            .uncompared(),
    ],
    sqlite_order: &["target_id"],
    postgres_order: &[("shard", Kind::Int), ("id", Kind::Int)],
    derived: &[Derived::Shard(1)],
    sum: Some(sums::progress),
    apart: None,
};

const ATTEMPTS: Table = Table {
    name: "attempts",
    part: Part::Hub,
    columns: &[
        OF_TARGET,
        address_in!("attempts"),
        Column::int("row").sqlite("seq"),
        Column::int("cursor").sqlite("offset"),
        Column::int("number"),
        Column::int("time"),
        Column::int("status"),
        Column::error("error"),
        Column::int("micros"),
    ],
    sqlite_order: &["target_id", "seq"],
    postgres_order: &[("shard", Kind::Int), ("id", Kind::Int), ("\"row\"", Kind::Int)],
    derived: &[Derived::Shard(1)],
    sum: None,
    apart: None,
};

const DEAD: Table = Table {
    name: "dead",
    part: Part::Hub,
    columns: &[
        OF_TARGET,
        address_in!("dead"),
        // SQLite numbers the letters of all targets, PostgreSQL the letters of each.
        Column::int("row").computed_by_sqlite("id").uncompared(),
        Column::int("first"),
        Column::int("last"),
        Column::int("letters"),
        Column::error("error"),
        Column::int("time"),
    ],
    sqlite_order: &["id"],
    // SQLite deletes the oldest letters by their numbers.
    postgres_order: &[
        ("time", Kind::Int),
        ("shard", Kind::Int),
        ("id", Kind::Int),
        ("\"row\"", Kind::Int),
    ],
    derived: &[Derived::Shard(1)],
    sum: None,
    apart: None,
};

const VERIFICATIONS: Table = Table {
    name: "verifications",
    part: Part::Hub,
    columns: &[
        Column::int("id").numbered_by(1),
        Column::text("callback"),
        Column::text("topic_url"),
        Column::int("mode"),
        Column::bytes("secret"),
        Column::int("lease_seconds"),
        Column::text("challenge"),
        Column::text("reason"),
        Column::int("attempts"),
        Column::int("next_at"),
        Column::int("created"),
    ],
    sqlite_order: &["id"],
    postgres_order: &[("id", Kind::Int)],
    derived: &[Derived::Shard(1), Derived::Number("revision", 1)],
    sum: Some(sums::verification),
    apart: None,
};

const ENDED: Table = Table {
    name: "ended",
    part: Part::Hub,
    columns: &[
        Column::int("id").sqlite("target_id").numbered_by(1),
        Column::text("address"),
        Column::int("number").sqlite("id"),
        Column::int("topic_id"),
        Column::int("kind"),
        Column::int("why"),
        Column::int("cursor"),
        Column::int("created"),
        Column::int("time"),
    ],
    sqlite_order: &["id"],
    postgres_order: &[("number", Kind::Int)],
    derived: &[Derived::Number("revision", 1)],
    sum: None,
    apart: None,
};

/// All tables with rows of users. Tables of the change log come first.
pub(crate) const TABLES: &[Table] = &[
    SETS,
    PAGES,
    SHARDS,
    CHANGES,
    RESOURCES,
    TOMBSTONES,
    VERSIONS,
    IDEMPOTENCY,
    CONTENTS,
    TOPICS,
    NOTIFICATIONS,
    TARGETS,
    PROGRESS,
    ATTEMPTS,
    DEAD,
    VERIFICATIONS,
    ENDED,
];
