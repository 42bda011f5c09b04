//! The description of a table in both kinds of databases.

use crate::maintenance::migrate::value::Value;

/// The database file of a folder that has a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Log,
    Hub,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An integer of any size.
    Int,
    /// An integer in SQLite, and a boolean value in PostgreSQL.
    Flag,
    Text,
    /// The text of an error. PostgreSQL does not store U+0000, which is replaced.
    Error,
    Bytes,
}

/// How a database reads and writes a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The expression that reads the value.
    pub(crate) read: &'static str,
    /// The column; `None` if the value is not stored.
    pub(crate) write: Option<&'static str>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) kind: Kind,
    pub(crate) sqlite: Access,
    pub(crate) postgres: Access,
    /// Whether both databases have the same value. Other columns are not compared.
    pub(crate) is_compared: bool,
    /// For numbers of targets and verifications: the index of the column with the address. The
    /// number in PostgreSQL has the shard of the address as its remainder.
    pub(crate) numbered_by: Option<usize>,
}

impl Column {
    const fn new(name: &'static str, kind: Kind) -> Self {
        let access = Access { read: name, write: Some(name) };
        Self { kind, sqlite: access, postgres: access, is_compared: true, numbered_by: None }
    }

    pub(crate) const fn int(name: &'static str) -> Self {
        Self::new(name, Kind::Int)
    }

    pub(crate) const fn flag(name: &'static str) -> Self {
        Self::new(name, Kind::Flag)
    }

    pub(crate) const fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text)
    }

    pub(crate) const fn error(name: &'static str) -> Self {
        Self::new(name, Kind::Error)
    }

    pub(crate) const fn bytes(name: &'static str) -> Self {
        Self::new(name, Kind::Bytes)
    }

    /// The column has another name in SQLite.
    pub(crate) const fn sqlite(mut self, name: &'static str) -> Self {
        self.sqlite = Access { read: name, write: Some(name) };
        self
    }

    /// SQLite computes the value, and does not store it.
    pub(crate) const fn computed_by_sqlite(mut self, read: &'static str) -> Self {
        self.sqlite = Access { read, write: None };
        self
    }

    /// PostgreSQL computes the value, and does not store it.
    pub(crate) const fn computed_by_postgres(mut self, read: &'static str) -> Self {
        self.postgres = Access { read, write: None };
        self
    }

    /// See [`Self::numbered_by`].
    pub(crate) const fn numbered_by(mut self, column: usize) -> Self {
        self.numbered_by = Some(column);
        self
    }

    /// The values of both databases differ.
    pub(crate) const fn uncompared(mut self) -> Self {
        self.is_compared = false;
        self
    }
}

/// A column that only PostgreSQL has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Derived {
    /// The hash of the key in another column.
    KeyHash(usize),
    /// The hash of the URL in another column.
    UrlHash(&'static str, usize),
    /// The shard of the address in another column.
    Shard(usize),
    /// A fixed number. The number of a set's row is replaced after all rows were copied.
    Number(&'static str, i64),
}

/// Computes the checksum of a row. `None` if a value is missing.
type SumOf = fn(&[Value]) -> Option<i64>;

/// A table of both kinds of databases.
pub(crate) struct Table {
    /// The name in SQLite, and with the schema `abreast` in PostgreSQL.
    pub(crate) name: &'static str,
    pub(crate) part: Part,
    pub(crate) columns: &'static [Column],
    /// The columns by whose order SQLite reads rows.
    pub(crate) sqlite_order: &'static [&'static str],
    /// The expressions by whose order PostgreSQL reads rows, which an index has.
    pub(crate) postgres_order: &'static [(&'static str, Kind)],
    pub(crate) derived: &'static [Derived],
    /// The checksum of a row, which only SQLite has.
    pub(crate) sum: Option<SumOf>,
    /// The column whose bytes SQLite has in another table.
    pub(crate) apart: Option<Apart>,
}

/// Bytes that SQLite has in another table.
pub(crate) struct Apart {
    /// The tables that are read.
    pub(crate) from: &'static str,
    /// The statement that stores the bytes.
    pub(crate) insert: &'static str,
    /// Index of the column with the bytes.
    pub(crate) column: usize,
    /// The column with the number of the stored bytes.
    pub(crate) number: &'static str,
}

impl Table {
    /// The values of a row that both databases have.
    pub(crate) fn compared<'r>(&self, row: &'r [Value]) -> impl Iterator<Item = &'r Value> {
        self.columns
            .iter()
            .zip(row)
            .filter(|(column, _)| column.is_compared)
            .map(|(_, value)| value)
    }

    /// The indexes of the columns that SQLite stores.
    pub(crate) fn sqlite_written(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let apart = self.apart.as_ref().map(|apart| apart.column);
        self.columns.iter().enumerate().filter_map(move |(index, column)| {
            if Some(index) == apart { None } else { Some((index, column.sqlite.write?)) }
        })
    }
}
