//! A protocol with one document and two topics: the changes of a set as CSV. The example shows
//! which parts a protocol needs, and where they belong.

use abreast_core::{ChangeRecord, Position};
use abreast_source::projection::{
    EndedTopic, HeadReader, LogState, News, NewsRequest, NotifiedDocuments, Output, Projection,
    Rendered, ResolvedDocument, SiteDocument, SiteStage, Topic, TopicContent, Version,
};
use abreast_source::publish::{PublishError, PublishedSet, Publisher};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) struct Csv;

/// The topic of changes, and the topic that announces the document.
const CHANGES: &str = "/notify/csv";
const FILES: &str = "/notify/csv-file";

struct Changes<'p> {
    publisher: &'p Publisher,
    set: &'p PublishedSet,
}

fn rows(
    publisher: &Publisher,
    set: &PublishedSet,
    after: Position,
    last: Option<Position>,
) -> Result<Vec<u8>, PublishError> {
    let mut text = String::from("position,kind,uri\r\n");
    publisher.log().read(set.id, after, &mut |record: &ChangeRecord| {
        if last.is_some_and(|last| record.position > last) {
            return ControlFlow::Break(());
        }
        let kind = format!("{:?}", record.kind).to_lowercase();
        let _ =
            write!(text, "{},{kind},{}{}\r\n", record.position.0, set.urls.resources(), record.key);
        ControlFlow::Continue(())
    })?;
    Ok(text.into_bytes())
}

impl ResolvedDocument for Changes<'_> {
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let state = LogState::of(heads, self.set).ok_or(PublishError::Importing)?;
        Ok(Version::changing([state.created.as_micros() as u64, state.position.0]))
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        output.expect(1_000);
        let bytes = rows(self.publisher, self.set, Position(0), None)?;
        Ok(Rendered { bytes, content_type: "text/csv" })
    }
}

impl Projection for Csv {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let set = publisher.find_set(path.strip_suffix("/changes.csv")?)?;
        Some(Box::new(Changes { publisher, set }))
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let document = |path| SiteDocument { path, stage: SiteStage::EntryPoint, closed: false };
        Ok(publisher
            .sets()
            .iter()
            .map(|set| document(format!("{}/changes.csv", set.slug)))
            .collect())
    }

    fn topics(&self, publisher: &Publisher) -> Vec<Topic> {
        let paths = publisher
            .sets()
            .iter()
            .flat_map(|set| [CHANGES, FILES].map(|name| format!("{}{name}", set.slug)));
        paths.filter_map(|path| self.topic(publisher, &path)).collect()
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let known = [(CHANGES, TopicContent::Changes), (FILES, TopicContent::Documents)];
        let (slug, content) = known
            .into_iter()
            .find_map(|(name, content)| Some((path.strip_suffix(name)?, content)))?;
        let set = publisher.find_set(slug).filter(|set| set.notifications.is_some())?;
        Some(Topic {
            url: format!("{}{path}", publisher.urls().base()),
            set: Arc::clone(set),
            record: format!("{slug}/csv"),
            content,
            media_type: "text/csv",
            links: String::new(),
        })
    }

    fn news(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        request: &NewsRequest<'_>,
    ) -> Result<Option<News>, PublishError> {
        let position = publisher.log().head(topic.set.id)?.position.0;
        if request.before.get("position").and_then(serde_json::Value::as_u64) == Some(position) {
            return Ok(None);
        }
        let after = NotifiedDocuments::from_iter([("position".to_owned(), position.into())]);
        let from = request.from.is_some();
        let notification =
            format!("changes.csv,{position},{from},{}\r\n", request.first).into_bytes();
        Ok(Some(News { notification, after, grown: false }))
    }

    fn ended_topic(
        &self,
        publisher: &Publisher,
        record: &str,
        request: &NewsRequest<'_>,
    ) -> Option<EndedTopic> {
        let slug = record.strip_suffix("/csv")?;
        if publisher.find_set(slug).is_some() || !request.before.contains_key("position") {
            return None;
        }
        let url = format!("{}{slug}{FILES}", publisher.urls().base());
        Some(EndedTopic {
            url,
            notification: b"changes.csv,gone\r\n".to_vec(),
            media_type: "text/csv",
        })
    }

    fn notification(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        rows(publisher, &topic.set, after, Some(last))
    }
}
