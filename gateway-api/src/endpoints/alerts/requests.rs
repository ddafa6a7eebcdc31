//! Requests about one alert: acknowledge, resolve, mute.

use gateway_core::alerts::{Alert, AlertStatus, MAX_MUTE};
use gateway_ctl::services::alerts::{Alerts, RequestError};
use gateway_model::problem::{Problems, code};
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::{Params, Req};
use crate::table::{Audit, Effect, Table};

const NOUN: &str = "alert";

pub(super) fn rows(t: &mut Table) {
    let acts = |action| Effect::Acts(Audit { action, resource_type: NOUN });
    t.command("/alerts/{id}/acknowledge", "acknowledge_alert", acts("acknowledge_alert"), acknowledge)
        .summary("Acknowledge an active alert")
        .doc("It lasts until its condition ends.")
        .answers(&[Code::InvalidState]);
    t.command("/alerts/{id}/resolve", "resolve_alert", acts("resolve_alert"), resolve)
        .summary("Resolve an alert")
        .doc("If its condition still holds after the cooldown of its rule, it is raised again as another alert.")
        .answers(&[Code::InvalidState]);
    let endpoint = t.action("/alerts/{id}/mute", "mute_alert", acts("mute_alert"), mute);
    endpoint
        .summary("Mute an open alert for a time")
        .doc(
            "Receivers are not notified of it, nor of another alert of the same kind and subject in that time. It stays in all lists, \
             with `muted_until`. If it lasts longer, it is sent when the time is over. A second mute replaces the first. The end of an \
             alert goes to receivers that got its beginning, also while it is muted.",
        )
        .answers(&[Code::InvalidState]);
    endpoint.requires_input();
    t.command("/alerts/{id}/unmute", "unmute_alert", acts("unmute_alert"), unmute)
        .summary("Lift the mute of an alert")
        .doc("An alert that lasts is sent again.")
        .answers(&[Code::InvalidState]);
}

/// Time of a mute.
#[derive(Debug, Deserialize, JsonSchema)]
struct MuteRequest {
    /// Seconds, 1 to 2592000 (30 days).
    #[schemars(range(min = 1, max = 2_592_000))]
    duration_sec: u64,
}

impl MuteRequest {
    fn time(&self) -> Result<SignedDuration, ApiError> {
        let time =
            i64::try_from(self.duration_sec).map(SignedDuration::from_secs).unwrap_or(SignedDuration::MAX);
        if self.duration_sec == 0 || time > MAX_MUTE {
            let mut problems = Problems::new();
            let message = format!("Expected 1 to {} seconds.", MAX_MUTE.as_secs());
            problems.add(code::RANGE, "duration_sec", message);
            return Err(ApiError::validation(&problems));
        }
        Ok(time)
    }
}

async fn acknowledge(cx: Cx, request: Req<()>) -> Result<Alert, ApiError> {
    change(cx, request.params, "acknowledge", |alerts, id, by| alerts.acknowledge(id, by)).await
}

async fn resolve(cx: Cx, request: Req<()>) -> Result<Alert, ApiError> {
    change(cx, request.params, "resolve", |alerts, id, by| alerts.resolve(id, by)).await
}

async fn mute(cx: Cx, request: Req<MuteRequest>) -> Result<Alert, ApiError> {
    let time = request.input.time()?;
    change(cx, request.params, "mute", move |alerts, id, by| alerts.mute(id, time, by)).await
}

async fn unmute(cx: Cx, request: Req<()>) -> Result<Alert, ApiError> {
    change(cx, request.params, "unmute", |alerts, id, _| alerts.unmute(id)).await
}

/// Changes the state of the alert in the path.
async fn change(
    cx: Cx,
    params: Params,
    verb: &'static str,
    act: impl FnOnce(&Alerts, u64, &str) -> Result<Alert, RequestError> + Send + 'static,
) -> Result<Alert, ApiError> {
    let text = params.get("id").to_owned();
    let id: u64 = text.parse().map_err(|_| ApiError::not_found(NOUN, &text))?;
    let (alerts, by) = (cx.open()?.alerts.clone(), cx.actor.name.clone());
    let changed = blocking(move || act(&alerts, id, &by)).await?;
    changed.map_err(|error| match error {
        RequestError::NotFound => ApiError::not_found(NOUN, &text),
        RequestError::State(status) => {
            let message = format!("Cannot {verb} the alert: it is {}.", status.as_str());
            ApiError::new(Code::InvalidState, message)
                .detail("state", status.as_str())
                .detail("allowed", allowed_after(status))
        }
        RequestError::NotMuted => {
            ApiError::new(Code::InvalidState, format!("Cannot {verb} the alert: it is not muted."))
                .detail("state", "not_muted")
                .detail("allowed", vec!["mute"])
        }
        RequestError::Store(error) => error.into(),
    })
}

/// Returns the requests that a state allows.
fn allowed_after(status: AlertStatus) -> Vec<&'static str> {
    match status {
        AlertStatus::Active => vec!["acknowledge", "resolve", "mute"],
        AlertStatus::Acknowledged => vec!["resolve", "mute"],
        AlertStatus::Resolved => Vec::new(),
    }
}
