//! Dead-man switch, and wiping on request.

use gateway_ctl::services::deadman::Report;
use gateway_model::settings::group::GroupKind;
use gateway_model::settings::groups::{DeadmanSettings, WipeLevel};
use gateway_model::{EditError, Problems, problem};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Method, Table};
use crate::wipe::{self, AUDIT as WIPE};

const REPLACE: Audit = Audit { action: "replace_deadman", resource_type: "deadman" };
/// Fields of the response that are ignored in requests.
const READ_ONLY: [&str; 5] = ["last_checkin", "deadline", "warn_hours", "warned_percent", "clock_synced"];

pub(super) fn rows(t: &mut Table) {
    t.view("/system/deadman", "get_deadman", show).summary("Settings and state of the dead-man switch");
    let row = t.action("/system/deadman", REPLACE.action, Effect::Stores(REPLACE), replace);
    row.summary("Set the dead-man switch")
        .doc(
            "Every request by an administrator or an operator is a check-in. Time is counted by the clock that runs \
             since boot; after a boot the switch waits until the wall clock is synchronised. It warns at 50, 80 and \
             95 percent of the hours. enabled is required, so that no request disarms the switch by what it leaves out.",
        )
        .access(Access::Administer);
    row.method = Method::Put;
    row.requires_input();
    let row = t.action("/system/wipe", WIPE.action, Effect::Stores(WIPE), wipe);
    row.summary("Wipe the gateway")
        .doc(
            "soft: logs, the audit trail, sessions. medium: also all configuration, users and keys; a single policy \
             is left, which blocks. hard: everything in the state directory; the daemon ends, everything stays \
             blocked, and it does not start again before the file `wiped` is removed there.",
        )
        .access(Access::Administer);
    row.requires_input();
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DeadmanStatus {
    #[serde(flatten)]
    pub settings: DeadmanSettings,
    /// Time of the last check-in: the last request by an administrator or an operator.
    pub last_checkin: Option<Timestamp>,
    /// Time of the wipe if there is no further check-in; null if none is scheduled.
    pub deadline: Option<Timestamp>,
    /// Hours after the last check-in at which a warning is sent.
    pub warn_hours: Vec<f64>,
    /// Last warning since the last check-in, in percent of the time; null if there was none.
    pub warned_percent: Option<u8>,
    /// The wall clock was synchronised since boot. The switch does not wipe before.
    pub clock_synced: bool,
}

impl From<Report> for DeadmanStatus {
    fn from(report: Report) -> Self {
        let Report { settings, last_checkin, deadline, warn_hours, warned, clock_synced } = report;
        Self { settings, last_checkin, deadline, warn_hours, warned_percent: warned, clock_synced }
    }
}

async fn show(cx: Cx, _: Req<()>) -> Result<DeadmanStatus, ApiError> {
    Ok(cx.open()?.deadman.report()?.into())
}

/// Settings of the switch. Other fields of the response may be sent back and are ignored.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct DeadmanInput(#[schemars(with = "DeadmanSettings")] Map<String, Value>);

async fn replace(cx: Cx, request: Req<DeadmanInput>) -> Result<WithHeaders<DeadmanStatus>, ApiError> {
    let mut input = request.input.0;
    input.retain(|key, _| !READ_ONLY.contains(&key.as_str()));
    // A default would disarm the switch.
    if input.get("enabled").is_none_or(Value::is_null) {
        let mut problems = Problems::new();
        problems.required("enabled");
        return Err(EditError::Invalid(problems).into());
    }
    let group = GroupKind::find("deadman").expect("it is in the list of groups");
    let warnings = cx.commit(move |draft| group.put(draft, Value::Object(input))).await?;
    let mut answer = WithHeaders::new(DeadmanStatus::from(cx.open()?.deadman.report()?));
    answer.warnings = warnings;
    Ok(answer)
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct WipeRequest {
    #[schemars(with = "WipeLevel")]
    pub level: Option<WipeLevel>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WipeResult {
    pub level: WipeLevel,
    /// The daemon stops after this response, and all traffic stays blocked.
    pub ending: bool,
}

async fn wipe(cx: Cx, request: Req<WipeRequest>) -> Result<WipeResult, ApiError> {
    // Wiping destroys data, so the level has no default.
    let Some(level) = request.input.level else {
        let mut problems = Problems::new();
        problems.add(problem::code::REQUIRED, "level", "soft, medium or hard.");
        return Err(EditError::Invalid(problems).into());
    };
    wipe::wipe(cx.open()?, cx.ticket(WIPE), level).await?;
    Ok(WipeResult { level, ending: level == WipeLevel::Hard })
}
