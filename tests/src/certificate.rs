//! A self-signed certificate for servers of the tests, in files for programs and as values for clients.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, CertifiedKey, KeyPair, PublicKeyData as _, date_time_ymd, generate_simple_self_signed,
};
use rustls_pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// Certificate and key. Dropping them removes their files.
#[derive(Debug)]
pub struct ServerCertificate {
    directory: TempDir,
    pub der: CertificateDer<'static>,
    /// SHA-256 of the public key (RFC 7469, section 2.4), in base64.
    pub pin: String,
}

impl ServerCertificate {
    /// Issues a certificate for these names and addresses.
    pub fn issue(names: &[&str]) -> Result<Self> {
        Self::keep(generate_simple_self_signed(owned(names)).context("certificate")?)
    }

    /// Issues a certificate that ends in some days.
    pub fn issue_for(names: &[&str], days: i64) -> Result<Self> {
        let mut parameters = CertificateParams::new(owned(names)).context("names")?;
        let end = (Timestamp::now() + SignedDuration::from_hours(24 * days)).to_zoned(TimeZone::UTC);
        let (month, day) = (u8::try_from(end.month())?, u8::try_from(end.day())?);
        parameters.not_after = date_time_ymd(end.year().into(), month, day);
        let signing_key = KeyPair::generate().context("a key")?;
        let cert = parameters.self_signed(&signing_key).context("certificate")?;
        Self::keep(CertifiedKey { cert, signing_key })
    }

    fn keep(issued: CertifiedKey<KeyPair>) -> Result<Self> {
        let CertifiedKey { cert, signing_key } = issued;
        let directory = tempfile::Builder::new().prefix("gateway-certificate-").tempdir()?;
        let pin = BASE64_STANDARD.encode(Sha256::digest(signing_key.subject_public_key_info()));
        let certificate = Self { directory, der: cert.der().clone(), pin };
        fs::write(certificate.file(), cert.pem()).context("write a certificate")?;
        fs::write(certificate.key_file(), signing_key.serialize_pem()).context("write a key")?;
        Ok(certificate)
    }

    /// Returns the path of the certificate in PEM.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    /// Returns the path of the key in PEM.
    pub fn key_file(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
