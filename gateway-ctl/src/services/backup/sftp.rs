//! Folder of an SSH server as the target of backups.
//!
//! The server's key is pinned: a server that does not prove to have it receives neither user name nor password.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use gateway_model::settings::groups::{BackupTarget, host_key_fingerprint};
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use parking_lot::Mutex;
use russh::client::{self, AuthResult, Handle, KeyboardInteractiveAuthResponse};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, decode_secret_key};
use russh::{MethodKind, Preferred, kex};
use russh_sftp::client::SftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::error::{Error, shortened};
use crate::tls::PqMode;

/// Idle timeout, longer than any step may take. It ends a connection that hangs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
const STEP_SEC: u64 = 60;
/// Maximum number of rounds of keyboard-interactive authentication. A server that asks more often wants more than a
/// password.
const MAX_PROMPTS: usize = 3;

pub(super) struct Sftp {
    sftp: SftpSession,
    folder: String,
    /// SSH session, which lasts as long as this value.
    _session: Handle<PinnedHostKey>,
}

/// Client handler that accepts only the server with the pinned key.
struct PinnedHostKey {
    fingerprint: [u8; 32],
    /// Fingerprint of the key of another server that answered.
    other: Arc<Mutex<Option<String>>>,
}

impl client::Handler for PinnedHostKey {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        // The client requests no certificates, so it accepts none.
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else { return Ok(false) };
        let found: [u8; 32] = Sha256::digest(key.to_bytes()?).into();
        if found != self.fingerprint {
            let text = format!("SHA256:{}", STANDARD_NO_PAD.encode(found));
            *self.other.lock() = Some(text);
        }
        Ok(found == self.fingerprint)
    }
}

impl Sftp {
    pub(super) async fn open(
        config: &BackupTarget,
        mode: PqMode,
        endpoint_names: &Resolver,
    ) -> Result<Sftp, Error> {
        let setup = |what: &str| Error::Setup(what.to_owned());
        let server = config.ssh_server().ok_or_else(|| setup("the address is not sftp://host:port"))?;
        let fingerprint =
            host_key_fingerprint(&config.host_key).ok_or_else(|| setup("no host key is set"))?;
        let other = Arc::new(Mutex::new(None));
        let handler = PinnedHostKey { fingerprint, other: other.clone() };
        // The caller has a deadline for signing in.
        let dialer = Dialer::by_default_route(&KernelSockets::PATIENT, endpoint_names, Duration::MAX);
        let stream = dialer.connect(&server.0, server.1).await;
        let stream = stream.map_err(|error| Error::Unreachable(shortened(&error.to_string())))?;
        let connected = client::connect_stream(Arc::new(settings(mode)), stream, handler).await;
        let mut session = connected.map_err(|error| match other.lock().take() {
            Some(found) => Error::HostKey(found),
            None => unreachable(&error, mode),
        })?;
        sign_in(&mut session, config).await?;
        let closed = |error: russh::Error| Error::failed("opening the SFTP session", error);
        let channel = session.channel_open_session().await.map_err(closed)?;
        channel.request_subsystem(true, "sftp").await.map_err(closed)?;
        let sftp = SftpSession::new(channel.into_stream()).await;
        let sftp = sftp.map_err(|error| explain("opening the SFTP session", &error))?;
        sftp.set_timeout(STEP_SEC);
        let folder = if config.path.is_empty() { "." } else { config.path.as_str() };
        Ok(Sftp { sftp, folder: folder.trim_end_matches('/').to_owned(), _session: session })
    }

    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        let folder = if self.folder.is_empty() { "/" } else { self.folder.as_str() };
        let entries = self.sftp.read_dir(folder).await;
        let entries = entries.map_err(|error| explain("listing the folder", &error))?;
        Ok(entries.map(|entry| entry.file_name()).collect())
    }

    pub(super) async fn write(&self, name: &str, source: File) -> Result<(), Error> {
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
        let private = FileAttributes { permissions: Some(0o600), ..FileAttributes::empty() };
        let opened = self.sftp.open_with_flags_and_attributes(self.path(name), flags, private).await;
        let mut file = opened.map_err(|error| explain("writing the file", &error))?;
        let written = async {
            tokio::io::copy(&mut tokio::fs::File::from_std(source), &mut file).await?;
            file.flush().await?;
            // The client does not send the request to servers without this extension.
            file.sync_all().await.map_err(std::io::Error::other)?;
            file.close().await
        };
        written.await.map_err(|error| Error::failed("writing the file", error))
    }

    /// Reads a file into another one. Returns that from its first byte on.
    pub(super) async fn read(&self, name: &str, length: usize, into: File) -> Result<File, Error> {
        let opened = self.sftp.open(self.path(name)).await;
        let file = opened.map_err(|error| explain("reading the file back", &error))?;
        let read = async {
            let mut into = tokio::fs::File::from_std(into);
            tokio::io::copy(&mut file.take(length as u64 + 1), &mut into).await?;
            into.flush().await?;
            into.rewind().await?;
            Ok::<File, std::io::Error>(into.into_std().await)
        };
        read.await.map_err(|error| Error::failed("reading the file back", error))
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let renamed = self.sftp.rename(self.path(from), self.path(to)).await;
        renamed.map_err(|error| explain("renaming the file", &error))
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let removed = self.sftp.remove_file(self.path(name)).await;
        removed.map_err(|error| explain("removing a file", &error))
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

fn settings(mode: PqMode) -> client::Config {
    let preferred = match mode {
        PqMode::Default | PqMode::Preferred => Preferred::DEFAULT,
        PqMode::Required => Preferred {
            kex: Cow::Borrowed(&[
                kex::MLKEM768X25519_SHA256,
                kex::EXTENSION_SUPPORT_AS_CLIENT,
                kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
            ]),
            ..Preferred::DEFAULT
        },
    };
    client::Config { preferred, inactivity_timeout: Some(IDLE_TIMEOUT), ..client::Config::default() }
}

fn unreachable(error: &russh::Error, mode: PqMode) -> Error {
    let what = match error {
        russh::Error::NoCommonAlgo { .. } if mode == PqMode::Required => {
            "the post-quantum mode is `required`, and the server offers no such key exchange".to_owned()
        }
        error => error.to_string(),
    };
    Error::Unreachable(shortened(&what))
}

async fn sign_in(session: &mut Handle<PinnedHostKey>, config: &BackupTarget) -> Result<(), Error> {
    let failed = |error: russh::Error| Error::failed("signing in", error);
    let user = config.username.as_str();
    if config.private_key.is_set() {
        let key = decode_secret_key(config.private_key.expose(), None)
            .map_err(|_| Error::Setup("the private key cannot be read, or it has a passphrase".to_owned()))?;
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
        return match session.authenticate_publickey(user, key).await.map_err(failed)? {
            AuthResult::Success => Ok(()),
            AuthResult::Failure { .. } => Err(Error::Refused(" (private key)".to_owned())),
        };
    }
    let password = config.secret.expose();
    match session.authenticate_password(user, password).await.map_err(failed)? {
        AuthResult::Success => Ok(()),
        AuthResult::Failure { remaining_methods, .. }
            if remaining_methods.contains(&MethodKind::KeyboardInteractive)
                && !remaining_methods.contains(&MethodKind::Password) =>
        {
            answer_questions(session, user, password).await
        }
        AuthResult::Failure { .. } => Err(Error::Refused(" (password)".to_owned())),
    }
}

/// Authenticates at servers that accept passwords only by keyboard-interactive authentication.
async fn answer_questions(
    session: &mut Handle<PinnedHostKey>,
    user: &str,
    password: &str,
) -> Result<(), Error> {
    let failed = |error: russh::Error| Error::failed("signing in", error);
    let started = session.authenticate_keyboard_interactive_start(user, None).await;
    let mut asked = started.map_err(failed)?;
    for _ in 0..MAX_PROMPTS {
        let prompts = match asked {
            KeyboardInteractiveAuthResponse::Success => return Ok(()),
            KeyboardInteractiveAuthResponse::Failure { .. } => break,
            KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
        };
        // A prompt that echoes its input does not ask for a password.
        let answers = prompts.iter().map(|prompt| if prompt.echo { "" } else { password }.to_owned());
        let answered = session.authenticate_keyboard_interactive_respond(answers.collect()).await;
        asked = answered.map_err(failed)?;
    }
    Err(Error::Refused(" (password)".to_owned()))
}

fn explain(doing: &'static str, error: &SftpError) -> Error {
    match error {
        SftpError::Status(status) if status.status_code == StatusCode::NoSuchFile => Error::NoFolder,
        SftpError::Status(status) if status.status_code == StatusCode::PermissionDenied => {
            Error::failed(doing, "the user may not do this in the folder")
        }
        error => Error::failed(doing, error),
    }
}
