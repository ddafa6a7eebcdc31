//! Secrets at rest: the list of stored secrets, and the passphrase of their encryption.

use gateway_ctl::store::{RotateError, SecretEntry, SecretsMode, Store};
use gateway_model::secrets::SecretPlace;
use gateway_model::{Problems, Secret, problem};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

/// Length limits of a passphrase, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=1024;

const SET: Audit = Audit { action: "set_secrets_passphrase", resource_type: "secrets" };
const CLEAR: Audit = Audit { action: "clear_secrets_passphrase", resource_type: "secrets" };

pub(super) fn rows(t: &mut Table) {
    t.view("/secrets", "list_secrets", list)
        .summary("Stored secrets and their form")
        .doc("Values are never included.")
        .access(Access::Administer);
    t.view("/secrets/encryption-status", "get_secrets_encryption_status", status)
        .summary("Form in which secrets are stored");
    let row = t.action("/secrets/set-passphrase", SET.action, Effect::Stores(SET), set);
    row.summary("Seal all secrets under this passphrase")
        .doc(
            "Everything is rewritten in one transaction. If a value cannot be read with the present passphrase, \
             nothing is rewritten and the present passphrase stays (secrets_rotation_failed). While the secrets are \
             locked because the passphrase is lost, this unlocks them; it must be the one that they are sealed under. \
             The passphrase is kept on this machine, so that the gateway starts unattended.",
        )
        .access(Access::Administer);
    row.requires_input();
    t.command("/secrets/clear-passphrase", CLEAR.action, Effect::Stores(CLEAR), clear)
        .summary("Store all secrets unencrypted")
        .access(Access::Administer);
}

/// A stored secret, without its value.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StoredSecret {
    /// Reference to the secret: `type/id/field`.
    pub r#ref: String,
    /// Type of the object, such as `tunnel`; `setting` for settings.
    pub r#type: &'static str,
    /// Id of the object; for settings the key.
    pub id: String,
    /// Name of the object; for settings the key.
    pub name: String,
    /// Path of the field, such as `peers[0].preshared_key`; empty for settings.
    pub field: String,
    pub encrypted: bool,
    /// The secret could not be decrypted when it was needed; set it again.
    pub unreadable: bool,
    /// Time of the last change of the object.
    pub updated_at: Timestamp,
}

impl From<SecretEntry> for StoredSecret {
    fn from(entry: SecretEntry) -> Self {
        let SecretEntry { place, sealed, unreadable } = entry;
        let r#ref = reference(&place);
        let SecretPlace { noun, id, name, field, updated_at } = place;
        Self { r#ref, r#type: noun, id, name, field, encrypted: sealed, unreadable, updated_at }
    }
}

fn reference(place: &SecretPlace) -> String {
    let SecretPlace { noun, id, field, .. } = place;
    if field.is_empty() { format!("{noun}/{id}") } else { format!("{noun}/{id}/{field}") }
}

async fn list(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<StoredSecret>>, ApiError> {
    Ok(WithHeaders::counted(cx.open()?.store.secrets().into_iter().map(StoredSecret::from).collect()))
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EncryptionStatus {
    /// Secrets are stored encrypted.
    pub encrypted: bool,
    pub total_secrets: usize,
    pub encrypted_count: usize,
    /// Number of secrets that could not be decrypted when they were needed.
    pub unreadable_count: usize,
    /// Source of the passphrase.
    pub passphrase: SecretsMode,
    /// The passphrase is lost: secrets can be neither used nor stored until it is set again.
    pub locked: bool,
}

impl EncryptionStatus {
    fn of(store: &Store) -> Self {
        let status = store.secrets_status();
        Self {
            encrypted: status.mode != SecretsMode::Plain,
            total_secrets: status.total,
            encrypted_count: status.sealed,
            unreadable_count: status.unreadable,
            passphrase: status.mode,
            locked: status.locked,
        }
    }
}

async fn status(cx: Cx, _: Req<()>) -> Result<EncryptionStatus, ApiError> {
    Ok(EncryptionStatus::of(&cx.open()?.store))
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct PassphraseRequest {
    /// Passphrase of 12 to 1024 characters.
    #[schemars(with = "String")]
    pub passphrase: Secret,
}

async fn set(cx: Cx, request: Req<PassphraseRequest>) -> Result<EncryptionStatus, ApiError> {
    let passphrase = request.input.passphrase;
    let mut problems = Problems::new();
    if !LENGTH.contains(&passphrase.expose().chars().count()) {
        problems.add(problem::code::RANGE, "passphrase", "It must have 12 to 1024 characters.");
    }
    if !problems.is_empty() {
        return Err(gateway_model::EditError::Invalid(problems).into());
    }
    let (store, ticket) = (cx.open()?.store.clone(), cx.ticket(SET));
    blocking(move || {
        store.set_passphrase(ticket, &passphrase).map_err(refused)?;
        Ok(EncryptionStatus::of(&store))
    })
    .await?
}

async fn clear(cx: Cx, _: Req<()>) -> Result<EncryptionStatus, ApiError> {
    let (store, ticket) = (cx.open()?.store.clone(), cx.ticket(CLEAR));
    blocking(move || {
        store.clear_passphrase(ticket).map_err(refused)?;
        Ok(EncryptionStatus::of(&store))
    })
    .await?
}

/// Maps the error of a rotation. The dispatcher writes the audit entry.
fn refused(error: RotateError) -> ApiError {
    match error {
        RotateError::Unreadable { places, ticket: _ } => {
            let message = format!("{} values cannot be decrypted; nothing was changed.", places.len());
            let places: Vec<String> = places.iter().map(reference).collect();
            ApiError::new(Code::SecretsRotationFailed, message).detail("secrets", places)
        }
        RotateError::Store(error) => error.into(),
    }
}
