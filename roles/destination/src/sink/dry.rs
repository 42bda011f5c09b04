//! A dry run into WARC files, objects or a stream: predicts the actions from the database of the
//! copy alone.

use super::outcome::Outcome;
use super::{Body, Deleted, Deleting, Prepared, Sink, SinkWriter, Storing};
use crate::copy::partial::Partials;
use crate::report::failure::Failure;
use abreast_folder::Dir;
use abreast_store::mirror::{Row, Task};
use abreast_webtypes::Digests;
use std::sync::Arc;

/// Stores and deletes nothing.
#[derive(Debug)]
pub(crate) struct DrySink {
    pub(crate) root: Dir,
    pub(crate) partials: Partials,
    pub(crate) epoch: i64,
}

impl Sink for DrySink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(DryWriter(self))
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _: bool) -> String {
        uri.to_owned()
    }

    fn sweep(&self, _: &str) {}
}

struct DryWriter(Arc<DrySink>);

impl SinkWriter for DryWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        Ok(match &task.row {
            Some(row) if super::is_right(task, row, listed) => {
                Prepared::Done(Outcome::Right { row: super::with_time(task, row.clone()) })
            }
            _ => Prepared::Wanted { dir: self.0.root.clone(), conditional: false },
        })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(super::with_time(task, task.row.clone().unwrap_or_default()))
    }

    fn store<'a>(&'a mut self, task: &'a Task, _: Body<'a>) -> Storing<'a> {
        Box::pin(std::future::ready(Ok(self.rehearse(task, self.0.epoch))))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        super::until_fatal(tasks, |_| Ok(Deleted { gone: true, notices: Vec::new() }))
    }
}
