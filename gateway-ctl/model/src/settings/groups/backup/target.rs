//! Target of backups.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::super::check_url;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::validated::text_enum;

/// Longer ones are no path of any system.
const PATH_MOST: usize = 1024;

text_enum! {
    /// Type of the target of backups.
    #[derive(Default)]
    pub enum TargetType {
        /// A folder of this machine, which must exist.
        #[default]
        Local = "local",
        /// A folder of a server with SSH.
        Sftp = "sftp",
        /// A bucket of an object store that speaks the language of S3.
        S3 = "s3",
        Webdav = "webdav",
    }
}

/// Target of backups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BackupTarget {
    pub r#type: TargetType,
    /// `sftp://host:22`, `https://host/dav/`, or the endpoint of the object store. Not for `local`.
    pub url: String,
    /// The user; of an object store the id of the access key.
    pub username: String,
    /// The password; of an object store the secret of the access key.
    #[serde(rename(serialize = "has_secret", deserialize = "secret"))]
    pub secret: Secret,
    /// The folder, which must exist: absolute for `local`, from the home folder of the user on for `sftp` unless it is
    /// absolute, below the URL for `webdav`. For `s3` the bucket, and after a slash a prefix.
    pub path: String,
    /// Required for `sftp`: the server's public key (`ssh-ed25519 AAAA…`) or its fingerprint (`SHA256:…`). A server
    /// with another key is not spoken to.
    pub host_key: String,
    /// For `sftp`: a private key without a passphrase, in OpenSSH or PKCS#8 format, instead of a password.
    #[serde(rename(serialize = "has_private_key", deserialize = "private_key"))]
    pub private_key: Secret,
    /// For `s3`; `us-east-1` if it is left empty.
    pub region: String,
    /// For `webdav` and `s3`: certificates in PEM that are believed instead of the system's.
    pub ca_certificate: String,
}

impl BackupTarget {
    /// Reports whether a target is set.
    pub fn is_set(&self) -> bool {
        !self.path.is_empty() || !self.url.is_empty()
    }

    pub fn secrets(&self) -> [&Secret; 2] {
        [&self.secret, &self.private_key]
    }

    /// For people: where it is, without who logs in.
    pub fn label(&self) -> String {
        match self.r#type {
            TargetType::Local => self.path.clone(),
            _ => format!("{}/{}", self.url.trim_end_matches('/'), self.path.trim_start_matches('/')),
        }
    }

    /// Host and port of `sftp`.
    pub fn ssh_server(&self) -> Option<(String, u16)> {
        let url = Url::parse(&self.url).ok().filter(|url| url.scheme() == "sftp")?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some((host, url.port().unwrap_or(22)))
    }

    /// Bucket and prefix of `s3`.
    pub fn bucket(&self) -> (&str, &str) {
        let path = self.path.trim_matches('/');
        path.split_once('/').unwrap_or((path, ""))
    }

    pub(super) fn validate(&self, needed: bool, problems: &mut Problems) {
        if !self.is_set() && !needed {
            return;
        }
        self.check_path(problems);
        match self.r#type {
            TargetType::Local => self.check_local(problems),
            TargetType::Sftp => self.check_sftp(problems),
            TargetType::Webdav => self.check_webdav(problems),
            TargetType::S3 => self.check_s3(problems),
        }
        self.warn_of_unused(problems);
    }

    fn check_path(&self, problems: &mut Problems) {
        let climbs = self.path.split('/').any(|part| part == "..");
        if climbs || self.path.chars().any(char::is_control) || self.path.len() > PATH_MOST {
            problems.add(code::FORMAT, "target.path", "Expected a path without .. and control characters.");
        }
    }

    fn check_local(&self, problems: &mut Problems) {
        if self.path.is_empty() {
            problems.required("target.path");
        } else if !self.path.starts_with('/') && !problems.has("target.path") {
            problems.add(code::FORMAT, "target.path", "Expected the absolute path of a folder.");
        }
    }

    fn check_sftp(&self, problems: &mut Problems) {
        let wrong = "Expected sftp://host or sftp://host:port, without a user and without a path.";
        match Url::parse(&self.url) {
            _ if self.url.is_empty() => problems.required("target.url"),
            Ok(url) if url.scheme() == "sftp" && url.has_host() && is_bare(&url) => {}
            Ok(_) | Err(_) => drop(problems.add(code::FORMAT, "target.url", wrong)),
        }
        if self.username.is_empty() {
            problems.required("target.username");
        }
        if self.host_key.is_empty() {
            problems.required("target.host_key");
        } else if self.host_key.trim_start().starts_with("ssh-rsa") {
            problems.not_supported("target.host_key", "A host key of RSA");
        } else if host_key_fingerprint(&self.host_key).is_none() {
            let message =
                "Expected a public key such as \"ssh-ed25519 AAAA…\" or a fingerprint \"SHA256:…\".";
            problems.add(code::FORMAT, "target.host_key", message);
        }
        let key = &self.private_key;
        if key.is_set() && key.is_readable() && !key.expose().trim_start().starts_with("-----BEGIN ") {
            problems.add(code::FORMAT, "target.private_key", "Expected a private key in PEM.");
        }
        if !key.is_set() && !self.secret.is_set() {
            problems.required("target.secret");
        }
    }

    fn check_webdav(&self, problems: &mut Problems) {
        self.check_http(problems);
        if self.secret.is_set() && self.username.is_empty() {
            problems.required("target.username");
        }
    }

    fn check_s3(&self, problems: &mut Problems) {
        self.check_http(problems);
        if self.username.is_empty() {
            problems.required("target.username");
        }
        if !self.secret.is_set() {
            problems.required("target.secret");
        }
        if self.path.is_empty() {
            problems.required("target.path");
        }
        let (bucket, _) = self.bucket();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if (bucket.is_empty() || !bucket.bytes().all(allowed)) && !problems.has("target.path") {
            problems.add(
                code::FORMAT,
                "target.path",
                "Expected the name of a bucket, and after a slash a prefix.",
            );
        }
        if !self.region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            problems.add(code::FORMAT, "target.region", "Letters, digits and hyphens.");
        }
    }

    fn check_http(&self, problems: &mut Problems) {
        if self.url.is_empty() {
            problems.required("target.url");
        } else if let Some(url) = check_url("target.url", &self.url, problems) {
            if url.query().is_some() || url.fragment().is_some() {
                problems.add(code::FORMAT, "target.url", "Expected an address without ? and #.");
            }
            let here = match url.host() {
                Some(url::Host::Ipv4(address)) => address.is_loopback(),
                Some(url::Host::Ipv6(address)) => address.is_loopback(),
                Some(url::Host::Domain(name)) => name == "localhost",
                None => false,
            };
            if url.scheme() == "http" && !here && self.r#type == TargetType::Webdav && self.secret.is_set() {
                problems.warn("target.url", "Without https the password goes over the network in clear.");
            }
        }
        if !self.ca_certificate.is_empty() && !self.ca_certificate.contains("-----BEGIN CERTIFICATE-----") {
            problems.add(code::FORMAT, "target.ca_certificate", "Expected certificates in PEM.");
        }
    }

    fn warn_of_unused(&self, problems: &mut Problems) {
        let of = self.r#type;
        let http = matches!(of, TargetType::Webdav | TargetType::S3);
        let given = [
            ("url", !self.url.is_empty(), of != TargetType::Local),
            ("username", !self.username.is_empty(), of != TargetType::Local),
            ("host_key", !self.host_key.is_empty(), of == TargetType::Sftp),
            ("region", !self.region.is_empty(), of == TargetType::S3),
            ("ca_certificate", !self.ca_certificate.is_empty(), http),
        ];
        for (name, _, _) in given.iter().filter(|(_, given, used)| *given && !used) {
            problems.warn(format!("target.{name}"), format!("Not used by a target of type {of}."));
        }
    }
}

/// Nothing but host and port.
fn is_bare(url: &Url) -> bool {
    matches!(url.path(), "" | "/")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// Returns the SHA-256 of the public key of a pinned host key.
pub fn host_key_fingerprint(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    if let Some(fingerprint) = text.strip_prefix("SHA256:") {
        return STANDARD_NO_PAD.decode(fingerprint.trim_end_matches('=')).ok()?.try_into().ok();
    }
    let mut words = text.split_ascii_whitespace();
    let (algorithm, key) = (words.next()?, STANDARD.decode(words.next()?).ok()?);
    // The key begins with the length and the name of its algorithm.
    let (length, rest) = key.split_first_chunk::<4>()?;
    let name = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    (name == algorithm.as_bytes()).then(|| Sha256::digest(&key).into())
}
