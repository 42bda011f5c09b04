//! A table of labels, in an SQLite database or a CSV file: the label of each entity, and whether
//! the entity is deprecated.
//!
//! The table is always a separate database, which is in the state folder if the output is CSV. Its
//! batches are durable before the database of the copy records them, and both databases contain the
//! number of the last batch. Resources of a batch that only one database contains are fetched
//! again.

use super::document::describe;
use super::{iri, same_bytes};
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::report::sinks::{Graph, LabelsOptions};
use crate::sink::kept::{Damage, DamageKind, ReadBack, distrusted, is_distrusted, plan_again};
use crate::sink::kind::{KeptCopy, Opening, SinkKind};
use crate::sink::outcome::{Notice, Outcome};
use crate::sink::rdf::replaced::replacements;
use crate::sink::target::{LABEL_LANGUAGE, LABEL_PREDICATE, Target, TargetError, TargetKind};
use crate::sink::{Body, Deleted, Deleting, Prepared, Sink, SinkWriter, Storing};
use abreast_core::LogError;
use abreast_folder::Dir;
use abreast_rdf::{deprecation, entity_labels};
use abreast_store::labels::{LabelRow, LabelTable, Labels};
use abreast_store::mirror::{Deprecated, Mirror, Row, Task};
use abreast_webtypes::{Digests, Timestamp};
use std::fs::{File, Permissions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum length of a label in bytes; longer labels are truncated.
const LABEL_BYTES_MAX: usize = 8 << 10;

/// Number of items whose labels become durable together.
const BATCH_ITEMS: u64 = 5_000;
/// The table of a copy whose output is CSV, in its state folder.
const DATABASE: &str = "labels.db";
/// Keys of the identifier of the copy and of the number of the last batch, in the database of the
/// copy.
const COPY: &str = "labels-copy";
const BATCH: &str = "labels-batch";
/// Key of the options by which labels were chosen.
const CHOICE: &str = "labels-choice";
/// Keys of the path of the CSV file, and of its time and length after the last run.
const CSV: &str = "labels-csv";
const CSV_TIME: &str = "labels-csv-time";

impl LabelsOptions {
    fn table(&self, state: &StateFolder) -> Result<LabelTable, Error> {
        LabelTable::open(&self.database(state.path())).map_err(|error| self.failed(error))
    }

    fn database(&self, state: &Path) -> PathBuf {
        if self.is_csv { state.join(DATABASE) } else { self.path.clone() }
    }

    /// The file of CSV, the same by each spelling of its folder.
    fn csv(&self) -> Option<String> {
        let folder = self.folder();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = self.path.file_name().filter(|_| self.is_csv)?;
        Some(folder.join(name).display().to_string())
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// Checks that the file can be made, before anything is requested.
    pub(crate) fn check_folder(&self) -> Result<(), Error> {
        let folder = self.folder();
        if folder.is_dir() {
            return Ok(());
        }
        let message = format!(
            "cannot write {}: there is no folder {}",
            self.path.display(),
            folder.display()
        );
        Err(Error::new("labels.file", ExitCode::Io, message)
            .with_help("make the folder, or correct the path of the file"))
    }

    fn failed(&self, cause: LogError) -> Error {
        let message = format!("cannot use {}: {cause}", self.path.display());
        Error::new("labels.file", ExitCode::Io, message).with_cause(cause)
    }

    /// The choice of labels and replacements, as text.
    fn choice(&self, replaced_by: &[String]) -> String {
        let (predicates, languages) = (self.predicates.join(" "), self.languages.join(" "));
        let place = if self.is_csv { "csv" } else { "db" };
        format!("{predicates} / {languages} / {} / {place}", replaced_by.join(" "))
    }
}

/// A table of labels as a sink.
#[derive(Debug)]
pub(crate) struct LabelsSink {
    options: LabelsOptions,
    /// Properties that lead to what to use instead.
    replaced_by: Vec<String>,
    table: Mutex<LabelTable>,
    /// Rows of items that were stored since the last [`Sink::settle`]; always changed together with
    /// the table.
    stored: Mutex<Vec<Row>>,
    partials: Partials,
    spill: Dir,
    epoch: i64,
    /// Whether the content of the CSV file is compared with the table.
    checks_file: bool,
    has_stored: AtomicBool,
    /// Whether the table differs from the table after the last run.
    is_other: bool,
    /// Whether the CSV file was changed by another program, and was written again.
    was_altered: AtomicBool,
}

impl LabelsSink {
    pub(crate) fn open(
        state: &StateFolder,
        mirror: &Mirror,
        (options, replaced_by): (&LabelsOptions, &[String]),
        epoch: i64,
        checks_file: bool,
    ) -> Result<Self, Error> {
        let table = options.table(state)?;
        mirror.begin()?;
        let agreed = agree(&table, mirror, (options, replaced_by), (state, epoch));
        let is_other = match agreed {
            Ok(is_same) => !is_same,
            Err(error) => {
                mirror.rollback()?;
                return Err(error);
            }
        };
        mirror.commit()?;
        let (partials, spill) = crate::sink::spill_folder(state)?;
        Ok(Self {
            options: options.clone(),
            replaced_by: replaced_by.to_vec(),
            table: Mutex::new(table),
            stored: Mutex::default(),
            partials,
            spill,
            epoch,
            checks_file,
            has_stored: AtomicBool::new(false),
            is_other,
            was_altered: AtomicBool::new(false),
        })
    }

    fn table(&self) -> MutexGuard<'_, LabelTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> MutexGuard<'_, Vec<Row>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fatal(&self, cause: LogError) -> Failure {
        Failure::fatal("labels.file", self.options.failed(cause).to_string())
    }

    /// The file's time and length.
    fn csv_time(&self) -> Option<String> {
        let about = std::fs::metadata(&self.options.path).ok()?;
        Some(format!("{}.{:09} {}", about.mtime(), about.mtime_nsec(), about.len()))
    }

    /// Whether the CSV file is unchanged since this copy wrote it.
    fn is_file_as_left(&self, table: &LabelTable, mirror: &Mirror) -> Result<bool, Error> {
        let (now, left) = (self.csv_time(), mirror.meta(CSV_TIME)?);
        if now.is_some() && now == left && !self.checks_file {
            return Ok(true);
        }
        let is_same = csv_damage(&self.options, table)?.is_none();
        if is_same {
            mirror.set_meta(CSV_TIME, now.as_deref())?;
        }
        Ok(is_same)
    }

    fn export(&self, table: &LabelTable) -> Result<(), Error> {
        let path = &self.options.path;
        let wrong = |cause: io::Error| {
            let message = format!("cannot write {}: {cause}", path.display());
            Error::new("labels.file", ExitCode::Io, message).with_cause(cause)
        };
        let folder = self.options.folder();
        // The new file has the permissions of the previous file, or the default permissions.
        let before = std::fs::metadata(path).ok().map(|about| about.permissions());
        let file = tempfile::Builder::new()
            .prefix(".labels-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(wrong)?;
        let mut out = BufWriter::new(file.as_file());
        write_table(table, &mut out, &wrong)?;
        out.flush().map_err(wrong)?;
        drop(out);
        if let Some(before) = before {
            file.as_file().set_permissions(before).map_err(wrong)?;
        }
        file.as_file().sync_all().map_err(wrong)?;
        file.persist(path).map_err(|error| wrong(error.error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(wrong)?;
        Ok(table.set_exported()?)
    }
}

/// Makes the database agree with the table: resources that only one database contains are fetched
/// again. Returns false if the table does not belong to this database.
fn agree(
    table: &LabelTable,
    mirror: &Mirror,
    (options, replaced_by): (&LabelsOptions, &[String]),
    (state, epoch): (&StateFolder, i64),
) -> Result<bool, Error> {
    let failed = |error| options.failed(error);
    let (id, batch) = (table.id().map_err(failed)?, table.batch().map_err(failed)?);
    let known = mirror.meta(COPY)?;
    let own = known.clone().unwrap_or_else(|| state.path().display().to_string());
    if !id.is_empty() && id != own {
        let message = format!(
            "{} has the labels of another copy, whose state is in {id}",
            options.path.display()
        );
        return Err(Error::new("labels.other", ExitCode::Usage, message)
            .with_help("name another file; or remove this one, if that copy is gone"));
    }
    check_csv(options, mirror)?;
    let settled = mirror.meta(BATCH)?.and_then(|text| text.parse::<i64>().ok());
    let choice = options.choice(replaced_by);
    let is_chosen = mirror.meta(CHOICE)?.is_none_or(|known| known == choice);
    let is_same = known.as_ref() == Some(&id) && mirror.meta(CHOICE)?.as_ref() == Some(&choice);
    let mut is_expected = true;
    match settled.filter(|_| is_same).map(|settled| batch - settled) {
        Some(0) => {}
        // A run was killed between the two.
        Some(1) => {
            for uri in table.resources().map_err(failed)? {
                // A resource that is not in the database is stored again, or deleted.
                let new = || Row { uri: uri.clone(), epoch, ..Row::default() };
                mirror.put_row(&distrusted(&mirror.row(&uri)?.unwrap_or_else(new)))?;
            }
            mirror.set_meta(BATCH, Some(&batch.to_string()))?;
        }
        // One of the two is new or restored from a backup, or the choice of labels has changed.
        _ => {
            mirror.each_batch(|rows| rows.iter().try_for_each(|row| plan_again(mirror, row)))?;
            table.begin_copy(&own).map_err(failed)?;
            mirror.set_meta(COPY, Some(&own))?;
            mirror.set_meta(CHOICE, Some(&choice))?;
            mirror.set_meta(BATCH, Some("0"))?;
            is_expected = known.is_none() || !is_chosen;
        }
    }
    Ok(is_expected)
}

/// A file that this copy did not write is that of another copy or program.
fn check_csv(options: &LabelsOptions, mirror: &Mirror) -> Result<(), Error> {
    let Some(path) = options.csv() else { return Ok(()) };
    if mirror.meta(CSV)?.as_ref() == Some(&path) {
        return Ok(());
    }
    // An earlier version did not record the path of the file.
    let is_known = mirror.meta(CSV)?.is_none()
        && mirror.meta(CHOICE)?.is_some_and(|choice| choice.ends_with(" / csv"));
    if !is_known && options.path.symlink_metadata().is_ok() {
        let message =
            format!("{} is there already, and this copy did not write it", options.path.display());
        return Err(Error::new("labels.other", ExitCode::Usage, message).with_help(
            "name another file; or remove this one, if it is of a copy whose state is gone",
        ));
    }
    Ok(mirror.set_meta(CSV, Some(&path))?)
}

/// The table as CSV; `failed` is about the file that it goes to.
fn write_table(
    table: &LabelTable,
    out: &mut impl Write,
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<(), Error> {
    out.write_all(b"uri,label,lang,deprecated,replaced_by,changed\r\n").map_err(failed)?;
    table.each(&mut |row| write_row(out, row).map_err(failed))
}

/// A writer that compares the written bytes with the bytes of a reader.
struct Comparing<R> {
    with: R,
    buffer: Vec<u8>,
    is_same: bool,
}

impl<R: Read> Write for Comparing<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_same {
            self.buffer.clear();
            (&mut self.with).take(bytes.len() as u64).read_to_end(&mut self.buffer)?;
            self.is_same = self.buffer == bytes;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The difference between the CSV file and its table.
fn csv_damage(options: &LabelsOptions, table: &LabelTable) -> Result<Option<Damage>, Error> {
    let unreadable = |cause: io::Error| {
        let message = format!("cannot read {}: {cause}", options.path.display());
        Error::new("labels.file", ExitCode::Io, message).with_cause(cause)
    };
    let file = match File::open(&options.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "the file is missing".to_owned();
            return Ok(Some(Damage { kind: DamageKind::Missing, message }));
        }
        Err(error) => return Err(unreadable(error)),
    };
    let mut comparing = Comparing { with: BufReader::new(file), buffer: Vec::new(), is_same: true };
    write_table(table, &mut comparing, &unreadable)?;
    let Comparing { mut with, is_same, .. } = comparing;
    let is_same = is_same && with.fill_buf().map_err(unreadable)?.is_empty();
    let message = || "the file does not have the rows that were written".to_owned();
    Ok((!is_same).then(|| Damage { kind: DamageKind::Digest, message: message() }))
}

/// A row of CSV [rfc4180], without control characters other than line breaks and tabs.
fn write_row(out: &mut impl Write, row: &LabelRow) -> io::Result<()> {
    let deprecated = if row.deprecated { "1" } else { "0" };
    let [by, changed] = [&row.replaced_by, &row.changed].map(|cell| cell.as_deref().unwrap_or(""));
    let cells = [&row.uri, &row.label, &row.lang, deprecated, by, changed];
    for (number, cell) in cells.into_iter().enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        let is_control = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t');
        let cell = if cell.contains(is_control) { &cell.replace(is_control, "") } else { cell };
        if cell.contains([',', '"', '\r', '\n']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    out.write_all(b"\r\n")
}

impl Sink for LabelsSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(LabelsWriter { sink: self })
    }

    fn keeps_statements(&self) -> bool {
        true
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _leaf: bool) -> String {
        uri.to_owned()
    }

    fn wants_head(&self) -> bool {
        true
    }

    fn batch_items(&self) -> u64 {
        BATCH_ITEMS
    }

    fn stores_later(&self) -> bool {
        true
    }

    fn deprecate(&self, resources: &[Deprecated]) -> Result<(), Error> {
        let all: Vec<_> = resources
            .iter()
            .map(|resource| {
                let time = resource.time.map(Timestamp::from_micros);
                (resource.uri.as_str(), resource.replaced_by.as_slice(), time)
            })
            .collect();
        self.table().deprecate(&all).map_err(|error| self.options.failed(error))
    }

    fn settle(&self, mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let (batch, stored) = {
            let mut table = self.table();
            let batch = table.end_batch().map_err(|error| self.options.failed(error))?;
            (batch, std::mem::take(&mut *self.stored()))
        };
        stored.iter().try_for_each(|row| mirror.put_row(row))?;
        mirror.set_meta(BATCH, Some(&batch.to_string()))?;
        Ok(Vec::new())
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::copy::names::temporary_name(uri));
    }

    fn restored(&self, _mirror: &Mirror) -> Result<Option<String>, Error> {
        let message = || {
            format!("{} is not the table that the state was left with", self.options.path.display())
        };
        Ok(self.is_other.then(message))
    }

    fn finish(&self, mirror: &Mirror) -> Result<(), Error> {
        let table = self.table();
        if !self.options.is_csv {
            return Ok(());
        }
        if table.is_exported()? {
            if self.is_file_as_left(&table, mirror)? {
                return Ok(());
            }
            self.was_altered.store(!self.checks_file, Ordering::Relaxed);
        }
        self.export(&table)?;
        Ok(mirror.set_meta(CSV_TIME, self.csv_time().as_deref())?)
    }

    fn remark(&self) -> Result<Option<Notice>, Error> {
        if self.was_altered.load(Ordering::Relaxed) {
            let path = self.options.path.display();
            let message =
                format!("{path} did not have the rows that were written; it is written again");
            return Ok(Some(Notice::new("local.altered", message)));
        }
        if !self.has_stored.load(Ordering::Relaxed) || !self.table().is_without_labels()? {
            return Ok(None);
        }
        let predicates = match &*self.options.predicates {
            [] => "the usual predicates".to_owned(),
            predicates => predicates.join(", "),
        };
        let message = format!(
            "no entity has a label, by {predicates}\n  help: name the predicates that it has with `--label-predicate IRI`"
        );
        Ok(Some(Notice::new("labels.none", message)))
    }
}

struct LabelsWriter {
    sink: Arc<LabelsSink>,
}

impl SinkWriter for LabelsWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        iri(&task.pending.uri)?;
        if let Some(row) = &task.row
            && crate::sink::is_right(task, row, listed)
        {
            let row = crate::sink::with_time(task, row.clone());
            return Ok(Prepared::Done(Outcome::Right { row: self.touched(task, row)? }));
        }
        Ok(Prepared::Wanted { dir: self.sink.spill.clone(), conditional: task.row.is_some() })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        let row = crate::sink::with_time(task, task.row.clone().unwrap_or_default());
        self.touched(task, row)
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(std::future::ready(self.store_now(task, body)))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        crate::sink::until_fatal(tasks, |task| {
            if task.row.is_some() {
                let removed = self.sink.table().remove(&task.pending.uri);
                removed.map_err(|error| self.sink.fatal(error))?;
            }
            Ok(Deleted { gone: task.row.is_some(), notices: Vec::new() })
        })
    }
}

/// The beginning of a long label: it is part of the key of its row.
fn cut(label: &str) -> &str {
    let mut end = label.len().min(LABEL_BYTES_MAX);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    &label[..end]
}

/// The time of a resource's change in the table.
fn time_of(row: &Row) -> Option<Timestamp> {
    row.changed.or(row.modified).map(Timestamp::from_micros)
}

impl LabelsWriter {
    /// The row of a resource whose bytes are unchanged. A new time of change is written to the
    /// table.
    fn touched(&self, task: &Task, row: Row) -> Result<Row, Failure> {
        if task.row.as_ref().and_then(time_of) != time_of(&row) {
            let mut table = self.sink.table();
            table.touch(&row.uri, time_of(&row)).map_err(|error| self.sink.fatal(error))?;
            self.sink.stored().push(row.clone());
        }
        Ok(row)
    }

    fn store_now(&self, task: &Task, mut body: Body<'_>) -> Result<Outcome, Failure> {
        let row = body.row(task, self.sink.epoch);
        if let Some(kept) = same_bytes(task, &row) {
            return Ok(Outcome::Right { row: self.touched(task, kept)? });
        }
        let description = describe(task, &mut body, &Graph::Default)?;
        let resource = task.pending.uri.as_str();
        let uri = description.entity.as_ref().map_or(resource, |entity| entity.as_str());
        let LabelsOptions { predicates, languages, .. } = &self.sink.options;
        let found = entity_labels(&description.lines, uri, predicates, languages);
        let stated = deprecation(&description.lines, uri).map(|stated| {
            let instead = || replacements(&self.sink.replaced_by, uri, &description.lines);
            (stated.is_deprecated, if stated.is_deprecated { instead() } else { Vec::new() })
        });
        let labels = Labels {
            uri,
            labels: found.iter().map(|label| (cut(&label.text), &*label.language)).collect(),
            deprecated: stated.as_ref().map(|(is_deprecated, by)| (*is_deprecated, &**by)),
            changed: time_of(&row),
        };
        let mut table = self.sink.table();
        table.replace(resource, &labels).map_err(|error| self.sink.fatal(error))?;
        self.sink.stored().push(row.clone());
        drop(table);
        self.sink.has_stored.store(true, Ordering::Relaxed);
        let mut notices = body.notices;
        notices.extend(description.notices);
        Ok(Outcome::Stored { created: task.row.is_none(), row, notices })
    }
}

/// Verifies the table for audits: whether it contains each entity, and whether the CSV file agrees
/// with the table. The descriptions from which labels were taken are not stored.
pub(crate) struct LabelsKept {
    options: LabelsOptions,
    table: LabelTable,
}

impl LabelsKept {
    pub(crate) fn open(options: &LabelsOptions, state: &Path) -> Result<Self, Error> {
        let path = options.database(state);
        if !path.exists() {
            let message = format!("there is no table of labels in {}", path.display());
            return Err(Error::new("labels.file", ExitCode::Io, message)
                .with_help("run `abreast sync`: it is made again"));
        }
        let table = LabelTable::open_read_only(&path);
        // A database of another program does not contain an identifier.
        let table = table.and_then(|table| table.id().map(|_| table));
        let table = table.map_err(|error| options.failed(error))?;
        Ok(Self { options: options.clone(), table })
    }
}

impl ReadBack for LabelsKept {
    fn damage(&mut self, _: &Mirror, row: &Row, _: bool) -> Result<Option<Damage>, Error> {
        // A resource with an unreliable row is stored again in any case.
        if is_distrusted(row) || self.table.has(&row.uri)? {
            return Ok(None);
        }
        let message = "its labels are missing".to_owned();
        Ok(Some(Damage { kind: DamageKind::Missing, message }))
    }

    fn keeps_bytes(&self) -> bool {
        false
    }

    fn file_damage(&mut self) -> Result<Option<(String, Damage)>, Error> {
        if !self.options.is_csv {
            return Ok(None);
        }
        let mut damage = csv_damage(&self.options, &self.table)?;
        if let Some(damage) = damage.as_mut().filter(|damage| damage.kind == DamageKind::Digest)
            && !self.table.is_exported()?
        {
            // The last run ended before it wrote the file, and the next run writes it.
            damage.kind = DamageKind::Time;
        }
        Ok(damage.map(|damage| (self.options.path.display().to_string(), damage)))
    }
}

impl TargetKind for LabelsOptions {
    const FORMS: &'static [&'static str] = &["labels:FILE"];
    const OPTIONS: &'static [&'static str] = &[LABEL_PREDICATE, LABEL_LANGUAGE];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        let path = PathBuf::from(target.place);
        let is_csv = match path.extension().and_then(|end| end.to_str()) {
            Some("csv") => true,
            Some("db" | "sqlite" | "sqlite3") => false,
            _ => {
                return Err(TargetError::Unsuitable(
                    "`labels:` needs a file that ends in .db or .csv (help: abreast sync URL labels:FILE.db --state DIR)",
                ));
            }
        };
        target.use_state("a table of labels")?;
        Ok(Self {
            path,
            is_csv,
            predicates: target.given.label_predicates.clone(),
            languages: target.given.label_languages.clone(),
        })
    }
}

impl SinkKind for LabelsOptions {
    fn check_target(&self) -> Result<(), Error> {
        self.check_folder()
    }

    fn open(
        &self,
        opening: Opening<'_>,
        _report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        let Opening { options, mirror, state, epoch, .. } = opening;
        let choice = (self, options.replaced_by.as_slice());
        let sink = LabelsSink::open(state, mirror, choice, epoch, options.baseline)?;
        Ok(Some(Arc::new(sink)))
    }

    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        Ok(Some(Box::new(LabelsKept::open(self, copy.state)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_is_cut_between_characters() {
        let label = "ä".repeat(5_000);
        assert_eq!((cut(&label).len(), cut("short")), (LABEL_BYTES_MAX, "short"));
        assert_eq!(cut(&format!("x{label}")).len(), LABEL_BYTES_MAX - 1);
    }

    #[test]
    fn cells_of_csv_are_quoted_where_they_must_be() {
        let row = LabelRow {
            uri: "http://h/a".to_owned(),
            label: "Ada, \"the\nfirst\"\u{1b}\u{9b}".to_owned(),
            lang: "en".to_owned(),
            deprecated: true,
            replaced_by: Some("http://h/b http://h/c".to_owned()),
            changed: None,
        };
        let mut out = Vec::new();
        write_row(&mut out, &row).unwrap();
        let text = "http://h/a,\"Ada, \"\"the\nfirst\"\"\",en,1,http://h/b http://h/c,\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
