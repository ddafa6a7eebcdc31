//! Decisions on the active uplink in words.

use std::collections::BTreeMap;

use gateway_core::facts::Facts;
use gateway_core::indexes::LegId;
use gateway_core::state_machines::wan_manager::{Decision, FAILBACK_DELAY, HOLD_DOWN, Reason};
use jiff::Timestamp;

use super::line::Line;
use crate::world::reports::uplinks::UplinkDecision;

/// Describes a decision with its evidence.
pub(super) fn describe(
    decision: &Decision,
    lines: &BTreeMap<String, Line>,
    facts: &Facts,
    applies: bool,
    time: Timestamp,
) -> UplinkDecision {
    let line = |number: Option<LegId>| lines.values().find(|line| Some(line.number) == number);
    let name = |number: Option<LegId>| line(number).map(|line| line.name().to_owned());
    let evidence = |number| line(number).map(|line| line.evidence(facts)).unwrap_or_default();
    let (from, to) = (name(decision.from), name(decision.to));
    let about = to.as_deref().or(from.as_deref()).unwrap_or("none").to_owned();
    let because = match decision.reason {
        Reason::First => format!("{about} is the first that works: {}", evidence(decision.to)),
        Reason::Failed(state) => {
            let from = from.as_deref().unwrap_or("none");
            format!("{from} is {state}: {}", evidence(decision.from))
        }
        Reason::Degraded => {
            format!("{} is degraded: {}", from.as_deref().unwrap_or("none"), evidence(decision.from))
        }
        Reason::Restored => format!("{about} comes first and works again: {}", evidence(decision.to)),
        Reason::HoldDown => {
            format!("{about} comes first; the last change was less than {} s ago", HOLD_DOWN.as_secs())
        }
        Reason::FailbackDelay => {
            format!("{about} comes first; it must work for {} s", FAILBACK_DELAY.as_secs())
        }
        Reason::NoneUsable => format!("no uplink works, so traffic stays: {}", evidence(decision.from)),
        Reason::Removed => "the active uplink is not configured any more".to_owned(),
    };
    let reason =
        if decision.made && !applies { format!("{because}; the manager only observes") } else { because };
    UplinkDecision {
        time,
        uplink: about,
        from,
        to,
        reason,
        applied: decision.made && applies,
        kernel_agrees_at: None,
    }
}
