//! Audit log, alerts with their rules and receivers.

use gateway_core::alerts::{Alert, AlertStatus};
use gateway_ctl::store::{AlertFilter, AuditEntry, AuditFilter, AuditResult, PageEnd};
use gateway_model::Id;
use gateway_model::kinds::AlertRule;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::{AlertEmail, AlertMqtt, AlertWebhook, Severity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::{Before, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Collection, Ops, Table};

mod receiver_tests;
mod requests;

pub(super) fn rows(t: &mut Table) {
    receiver_tests::rows(t);
    t.group::<AlertWebhook>("/alerts/webhook", "replace_alert_webhook", Access::Operate);
    t.group::<AlertMqtt>("/alerts/mqtt", "replace_alert_mqtt", Access::Operate);
    t.group::<AlertEmail>("/alerts/email", "replace_alert_email", Access::Operate);
    t.view("/audit", "list_audit", audit)
        .summary("Audit trail, newest first")
        .doc("Only administrators see which values changed in accounts and keys.")
        .query::<AuditQuery>();
    t.collection::<AlertRule>(Collection {
        path: "/alerts/rules",
        item: "/alerts/rules/{id}",
        actions: ["create_alert_rule", "replace_alert_rule", "delete_alert_rule"],
        ops: Ops::LIST | Ops::GET | Ops::REPLACE,
        live: None,
    });
    t.view("/alerts", "list_alerts", list)
        .summary("Alerts of the last 30 days, newest first")
        .doc("Open alerts stay as long as they last. A subject that flaps is one alert with a count. Consequences of another alert name it in `caused_by`.")
        .query::<AlertQuery>();
    t.view("/alerts/active", "list_active_alerts", list_active)
        .summary("Alerts that are not resolved, newest first")
        .doc("Includes those that are acknowledged, and those that are muted.");
    requests::rows(t);
    super::anomalies::rows(t);
}

/// Query of the alerts.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AlertQuery {
    /// Maximum number of alerts: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only alerts before this alert id or this time of the first occurrence (RFC 3339).
    before: Option<Before<u64>>,
    /// Only this kind.
    kind: Option<AlertKind>,
    /// Only alerts of this severity.
    severity: Option<Severity>,
    /// Only alerts in this state.
    status: Option<AlertStatus>,
    /// Only alerts about this device.
    device_id: Option<Id>,
    /// Only alerts about objects of this type, such as tunnel.
    resource_type: Option<String>,
    /// Only alerts about this object.
    resource_id: Option<String>,
}

async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<Alert>>, ApiError> {
    let AlertQuery { limit, before, kind, severity, status, device_id, resource_type, resource_id } =
        request.query.read()?;
    let filter = AlertFilter { kind, severity, status, device_id, resource_type, resource_id };
    let (store, alerts) = (cx.open()?.store.clone(), cx.open()?.alerts.clone());
    let read = blocking(move || {
        alerts.process();
        store.alerts(limit.get(), before.map(page_end), &filter)
    });
    let (list, total) = read.await??;
    let mut answer = WithHeaders::new(list);
    answer.total = Some(usize::try_from(total).unwrap_or(usize::MAX));
    Ok(answer)
}

async fn list_active(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Alert>>, ApiError> {
    let alerts = cx.open()?.alerts.clone();
    let open = blocking(move || {
        alerts.process();
        alerts.open_alerts()
    });
    let mut list = open.await?;
    list.reverse();
    Ok(WithHeaders::counted(list))
}

fn page_end(before: Before<u64>) -> PageEnd {
    match before {
        Before::Id(id) => PageEnd::Id(id),
        Before::Time(time) => PageEnd::Time(time),
    }
}

/// Query of the audit trail.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AuditQuery {
    /// Maximum number of entries: 1 to 500, default 50.
    limit: Limit<50, 500>,
    /// Only entries before this entry id or this time (RFC 3339).
    before: Option<Before<u64>>,
    /// Only entries of this actor.
    actor: Option<String>,
    /// Only this action, such as create_device.
    action: Option<String>,
    /// Only this type, such as device.
    resource_type: Option<String>,
    /// Only this object.
    resource_id: Option<String>,
    /// Only this request.
    request_id: Option<String>,
    /// Only entries with this outcome.
    result: Option<AuditResult>,
}

async fn audit(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<AuditEntry>>, ApiError> {
    let AuditQuery { limit, before, actor, action, resource_type, resource_id, request_id, result } =
        request.query.read()?;
    let before = before.map(page_end);
    let filter = AuditFilter { actor, action, resource_type, resource_id, request_id, result };
    let store = cx.open()?.store.clone();
    let (mut entries, total) = blocking(move || store.audit(limit.get(), before, &filter)).await??;
    if cx.require(Access::Administer).is_err() {
        entries.iter_mut().for_each(hide_accounts);
    }
    let mut answer = WithHeaders::new(entries);
    answer.total = Some(usize::try_from(total).unwrap_or(usize::MAX));
    Ok(answer)
}

/// Removes the values of accounts and keys, which only administrators may read.
fn hide_accounts(entry: &mut AuditEntry) {
    let changes = entry.details.get_mut("changes").and_then(Value::as_array_mut);
    for change in changes.into_iter().flatten().filter_map(Value::as_object_mut) {
        let kind = change.get("type").and_then(Value::as_str).and_then(gateway_model::registry::kind);
        if kind.is_some_and(|kind| !kind.exported) {
            change.shift_remove("diff");
        }
    }
}
