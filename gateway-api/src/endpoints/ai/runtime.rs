//! Local server of language models, as a unit of systemd.

use gateway_ctl::os::required_programs::Unit;
use gateway_ctl::os::systemd_unit::{self, UnitError, UnitOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

/// Unit of Ollama's own package. Another one is not started: the API gives no access to arbitrary units.
pub(super) const UNIT: &str = "ollama.service";

const ACTION: &str = "control_ai_service";

pub(super) fn rows(t: &mut Table) {
    let effect = Effect::Acts(Audit { action: ACTION, resource_type: "ai_service" });
    t.action("/ai/service", ACTION, effect, control)
        .summary("Start or stop the local server of language models")
        .doc("Acts on the systemd unit ollama.service.")
        .answers(&[Code::NotSupported, Code::DependencyFailed])
        .requires_input();
}

/// systemd unit of the local server of language models.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RuntimeUnit {
    pub unit: &'static str,
    pub installed: bool,
    pub enabled: bool,
    pub running: bool,
}

impl RuntimeUnit {
    pub(super) fn of(unit: Unit) -> RuntimeUnit {
        let Unit { installed, enabled, running } = unit;
        RuntimeUnit { unit: UNIT, installed, enabled, running }
    }
}

/// Order for the local server.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RuntimeAction {
    Start,
    Stop,
}

/// Request to the local server.
#[derive(Debug, Deserialize, JsonSchema)]
struct RuntimeInput {
    action: RuntimeAction,
}

/// State of the local server after the order.
#[derive(Debug, Serialize, JsonSchema)]
struct RuntimeResult {
    service: RuntimeUnit,
}

async fn control(_: Cx, request: Req<RuntimeInput>) -> Result<WithHeaders<RuntimeResult>, ApiError> {
    let order = match request.input.action {
        RuntimeAction::Start => UnitOrder::Start,
        RuntimeAction::Stop => UnitOrder::Stop,
    };
    let unit = blocking(move || systemd_unit::control(UNIT, order)).await?.map_err(refused)?;
    let mut answer = WithHeaders::new(RuntimeResult { service: RuntimeUnit::of(unit) });
    answer.subject = Some(UNIT.to_owned());
    Ok(answer)
}

fn refused(error: UnitError) -> ApiError {
    match error {
        UnitError::NoSystemd => ApiError::not_supported("systemd, which does not run on this host"),
        UnitError::NotInstalled(unit) => {
            ApiError::not_supported(&format!("the unit {unit}, which is not installed"))
        }
        UnitError::Refused(_) => {
            ApiError::new(Code::DependencyFailed, format!("{error}.")).detail("dependency", UNIT)
        }
    }
}
