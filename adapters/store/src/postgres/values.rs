//! The values of statements that are sent later.

use tokio_postgres::types::{ToSql, Type};

/// A value of a statement, with its type.
pub(crate) type Param = (Box<dyn ToSql + Sync + Send>, Type);

/// Values of a statement, as pairs of value and type.
macro_rules! params {
    ($($value:expr => $kind:ident),* $(,)?) => {
        [$((Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Sync + Send>, tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use params;

/// The values of a column, one for each row that a statement inserts.
pub(crate) enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    pub(crate) fn numbers<V: Into<Option<i64>>>(values: impl Iterator<Item = V>) -> Self {
        Self::Numbers(values.map(Into::into).collect())
    }

    pub(crate) fn texts<V: Into<Option<String>>>(values: impl Iterator<Item = V>) -> Self {
        Self::Texts(values.map(Into::into).collect())
    }

    pub(crate) fn bytes<V: Into<Option<Vec<u8>>>>(values: impl Iterator<Item = V>) -> Self {
        Self::Bytes(values.map(Into::into).collect())
    }

    /// The type of one value.
    pub(crate) const fn kind(&self) -> Type {
        match self {
            Self::Numbers(_) => Type::INT8,
            Self::Texts(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
        }
    }

    /// The value in a row.
    pub(crate) fn value(&self, row: usize) -> &(dyn ToSql + Sync) {
        match self {
            Self::Numbers(values) => &values[row],
            Self::Texts(values) => &values[row],
            Self::Bytes(values) => &values[row],
        }
    }

    /// All values, as one array.
    pub(crate) fn into_array(self) -> Param {
        let [array] = match self {
            Self::Numbers(values) => params![values => INT8_ARRAY],
            Self::Texts(values) => params![values => TEXT_ARRAY],
            Self::Bytes(values) => params![values => BYTEA_ARRAY],
        };
        array
    }
}
