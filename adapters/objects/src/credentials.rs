//! Credentials of S3 in a file, in the format of `~/.aws/credentials`.

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The variable with the path of the file, and the variable with the section to use.
const FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const PROFILE: &str = "AWS_PROFILE";
/// Most bytes of the file.
const FILE_MAX: u64 = 64 << 10;
/// Shortest time between two reads of the file.
const EVERY: Duration = Duration::from_secs(1);

/// Adds the credentials of the file in the environment, unless the builder has others.
///
/// # Errors
/// The file cannot be read, or lacks the credentials.
pub(crate) fn add(builder: AmazonS3Builder) -> Result<AmazonS3Builder, object_store::Error> {
    let has_key = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId).is_some();
    let Some(file) = std::env::var_os(FILE).filter(|file| !has_key && !file.is_empty()) else {
        return Ok(builder);
    };
    let profile = std::env::var(PROFILE).ok().filter(|name| !name.is_empty());
    let provider = FileCredentials::open(file.into(), profile.as_deref().unwrap_or("default"))
        .map_err(|error| object_store::Error::Generic { store: "S3", source: error.into() })?;
    Ok(builder.with_credentials(Arc::new(provider)))
}

/// Credentials in a section of a file, which is read again when a request needs them, so that keys
/// can be changed without a restart.
#[derive(Debug)]
struct FileCredentials {
    file: PathBuf,
    profile: String,
    last: Mutex<Last>,
}

/// The credentials that were read last.
#[derive(Debug)]
struct Last {
    at: Instant,
    credentials: Arc<AwsCredential>,
    /// Whether a later read failed, which is logged once.
    has_failed: bool,
}

impl FileCredentials {
    fn open(file: PathBuf, profile: &str) -> Result<Self, String> {
        let credentials = Arc::new(read(&file, profile)?);
        let last = Last { at: Instant::now(), credentials, has_failed: false };
        Ok(Self { file, profile: profile.to_owned(), last: Mutex::new(last) })
    }

    fn get(&self, every: Duration) -> Arc<AwsCredential> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.at.elapsed() >= every {
            last.at = Instant::now();
            match read(&self.file, &self.profile) {
                Ok(credentials) => {
                    last.credentials = Arc::new(credentials);
                    last.has_failed = false;
                }
                Err(error) if !last.has_failed => {
                    tracing::warn!("the last credentials are used again: {error}");
                    last.has_failed = true;
                }
                Err(_) => {}
            }
        }
        Arc::clone(&last.credentials)
    }
}

#[async_trait]
impl CredentialProvider for FileCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(self.get(EVERY))
    }
}

fn read(file: &PathBuf, profile: &str) -> Result<AwsCredential, String> {
    let shown = file.display();
    let mut text = String::new();
    let opened = File::open(file);
    let result = opened.and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
    result.map_err(|error| {
        format!("cannot read `{shown}` of {FILE}: {error} (help: correct the path, or permit this user to read the file)")
    })?;
    parse(&text, profile).ok_or_else(|| {
        format!(
            "`{shown}` of {FILE} does not have the credentials of `{profile}` (help: write the lines `[{profile}]`, \
             `aws_access_key_id = …` and `aws_secret_access_key = …`)"
        )
    })
}

/// The credentials in a section.
fn parse(text: &str, profile: &str) -> Option<AwsCredential> {
    let (mut key_id, mut secret_key, mut token) = (None, None, None);
    let mut is_own = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_own = name.trim() == profile;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_own) {
            let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match name.trim() {
                "aws_access_key_id" => key_id = value,
                "aws_secret_access_key" => secret_key = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    Some(AwsCredential { key_id: key_id?, secret_key: secret_key?, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[other]\naws_access_key_id=x\naws_secret_access_key=y\n\n# a note\n[default]\n\
                        aws_access_key_id = abreast\n#aws_secret_access_key = old\naws_secret_access_key = a=b/c+\nregion = x\n";

    #[test]
    fn a_section_of_the_file_has_the_credentials() {
        let credential = |key_id: &str, secret_key: &str, token: Option<&str>| AwsCredential {
            key_id: key_id.to_owned(),
            secret_key: secret_key.to_owned(),
            token: token.map(str::to_owned),
        };
        assert_eq!(parse(TEXT, "default"), Some(credential("abreast", "a=b/c+", None)));
        assert_eq!(parse(TEXT, "other"), Some(credential("x", "y", None)));
        assert_eq!(parse(TEXT, "third"), None);
        assert_eq!(parse("aws_access_key_id = a\naws_secret_access_key = b\n", "default"), None);
        assert_eq!(
            parse("[default]\naws_access_key_id = a\naws_secret_access_key =\n", "default"),
            None
        );
        let with_token = format!("{TEXT}aws_session_token = t\n");
        assert_eq!(parse(&with_token, "default"), Some(credential("abreast", "a=b/c+", Some("t"))));
    }

    #[test]
    fn changed_credentials_are_used_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        let error = FileCredentials::open(file.clone(), "default").unwrap_err();
        assert!(error.contains("cannot read `/") && error.contains("(help: "), "{error}");
        std::fs::write(&file, "[default]\n").unwrap();
        let error = FileCredentials::open(file.clone(), "default").unwrap_err();
        assert!(error.contains("does not have the credentials of `default`"), "{error}");
        std::fs::write(&file, TEXT).unwrap();
        let credentials = FileCredentials::open(file.clone(), "default").unwrap();
        let secret = |every| credentials.get(every).secret_key.clone();
        assert_eq!(secret(Duration::ZERO), "a=b/c+");
        std::fs::write(&file, TEXT.replace("a=b/c+", "new")).unwrap();
        assert_eq!(secret(EVERY * 60), "a=b/c+", "the file is not read at each request");
        assert_eq!(secret(Duration::ZERO), "new");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(secret(Duration::ZERO), "new");
    }
}
