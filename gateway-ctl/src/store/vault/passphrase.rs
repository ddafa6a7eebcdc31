//! Storage of the passphrase: in the store, and in a file beside it that only its owner can read.
//!
//! Each copy restores the other at every start. If they differ, the store's copy is right, because it changes in the
//! same transaction as the values. A user's passphrase is kept like a generated one, so that the daemon starts
//! unattended. If both copies of it are lost, the values stay locked until it is set again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use gateway_core::hexadecimal::hex;
use redb::{Database, ReadableDatabase, WriteTransaction};
use zeroize::Zeroizing;

use super::{SecretStorage, SecretsMode, Vault};
use crate::store::error::Error;
use crate::store::schema::{META, META_TEXT};
use crate::store::values;

/// Name of the file in the folder of the store.
pub(super) const FALLBACK: &str = "secrets.passphrase";

/// Keys of the table `meta_text`.
const MODE: &str = "secrets_mode";
const PASSPHRASE: &str = "secrets_passphrase";
/// Key of the table `meta`: 1 when a passphrase was lost while there were sealed values.
const LOST: &str = "secrets_lost";

/// Result of the search for the passphrase at a start.
pub(crate) struct PassphraseSearch {
    pub sealing: SecretStorage,
    /// True if the store has values in clear that must be sealed.
    pub seal_now: bool,
    /// True if the store lacks its own copy of the passphrase or its mode.
    pub write: bool,
}

/// Finds the passphrase, or generates one.
pub(crate) fn start(db: &Database, folder: &Path) -> Result<PassphraseSearch, Error> {
    let txn = db.begin_read().map_err(Error::at("read the passphrase"))?;
    let damaged = || Error::Damaged { what: "it does not say how its secrets are kept".into() };
    let mode = match values::text(&txn, MODE)? {
        Some(text) => Some(text.parse().map_err(|_| damaged())?),
        None => None,
    };
    let stored = values::text(&txn, PASSPHRASE)?.filter(|text| !text.is_empty()).map(Zeroizing::new);
    let lost = values::number(&txn, LOST)? != 0;
    let path = folder.join(FALLBACK);
    if mode == Some(SecretsMode::Plain) {
        // Left behind by a daemon that was killed while it removed the passphrase.
        forget(folder);
        let sealing = SecretStorage { mode: SecretsMode::Plain, vault: None, lost };
        return Ok(PassphraseSearch { sealing, seal_now: false, write: false });
    }
    let beside = read(&path);
    let started = |passphrase, mode, lost, write| PassphraseSearch {
        sealing: SecretStorage { mode, vault: Some(Arc::new(Vault::new(passphrase))), lost },
        seal_now: false,
        write,
    };
    let started = match (stored, beside, mode) {
        (Some(stored), beside, Some(mode)) => {
            if beside.as_ref() != Some(&stored) {
                keep(folder, &stored);
            }
            started(stored, mode, lost, false)
        }
        (None, Some(beside), Some(mode)) => {
            tracing::warn!("restored the secrets passphrase from its file: it was missing in the store");
            started(beside, mode, lost, true)
        }
        (None, None, Some(SecretsMode::Own)) => {
            tracing::error!("secrets passphrase is lost: secrets stay locked until it is set again");
            let vault = Some(Arc::new(Vault::locked()));
            let sealing = SecretStorage { mode: SecretsMode::Own, vault, lost };
            PassphraseSearch { sealing, seal_now: false, write: false }
        }
        (None, None, Some(mode)) => {
            tracing::error!("both copies of the passphrase are lost: sealed secrets cannot be opened");
            let fresh = generate();
            keep(folder, &fresh);
            started(fresh, mode, true, true)
        }
        (stored, beside, None) => {
            // First start, or first start of a version that seals.
            let passphrase = stored.or_else(|| beside.clone()).unwrap_or_else(generate);
            if beside.as_ref() != Some(&passphrase) {
                keep(folder, &passphrase);
            }
            PassphraseSearch { seal_now: true, ..started(passphrase, SecretsMode::Generated, false, true) }
        }
    };
    Ok(started)
}

/// Writes the store's copy.
pub(crate) fn write(txn: &WriteTransaction, sealing: &SecretStorage) -> Result<(), Error> {
    let failed = || Error::at("write the passphrase");
    let mut texts = txn.open_table(META_TEXT).map_err(Error::at("write the passphrase"))?;
    texts.insert(MODE, sealing.mode.as_str()).map_err(failed())?;
    match sealing.vault.as_ref().and_then(|vault| vault.passphrase()) {
        Some(passphrase) => drop(texts.insert(PASSPHRASE, passphrase).map_err(failed())?),
        None => drop(texts.remove(PASSPHRASE).map_err(failed())?),
    }
    let mut numbers = txn.open_table(META).map_err(Error::at("write the passphrase"))?;
    numbers.insert(LOST, u64::from(sealing.lost)).map_err(failed())?;
    Ok(())
}

/// Generates 32 random bytes in hexadecimal digits.
fn generate() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0u8; 32]);
    getrandom::fill(bytes.as_mut_slice()).expect("a booted kernel has random numbers");
    Zeroizing::new(hex(bytes.as_slice()))
}

fn read(path: &Path) -> Option<Zeroizing<String>> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let text = Zeroizing::new(text);
            let line = text.strip_suffix('\n').unwrap_or(&text);
            (!line.is_empty()).then(|| Zeroizing::new(line.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "failed to read the passphrase file");
            None
        }
    }
}

/// Writes the file. The store's copy is sufficient, so a failure is only logged.
pub(crate) fn keep(folder: &Path, passphrase: &str) {
    let path = folder.join(FALLBACK);
    let fresh = folder.join(format!("{FALLBACK}.new"));
    let put = || -> io::Result<()> {
        remove(&fresh)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&fresh)?;
        file.set_permissions(fs::Permissions::from_mode(0o400))?;
        file.write_all(passphrase.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        overwrite(&path)?;
        fs::rename(&fresh, &path)?;
        File::open(folder)?.sync_all()
    };
    if let Err(error) = put() {
        tracing::warn!(path = %path.display(), %error, "failed to write the passphrase file");
    }
}

/// Removes the file after overwriting it.
pub(crate) fn forget(folder: &Path) {
    let path = folder.join(FALLBACK);
    if let Err(error) = overwrite(&path).and_then(|()| remove(&path)) {
        tracing::error!(path = %path.display(), %error, "failed to remove the passphrase file");
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Overwrites the file. The old text is gone if the medium writes in place.
fn overwrite(path: &Path) -> io::Result<()> {
    let length = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(&vec![0; usize::try_from(length.min(4096)).unwrap_or(0)])?;
    file.sync_all()
}
