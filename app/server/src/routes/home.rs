//! `/`: a page for people, and the place where HTML discovery begins [rs-core §6.3.2].

use crate::respond::{Answer, text};
use crate::site::Site;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, LINK};
use std::fmt::Write as _;

pub(crate) fn answer(site: &Site) -> Answer {
    let mut links = String::new();
    let mut rows = String::new();
    for (set, published) in site.sets.iter().zip(site.publisher.sets()) {
        let capability_list = escape(&published.urls.capability_list());
        let _ = writeln!(links, "<link rel=\"resourcesync\" href=\"{capability_list}\">");
        let resources = match site.publisher.log().head(published.id) {
            Ok(head) if !head.importing => head.resources.to_string(),
            _ => "being read".to_owned(),
        };
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{resources}</td><td><a href=\"{capability_list}\">Capability List</a></td></tr>",
            escape(&set.title)
        );
    }
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Published collections</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n{links}</head><body>\n<h1>Published collections</h1>\n\
         <table><thead><tr><th scope=\"col\">Set</th><th scope=\"col\">Resources</th><th scope=\"col\">Documents</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table>\n\
         <p>To mirror one: <code>abreast sync {} FOLDER</code></p>\n</body></html>\n",
        escape(site.publisher.urls().base())
    );
    let mut answer = text("text/html; charset=utf-8", page);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    for set in &site.sets {
        headers.append(LINK, set.link.clone());
    }
    answer
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
