//! Notes of the holders of leases for other nodes, and requests to the holders.
//!
//! A note and the requests are in the row of a lease, with the number of the process that they are of
//! or for: they are over when another process takes the lease.

use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::shared_values::{Param, database_now};
use abreast_core::{ErrorKind, HolderNote, LogError, REQUEST_BYTES_MAX, REQUESTS_MAX};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

const WRITING: &str = "cannot publish notes for other nodes";
const WRITE: &str = "UPDATE abreast.leases AS l SET note = new.note, note_by = $3 \
     FROM unnest($1::text[], $2::text[]) AS new (name, note) WHERE l.name = new.name AND l.owner = $3 \
     RETURNING l.name";
const READING: &str = "cannot read the notes of other nodes";
const READ: &str = concat!(
    "SELECT name, owner, node, CASE WHEN note_by = owner THEN note END, \
     request_to = owner AND cardinality(requests) > 0 \
     FROM abreast.leases WHERE name = ANY ($1) AND until > ",
    database_now!()
);
const TAKING: &str = "cannot take the requests of other nodes";
const TAKE: &str = "WITH taken AS (SELECT name, requests FROM abreast.leases \
     WHERE name = ANY ($1) AND owner = $2 AND request_to = $2 ORDER BY name FOR UPDATE) \
     UPDATE abreast.leases AS l SET requests = '{}', request_to = NULL FROM taken \
     WHERE l.name = taken.name RETURNING l.name, taken.requests";
const ASKING: &str = "cannot leave a request for another node";
const ASK: &str = concat!(
    "UPDATE abreast.leases SET request_to = $2, requests = CASE \
     WHEN request_to IS DISTINCT FROM $2 THEN ARRAY[$3] \
     WHEN $3 = ANY (requests) THEN requests ELSE array_append(requests, $3) END \
     WHERE name = $1 AND owner = $2 \
     AND (request_to IS DISTINCT FROM $2 OR $3 = ANY (requests) OR cardinality(requests) < $4) AND until > ",
    database_now!(),
    " RETURNING name"
);

/// The row of a lease that a process holds, as far as it concerns notes and requests.
pub(crate) struct NoteRow {
    pub(crate) name: String,
    /// The holder of the lease, with an empty text if it has not published a note.
    pub(crate) note: HolderNote,
    pub(crate) has_requests: bool,
}

/// Writes the notes of leases that this process holds; returns the names of these leases.
pub(crate) fn write(
    client: &Client,
    limit: Duration,
    owner: i64,
    notes: &[(String, String)],
) -> Result<Vec<String>, LogError> {
    if notes.is_empty() {
        return Ok(Vec::new());
    }
    let (names, texts): (Vec<&str>, Vec<&str>) =
        notes.iter().map(|(name, text)| (name.as_str(), text.as_str())).unzip();
    let params: [Param<'_>; 3] =
        [(&names, Type::TEXT_ARRAY), (&texts, Type::TEXT_ARRAY), (&owner, Type::INT8)];
    let rows = client.query_lease(WRITING, limit, WRITE, &params)?;
    Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
}

/// Reads the notes of leases that a process holds.
pub(crate) fn read(
    client: &Client,
    limit: Duration,
    names: &[String],
) -> Result<Vec<NoteRow>, LogError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let rows = client.query_lease(READING, limit, READ, &[(&names, Type::TEXT_ARRAY)])?;
    let rows: Result<_, Failure> = rows.iter().map(note_row).collect();
    rows.map_err(|failure| failure.into_error(READING))
}

fn note_row(row: &Row) -> Result<NoteRow, Failure> {
    let text: Option<String> = row.try_get(3)?;
    let text = text.unwrap_or_default();
    Ok(NoteRow {
        name: row.try_get(0)?,
        note: HolderNote { holder: row.try_get(1)?, node: row.try_get(2)?, text },
        has_requests: row.try_get::<_, Option<bool>>(4)?.unwrap_or_default(),
    })
}

/// Takes the requests to this process, by the names of their leases.
pub(crate) fn take(
    client: &Client,
    limit: Duration,
    owner: i64,
    names: &[String],
) -> Result<Vec<(String, Vec<String>)>, LogError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let params: [Param<'_>; 2] = [(&names, Type::TEXT_ARRAY), (&owner, Type::INT8)];
    let rows = client.query_lease(TAKING, limit, TAKE, &params)?;
    let taken: Result<_, Failure> =
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect();
    taken.map_err(|failure| failure.into_error(TAKING))
}

/// Leaves a request; returns whether it was accepted. The repetition after a lost answer has no
/// further effect.
pub(crate) fn ask(
    client: &Client,
    name: &str,
    holder: i64,
    request: &str,
) -> Result<bool, LogError> {
    if request.len() > REQUEST_BYTES_MAX {
        let message = format!(
            "the request has {} bytes\n  help: at most {REQUEST_BYTES_MAX} are possible",
            request.len()
        );
        return Err(LogError::new(ErrorKind::Refused, message));
    }
    let most = REQUESTS_MAX as i32;
    let params: [Param<'_>; 4] =
        [(&name, Type::TEXT), (&holder, Type::INT8), (&request, Type::TEXT), (&most, Type::INT4)];
    Ok(!client.query(ASKING, ASK, &params)?.is_empty())
}
