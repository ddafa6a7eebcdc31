//! Where backups go: one set of operations for all kinds of targets, each with a deadline.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_model::settings::groups::{BackupTarget, TargetType};
use gateway_outbound::Resolver;

use super::folder::Folder;
use super::objects::Objects;
use super::sftp::Sftp;
use crate::tls::Factory;

/// How slow a target may be: a deadline for every step, and the least speed for what is as long as the file.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub step: Duration,
    /// Bytes in a second.
    pub speed: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { step: Duration::from_secs(20), speed: 32 * 1024 }
    }
}

/// Why a target does not do what it should. Said to people; no secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the target cannot be reached: {0}")]
    Unreachable(String),
    #[error("the target did not answer within {} seconds while {doing}", within.as_secs())]
    Timeout { doing: &'static str, within: Duration },
    #[error("the target refuses the user or the secret{0}")]
    Refused(String),
    #[error("the server has another host key than the one that is set: its fingerprint is {0}")]
    HostKey(String),
    #[error("there is no room at the target")]
    Full,
    #[error("the folder does not exist at the target")]
    NoFolder,
    #[error("the folder must not lie in the state directory of the gateway")]
    OwnFolder,
    #[error("{0}")]
    Setup(String),
    #[error("{doing} failed: {what}")]
    Failed { doing: &'static str, what: String },
}

impl Error {
    pub(super) fn failed(doing: &'static str, what: impl fmt::Display) -> Error {
        Error::Failed { doing, what: shortened(&what.to_string()) }
    }

    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Timeout { .. })
    }
}

/// What a server says is not to fill the status.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let line = line.trim();
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A target that is being spoken to.
pub(super) struct Target {
    kind: Kind,
    patience: Patience,
}

enum Kind {
    Folder(Folder),
    Objects(Objects),
    Sftp(Sftp),
}

impl Target {
    /// Connects and signs in. `largest` is how long the files are at most; `own` is the state directory.
    pub async fn open(
        config: &BackupTarget,
        own: &Path,
        (tls, endpoint_names): (&Arc<Factory>, &Resolver),
        largest: usize,
        patience: Patience,
    ) -> Result<Target, Error> {
        let kind = match config.r#type {
            TargetType::Local => {
                let folder = Folder::new(&config.path, own);
                Kind::Folder(within(patience.step, "looking at the folder", folder).await?)
            }
            TargetType::Webdav | TargetType::S3 => {
                Kind::Objects(Objects::new(config, (tls, endpoint_names), largest)?)
            }
            TargetType::Sftp => {
                let opening = Sftp::open(config, tls.mode(), endpoint_names);
                Kind::Sftp(within(patience.step, "signing in", opening).await?)
            }
        };
        Ok(Target { kind, patience })
    }

    /// Names of the files in the folder.
    pub async fn list(&self) -> Result<Vec<String>, Error> {
        let list = async {
            match &self.kind {
                Kind::Folder(folder) => folder.list().await,
                Kind::Objects(objects) => objects.list().await,
                Kind::Sftp(sftp) => sftp.list().await,
            }
        };
        within(self.patience.step, "listing the folder", list).await
    }

    /// Writes a file under a name that is not taken. It may be left half written.
    pub async fn write(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        let deadline = self.deadline(bytes.len());
        let write = async {
            match &self.kind {
                Kind::Folder(folder) => folder.write(name, bytes).await,
                Kind::Objects(objects) => objects.write(name, bytes).await,
                Kind::Sftp(sftp) => sftp.write(name, &bytes).await,
            }
        };
        within(deadline, "writing the file", write).await
    }

    /// Reads a file back that should be so long; more is not read.
    pub async fn read(&self, name: &str, length: usize) -> Result<Vec<u8>, Error> {
        let read = async {
            match &self.kind {
                Kind::Folder(folder) => folder.read(name, length).await,
                Kind::Objects(objects) => objects.read(name, length).await,
                Kind::Sftp(sftp) => sftp.read(name, length).await,
            }
        };
        within(self.deadline(length), "reading the file back", read).await
    }

    /// Whether files appear whole or not at all, so that they need no other name while they are written.
    pub fn writes_whole(&self) -> bool {
        matches!(&self.kind, Kind::Objects(objects) if objects.writes_whole())
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let rename = async {
            match &self.kind {
                Kind::Folder(folder) => folder.rename(from, to).await,
                Kind::Objects(objects) => objects.rename(from, to).await,
                Kind::Sftp(sftp) => sftp.rename(from, to).await,
            }
        };
        within(self.patience.step, "renaming the file", rename).await
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        let remove = async {
            match &self.kind {
                Kind::Folder(folder) => folder.remove(name).await,
                Kind::Objects(objects) => objects.remove(name).await,
                Kind::Sftp(sftp) => sftp.remove(name).await,
            }
        };
        within(self.patience.step, "removing a file", remove).await
    }

    fn deadline(&self, length: usize) -> Duration {
        self.patience.step + Duration::from_secs(length as u64 / self.patience.speed.max(1))
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
