//! Audit log and alert rules, and the alert and anomaly endpoints that this version does not implement.

use gateway_ctl::store::{AuditEntry, AuditFilter, AuditResult, PageEnd};
use gateway_model::capability::Capability;
use gateway_model::kinds::AlertRule;
use gateway_model::settings::groups::AlertWebhook;
use serde_json::Value;

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::{Query, Req};
use crate::table::Method::{Get, Post};
use crate::table::{Collection, Ops, Placeholder, Table};

pub fn rows(t: &mut Table) {
    t.group::<AlertWebhook>("/alerts/webhook", "replace_alert_webhook", Access::Operate);
    t.view("/audit", "list_audit", audit)
        .summary("Audit trail, newest first")
        .doc("Only administrators see which values changed in accounts and keys.")
        .parameter("limit", Placeholder::Integer, "Maximum number of entries: 1 to 500, default 50.")
        .parameter("before", Placeholder::Text, "Only entries before this entry id or this time (RFC 3339).")
        .parameter("actor", Placeholder::Text, "Only entries of this actor.")
        .parameter("action", Placeholder::Text, "Only this action, such as create_device.")
        .parameter("resource_type", Placeholder::Text, "Only this type, such as device.")
        .parameter("resource_id", Placeholder::Text, "Only this object.")
        .parameter("request_id", Placeholder::Text, "Only this request.")
        .parameter("result", Placeholder::Text, "success, denied or failed.");
    t.collection::<AlertRule>(Collection {
        path: "/alerts/rules",
        item: "/alerts/rules/{id}",
        actions: ["create_alert_rule", "replace_alert_rule", "delete_alert_rule"],
        ops: Ops::LIST | Ops::GET | Ops::REPLACE,
        live: None,
    });
    t.unsupported(
        Capability::Alerts,
        &[
            (Get, "/alerts"),
            (Get, "/alerts/active"),
            (Post, "/alerts/{id}/acknowledge"),
            (Post, "/alerts/{id}/resolve"),
            (Post, "/alerts/webhook/test"),
            (Get, "/anomalies"),
            (Get, "/anomalies/stats"),
        ],
    );
}

async fn audit(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<AuditEntry>>, ApiError> {
    let query = &request.query;
    let limit = query.limit(50, 500)?;
    let before = query.get("before").map(before).transpose()?;
    let filter = filter(query)?;
    let store = cx.open()?.store.clone();
    let (mut entries, total) = blocking(move || store.audit(limit, before, &filter)).await??;
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

fn before(text: &str) -> Result<PageEnd, ApiError> {
    if let Ok(id) = text.parse() {
        return Ok(PageEnd::Id(id));
    }
    text.parse().map(PageEnd::Time).map_err(|_| {
        ApiError::invalid_parameter(
            "before",
            "before is the id of an entry or a time such as 2026-11-20T12:00:00Z.",
        )
    })
}

fn filter(query: &Query) -> Result<AuditFilter, ApiError> {
    let text = |name: &str| query.get(name).map(str::to_owned);
    let result = match query.get("result") {
        None => None,
        Some("success") => Some(AuditResult::Success),
        Some("denied") => Some(AuditResult::Denied),
        Some("failed") => Some(AuditResult::Failed),
        Some(_) => return Err(ApiError::invalid_parameter("result", "result is success, denied or failed.")),
    };
    Ok(AuditFilter {
        actor: text("actor"),
        action: text("action"),
        resource_type: text("resource_type"),
        resource_id: text("resource_id"),
        request_id: text("request_id"),
        result,
    })
}
