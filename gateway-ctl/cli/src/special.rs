//! Commands that one call cannot do.

use clap::ArgMatches;
use gateway_model::{Id, MacAddr};
use serde_json::{Map, Value, json};

use crate::bundle;
use crate::client::{Answer, Client};
use crate::command_line::{value, values};
use crate::completion;
use crate::failure::{Failure, Refusal};
use crate::grammar::{Method, Special};
use crate::request::find;

/// Runs a special command. Some need no client, so it is created on demand.
pub(crate) fn run(special: Special, arguments: &ArgMatches) -> Result<Answer, Failure> {
    match special {
        Special::Version => version(&Client::from_environment()?),
        Special::Verify => verify(&Client::from_environment()?),
        Special::Evaluate => {
            let client = Client::from_environment()?;
            let body = evaluated(&client, value(arguments, "device"), value(arguments, "flow"))?;
            evaluate(&client, &body)
        }
        Special::Block => block(&Client::from_environment()?, &values(arguments, "domain")),
        Special::Unblock => unblock(&Client::from_environment()?, &values(arguments, "domain")),
        Special::ClearSecret => {
            clear_secret(&Client::from_environment()?, value(arguments, "secret").unwrap_or_default())
        }
        Special::Bundle => bundle::run(&Client::from_environment()?, value(arguments, "file")),
        Special::Completion => {
            let shell = value(arguments, "shell").unwrap_or_default();
            Ok(data(completion::script(shell).into()))
        }
    }
}

fn data(data: Value) -> Answer {
    Answer { data, warnings: Vec::new(), total: None }
}

fn version(client: &Client) -> Result<Answer, Failure> {
    let server = match client.get("/version") {
        Ok(answer) => answer.data,
        Err(Failure::Unreachable { .. }) => Value::Null,
        Err(failure) => return Err(failure),
    };
    Ok(data(json!({"client": {"version": env!("CARGO_PKG_VERSION")}, "server": server})))
}

/// Name, path and test of an API view.
type Check = (&'static str, &'static str, fn(&Value) -> (bool, String));

const CHECKS: &[Check] = &[
    ("health", "/health", healthy),
    ("subsystems", "/observer", subsystems_stand),
    ("drift", "/drift", drift_is_repaired),
    ("leaks", "/policy/leak-matrix", nothing_leaks),
    ("enforcement", "/enforce", enforced),
    ("plan", "/verify", plan_is_installed),
];

/// Runs all checks. A view that the gateway refuses is a failed check; only an unreachable gateway ends the command.
fn verify(client: &Client) -> Result<Answer, Failure> {
    let mut checks = Vec::new();
    for (name, path, check) in CHECKS {
        let (ok, detail) = match client.get(path) {
            Ok(answer) => check(&answer.data),
            Err(Failure::Refused(refusal)) => (false, describe(&refusal)),
            Err(failure) => return Err(failure),
        };
        checks.push((ok, json!({"name": name, "ok": ok, "detail": detail})));
    }
    let ok = checks.iter().all(|(ok, _)| *ok);
    let checks: Vec<Value> = checks.into_iter().map(|(_, check)| check).collect();
    Ok(data(json!({"ok": ok, "checks": checks})))
}

fn describe(refusal: &Refusal) -> String {
    format!("{} ({} {})", refusal.sentence(), refusal.status, refusal.code)
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn healthy(health: &Value) -> (bool, String) {
    let (status, reason) = (word(health, "status"), word(health, "reason"));
    let detail = if reason.is_empty() { status.to_owned() } else { format!("{status}: {reason}") };
    (status == "ok", detail)
}

fn subsystems_stand(observer: &Value) -> (bool, String) {
    let bad: Vec<String> = list(observer)
        .iter()
        .filter(|subsystem| match word(subsystem, "state") {
            "ok" | "disabled" => false,
            // A function that works partially, which has a code, is no fault of the plan.
            "degraded" | "unknown" => subsystem["code"].is_null(),
            _ => true,
        })
        .map(|subsystem| {
            let parts = ["subsystem", "state", "message"].map(|name| word(subsystem, name));
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
        })
        .collect();
    let detail = if bad.is_empty() { "all stand as wanted".to_owned() } else { bad.join("; ") };
    (bad.is_empty(), detail)
}

fn drift_is_repaired(drift: &Value) -> (bool, String) {
    let all = list(drift);
    let open: Vec<&str> =
        all.iter().filter(|item| item["repaired"] != true).map(|item| word(item, "resource")).collect();
    let detail = match (all.len(), open.len()) {
        (0, _) => "none".to_owned(),
        (count, 0) => format!("{count}, all repaired"),
        (..) => format!("not repaired: {}", open.join(", ")),
    };
    (open.is_empty(), detail)
}

fn nothing_leaks(matrix: &Value) -> (bool, String) {
    let risk = word(matrix, "risk");
    let bad: Vec<&str> = list(&matrix["rows"])
        .iter()
        .filter(|row| word(row, "risk") == "high")
        .map(|row| word(row, "name"))
        .collect();
    let detail =
        if bad.is_empty() { format!("risk {risk}") } else { format!("risk {risk}: {}", bad.join(", ")) };
    // Low risk: traffic leaks only where a policy allows it.
    (matches!(risk, "none" | "low"), detail)
}

fn enforced(enforce: &Value) -> (bool, String) {
    let places = list(&enforce["attach"]);
    let missing: Vec<&str> = places
        .iter()
        .filter(|place| place["present"] != true)
        .map(|place| word(place, "interface"))
        .collect();
    let policies = list(&enforce["policies"]).len();
    let detail = match missing.as_slice() {
        [] => format!(
            "{} at {}",
            counted(policies, "policy", "policies"),
            counted(places.len(), "interface", "interfaces")
        ),
        missing => format!("missing interfaces: {}", missing.join(", ")),
    };
    (missing.is_empty(), detail)
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Tests the gateway's own check of the installed plan. Checks that could not run do not fail it.
fn plan_is_installed(own: &Value) -> (bool, String) {
    let bad: Vec<String> = list(&own["checks"])
        .iter()
        .filter(|check| check["ok"] == false)
        .map(|check| format!("{}: {}", word(check, "name"), word(check, "detail")))
        .collect();
    let detail = if bad.is_empty() { "installed as wanted".to_owned() } else { bad.join("; ") };
    (own["ok"] == true, detail)
}

/// Returns the request for a device or a flow.
fn evaluated(client: &Client, device: Option<&str>, flow: Option<&str>) -> Result<Value, Failure> {
    let device = match (device, flow) {
        (None, Some(flow)) => return Ok(json!({"flow_id": flow})),
        (Some(device), None) => device,
        (Some(_), Some(_)) | (None, None) => {
            return Err(Failure::usage("Give a device, or a flow by --flow."));
        }
    };
    if let Ok(mac) = device.parse::<MacAddr>() {
        return Ok(json!({"mac": mac.to_string()}));
    }
    if device.parse::<Id>().is_ok() {
        return Ok(json!({"device_id": device}));
    }
    let devices = client.get("/devices")?.data;
    match find(list(&devices), device)? {
        Some(found) => Ok(json!({"device_id": found["id"]})),
        None => Err(absent(client, Method::Post, "/policy/evaluate", "device", device)),
    }
}

fn evaluate(client: &Client, body: &Value) -> Result<Answer, Failure> {
    let mut answer = client.call(Method::Post, "/policy/evaluate", Some(&body.to_string()))?;
    if let Some(fields) = answer.data.as_object_mut()
        && let Some(sentence) = fields.remove("sentence")
    {
        // The most important field comes first.
        let mut ordered = Map::from_iter([("sentence".to_owned(), sentence)]);
        ordered.append(fields);
        *fields = ordered;
    }
    Ok(answer)
}

/// Returns the same failure as a 404 response of the gateway.
pub(crate) fn absent(client: &Client, method: Method, path: &str, noun: &str, name: &str) -> Failure {
    Refusal {
        method,
        url: client.address.url(path),
        had_body: false,
        status: 404,
        code: "not_found".to_owned(),
        message: format!("There is no {noun} {name:?}."),
        details: Map::new(),
        retry_after: None,
    }
    .into()
}

fn block(client: &Client, domains: &[&str]) -> Result<Answer, Failure> {
    client.call(Method::Post, "/dns/blocklist", Some(&json!({"domains": domains}).to_string()))
}

/// Unblocks domains. A domain that is not on the list is no failure, because the result is the same.
fn unblock(client: &Client, domains: &[&str]) -> Result<Answer, Failure> {
    client.call(Method::Delete, "/dns/blocklist", Some(&json!({"domains": domains}).to_string()))
}

/// Clears a secret of a receiver of alerts, such as `webhook.token`. All else stays as it is.
fn clear_secret(client: &Client, secret: &str) -> Result<Answer, Failure> {
    let (receiver, field) = secret.split_once('.').unwrap_or((secret, ""));
    let path = format!("/alerts/{receiver}");
    let mut settings = client.get(&path)?.data;
    settings[field] = Value::Null;
    client.call(Method::Put, &path, Some(&settings.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_daemon_is_not_healthy() {
        assert_eq!(healthy(&json!({"status": "ok"})), (true, "ok".to_owned()));
        let blocked = healthy(&json!({"status": "blocked", "reason": "the store is damaged"}));
        assert_eq!(blocked, (false, "blocked: the store is damaged".to_owned()));
        assert!(!healthy(&json!({})).0);
    }

    #[test]
    fn a_failed_subsystem_is_named() {
        let observer = json!([
            {"subsystem": "routes", "state": "ok"},
            {"subsystem": "nft", "state": "failed", "message": "no nft"},
        ]);
        assert_eq!(subsystems_stand(&observer), (false, "nft: failed: no nft".to_owned()));
    }

    #[test]
    fn only_present_drift_counts() {
        assert_eq!(drift_is_repaired(&json!([])), (true, "none".to_owned()));
        assert!(drift_is_repaired(&json!([{"resource": "r", "repaired": true}])).0);
        assert!(!drift_is_repaired(&json!([{"resource": "r", "repaired": false}])).0);
    }

    #[test]
    fn the_gateways_own_test_counts() {
        let good = json!({"ok": true, "checks": [{"name": "hash", "ok": null, "detail": "no kernel"}]});
        assert_eq!(plan_is_installed(&good), (true, "installed as wanted".to_owned()));
        let bad = json!({"ok": false, "checks": [{"name": "hash", "ok": false, "detail": "another plan"}]});
        assert_eq!(plan_is_installed(&bad), (false, "hash: another plan".to_owned()));
    }

    #[test]
    fn an_unknown_risk_is_not_taken_for_none() {
        assert!(nothing_leaks(&json!({"risk": "low", "rows": []})).0);
        assert!(!nothing_leaks(&json!({"rows": []})).0);
        let high = json!({"risk": "high", "rows": [{"name": "tv", "risk": "high"}]});
        assert_eq!(nothing_leaks(&high), (false, "risk high: tv".to_owned()));
    }
}
