//! WebDAV and object stores as the target of backups.

use std::sync::Arc;

use bytes::Bytes;
use gateway_model::settings::groups::{BackupTarget, TargetType};
use gateway_outbound::Resolver;
use opendal::services::{S3, Webdav};
use opendal::{ErrorKind, HttpTransporter, OperationContext, Operator};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::http::Transport;
use super::target::Error;
use crate::tls::Factory;

/// Of object stores that do not care.
const REGION: &str = "us-east-1";

pub(super) struct Objects {
    operator: Operator,
    transport: Transport,
    renames: bool,
}

impl Objects {
    /// Nothing is sent yet.
    pub fn new(
        config: &BackupTarget,
        (tls, endpoint_names): (&Arc<Factory>, &Resolver),
        largest: usize,
    ) -> Result<Objects, Error> {
        let mut client = tls.client("backup");
        if !config.ca_certificate.is_empty() {
            let authorities: Result<Vec<_>, _> =
                CertificateDer::pem_slice_iter(config.ca_certificate.as_bytes()).collect();
            match authorities {
                Ok(authorities) if !authorities.is_empty() => client = client.trusting(authorities),
                Ok(_) | Err(_) => {
                    return Err(Error::Setup("ca_certificate holds no certificate in PEM".to_owned()));
                }
            }
        }
        let transport = Transport::new(client, endpoint_names.clone(), largest);
        let operator = match config.r#type {
            TargetType::S3 => Operator::new(s3(config)),
            _ => Operator::new(webdav(config)),
        };
        let operator = operator.map_err(|error| Error::Setup(error.message().to_owned()))?;
        let context = OperationContext::new().with_http_transport(HttpTransporter::new(transport.clone()));
        let renames = config.r#type == TargetType::Webdav;
        Ok(Objects { operator: operator.with_context(context), transport, renames })
    }

    pub fn writes_whole(&self) -> bool {
        !self.renames
    }

    pub async fn list(&self) -> Result<Vec<String>, Error> {
        let entries = self.operator.list("/").await;
        let entries = entries.map_err(|error| self.explain("listing the folder", &error))?;
        // The folder itself is in the list too; a name with a slash is another folder.
        Ok(entries.iter().map(|entry| entry.name().to_owned()).filter(|name| !name.contains('/')).collect())
    }

    pub async fn write(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        let written = self.operator.write(name, bytes).await;
        written.map(drop).map_err(|error| self.explain("writing the file", &error))
    }

    pub async fn read(&self, name: &str, _length: usize) -> Result<Vec<u8>, Error> {
        let read = self.operator.read(name).await;
        read.map(|bytes| bytes.to_vec()).map_err(|error| self.explain("reading the file back", &error))
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let renamed = self.operator.rename(from, to).await;
        renamed.map_err(|error| self.explain("renaming the file", &error))
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        let removed = self.operator.delete(name).await;
        removed.map_err(|error| self.explain("removing a file", &error))
    }

    fn explain(&self, doing: &'static str, error: &opendal::Error) -> Error {
        match self.transport.told() {
            Some(told) => told,
            None if error.kind() == ErrorKind::NotFound => Error::NoFolder,
            None => Error::failed(doing, error.message()),
        }
    }
}

fn webdav(config: &BackupTarget) -> Webdav {
    Webdav::default()
        .endpoint(config.url.trim_end_matches('/'))
        .root(&config.path)
        .username(&config.username)
        .password(config.secret.expose())
}

fn s3(config: &BackupTarget) -> S3 {
    let (bucket, prefix) = config.bucket();
    let region = if config.region.is_empty() { REGION } else { config.region.as_str() };
    S3::default()
        .endpoint(&config.url)
        .region(region)
        .bucket(bucket)
        .root(prefix)
        .access_key_id(&config.username)
        .secret_access_key(config.secret.expose())
        // Nothing of the environment: neither other keys nor a server that hands some out.
        .disable_config_load()
        .disable_ec2_metadata()
}
