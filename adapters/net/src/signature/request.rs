//! Signatures of requests [rfc9421 §3.1].

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use ring::rand::{SecureRandom as _, SystemRandom};
use url::Url;

use crate::address::error::{Error, ErrorKind};
use crate::signature::key::SigningKey;
use crate::signature::seconds;

/// How long a signature is valid: shorter than the day that the draft allows at most, because who
/// reads a request can repeat it for so long, and longer than the usual differences of clocks.
const LIFETIME: Duration = Duration::from_secs(300);
/// Bytes of a nonce, which makes each signature different [rfc9421 §7.2.2].
const NONCE_BYTES: usize = 32;
/// The label of the signature, and the key of its member of `Signature-Agent`.
const LABEL: &str = "sig1";
const TAG: &str = "web-bot-auth";

/// Signs requests with a key, in the name of the server that publishes the key. Clones share the
/// key.
#[derive(Clone, Debug)]
pub struct RequestSigner {
    key: SigningKey,
    /// `Signature-Agent` in its dictionary form [web-bot-auth].
    agent: HeaderValue,
    /// The string of its member.
    member: String,
}

impl RequestSigner {
    /// Creates a signer. `agent` is the server, such as `https://harvest.example`, that publishes the
    /// public key at `/.well-known/http-message-signatures-directory`.
    ///
    /// # Examples
    /// ```
    /// # use abreast_net::{RequestSigner, SigningKey};
    /// # fn test(key: SigningKey) {
    /// assert!(RequestSigner::new(key.clone(), "https://harvest.example").is_ok());
    /// assert!(RequestSigner::new(key, "https://harvest.example/keys.json").is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    /// The address is not an origin of the scheme https.
    pub fn new(key: SigningKey, agent: &str) -> Result<Self, Error> {
        let wrong = |message: &str| {
            Error::new(ErrorKind::Url, "", format!("`{agent}` is not the address of a key directory: {message}"))
                .with_help("write https://HOST without a path: keys are at /.well-known/http-message-signatures-directory there [web-bot-auth]")
        };
        let url = Url::parse(agent).map_err(|e| wrong("it is no URL").with_cause(e))?;
        if url.scheme() != "https" || url.host_str().is_none() {
            return Err(wrong("its scheme is not https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::new(
                ErrorKind::Url,
                "",
                "the address of a key directory has a login",
            )
            .with_help("remove it: the address is sent with every request"));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a path"));
        }
        // An origin has no quote and no backslash [rfc9651 §3.3.3].
        let member = format!("\"{}\"", url.origin().ascii_serialization());
        let agent = HeaderValue::try_from(format!("{LABEL}={member}"))
            .map_err(|e| wrong("it cannot be sent as a header").with_cause(e))?;
        Ok(Self { key, agent, member })
    }

    /// Adds the three headers of a signed request to this authority, as in its `Host` header.
    pub(crate) fn sign(
        &self,
        headers: &mut HeaderMap,
        authority: &HeaderValue,
        now: SystemTime,
        url: &str,
    ) -> Result<(), Error> {
        let wrong = |message: &str| Error::new(ErrorKind::Header, url, message);
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| wrong("the request cannot be signed: the system has no random numbers"))?;
        let authority =
            authority.to_str().map_err(|e| wrong("the host cannot be signed").with_cause(e))?;
        let created = seconds(now);
        let params = Parameters {
            components: &format!("\"@authority\" \"signature-agent\";key=\"{LABEL}\""),
            created,
            expires: created.saturating_add(LIFETIME.as_secs()),
            nonce: Some(&STANDARD.encode(nonce)),
            tag: TAG,
        };
        let lines = self.lines(authority, LABEL);
        let (input, signature) = params.sign(&self.key, &lines);
        let value = |text: String| {
            HeaderValue::try_from(text)
                .map_err(|e| wrong("the signature cannot be sent").with_cause(e))
        };
        headers.insert("signature-agent", self.agent.clone());
        headers.insert("signature-input", value(format!("{LABEL}={input}"))?);
        headers.insert("signature", value(format!("{LABEL}=:{signature}:"))?);
        Ok(())
    }

    /// The lines of the covered components [rfc9421 §2.1.2, §2.2.3].
    fn lines(&self, authority: &str, label: &str) -> String {
        format!(
            "\"@authority\": {}\n\"signature-agent\";key=\"{label}\": {}\n",
            authority.to_ascii_lowercase(),
            self.member
        )
    }
}

/// The parameters of a signature [rfc9421 §2.3].
pub(crate) struct Parameters<'a> {
    pub(crate) components: &'a str,
    pub(crate) created: u64,
    pub(crate) expires: u64,
    pub(crate) nonce: Option<&'a str>,
    pub(crate) tag: &'static str,
}

impl Parameters<'_> {
    /// The value for `Signature-Input`, and the signature in base64, of components with these lines.
    pub(crate) fn sign(&self, key: &SigningKey, lines: &str) -> (String, String) {
        let Self { components, created, expires, nonce, tag } = self;
        let nonce = nonce.map(|nonce| format!(";nonce=\"{nonce}\"")).unwrap_or_default();
        let input = format!(
            "({components});created={created};keyid=\"{}\";alg=\"ed25519\";expires={expires}{nonce};tag=\"{tag}\"",
            key.thumbprint()
        );
        let base = format!("{lines}\"@signature-params\": {input}");
        let signature = STANDARD.encode(key.sign(base.as_bytes()));
        (input, signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::key::tests::PEM;

    fn signer(agent: &str) -> Result<RequestSigner, Error> {
        RequestSigner::new(SigningKey::parse(PEM.as_bytes()).unwrap(), agent)
    }

    /// The signatures of the vectors of `cloudflare/web-bot-auth`, `web_bot_auth_architecture_v2.json`,
    /// which are those of the draft's appendix, for the key of RFC 9421.
    #[test]
    fn the_signature_is_that_of_the_published_vector() {
        let signer = signer("https://signature-agent.test/").unwrap();
        let params = Parameters {
            components: "\"@authority\" \"signature-agent\";key=\"agent2\"",
            created: 1_735_689_600,
            expires: 4_889_289_600,
            nonce: Some(
                "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
            ),
            tag: TAG,
        };
        let (input, signature) = params.sign(&signer.key, &signer.lines("Example.com", "agent2"));
        assert_eq!(
            input,
            "(\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600;nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==\";tag=\"web-bot-auth\""
        );
        assert_eq!(
            signature,
            "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg=="
        );
    }

    #[test]
    fn created_and_expires_follow_the_clock() {
        let signer = signer("https://harvest.example").unwrap();
        let host = HeaderValue::from_static("repo.example:8080");
        let mut inputs = Vec::new();
        for (now, created) in [
            (SystemTime::UNIX_EPOCH + Duration::from_millis(1_735_689_600_999), 1_735_689_600_u64),
            (SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_689_601), 1_735_689_601),
            (SystemTime::UNIX_EPOCH - Duration::from_secs(1), 0),
        ] {
            let mut headers = HeaderMap::new();
            signer.sign(&mut headers, &host, now, "").unwrap();
            let input = headers["signature-input"].to_str().unwrap().to_owned();
            for part in [format!(";created={created};"), format!(";expires={};", created + 300)] {
                assert!(input.contains(&part), "{input}");
            }
            assert_eq!(headers["signature-agent"], "sig1=\"https://harvest.example\"");
            inputs.push(input);
        }
        let nonce = |text: &str| text.split("nonce=").nth(1).map(str::to_owned);
        assert_ne!(nonce(&inputs[0]), nonce(&inputs[1]), "each signature has its own nonce");
    }

    #[test]
    fn only_the_origin_of_an_https_server_is_an_agent() {
        for (given, sent) in [
            ("https://Harvest.Example", "sig1=\"https://harvest.example\""),
            ("https://harvest.example:8443/", "sig1=\"https://harvest.example:8443\""),
            ("https://harvest.example:443", "sig1=\"https://harvest.example\""),
            ("https://bücher.example", "sig1=\"https://xn--bcher-kva.example\""),
        ] {
            assert_eq!(signer(given).unwrap().agent, sent, "{given}");
        }
        for given in [
            "",
            "harvest.example",
            "http://harvest.example",
            "https://",
            "https://harvest.example/keys",
            "https://harvest.example/?a",
            "https://harvest.example/#a",
            "data:,x",
        ] {
            let error = signer(given).unwrap_err().to_string();
            assert!(error.contains("is not the address of a key directory"), "{given}: {error}");
        }
        let error = signer("https://me:planted@harvest.example").unwrap_err().to_string();
        assert!(error.contains("has a login") && !error.contains("planted"), "{error}");
    }
}
