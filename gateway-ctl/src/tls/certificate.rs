//! Server certificate: read from files, reloaded when the files change, kept when the new ones are invalid.
//!
//! A broken certificate must not stop the gateway. Without any, the port is open, every handshake fails, the local
//! socket answers and `/observer` shows the reason.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use super::self_signed::{self, CertificateNames};
use crate::clock::SharedClock;

/// Number of days before its expiry at which an administrator's certificate is reported.
const WARN_BEFORE_DAYS: i64 = 14;
const DAY: i64 = 24 * 60 * 60;

/// Origin of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Files of the administrator.
    Files { certificate: PathBuf, key: PathBuf },
    /// Made by the daemon and stored in this folder.
    SelfSigned { folder: PathBuf },
}

impl Origin {
    /// Returns the paths of certificate and key.
    fn files(&self) -> (PathBuf, PathBuf) {
        match self {
            Origin::Files { certificate, key } => (certificate.clone(), key.clone()),
            Origin::SelfSigned { folder } => {
                (folder.join(self_signed::CERTIFICATE), folder.join(self_signed::KEY))
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum CertificateError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {what}", path.display())]
    Content { path: PathBuf, what: String },
    #[error("{}", text(.0))]
    SelfSigned(#[from] self_signed::Error),
}

/// Formats an error with its cause as one sentence.
fn text(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Status of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// True if clients receive a certificate.
    pub served: bool,
    /// Human-readable fault; `None` if there is none.
    pub fault: Option<String>,
    /// Time of the last change of the health.
    pub since: Timestamp,
    pub checks: u64,
    /// Expiry of the certificate in use.
    pub not_after: Option<Timestamp>,
}

/// Certificate that is reloaded when its files change.
pub struct Certificates {
    origin: Origin,
    clock: SharedClock,
    served: ArcSwapOption<CertifiedKey>,
    watched: Mutex<WatchedFiles>,
}

struct WatchedFiles {
    /// Fingerprint of the files as last read; `None` if they must be read again.
    print: Option<[Fingerprint; 2]>,
    status: Status,
}

/// Fingerprint that detects a changed file: device, inode, size, time of change.
type Fingerprint = Option<[i128; 5]>;

fn fingerprint(path: &Path) -> Fingerprint {
    let found = fs::metadata(path).ok()?;
    Some([
        found.dev().into(),
        found.ino().into(),
        found.size().into(),
        found.mtime().into(),
        found.mtime_nsec().into(),
    ])
}

impl Certificates {
    /// Reads or makes the certificate. Without a valid one, the gateway starts nevertheless. Handshakes then fail
    /// until [`Certificates::refresh`] finds one.
    pub fn open(origin: Origin, names: &CertificateNames, clock: SharedClock) -> Arc<Self> {
        let since = clock.now();
        let status = Status { served: false, fault: None, since, checks: 0, not_after: None };
        let watched = Mutex::new(WatchedFiles { print: None, status });
        let certificates = Arc::new(Self { origin, clock, served: ArcSwapOption::empty(), watched });
        certificates.refresh(names);
        certificates
    }

    /// Loads the files if they have changed and are valid. Blocks on the disk.
    pub fn refresh(&self, names: &CertificateNames) {
        let mut watched = self.watched.lock();
        let now = self.clock.now();
        let before = watched.status.fault.clone();
        let fault = match self.read(&mut watched, names, now) {
            // Unchanged files have unchanged faults.
            Ok(false) => before.clone(),
            Ok(true) => None,
            Err(fault) => Some(fault.to_string()),
        };
        let status = &mut watched.status;
        status.checks += 1;
        if fault != before {
            status.since = now;
            match &fault {
                Some(fault) if status.served => {
                    tracing::error!(%fault, "TLS certificate reload failed: keeping the previous certificate");
                }
                Some(fault) => tracing::error!(%fault, "no TLS certificate: clients cannot connect"),
                None => tracing::info!("TLS certificate reload succeeded"),
            }
        }
        status.fault = fault;
    }

    /// Reads the files. Returns `true` if there was a new certificate, which is then in use.
    fn read(
        &self,
        watched: &mut WatchedFiles,
        names: &CertificateNames,
        now: Timestamp,
    ) -> Result<bool, CertificateError> {
        if let Origin::SelfSigned { folder } = &self.origin
            && let Some(reason) = self_signed::ensure(folder, names, now)?
        {
            tracing::info!(folder = %folder.display(), reason, "made a self-signed TLS certificate");
        }
        let (certificate, key) = self.origin.files();
        let print = Some([fingerprint(&certificate), fingerprint(&key)]);
        if watched.print == print {
            return Ok(false);
        }
        // If reading itself fails, the next refresh reads the files again.
        watched.print = None;
        let loaded = match load(&certificate, &key) {
            Err(fault @ CertificateError::Content { .. }) => {
                watched.print = print;
                return Err(fault);
            }
            other => other?,
        };
        watched.print = print;
        watched.status.not_after = loaded.end_entity_cert().ok().and_then(|der| not_after(der));
        watched.status.served = true;
        self.served.store(Some(Arc::new(loaded)));
        tracing::info!(path = %certificate.display(), "TLS certificate loaded");
        Ok(true)
    }

    pub fn status(&self) -> Status {
        let mut status = self.watched.lock().status.clone();
        if let Some(end) = status.not_after
            && status.fault.is_none()
        {
            let left = end.as_second() - self.clock.now().as_second();
            if left < 0 {
                status.fault = Some(format!("The certificate expired at {end}."));
            } else if left < WARN_BEFORE_DAYS * DAY {
                status.fault = Some(format!("The certificate expires at {end}."));
            }
        }
        status
    }

    /// Returns the path of the certificate, for users who want to trust it.
    pub fn path(&self) -> PathBuf {
        self.origin.files().0
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.served.load_full()
    }
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Reads a certificate with its chain and the matching key.
fn load(certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
    let content = |path: &Path, what: String| CertificateError::Content { path: path.to_owned(), what };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|error| content(certificate, format!("not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(content(certificate, "holds no certificate (-----BEGIN CERTIFICATE-----)".to_owned()));
    }
    for der in &chain {
        X509Certificate::from_der(der)
            .map_err(|error| content(certificate, format!("holds a damaged certificate: {error}")))?;
    }
    let text = Zeroizing::new(read(key)?);
    let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let encrypted = text.windows(9).any(|window| window == b"ENCRYPTED");
        content(
            key,
            match error {
                _ if encrypted => "the key has a passphrase; the daemon needs one without".to_owned(),
                pem::Error::NoItemsFound => "holds no private key (-----BEGIN PRIVATE KEY-----)".to_owned(),
                other => format!("not PEM: {other}"),
            },
        )
    })?;
    CertifiedKey::from_der(chain, secret, &aws_lc_rs::default_provider()).map_err(|error| {
        content(
            key,
            match error {
                rustls::Error::InconsistentKeys(_) => {
                    format!("is not the key of the certificate in {}", certificate.display())
                }
                other => format!("cannot be used: {other}"),
            },
        )
    })
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

fn not_after(der: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;
    use crate::clock::{Clock, ManualClock};

    struct Files {
        _folder: tempfile::TempDir,
        certificate: PathBuf,
        key: PathBuf,
        names: CertificateNames,
    }

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (certificate, key) = (folder.path().join("a.pem"), folder.path().join("b.pem"));
            Self { _folder: folder, certificate, key, names: CertificateNames::new("gw", []) }
        }

        fn origin(&self) -> Origin {
            Origin::Files { certificate: self.certificate.clone(), key: self.key.clone() }
        }

        /// Writes a new pair and returns the certificate.
        fn write(&self, end: i32) -> CertificateDer<'static> {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(["gw".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(end, 1, 1);
            let certificate = params.self_signed(&key).unwrap();
            fs::write(&self.certificate, certificate.pem()).unwrap();
            fs::write(&self.key, key.serialize_pem()).unwrap();
            certificate.der().clone()
        }
    }

    fn shown(certificates: &Certificates) -> Option<CertificateDer<'static>> {
        certificates.served.load_full().map(|served| served.cert[0].clone())
    }

    fn clock() -> Arc<ManualClock> {
        ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn changed_files_are_taken_over_and_broken_ones_are_not() {
        let files = Files::new();
        let first = files.write(2030);
        let certificates = Certificates::open(files.origin(), &files.names, clock());
        assert_eq!((shown(&certificates), certificates.status().fault), (Some(first), None));
        let second = files.write(2031);
        certificates.refresh(&files.names);
        assert_eq!(shown(&certificates), Some(second.clone()));
        for (broken, says) in [
            ("", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "damaged"),
            ("-----BEGIN CERTIFICATE-----\n", "not PEM"),
        ] {
            fs::write(&files.certificate, broken).unwrap();
            for _ in 0..2 {
                certificates.refresh(&files.names);
                let status = certificates.status();
                assert!(status.served && status.fault.clone().unwrap().contains(says), "{status:?}");
            }
            assert_eq!(shown(&certificates), Some(second.clone()));
        }
        fs::remove_file(&files.certificate).unwrap();
        certificates.refresh(&files.names);
        assert!(certificates.status().fault.unwrap().contains("No such file"));
        let third = files.write(2032);
        certificates.refresh(&files.names);
        assert_eq!((shown(&certificates), certificates.status().fault), (Some(third), None));
    }

    #[test]
    fn the_key_must_be_the_one_of_the_certificate_and_open() {
        let files = Files::new();
        let first = files.write(2030);
        let certificates = Certificates::open(files.origin(), &files.names, clock());
        for (key, says) in [
            (KeyPair::generate().unwrap().serialize_pem(), "is not the key"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n".into(),
                "passphrase",
            ),
            (String::new(), "holds no private key"),
        ] {
            fs::write(&files.key, key).unwrap();
            certificates.refresh(&files.names);
            let fault = certificates.status().fault.unwrap();
            assert!(fault.contains(says) && fault.contains("b.pem"), "{fault}");
            assert_eq!(shown(&certificates), Some(first.clone()));
        }
    }

    #[test]
    fn without_files_nothing_is_served_until_they_come() {
        let files = Files::new();
        let certificates = Certificates::open(files.origin(), &files.names, clock());
        assert!(!certificates.status().served && certificates.status().fault.is_some());
        let first = files.write(2030);
        certificates.refresh(&files.names);
        assert_eq!((shown(&certificates), certificates.status().fault), (Some(first), None));
    }

    #[test]
    fn the_end_of_a_certificate_is_reported_before_it_comes() {
        let files = Files::new();
        files.write(2027);
        let clock = clock();
        let certificates = Certificates::open(files.origin(), &files.names, clock.clone());
        let fault_at = |now: &str| {
            clock.set(now.parse().unwrap());
            certificates.refresh(&files.names);
            certificates.status().fault.unwrap_or_default()
        };
        assert_eq!(fault_at("2026-12-01T00:00:00Z"), "");
        assert!(fault_at("2026-12-25T00:00:00Z").contains("expires at 2027-01-01"));
        assert!(fault_at("2027-01-01T00:00:01Z").contains("expired at 2027-01-01"));
        assert_eq!(fault_at("2026-12-01T00:00:00Z"), "");
        assert!(clock.now() < "2027-01-01T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn a_self_signed_one_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::SelfSigned { folder: folder.path().join("tls") };
        let names = CertificateNames::new("gw", ["192.168.7.1".parse().unwrap()]);
        let first = shown(&Certificates::open(origin.clone(), &names, clock()));
        assert!(first.is_some());
        assert_eq!(shown(&Certificates::open(origin, &names, clock())), first);
    }
}
