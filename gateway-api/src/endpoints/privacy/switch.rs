//! Switches of single blocks, for a scope.

use gateway_model::kinds::privacy_class::WebRtc;
use gateway_model::kinds::{DeviceGroup, PrivacyClass};
use gateway_model::problem::code;
use gateway_model::settings::groups::{BlockScope, HostBlocks};
use gateway_model::{EditError, Id, Problems, Resource, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

pub(super) const DOC: &str = "Without `enabled` it toggles. Without a scope it is for all hosts. A scope names one of \
    `device_id`, `group` and `privacy_class`, by id or name. Blocks of scopes add up.";

/// Change of one block.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Switch {
    /// The new state; omitted to toggle.
    #[schemars(with = "bool")]
    pub enabled: Option<bool>,
    #[schemars(with = "SwitchScope")]
    pub scope: Option<SwitchScope>,
}

/// Change of the block of WebRTC.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct WebRtcSwitch {
    /// The new state: `block` or `off`; omitted to toggle.
    #[schemars(with = "bool")]
    pub enabled: Option<bool>,
    /// The new mode. It may not contradict `enabled`.
    #[schemars(with = "WebRtc")]
    pub mode: Option<WebRtc>,
    #[schemars(with = "SwitchScope")]
    pub scope: Option<SwitchScope>,
}

/// Hosts of a change: exactly one field.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct SwitchScope {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub device_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub privacy_class: Option<String>,
    /// All hosts; only true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub global: Option<bool>,
}

/// Result of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SwitchResult {
    /// True if the block is set for the scope now. A wider scope may set it, too.
    pub enabled: bool,
    /// All blocks of the scope after the change.
    pub blocks: HostBlocks,
    pub scope: SwitchScope,
}

pub(super) async fn force_dns(cx: Cx, request: Req<Switch>) -> Result<SwitchResult, ApiError> {
    let Switch { enabled, scope } = request.input;
    change(cx, scope, move |blocks| {
        blocks.force_dns = enabled.unwrap_or(!blocks.force_dns);
        blocks.force_dns
    })
    .await
}

pub(super) async fn block_doh(cx: Cx, request: Req<Switch>) -> Result<SwitchResult, ApiError> {
    let Switch { enabled, scope } = request.input;
    change(cx, scope, move |blocks| {
        // Clients that lose one kind of encrypted DNS try the next.
        blocks.block_doh = enabled.unwrap_or(!blocks.block_doh);
        blocks.block_dot = blocks.block_doh;
        blocks.block_doh
    })
    .await
}

pub(super) async fn block_ipv6(cx: Cx, request: Req<Switch>) -> Result<SwitchResult, ApiError> {
    let Switch { enabled, scope } = request.input;
    change(cx, scope, move |blocks| {
        blocks.block_ipv6 = enabled.unwrap_or(!blocks.block_ipv6);
        blocks.block_ipv6
    })
    .await
}

pub(super) async fn block_webrtc(cx: Cx, request: Req<WebRtcSwitch>) -> Result<SwitchResult, ApiError> {
    let WebRtcSwitch { enabled, mode, scope } = request.input;
    if let (Some(enabled), Some(mode)) = (enabled, mode)
        && enabled == (mode == WebRtc::Off)
    {
        let mut problems = Problems::new();
        problems.add(code::CONFLICT, "mode", "The mode contradicts `enabled`.");
        return Err(EditError::Invalid(problems).into());
    }
    change(cx, scope, move |blocks| {
        let is_set = enabled.unwrap_or(blocks.webrtc == WebRtc::Off);
        blocks.webrtc = mode.unwrap_or(if is_set { WebRtc::Block } else { WebRtc::Off });
        blocks.webrtc != WebRtc::Off
    })
    .await
}

/// Changes the blocks of a scope. `edit` returns whether the block is set.
async fn change(
    cx: Cx,
    scope: Option<SwitchScope>,
    edit: impl FnOnce(&mut HostBlocks) -> bool + Send + 'static,
) -> Result<SwitchResult, ApiError> {
    let scope = scope.unwrap_or_else(|| SwitchScope { global: Some(true), ..SwitchScope::default() });
    cx.commit(move |draft| {
        let at = resolve(draft, &scope)?;
        let mut blocks = draft.blocks_at(at);
        let enabled = edit(&mut blocks);
        draft.set_blocks_at(at, blocks)?;
        Ok(SwitchResult { enabled, blocks, scope })
    })
    .await
}

fn resolve(state: &State, scope: &SwitchScope) -> Result<BlockScope, EditError> {
    let mut problems = Problems::new();
    let mut scopes = Vec::new();
    let found = [
        find_device(state, &scope.device_id, &mut problems).map(BlockScope::Device),
        find::<DeviceGroup>(state, "scope.group", &scope.group, &mut problems).map(BlockScope::Group),
        find::<PrivacyClass>(state, "scope.privacy_class", &scope.privacy_class, &mut problems)
            .map(BlockScope::Class),
        (scope.global == Some(true)).then_some(BlockScope::All),
    ];
    scopes.extend(found.into_iter().flatten());
    if scope.global == Some(false) {
        problems.add(code::RANGE, "scope.global", "Only true; omit it for another scope.");
    }
    match scopes.as_slice() {
        [only] if problems.is_empty() => Ok(*only),
        _ => {
            if problems.is_empty() {
                problems.add(
                    code::REQUIRED,
                    "scope",
                    "Expected exactly one of device_id, group, privacy_class and global.",
                );
            }
            Err(EditError::Invalid(problems))
        }
    }
}

fn find_device(state: &State, id_or_name: &Option<String>, problems: &mut Problems) -> Option<Id> {
    match state.find_device(id_or_name.as_deref()?) {
        Ok(device) => Some(device.meta.id),
        Err(message) => {
            problems.add(code::UNKNOWN_REFERENCE, "scope.device_id", message);
            None
        }
    }
}

fn find<R: Resource>(
    state: &State,
    path: &str,
    id_or_name: &Option<String>,
    problems: &mut Problems,
) -> Option<Id> {
    let text = id_or_name.as_deref()?;
    let found = state.find::<R>(text).map(|row| row.meta().id);
    if found.is_none() {
        problems.add(code::UNKNOWN_REFERENCE, path, format!("No {} has this id or name.", R::NOUN));
    }
    found
}
