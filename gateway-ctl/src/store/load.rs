//! Loading of the file: lock, migrate, read everything back.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use gateway_model::registry::KINDS;
use gateway_model::settings::Setting;
use gateway_model::{Revision, State};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::audit::ChainHead;
use super::commit::write_state;
use super::error::Error;
use super::node_id::identify;
use super::open_file::OpenFile;
use super::paths::{draft_path, folder_of, open_file, sync_folder};
use super::schema::{APPLIED, SETTINGS, meta, rows};
use super::sessions::Sessions;
use super::values::{number, text};
use super::vault::{self, PassphraseSearch, SecretStorage};
use super::wipe::WIPED;
use super::{audit, migrate, passphrase_rotation, secure_compaction};
use crate::clock::Clock;

type OpenedStore = (OpenFile, State, ChainHead, Sessions, SecretStorage);

/// Action if there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    Create,
    Refuse,
}

pub(super) fn open(path: &Path, clock: &dyn Clock, missing: IfMissing) -> Result<OpenedStore, Error> {
    let folder = folder_of(path);
    if missing == IfMissing::Create {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
    }
    let wiped = folder.join(WIPED);
    if wiped.exists() {
        return Err(Error::Wiped { path: wiped });
    }
    let exists = path.try_exists().map_err(|source| Error::Open { path: path.to_owned(), source })?;
    if !exists && missing == IfMissing::Create {
        create(path, clock)?;
    }
    let file = open_file(path, false)?;
    // The database library panics on some kinds of damage instead of reporting them.
    catch_unwind(AssertUnwindSafe(|| {
        let db = OpenFile::open(file, path)?;
        migrate::run(&db)?;
        let (mut state, head) = read(&db)?;
        let started = vault::start(&db, folder)?;
        if !started.seal_now {
            passphrase_rotation::adopt(&mut state, &started.sealing);
        }
        seed(&db, &mut state, clock)?;
        let db = secure(db, path, &mut state, &started, clock)?;
        let sessions = Sessions::load(&db)?;
        Ok((db, state, head, sessions, started.sealing))
    }))
    .unwrap_or_else(|panic| Err(Error::Damaged { what: panic_text(panic.as_ref()) }))
}

/// Stores the mode of the secrets, seals values in clear, and erases their traces from the file.
fn secure(
    db: OpenFile,
    path: &Path,
    state: &mut State,
    started: &PassphraseSearch,
    clock: &dyn Clock,
) -> Result<OpenFile, Error> {
    if started.write {
        let mut draft = state.begin(clock.now());
        let txn = db.begin_write().map_err(Error::at("begin to write"))?;
        let sealed =
            started.seal_now && passphrase_rotation::seal_first(&txn, state, &mut draft, &started.sealing)?;
        vault::write(&txn, &started.sealing)?;
        txn.commit().map_err(Error::at("commit"))?;
        if sealed {
            *state = draft;
        }
    }
    let due = {
        let txn = db.begin_read().map_err(Error::at("begin to read"))?;
        number(&txn, meta::REWRITE_DUE)? != 0
    };
    if !due {
        return Ok(db);
    }
    let fresh = secure_compaction::copy(&db, path)?;
    let txn = fresh.begin_write().map_err(Error::at("begin to write"))?;
    passphrase_rotation::clear_due(&txn)?;
    txn.commit().map_err(Error::at("commit"))?;
    Ok(fresh)
}

/// Adds the built-in objects that are new in this version.
fn seed(db: &Database, state: &mut State, clock: &dyn Clock) -> Result<(), Error> {
    let mut draft = state.begin(clock.now());
    let identified = identify(&mut draft);
    if draft.seed() || identified {
        let txn = db.begin_write().map_err(Error::at("begin to write"))?;
        write_state(&txn, state, &draft)?;
        txn.commit().map_err(Error::at("commit"))?;
        *state = draft;
    }
    Ok(())
}

/// Creates a new store under a temporary name, and renames it when it is complete. After an interruption, it starts
/// over.
fn create(path: &Path, clock: &dyn Clock) -> Result<(), Error> {
    let draft = draft_path(path);
    let failed = |source| Error::Open { path: draft.clone(), source };
    {
        let file = open_file(&draft, true)?;
        let db = OpenFile::open(file, &draft)?;
        migrate::run(&db)?;
        let mut state = State::new(clock.now());
        identify(&mut state);
        let txn = db.begin_write().map_err(Error::at("begin to write"))?;
        write_state(&txn, &State::empty(), &state)?;
        txn.commit().map_err(Error::at("commit"))?;
    }
    std::fs::rename(&draft, path).map_err(failed)?;
    sync_folder(path)
}

fn read(db: &Database) -> Result<(State, ChainHead), Error> {
    let txn = db.begin_read().map_err(Error::at("begin to read"))?;
    let mut state = State::empty();
    state.revision = Revision(number(&txn, meta::REVISION)?);
    for kind in KINDS {
        let table = txn.open_table(rows(kind.collection)).map_err(Error::at("read"))?;
        for row in table.iter().map_err(Error::at("read"))? {
            let (_, json) = row.map_err(Error::at("read"))?;
            kind.load(&mut state, json.value())?;
        }
        let next_slot = number(&txn, &meta::next_slot(kind.collection))?;
        let next_slot = u32::try_from(next_slot)
            .map_err(|_| Error::Damaged { what: "a counter is out of range".into() })?;
        kind.resume(
            &mut state,
            next_slot,
            Revision(number(&txn, &meta::collection_revision(kind.collection))?),
        );
    }
    read_settings(&txn, &mut state)?;
    read_applied(&txn, &mut state)?;
    let head = audit::read_head(&txn)?;
    Ok((state, head))
}

fn read_settings(txn: &ReadTransaction, state: &mut State) -> Result<(), Error> {
    let table = txn.open_table(SETTINGS).map_err(Error::at("read"))?;
    for row in table.iter().map_err(Error::at("read"))? {
        let (key, json) = row.map_err(Error::at("read"))?;
        let setting = Setting::read_stored(json.value())
            .map_err(|_| Error::Damaged { what: format!("the setting {} cannot be read", key.value()) })?;
        state.settings.load(key.value(), setting);
    }
    state.settings.resume(Revision(number(txn, meta::SETTINGS_REVISION)?));
    Ok(())
}

fn read_applied(txn: &ReadTransaction, state: &mut State) -> Result<(), Error> {
    state.applied.revision = Revision(number(txn, meta::APPLIED_REVISION)?);
    state.applied.at = match text(txn, meta::APPLIED_AT)? {
        Some(at) => Some(
            at.parse()
                .map_err(|_| Error::Damaged { what: "the time of the last apply cannot be read".into() })?,
        ),
        None => None,
    };
    let table = txn.open_table(APPLIED).map_err(Error::at("read"))?;
    for row in table.iter().map_err(Error::at("read"))? {
        let (_, json) = row.map_err(Error::at("read"))?;
        state.applied.load(json.value())?;
    }
    Ok(())
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it cannot be read".to_owned())
}
