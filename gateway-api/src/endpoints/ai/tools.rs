//! Tools that answers rest on: views of the API, read in this process with the rights of the caller.

use gateway_core::assistant::answer::{Tool, ToolCall};
use gateway_model::{Device, Kind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::in_process::call;
use super::names::find;
use crate::context::Cx;
use crate::error::ApiError;

const DEVICES: Kind = Kind::of::<Device>();
/// All but the unreserved characters of a URL (RFC 3986, section 2.3).
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Maximum number of rows that are quoted of a list.
const MAX_ROWS: usize = 20;

/// Quotation of a view that an answer rests on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Source {
    #[schemars(with = "String")]
    pub tool: Tool,
    /// Method and path of the API that show the whole, such as `GET /flows?limit=20`.
    pub link: String,
    /// Body of the request, for a POST; null without one.
    pub request: Option<Value>,
    /// Quoted part of the result; null if there is none.
    pub result: Value,
    /// Human-readable reason for which there is no result; null with one.
    pub error: Option<String>,
}

/// View of the API behind a tool.
struct View {
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    /// Fields that are quoted of each row or of the result.
    fields: &'static [&'static str],
    /// Field with the rows; empty if the result is the list, or one object.
    rows: &'static str,
}

/// Parameters of a request to a view.
#[derive(Default)]
struct Parameters {
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

const FLOW_FIELDS: &[&str] = &[
    "started_at",
    "client",
    "destination",
    "destination_port",
    "protocol",
    "names",
    "verdict",
    "reason",
    "policy",
    "egress",
    "sent",
    "received",
];
const DNS_FIELDS: &[&str] = &["time", "client", "question", "status", "reason", "list", "egress", "answers"];

impl View {
    const fn get(operation: &'static str, path: &'static str, fields: &'static [&'static str]) -> View {
        View { operation, method: "GET", path, fields, rows: "" }
    }

    const fn post(operation: &'static str, path: &'static str, fields: &'static [&'static str]) -> View {
        View { operation, method: "POST", path, fields, rows: "" }
    }

    const fn of(tool: Tool) -> View {
        match tool {
            Tool::Evaluate => View::post(
                "evaluate_policies",
                "/policy/evaluate",
                &["sentence", "decision", "effective", "hops", "pending_changes"],
            ),
            Tool::LeakMatrix => View {
                rows: "rows",
                ..View::get(
                    "get_leak_matrix",
                    "/policy/leak-matrix",
                    &["name", "fail_policy", "risk", "hosts"],
                )
            },
            Tool::Conflicts => View::post(
                "find_policy_conflicts",
                "/policy/conflicts",
                &["kind", "severity", "message", "names"],
            ),
            Tool::Flows => View::get("list_flows", "/flows", FLOW_FIELDS),
            Tool::DnsLog => View::get("list_dns_log", "/dns/log", DNS_FIELDS),
            Tool::Tunnels => View::get(
                "list_tunnels",
                "/tunnels",
                &["name", "type", "status", "healthy", "enabled", "last_error"],
            ),
        }
    }
}

/// Runs a tool. A failure is a part of the answer.
pub(super) async fn run(cx: &Cx, wanted: &ToolCall) -> Source {
    let view = View::of(wanted.tool);
    let parameters = match parameters(cx, wanted) {
        Ok(parameters) => parameters,
        Err(error) => {
            let error = Some(error.message);
            return Source {
                tool: wanted.tool,
                link: String::new(),
                request: None,
                result: Value::Null,
                error,
            };
        }
    };
    let query: String = parameters
        .query
        .iter()
        .enumerate()
        .map(|(index, (name, value))| {
            format!(
                "{}{name}={}",
                if index == 0 { "?" } else { "&" },
                utf8_percent_encode(value, QUERY_VALUE)
            )
        })
        .collect();
    let link = format!("{} {}{query}", view.method, view.path);
    let (result, error) = match call(cx, view.operation, &parameters.query, parameters.body.clone()).await {
        Ok(data) => (quoted(&view, data), None),
        Err(error) => (Value::Null, Some(error.message)),
    };
    Source { tool: wanted.tool, link, request: parameters.body, result, error }
}

fn parameters(cx: &Cx, wanted: &ToolCall) -> Result<Parameters, ApiError> {
    let device = device(cx, &wanted.device)?;
    let destination = Some(wanted.destination.trim()).filter(|destination| !destination.is_empty());
    Ok(match wanted.tool {
        Tool::Evaluate => {
            let device =
                device.ok_or_else(|| ApiError::bad_request("The tool needs the name of a device."))?;
            let mut body = json!({"device_id": device});
            if let Some(destination) = destination {
                body["destination"] = destination.into();
            }
            Parameters { body: Some(body), ..Parameters::default() }
        }
        Tool::Flows => limited(device.map(|device| ("device", device)), destination),
        Tool::DnsLog => limited(device.map(|device| ("client", device)), destination),
        Tool::LeakMatrix | Tool::Conflicts | Tool::Tunnels => Parameters::default(),
    })
}

/// Returns the parameters of a list, for a client and a destination.
fn limited(client: Option<(&'static str, String)>, destination: Option<&str>) -> Parameters {
    let destination = destination.map(|name| ("domain", name.to_owned()));
    let limit = ("limit", MAX_ROWS.to_string());
    Parameters { query: [limit].into_iter().chain(client).chain(destination).collect(), body: None }
}

/// Returns the id of the device with a name, an id or a MAC address; none for an empty text.
fn device(cx: &Cx, name: &str) -> Result<Option<String>, ApiError> {
    let name = name.trim();
    if name.is_empty() {
        return Ok(None);
    }
    let state = cx.open()?.store.current();
    let id = find(&DEVICES, &state, name);
    id.map(Some).ok_or_else(|| ApiError::not_found("device", name))
}

/// Returns the part of a result that is quoted.
fn quoted(view: &View, data: Value) -> Value {
    let data = match (view.rows, data) {
        ("", data) => data,
        (rows, mut data) => data[rows].take(),
    };
    let pick = |value: Value| match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(name, _)| view.fields.contains(&name.as_str()));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        other => other,
    };
    match data {
        Value::Array(rows) => Value::Array(rows.into_iter().take(MAX_ROWS).map(pick).collect()),
        other => pick(other),
    }
}
