//! Encrypted storage of records that name hosts.

use gateway_ctl::os::encrypted_volume::{MAX_PASSPHRASE_BYTES, VolumeError};
use gateway_ctl::services::encrypted_storage::{
    EncryptedStorage, EncryptedStorageStatus, MAX_PCR, MAX_SIZE_MB, MIN_SIZE_MB, SetUpRequest,
    StorageContent, StorageError, StorageState, state_name,
};
use gateway_model::problem::{Problems, code};
use gateway_model::{EditError, Secret};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Endpoint, Table};

/// Fewest characters of a passphrase.
const MIN_PASSPHRASE: usize = 12;
const TYPE: &str = "encrypted_storage";
const SET_UP: Audit = Audit { action: "set_up_encrypted_storage", resource_type: TYPE };
const TEAR_DOWN: Audit = Audit { action: "tear_down_encrypted_storage", resource_type: TYPE };
const UNLOCK: Audit = Audit { action: "unlock_encrypted_storage", resource_type: TYPE };
const LOCK: Audit = Audit { action: "lock_encrypted_storage", resource_type: TYPE };
const CHANGE: Audit = Audit { action: "change_encrypted_storage_passphrase", resource_type: TYPE };
const STORE_KEY: Audit = Audit { action: "store_encrypted_storage_key", resource_type: TYPE };
const REMOVE_KEY: Audit = Audit { action: "remove_encrypted_storage_key", resource_type: TYPE };
const SEAL_KEY: Audit = Audit { action: "seal_encrypted_storage_key", resource_type: TYPE };
const UNSEAL_KEY: Audit = Audit { action: "unseal_encrypted_storage_key", resource_type: TYPE };
/// PCR of the Secure Boot policy, which is the same after updates of the kernel.
const DEFAULT_PCR: u32 = 7;

pub(super) fn rows(t: &mut Table) {
    t.view("/storage/encrypted", "get_encrypted_storage", show)
        .summary("State of the encrypted storage")
        .doc("On a host without device-mapper or its programs, supported is false, and needs says what is missing.");
    let set_up = t.action("/storage/encrypted/setup", SET_UP.action, Effect::Acts(SET_UP), set_up);
    administered(set_up)
        .answers(&[Code::AlreadyConfigured, Code::StorageFull])
        .summary("Set the encrypted storage up")
        .doc(
            "Makes a LUKS2 container in the state directory, moves the records into it, and overwrites the unencrypted \
             ones. Answers at once: set_up of the state has the progress. A failure or a power cut before its end leaves \
             nothing.",
        )
        .status(202)
        .requires_input();
    let tear_down =
        t.command("/storage/encrypted/teardown", TEAR_DOWN.action, Effect::Acts(TEAR_DOWN), tear_down);
    administered(tear_down)
        .summary("Destroy the encrypted storage")
        .doc("It must be locked. Its header is overwritten first: all records in it are lost. Further ones are not encrypted.");
    let unlock = t.action("/storage/encrypted/unlock", UNLOCK.action, Effect::Acts(UNLOCK), unlock);
    administered(unlock)
        .summary("Open the encrypted storage")
        .doc("Records that have waited in memory are written.")
        .requires_input();
    let lock = t.command("/storage/encrypted/lock", LOCK.action, Effect::Acts(LOCK), lock);
    administered(lock).summary("Close the encrypted storage").doc(
        "Running captures are stopped. Records wait in memory, up to a limit, until it is opened again.",
    );
    let path = "/storage/encrypted/passphrase";
    let change = t.change(path, CHANGE.action, Effect::Acts(CHANGE), change_passphrase);
    administered(change).summary("Change the passphrase of the encrypted storage");
    let path = "/storage/encrypted/stored-key";
    let store = t.change(path, STORE_KEY.action, Effect::Acts(STORE_KEY), store_key);
    administered(store).summary("Open the encrypted storage at each start").doc(
        "Adds a random key to the storage, which the gateway keeps among its secrets. Who has the whole disk can then \
         open the storage.",
    );
    let remove = t.erase(path, REMOVE_KEY.action, Effect::Acts(REMOVE_KEY), remove_key);
    administered(remove).summary("Remove the stored key of the encrypted storage");
    let path = "/storage/encrypted/tpm2-key";
    let seal = t.change(path, SEAL_KEY.action, Effect::Acts(SEAL_KEY), seal_key);
    administered(seal).summary("Open the encrypted storage by a TPM2 at each start").doc(
        "Adds a random key to the storage, which the TPM of this host seals. It releases the key only while the PCRs have \
         the values of now; otherwise the passphrase is required. A key that was sealed before is replaced.",
    );
    let unseal = t.erase(path, UNSEAL_KEY.action, Effect::Acts(UNSEAL_KEY), unseal_key);
    administered(unseal).summary("Remove the key that a TPM2 seals");
}

/// Adds what all operations have in common.
fn administered(endpoint: &mut Endpoint) -> &mut Endpoint {
    endpoint.access(Access::Administer).answers(&[
        Code::InvalidState,
        Code::DecryptFailed,
        Code::NotSupported,
        Code::DependencyFailed,
    ])
}

/// Set-up of the encrypted storage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
struct SetUpInput {
    /// Size of the container in MiB, 64 at least. It is reserved on the disk at once.
    size_mb: u64,
    /// Passphrase of 12 characters at least and 512 bytes at most, on one line.
    #[schemars(with = "String")]
    passphrase: Secret,
    /// Records that will live in the storage.
    contents: Vec<StorageContent>,
}

impl Default for SetUpInput {
    fn default() -> SetUpInput {
        SetUpInput { size_mb: 0, passphrase: Secret::default(), contents: StorageContent::ALL.to_vec() }
    }
}

/// Passphrase of the encrypted storage.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StoragePassphrase {
    /// Passphrase in force.
    #[schemars(with = "String")]
    passphrase: Secret,
}

/// Change of the passphrase of the encrypted storage.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PassphraseChange {
    /// Passphrase in force.
    #[schemars(with = "String")]
    passphrase: Secret,
    /// New passphrase of 12 characters at least and 512 bytes at most, on one line.
    #[schemars(with = "String")]
    new_passphrase: Secret,
}

/// Key that a TPM2 seals.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
struct SealedKeyInput {
    /// Passphrase in force.
    #[schemars(with = "String")]
    passphrase: Secret,
    /// PCRs of the TPM, from 0 to 23. 7 is the policy of Secure Boot, 4 the boot loader, 9 the kernel and its initial file
    /// system.
    pcrs: Vec<u32>,
}

impl Default for SealedKeyInput {
    fn default() -> SealedKeyInput {
        SealedKeyInput { passphrase: Secret::default(), pcrs: vec![DEFAULT_PCR] }
    }
}

fn storage(cx: &Cx) -> Result<EncryptedStorage, ApiError> {
    Ok(cx.open()?.handles.get::<EncryptedStorage>())
}

/// Checks a passphrase that opens a slot: cryptsetup reads it as one line.
fn check_line(path: &str, passphrase: &Secret, problems: &mut Problems) {
    let text = passphrase.expose();
    if text.is_empty() {
        problems.required(path);
    } else if text.len() > MAX_PASSPHRASE_BYTES || text.chars().any(char::is_control) {
        problems.add(
            code::FORMAT,
            path,
            "It must be one line of 512 bytes at most, without control characters.",
        );
    }
}

/// Checks a passphrase that is to open a slot.
fn check_new(path: &str, passphrase: &Secret, problems: &mut Problems) {
    check_line(path, passphrase, problems);
    let length = passphrase.expose().chars().count();
    if (1..MIN_PASSPHRASE).contains(&length) {
        problems.add(code::RANGE, path, format!("It must have {MIN_PASSPHRASE} characters at least."));
    }
}

fn checked(check: impl FnOnce(&mut Problems)) -> Result<(), ApiError> {
    let mut problems = Problems::new();
    check(&mut problems);
    if problems.is_empty() { Ok(()) } else { Err(EditError::Invalid(problems).into()) }
}

fn refused(error: StorageError) -> ApiError {
    match error {
        StorageError::NotSupported(needs) | StorageError::Volume(VolumeError::NotSupported(needs)) => {
            ApiError::not_supported(&needs)
        }
        StorageError::State { have, allowed } => {
            let code = match allowed {
                [StorageState::Absent] => Code::AlreadyConfigured,
                _ => Code::InvalidState,
            };
            let allowed: Vec<&str> = allowed.iter().map(|state| state_name(*state)).collect();
            ApiError::new(code, format!("The encrypted storage is {}.", state_name(have)))
                .detail("state", state_name(have))
                .detail("allowed", allowed)
        }
        StorageError::Occupied | StorageError::LastKeySlot => {
            ApiError::new(Code::InvalidState, sentence(&error))
        }
        StorageError::InUse(ref contents) => {
            let contents: Vec<&str> = contents.iter().map(|content| content.as_str()).collect();
            ApiError::new(Code::InvalidState, sentence(&error)).detail("in_use", contents)
        }
        StorageError::Volume(VolumeError::Busy) => ApiError::new(Code::InvalidState, sentence(&error)),
        StorageError::NoRoom { needed, free } => {
            ApiError::new(Code::StorageFull, "There is no room for the encrypted storage.")
                .detail("needed_bytes", needed)
                .detail("free_bytes", free)
        }
        StorageError::TooSmall { minimum_mb } => {
            let mut problems = Problems::new();
            let message = format!("The present records need {minimum_mb} MiB at least.");
            problems.add(code::RANGE, "size_mb", message);
            ApiError::validation(&problems)
        }
        StorageError::Volume(VolumeError::Unmeasured) => {
            let mut problems = Problems::new();
            let message =
                "The firmware of this machine has measured none of them: the key would open on each system.";
            problems.add(code::CONFLICT, "pcrs", message);
            ApiError::validation(&problems)
        }
        StorageError::Volume(VolumeError::WrongKey) => {
            ApiError::new(Code::DecryptFailed, "No key slot opens by this passphrase.")
        }
        StorageError::Volume(VolumeError::Program { .. } | VolumeError::Tpm2(_)) => {
            ApiError::new(Code::DependencyFailed, error.to_string())
        }
        StorageError::Volume(VolumeError::Io { .. }) => ApiError::internal(&error),
        StorageError::Store(error) => error.into(),
    }
}

/// Returns the message of an error as a sentence.
fn sentence(error: &StorageError) -> String {
    let text = error.to_string();
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}.", first.to_uppercase())
}

/// Runs an operation, and returns the state behind it.
async fn operate(
    cx: &Cx,
    operation: impl FnOnce(&EncryptedStorage) -> Result<(), StorageError> + Send + 'static,
) -> Result<EncryptedStorageStatus, ApiError> {
    let storage = storage(cx)?;
    blocking(move || {
        operation(&storage)?;
        Ok(storage.status())
    })
    .await?
    .map_err(refused)
}

async fn show(cx: Cx, _: Req<()>) -> Result<EncryptedStorageStatus, ApiError> {
    let storage = storage(&cx)?;
    blocking(move || storage.status()).await
}

async fn set_up(cx: Cx, request: Req<SetUpInput>) -> Result<WithHeaders<EncryptedStorageStatus>, ApiError> {
    let SetUpInput { size_mb, passphrase, mut contents } = request.input;
    contents.sort_unstable();
    contents.dedup();
    checked(|problems| {
        if !(MIN_SIZE_MB..=MAX_SIZE_MB).contains(&size_mb) {
            problems.add(code::RANGE, "size_mb", format!("It must be from {MIN_SIZE_MB} to {MAX_SIZE_MB}."));
        }
        check_new("passphrase", &passphrase, problems);
        if contents.is_empty() {
            problems.required("contents");
        }
    })?;
    let (storage, clock) = (storage(&cx)?, cx.open()?.store.clock().clone());
    let begun = storage.clone();
    let request = SetUpRequest { size_mb, passphrase, contents };
    let begun = blocking(move || begun.begin_set_up(request, clock)).await?.map_err(refused)?;
    // It ends by itself; its result is in the state.
    drop(tokio::task::spawn_blocking(move || begun.run()));
    let mut answer = WithHeaders::new(blocking(move || storage.status()).await?);
    answer.status = StatusCode::ACCEPTED;
    answer.location = Some("/storage/encrypted".to_owned());
    Ok(answer)
}

async fn tear_down(cx: Cx, _: Req<()>) -> Result<EncryptedStorageStatus, ApiError> {
    operate(&cx, EncryptedStorage::tear_down).await
}

async fn unlock(cx: Cx, request: Req<StoragePassphrase>) -> Result<EncryptedStorageStatus, ApiError> {
    let passphrase = request.input.passphrase;
    checked(|problems| check_line("passphrase", &passphrase, problems))?;
    operate(&cx, move |storage| storage.unlock(&passphrase)).await
}

async fn lock(cx: Cx, _: Req<()>) -> Result<EncryptedStorageStatus, ApiError> {
    operate(&cx, EncryptedStorage::lock).await
}

async fn change_passphrase(
    cx: Cx,
    request: Req<PassphraseChange>,
) -> Result<EncryptedStorageStatus, ApiError> {
    let PassphraseChange { passphrase, new_passphrase } = request.input;
    checked(|problems| {
        check_line("passphrase", &passphrase, problems);
        check_new("new_passphrase", &new_passphrase, problems);
    })?;
    operate(&cx, move |storage| storage.change_passphrase(&passphrase, &new_passphrase)).await
}

async fn store_key(cx: Cx, request: Req<StoragePassphrase>) -> Result<EncryptedStorageStatus, ApiError> {
    let passphrase = request.input.passphrase;
    checked(|problems| check_line("passphrase", &passphrase, problems))?;
    let store = cx.open()?.store.clone();
    operate(&cx, move |storage| storage.store_key(&store, &passphrase)).await
}

async fn remove_key(cx: Cx, _: Req<()>) -> Result<EncryptedStorageStatus, ApiError> {
    let store = cx.open()?.store.clone();
    operate(&cx, move |storage| storage.remove_stored_key(&store)).await
}

async fn seal_key(cx: Cx, request: Req<SealedKeyInput>) -> Result<EncryptedStorageStatus, ApiError> {
    let SealedKeyInput { passphrase, mut pcrs } = request.input;
    pcrs.sort_unstable();
    pcrs.dedup();
    checked(|problems| {
        check_line("passphrase", &passphrase, problems);
        if pcrs.is_empty() {
            problems.required("pcrs");
        } else if pcrs.iter().any(|pcr| *pcr > MAX_PCR) {
            problems.add(code::RANGE, "pcrs", format!("They must be from 0 to {MAX_PCR}."));
        }
    })?;
    operate(&cx, move |storage| storage.store_tpm2_key(&passphrase, &pcrs)).await
}

async fn unseal_key(cx: Cx, _: Req<()>) -> Result<EncryptedStorageStatus, ApiError> {
    operate(&cx, EncryptedStorage::remove_tpm2_key).await
}
