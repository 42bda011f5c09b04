//! Change feeds that a site lists in host-meta [rfc6415 §3], in addition to its Source Description.

use abreast_net::{Client, Options, Request, Shared};
use abreast_validator::Report;
use serde::Deserialize;
use url::Url;

/// Bytes of host-meta that are read.
const MAX_BYTES: u64 = 1 << 20;
const DESCRIPTION: &str = ".well-known/resourcesync";

#[derive(Deserialize)]
struct HostMeta {
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    rel: Option<String>,
    #[serde(rename = "type")]
    media_type: Option<String>,
    href: Option<String>,
}

impl Link {
    /// The address of an Entry Point, if it leads to one.
    fn entry_point(self) -> Option<Url> {
        let is_json = self.media_type.is_some_and(|media_type| media_type.contains("json"));
        let href = self.href.filter(|_| is_json && self.rel.as_deref() == Some("alternate"))?;
        Url::parse(&href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
    }
}

/// The Entry Points of the site whose Source Description was read; empty if the site does not have a
/// host-meta document.
pub(crate) fn find(report: &Report, net: Options) -> Vec<Url> {
    let mut documents = report.documents.iter().filter(|document| document.read);
    let Some(base) = documents.find_map(|document| document.url.strip_suffix(DESCRIPTION)) else {
        return Vec::new();
    };
    let url = format!("{base}.well-known/host-meta.json");
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let client = Client::new(Shared::new(net));
    let body = runtime.block_on(async {
        let mut response = client.send(&Request::new(&url)).await?.require_success()?;
        let mut body = Vec::new();
        response.read_to(&mut body, MAX_BYTES).await.map(|()| body)
    });
    let found = body.ok().and_then(|body| serde_json::from_slice::<HostMeta>(&body).ok());
    found
        .map_or(Vec::new(), |found| found.links.into_iter().filter_map(Link::entry_point).collect())
}
