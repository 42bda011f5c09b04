//! Search index of a static site: one document for each part of the Resource List.

use super::paths::SetPage;
use super::resources::shown;
use crate::projection::routes::Route as _;
use crate::publish::{Output, PublishError, PublishedSet, Rendered};
use abreast_core::{ChangeLog, ShardId};
use std::ops::ControlFlow;

const JSON: &str = "application/json";
/// Bytes of the document that are expected for each resource.
const EACH: u64 = 40;

/// Writes the addresses of all parts.
pub(super) fn index(log: &dyn ChangeLog, set: &PublishedSet) -> Result<Rendered, PublishError> {
    let shards = log.shards(set.id)?;
    let parts: Vec<String> =
        shards.iter().map(|shard| SetPage::Names(shard.id).url(&set.urls)).collect();
    let mut bytes = serde_json::json!({ "parts": parts }).to_string().into_bytes();
    bytes.push(b'\n');
    Ok(Rendered { bytes, content_type: JSON })
}

/// Writes the index of a part: `base`, and an entry for each resource, which is a text that continues
/// `base`, or a pair of a text and a URL. An entity has an entry for each label.
pub(super) fn names(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    id: ShardId,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let shard = log.shard(set.id, id)?.ok_or(PublishError::NotFound)?;
    output.expect(512 + shard.resources * EACH);
    let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let base = set.urls.resources();
    let mut bytes = format!("{{\"base\":{},\"names\":[", text(&base)).into_bytes();
    let (mut uri, mut separator) = (String::new(), "\n");
    log.scan(set.id, &shard.range, &mut |resource| {
        set.urls.naming().write_uri(&resource.key, &mut uri);
        let label = set.about.label(resource.state.description.as_deref(), &[]);
        let name = label.map_or_else(|| shown(&resource.key), |label| label.text.clone());
        let labels = resource.state.description.iter().flat_map(|found| &found.labels);
        let others = labels.map(|label| &label.text).filter(|text| **text != name);
        for name in std::iter::once(&name).chain(others) {
            bytes.extend_from_slice(separator.as_bytes());
            separator = ",\n";
            if uri.strip_prefix(&base) == Some(name.as_str()) {
                bytes.extend_from_slice(text(name).as_bytes());
            } else {
                bytes.extend_from_slice(format!("[{},{}]", text(name), text(&uri)).as_bytes());
            }
        }
        output.drain(&mut bytes);
        ControlFlow::Continue(())
    })?;
    bytes.extend_from_slice(b"\n]}\n");
    Ok(Rendered { bytes, content_type: JSON })
}
