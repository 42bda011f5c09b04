//! JSON of the API, with the attributes of `rs:md` and `rs:ln` as fields [rs-core §7].

use abreast_core::{
    Change, ChangeLog, ChangeRecord, Clock as _, Kind, LogError, SetId, State, SystemClock,
};
use abreast_source::Naming;
use abreast_source::links::{LinkRecord, absolute_uri, published_links, read_links};
use abreast_webtypes::{Digests, Timestamp, W3cDatetime};
use serde::{Deserialize, Serialize};

/// Longest key that the log accepts.
pub(super) const MAX_KEY: usize = 8_000;
/// Most bytes of a media type or an encoding.
const MAX_NAME: usize = 255;
/// Most bytes of an idempotency key.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// Kinds of changes, as in Change Lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeWord {
    /// The resource is new or changed: the log decides which.
    Created,
    /// Accepted as another word for [`ChangeWord::Created`].
    Updated,
    /// The resource does not exist any more.
    Deleted,
}

/// One resource, as a writer sends it. The fields that the log adds to a record (`position`,
/// `datetime`) are accepted and ignored, so that records from one server can be sent to another
/// unchanged.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordRequest {
    /// URI of the resource, absolute or relative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Kind of change; default `updated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeWord>,
    /// Time of the content's last modification. Default: unchanged if all other fields are,
    /// otherwise now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<String>,
    /// Length of the content in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Media type of the content.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content encoding, such as `gzip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Digests of the content, such as `md5:… sha-256:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Links from this resource to related ones [rs-core §14].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<LinkRecord>>,
    /// The idempotency key of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Position of a record that was read; ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Time of a record that was read; ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datetime: Option<String>,
}

/// The reason why a record is not a change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// A value is wrong; the text begins with the name of the field.
    #[error("{0}")]
    Field(String),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<String> for RecordFault {
    fn from(fault: String) -> Self {
        Self::Field(fault)
    }
}

impl From<&str> for RecordFault {
    fn from(fault: &str) -> Self {
        Self::Field(fault.to_owned())
    }
}

impl RecordRequest {
    /// The change of the resource with this key. Reads the log only for missing values.
    ///
    /// # Errors
    /// The error, with the field's name; or the error of the log.
    pub fn to_change(
        &self,
        key: &str,
        resources: &str,
        log: &dyn ChangeLog,
        set: SetId,
    ) -> Result<Change, RecordFault> {
        let mut change = if self.change == Some(ChangeWord::Deleted) {
            if self.links.is_some() || self.hash.is_some() || self.length.is_some() {
                return Err(
                    "`change`: what is deleted has no state (help: leave out `hash`, `length` and `links`)".into()
                );
            }
            Change::delete(key)
        } else {
            Change::put(key, self.state(key, resources, log, set)?)
        };
        if let Some(name) = &self.idempotency_key {
            check_idempotency_key(name).map_err(|reason| format!("`idempotency_key`: {reason}"))?;
            change = change.with_idempotency_key(name);
        }
        Ok(change)
    }

    fn state(
        &self,
        key: &str,
        resources: &str,
        log: &dyn ChangeLog,
        set: SetId,
    ) -> Result<State, RecordFault> {
        let mut state = State { length: self.length, ..State::default() };
        if self.length.is_some_and(|length| i64::try_from(length).is_err()) {
            return Err("`length`: beyond 2^63 bytes".into());
        }
        for (name, value) in [("type", &self.media_type), ("encoding", &self.encoding)] {
            let sound = |value: &String| {
                !value.is_empty()
                    && value.len() <= MAX_NAME
                    && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            };
            if value.as_ref().is_some_and(|value| !sound(value)) {
                let fault = format!("`{name}`: not 1 to {MAX_NAME} printable ASCII characters");
                return Err(fault.into());
            }
        }
        state.media_type.clone_from(&self.media_type);
        state.encoding.clone_from(&self.encoding);
        if let Some(hash) = &self.hash {
            let mut digests = Digests::default();
            digests.parse_into(hash.as_bytes()).map_err(|error| format!("`hash`: {error}"))?;
            if digests.strongest().is_none() {
                return Err("`hash`: none of md5, sha-1, sha-256, sha-512 is in it".into());
            }
            state.digests = digests;
        }
        if let Some(records) = &self.links {
            let records: Vec<LinkRecord> =
                records.iter().map(|record| relative(record, resources)).collect();
            state.links =
                read_links(key, &records).map_err(|reason| format!("`links`: {reason}"))?;
        }
        state.modified = if let Some(text) = &self.lastmod {
            W3cDatetime::parse(text.as_bytes())
                .map_err(|error| format!("`lastmod`: {error}"))?
                .instant
        } else {
            let known = log.resource(set, key)?;
            match known.map(|known| known.state) {
                Some(known) if (State { modified: known.modified, ..state.clone() }) == known => {
                    known.modified
                }
                _ => Timestamp::from_seconds(SystemClock.now().as_seconds()),
            }
        };
        Ok(state)
    }
}

/// Stores a link to a resource of the same set relative to the base, so that the base may change.
pub(crate) fn relative(record: &LinkRecord, resources: &str) -> LinkRecord {
    let mut record = record.clone();
    if let Some(own) = record.href.strip_prefix(resources) {
        record.href = format!("/{own}");
    }
    record
}

/// Checks the idempotency key of a request or a change.
pub(crate) fn check_idempotency_key(name: &str) -> Result<(), String> {
    let sound = !name.is_empty()
        && name.len() <= MAX_IDEMPOTENCY_KEY
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    if sound {
        Ok(())
    } else {
        Err(format!("not 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters without spaces"))
    }
}

/// The key of a URI: relative if it has the set's base as prefix.
///
/// # Errors
/// It is not a URI.
pub fn key_of_uri(uri: &str, resources: &str) -> Result<String, String> {
    let key = uri.strip_prefix(resources).unwrap_or(uri);
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(format!("`uri`: not 1 to {MAX_KEY} bytes"));
    }
    if key.len() == uri.len() && key.contains(':') {
        absolute_uri(uri).map_err(|reason| format!("`uri`: {reason}"))?;
        return Ok(key.to_owned());
    }
    let path: Vec<Vec<u8>> = key
        .split('/')
        .map(|segment| abreast_webtypes::decode_segment(segment.as_bytes()))
        .collect();
    let mut canonical = String::with_capacity(key.len());
    for (number, name) in path.iter().enumerate() {
        if name.is_empty() || name == b"." || name == b".." {
            return Err("`uri`: neither an absolute URI nor the path of a resource".to_owned());
        }
        if number > 0 {
            canonical.push('/');
        }
        abreast_webtypes::encode_segment(name, &mut canonical);
    }
    Ok(canonical)
}

/// One resource, as returned by the API.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecordAnswer {
    /// Position of the resource's last change in the log; 0 if it was imported.
    pub position: u64,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datetime: Option<String>,
    /// The kind of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeWord>,
    /// Absolute URI of the resource.
    pub uri: String,
    /// Time of the content's last modification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<String>,
    /// Length of the content in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Media type of the content.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content encoding, such as `gzip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Digests of the content, as in `hash` [rs-core §7].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Links from this resource to related ones [rs-core §14].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
}

impl RecordAnswer {
    /// Describes a resource by its present state.
    pub fn of_state(key: &str, position: u64, state: &State, resources: &str) -> Self {
        let mut answer = Self { position, uri: uri_of(key, resources), ..Self::default() };
        answer.fill(state, resources);
        answer
    }

    /// A change from the log, in JSON.
    pub fn of_change(record: &ChangeRecord, resources: &str) -> Self {
        let mut answer = Self {
            position: record.position.0,
            datetime: Some(record.time.to_string()),
            change: Some(match record.kind {
                Kind::Create | Kind::Add => ChangeWord::Created,
                Kind::Remove | Kind::Delete => ChangeWord::Deleted,
                _ => ChangeWord::Updated,
            }),
            uri: uri_of(&record.key, resources),
            ..Self::default()
        };
        if let Some(state) = &record.state {
            answer.fill(state, resources);
        }
        answer
    }

    fn fill(&mut self, state: &State, resources: &str) {
        self.lastmod = Some(state.modified.to_string());
        self.length = state.length;
        self.media_type.clone_from(&state.media_type);
        self.encoding.clone_from(&state.encoding);
        self.hash = state.digests.strongest().map(|_| state.digests.to_string());
        self.links = published_links(&state.links, resources);
    }
}

fn uri_of(key: &str, resources: &str) -> String {
    Naming::new(resources).uri(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_resource_has_one_key() {
        let base = "https://example.org/s/r/";
        for (uri, key) in [
            ("https://elsewhere.example/x?y=1", "https://elsewhere.example/x?y=1"),
            ("urn:isbn:0451450523", "urn:isbn:0451450523"),
            ("https://example.org/s/r/a%20b/%63", "a%20b/c"),
            ("a/b", "a/b"),
            ("a%3ab", "a%3Ab"),
        ] {
            assert_eq!(key_of_uri(uri, base).as_deref(), Ok(key), "{uri}");
        }
        for uri in [
            "",
            "https://",
            "a//b",
            "../a",
            "a/%2e%2e/b",
            "http://a b/",
            "https://example.org/s/r/",
            "x:\"",
            "1:x",
        ] {
            assert!(key_of_uri(uri, base).is_err(), "{uri}");
        }
        assert!(key_of_uri(&format!("http://x/{}", "a".repeat(MAX_KEY)), base).is_err());
    }
}
