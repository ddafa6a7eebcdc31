//! A self-signed certificate for servers of the tests, in files for programs and as values for clients.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{CertifiedKey, PublicKeyData as _, generate_simple_self_signed};
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
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).context("certificate")?;
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
