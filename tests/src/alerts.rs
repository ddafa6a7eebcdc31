//! Alerts of a running daemon: waiting for one, for its end, and changes of its rule.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::daemon::Api;
use crate::wait::wait_ok;

/// Returns the open alert of a kind about a subject that begins with this text.
pub fn open_alert(api: &Api, kind: &str, subject: &str) -> Result<Value> {
    let all = api.get("/alerts/active")?;
    let found = all.as_array().into_iter().flatten().find(|alert| {
        alert["kind"] == kind && alert["subject"].as_str().is_some_and(|text| text.starts_with(subject))
    });
    found.cloned().with_context(|| all.to_string())
}

pub fn wait_for_alert(api: &Api, kind: &str, subject: &str, within: Duration) -> Result<Value> {
    wait_ok(within, kind, || open_alert(api, kind, subject))
}

/// Waits until an alert is resolved, by itself. Returns it as it is then.
pub fn wait_for_end(api: &Api, alert: &Value, within: Duration) -> Result<Value> {
    wait_ok(within, "the alert to end", || {
        let resolved = api.get("/alerts?status=resolved&limit=1000")?;
        let found = resolved.as_array().into_iter().flatten().find(|one| one["id"] == alert["id"]);
        let found = found.with_context(|| format!("{} is open: {}", alert["id"], alert["kind"]))?;
        ensure!(found["auto_resolved"] == true, "{found}");
        Ok(found.clone())
    })
}

/// Changes fields of the rule of a kind.
pub fn set_rule(api: &Api, kind: &str, change: &Value) -> Result<()> {
    let path = format!("/alerts/rules/{kind}");
    let rules = api.get("/alerts/rules")?;
    let rule = rules.as_array().into_iter().flatten().find(|rule| rule["kind"] == kind);
    let mut rule = rule.with_context(|| format!("no rule for {kind}"))?.clone();
    for (field, value) in change.as_object().context("an object of fields")? {
        rule[field] = value.clone();
    }
    api.put(&path, &rule).map(drop)
}
