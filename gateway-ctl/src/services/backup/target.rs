//! Targets of backups: one set of operations for all kinds, each operation with a deadline.

use std::fs::File;
use std::future::Future;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_model::settings::groups::{BackupTarget, TargetType};
use gateway_outbound::Resolver;

use super::error::Error;
use super::folder::Folder;
use super::http::Transport;
use super::s3::S3;
use super::sealed_file::SealedFile;
use super::sftp::Sftp;
use super::webdav::Webdav;
use crate::os::nameless_file;
use crate::tls::Factory;

/// Time limits of a target: a deadline for every step, and a minimum transfer rate for whole files.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub step: Duration,
    /// Minimum transfer rate in bytes per second.
    pub speed: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { step: Duration::from_secs(20), speed: 32 * 1024 }
    }
}

/// Connected target.
pub(super) struct Target {
    kind: Kind,
    /// State directory.
    own: PathBuf,
    timeouts: Timeouts,
}

enum Kind {
    Folder(Folder),
    S3(S3),
    Sftp(Sftp),
    Webdav(Webdav),
}

impl Target {
    /// Connects and signs in. `largest` is the maximum length of the files; `own` are the state directory, and the folder of
    /// the encrypted storage that a target may name nevertheless.
    pub(super) async fn open(
        config: &BackupTarget,
        own: &(PathBuf, Option<PathBuf>),
        (tls, endpoint_names): (&Arc<Factory>, &Resolver),
        largest: usize,
        timeouts: Timeouts,
    ) -> Result<Target, Error> {
        let kind = match config.r#type {
            TargetType::Local => {
                let folder = Folder::new(&config.path, &own.0, own.1.as_deref());
                Kind::Folder(within(timeouts.step, "looking at the folder", folder).await?)
            }
            TargetType::S3 => {
                Kind::S3(S3::new(config, Transport::new(config, tls, endpoint_names, largest)?)?)
            }
            TargetType::Webdav => {
                Kind::Webdav(Webdav::new(config, Transport::new(config, tls, endpoint_names, largest)?)?)
            }
            TargetType::Sftp => {
                let opening = Sftp::open(config, tls.mode(), endpoint_names);
                Kind::Sftp(within(timeouts.step, "signing in", opening).await?)
            }
        };
        Ok(Target { kind, own: own.0.clone(), timeouts })
    }

    /// Returns the names of the files in the folder.
    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        let list = async {
            match &self.kind {
                Kind::Folder(folder) => folder.list().await,
                Kind::S3(s3) => s3.list().await,
                Kind::Webdav(webdav) => webdav.list().await,
                Kind::Sftp(sftp) => sftp.list().await,
            }
        };
        within(self.timeouts.step, "listing the folder", list).await
    }

    /// Writes a file under an unused name. A failure may leave a partial file. A request over HTTP has the whole file in
    /// memory.
    pub(super) async fn write(&self, name: &str, sealed: &SealedFile) -> Result<(), Error> {
        let deadline = self.deadline(usize::try_from(sealed.length).unwrap_or(usize::MAX));
        let write = async {
            let source = sealed.reader().map_err(|error| Error::failed("reading the backup", error))?;
            match &self.kind {
                Kind::Folder(folder) => folder.write(name, source).await,
                Kind::S3(s3) => s3.write(name, whole(source).await?).await,
                Kind::Webdav(webdav) => webdav.write(name, whole(source).await?).await,
                Kind::Sftp(sftp) => sftp.write(name, source).await,
            }
        };
        within(deadline, "writing the file", write).await
    }

    /// Reads back a file of the expected length; never reads more than one byte beyond it.
    pub(super) async fn read(&self, name: &str, length: usize) -> Result<ReadBack, Error> {
        let read = async {
            Ok::<ReadBack, Error>(match &self.kind {
                Kind::Folder(folder) => Box::new(folder.read(name, length).await?),
                Kind::S3(s3) => Box::new(Cursor::new(s3.read(name).await?)),
                Kind::Webdav(webdav) => Box::new(Cursor::new(webdav.read(name).await?)),
                Kind::Sftp(sftp) => {
                    let file = nameless_file::create(&self.own).map_err(|error| spooled(&error))?;
                    Box::new(sftp.read(name, length, file).await?)
                }
            })
        };
        within(self.deadline(length), "reading the file back", read).await
    }

    /// Reports whether files appear atomically, so that they need no temporary name while they are written.
    pub(super) fn writes_whole(&self) -> bool {
        matches!(&self.kind, Kind::S3(_))
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let rename = async {
            match &self.kind {
                Kind::Folder(folder) => folder.rename(from, to).await,
                // An object appears atomically under its final name.
                Kind::S3(_) => Ok(()),
                Kind::Sftp(sftp) => sftp.rename(from, to).await,
                Kind::Webdav(webdav) => webdav.rename(from, to).await,
            }
        };
        within(self.timeouts.step, "renaming the file", rename).await
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let remove = async {
            match &self.kind {
                Kind::Folder(folder) => folder.remove(name).await,
                Kind::S3(s3) => s3.remove(name).await,
                Kind::Webdav(webdav) => webdav.remove(name).await,
                Kind::Sftp(sftp) => sftp.remove(name).await,
            }
        };
        within(self.timeouts.step, "removing a file", remove).await
    }

    fn deadline(&self, length: usize) -> Duration {
        self.timeouts.step + Duration::from_secs(length as u64 / self.timeouts.speed.max(1))
    }
}

/// Reader of a file on the target.
pub(super) type ReadBack = Box<dyn Read + Send>;

fn spooled(error: &std::io::Error) -> Error {
    Error::failed("storing what was read back", error)
}

/// Reads a file whole.
async fn whole(mut source: File) -> Result<Bytes, Error> {
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map(|_| Bytes::from(bytes))
    });
    match read.await {
        Ok(bytes) => bytes.map_err(|error| Error::failed("reading the backup", error)),
        Err(error) => Err(Error::failed("reading the backup", error)),
    }
}

async fn within<T>(
    limit: Duration,
    doing: &'static str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(Error::Timeout { doing, within: limit }),
    }
}
