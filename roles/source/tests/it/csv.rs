//! A protocol of one document and one topic: the changes of a set as CSV. It shows what a protocol needs, and where.

use abreast_core::{ChangeRecord, Position};
use abreast_source::projection::{
    DocumentName as _, LogState, Output, Projection, Rendered, ResolvedDocument, SiteDocument, Topic, TopicContent,
    Version,
};
use abreast_source::publish::{PublishError, Publisher};
use std::fmt::Write as _;
use std::ops::ControlFlow;

pub(crate) struct Csv;

struct Changes<'p> {
    publisher: &'p Publisher,
    set: usize,
}

fn rows(publisher: &Publisher, set: usize, after: Position, last: Option<Position>) -> Result<Vec<u8>, PublishError> {
    let published = &publisher.sets()[set];
    let mut text = String::from("position,kind,uri\r\n");
    publisher.log().read(published.id, after, &mut |record: &ChangeRecord| {
        if last.is_some_and(|last| record.position > last) {
            return ControlFlow::Break(());
        }
        let kind = format!("{:?}", record.kind).to_lowercase();
        let _ = write!(text, "{},{kind},{}{}\r\n", record.position.0, published.urls.resources(), record.key);
        ControlFlow::Continue(())
    })?;
    Ok(text.into_bytes())
}

impl ResolvedDocument for Changes<'_> {
    fn version(&self) -> Result<Version, PublishError> {
        let state = LogState::of(self.publisher, self.set).ok_or(PublishError::Importing)?;
        Ok(Version { of: [state.created.as_micros() as u64, state.position.0], immutable: false })
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        output.expect(1_000);
        let bytes = rows(self.publisher, self.set, Position(0), None)?;
        Ok(Rendered { bytes, modified: None, content_type: "text/csv" })
    }
}

impl Projection for Csv {
    fn resolve<'p>(&self, publisher: &'p Publisher, path: &str) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let slug = path.strip_suffix("/changes.csv")?;
        let set = publisher.sets().iter().position(|set| set.slug == slug)?;
        Some(Box::new(Changes { publisher, set }))
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let path = |slug: &str| format!("{slug}/changes.csv").path(publisher).unwrap().into_owned();
        let document = |path| SiteDocument { path, entry: true, closed: false, identifies: false };
        Ok(publisher.sets().iter().map(|set| document(path(&set.slug))).collect())
    }

    fn topics(&self, publisher: &Publisher) -> Vec<Topic> {
        let paths = publisher.sets().iter().map(|set| format!("{}/notify/csv", set.slug));
        paths.filter_map(|path| self.topic(publisher, &path)).collect()
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let slug = path.strip_suffix("/notify/csv")?;
        let set = publisher.sets().iter().position(|set| set.slug == slug)?;
        publisher.notifications(set)?;
        Some(Topic {
            url: format!("{}{path}", publisher.urls().base()),
            set,
            record: format!("{slug}/csv"),
            content: TopicContent::Changes,
            media_type: "text/csv",
            links: String::new(),
        })
    }

    fn notification(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        rows(publisher, topic.set, after, Some(last))
    }
}
