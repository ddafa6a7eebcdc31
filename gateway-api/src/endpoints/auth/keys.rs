//! API keys. A key is shown once, when it is created.

use gateway_model::kinds::ApiKey;
use gateway_model::validated::Cidr;
use gateway_model::{Deleted, Id, Problems, Resource, Role};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::objects::{find, made, remove};
use crate::auth::api_key;
use crate::authorization::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    let stores = |action| Effect::Stores(Audit { action, resource_type: ApiKey::NOUN });
    t.view("/auth/keys", "list_api_keys", list)
        .summary("List the API keys, without their key texts")
        .doc("Keys of the configuration file are not listed.")
        .access(Access::Administer);
    t.action("/auth/keys", "create_api_key", stores("create_api_key"), create)
        .summary("Create an API key")
        .doc("Only this response shows the key. Send it as Authorization: Bearer <key>.")
        .access(Access::Administer)
        .status(201);
    t.view("/auth/keys/{id}", "get_api_key", get).summary("One API key").access(Access::Administer);
    t.erase("/auth/keys/{id}", "delete_api_key", stores("delete_api_key"), delete)
        .summary("Revoke an API key")
        .doc("The key is rejected from the next request on.")
        .access(Access::Administer);
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct KeyInput {
    name: String,
    /// Role: admin, operator, viewer or diagnostics. Required.
    role: Option<Role>,
    /// Time from which the key is invalid; null: it does not expire.
    expires_at: Option<Timestamp>,
    /// Source networks in CIDR notation from which the key is accepted; empty: all.
    cidrs: Vec<Cidr>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct KeyView {
    id: Id,
    created_at: Timestamp,
    updated_at: Timestamp,
    revision: gateway_model::Revision,
    name: String,
    /// Role: admin, operator, viewer or diagnostics.
    role: Role,
    /// Public part of the key, between its underscores.
    prefix: String,
    expires_at: Option<Timestamp>,
    expired: bool,
    cidrs: Vec<Cidr>,
    created_by: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CreatedKey {
    #[serde(flatten)]
    shown: KeyView,
    /// The key. Only this response contains it.
    key: String,
}

fn show(key: &ApiKey, now: Timestamp) -> KeyView {
    KeyView {
        id: key.meta.id,
        created_at: key.meta.created_at,
        updated_at: key.meta.updated_at,
        revision: key.meta.revision,
        name: key.name.clone(),
        role: key.role,
        prefix: key.prefix.clone(),
        expires_at: key.expires_at,
        expired: key.is_expired(now),
        cidrs: key.cidrs.clone(),
        created_by: key.created_by.clone(),
    }
}

async fn list(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<KeyView>>, ApiError> {
    let open = cx.open()?;
    let (state, now) = (open.store.current(), open.now());
    Ok(WithHeaders::counted(state.api_keys.iter().map(|key| show(key, now)).collect()))
}

async fn get(cx: Cx, request: Req<()>) -> Result<KeyView, ApiError> {
    let open = cx.open()?;
    Ok(show(find::<ApiKey>(&open.store.current(), request.params.get("id"))?.as_ref(), open.now()))
}

async fn create(cx: Cx, request: Req<KeyInput>) -> Result<WithHeaders<CreatedKey>, ApiError> {
    let KeyInput { name, role, expires_at, cidrs } = request.input;
    let fresh = api_key::generate()?;
    let row = ApiKey {
        name,
        role: role.unwrap_or(Role::Viewer),
        prefix: fresh.prefix,
        key_hash: fresh.hash,
        expires_at,
        cidrs,
        created_by: cx.actor.name.clone(),
        ..ApiKey::default()
    };
    let key = cx
        .commit(move |draft| {
            if role.is_none() {
                let mut problems = Problems::new();
                problems.required("role");
                row.validate(draft, &mut problems);
                return Err(gateway_model::EditError::Invalid(problems));
            }
            draft.create(row).map(|(key, _)| key)
        })
        .await?;
    let location = format!("/auth/keys/{}", key.meta.id);
    let shown = show(&key, cx.open()?.now());
    Ok(made(CreatedKey { shown, key: fresh.text.expose().to_owned() }, location))
}

async fn delete(cx: Cx, request: Req<()>) -> Result<Deleted, ApiError> {
    remove::<ApiKey>(&cx, request.params.get("id")).await
}
