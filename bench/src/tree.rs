//! A seeded collection of files: the same seed gives the same bytes on every machine.
//!
//! Metadata records of log-normal size, 1 to 8 KB, 3.1 KB on average, 1,000 a folder; or, for a
//! million files, records of a few bytes. A file's bytes depend on its number and version only.

use abreast_testkit::Random;
use anyhow::{Context, Result};
use md5::{Digest as _, Md5};
use std::fmt::Write as _;
use std::fs::{self, File, FileTimes};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files in one folder.
const PER_FOLDER: usize = 1_000;
/// Modification times begin here (14 November 2023).
const FIRST_TIME: u64 = 1_700_000_000;

/// Sizes of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Records,
    Tiny,
}

/// A size of records: log-normal with mu 7.9 and sigma 0.55, clipped.
fn size(random: &mut Random) -> usize {
    let mut unit = || ((random.number() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let normal = (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos();
    (7.9 + 0.55 * normal).exp().clamp(1_024.0, 8_192.0) as usize
}

/// A list entry of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) md5: [u8; 16],
    pub(crate) length: u64,
    /// Seconds since 1970.
    pub(crate) modified: u64,
}

/// A collection on disk.
pub(crate) struct Tree {
    /// Where its folders `d0000` … are.
    pub(crate) folder: PathBuf,
    pub(crate) count: usize,
    profile: Profile,
    /// The text of which each record's text is a slice.
    text: String,
    versions: Vec<u32>,
}

/// The relative path of a file.
pub(crate) fn path_of(number: usize) -> String {
    format!("d{:04}/r{number:07}.xml", number / PER_FOLDER)
}

impl Tree {
    /// Opens the collection at `folder`, generating it when it is not there.
    pub(crate) fn open(folder: &Path, count: usize, profile: Profile) -> Result<Self> {
        let text = words();
        let mut tree =
            Self { folder: folder.to_owned(), count, profile, text, versions: vec![0; count] };
        if let Ok(stamp) = fs::read_to_string(tree.stamp()) {
            for line in stamp.lines() {
                let (number, version) =
                    line.split_once(' ').context("the collection's stamp is damaged")?;
                tree.versions[number.parse::<usize>()?] = version.parse()?;
            }
            return Ok(tree);
        }
        eprintln!("   generating {count} files");
        for number in (0..count).step_by(PER_FOLDER) {
            fs::create_dir_all(folder.join(format!("d{:04}", number / PER_FOLDER)))?;
        }
        let half = count / 2;
        std::thread::scope(|scope| {
            let tree = &tree;
            let second =
                scope.spawn(move || (half..count).try_for_each(|number| tree.write(number)));
            (0..half).try_for_each(|number| tree.write(number))?;
            second.join().map_err(|_| anyhow::anyhow!("the generator panicked"))?
        })?;
        fs::write(tree.stamp(), "")?;
        Ok(tree)
    }

    /// A collection that is not on disk.
    pub(crate) fn imagined(count: usize) -> Self {
        Self {
            folder: PathBuf::new(),
            count,
            profile: Profile::Records,
            text: words(),
            versions: vec![0; count],
        }
    }

    /// Beside the collection, so that it is not part of it: number and version of each changed
    /// file.
    fn stamp(&self) -> PathBuf {
        self.folder.with_extension("stamp")
    }

    /// The bytes of a file now.
    pub(crate) fn body(&self, number: usize) -> Vec<u8> {
        let version = self.versions[number];
        if self.profile == Profile::Tiny {
            return format!("<r>{number} {version}</r>\n").into_bytes();
        }
        let mut random = Random::new(number as u64 * 7_919 + u64::from(version));
        let size = size(&mut random);
        let head = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n<dc:identifier>oai:example.org:{number}</dc:identifier>\
             <dc:date>{}</dc:date>\n<dc:description>",
            2_000 + version
        );
        let end = "</dc:description>\n</oai_dc:dc>\n";
        let at = random.index(self.text.len() - 8_192);
        let length = size.saturating_sub(head.len() + end.len());
        format!("{head}{}{end}", &self.text[at..at + length]).into_bytes()
    }

    fn modified(&self, number: usize) -> u64 {
        FIRST_TIME + (number as u64 % 86_400) + u64::from(self.versions[number] % 100) * 100_000
    }

    /// Writes a file whole: nobody sees half of it.
    fn write(&self, number: usize) -> Result<()> {
        let path = self.folder.join(path_of(number));
        let temporary = path.with_extension("xml~");
        let mut file = File::create(&temporary)?;
        file.write_all(&self.body(number))?;
        let time: SystemTime = UNIX_EPOCH + Duration::from_secs(self.modified(number));
        file.set_times(FileTimes::new().set_modified(time))?;
        drop(file);
        fs::rename(&temporary, &path).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Changes one file in a hundred, chosen by `step`; returns their numbers in order.
    pub(crate) fn change(&mut self, step: u64) -> Result<Vec<usize>> {
        let mut random = Random::new(step.wrapping_mul(0x1234_5678_9abc));
        let wanted = (self.count / 100).max(1);
        let mut numbers = std::collections::BTreeSet::new();
        while numbers.len() < wanted {
            numbers.insert(random.index(self.count));
        }
        for number in &numbers {
            self.versions[*number] += 1;
        }
        // The stamp first: a file of an older version than the stamp states is then never taken for
        // whole.
        let mut stamp = String::new();
        for (number, version) in
            self.versions.iter().enumerate().filter(|(_, version)| **version > 0)
        {
            let _ = writeln!(stamp, "{number} {version}");
        }
        fs::write(self.stamp(), stamp)?;
        numbers.iter().try_for_each(|number| self.write(*number))?;
        Ok(numbers.into_iter().collect())
    }

    /// The list entry of a file.
    pub(crate) fn listed(&self, number: usize) -> Listed {
        let body = self.body(number);
        Listed {
            md5: Md5::digest(&body).into(),
            length: body.len() as u64,
            modified: self.modified(number),
        }
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        (0..self.count).map(|number| self.body(number).len() as u64).sum()
    }
}

/// Words of two to ten letters, the frequent ones more often.
fn words() -> String {
    let mut random = Random::new(42);
    let letters = b"etaoinshrdlucmfw";
    let words: Vec<String> = (0..2_000)
        .map(|number| {
            (0..2 + number % 9).map(|_| char::from(letters[random.index(letters.len())])).collect()
        })
        .collect();
    let mut text = String::new();
    while text.len() < 1_000_000 {
        let (one, two) = (random.index(words.len()), random.index(words.len()));
        text.push_str(&words[one * two / words.len()]);
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_the_same_bytes_always() {
        assert_eq!(Random::new(42).number(), 0xbdd7_3226_2feb_6e95);
        assert_eq!(Tree::imagined(10).body(7), Tree::imagined(100).body(7));
    }

    #[test]
    fn records_are_three_kilobytes_on_average() {
        let mean = Tree::imagined(2_000).bytes() / 2_000;
        assert!((2_900..3_300).contains(&mean), "{mean}");
    }
}
