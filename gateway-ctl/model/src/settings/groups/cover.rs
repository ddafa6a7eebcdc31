//! Cover traffic of the WireGuard tunnels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    /// State machine of the daemon that schedules cover packets.
    pub enum CoverMachine {
        /// A few packets soon after a silence ends: the first packets of a page are not alone.
        Front = "front",
        /// A few packets in the gaps of traffic: where it pauses and ends is blurred.
        Tail = "tail",
        /// A packet now and then when traffic has ended: silence does not begin at once.
        Idle = "idle",
    }
}

/// Cover packets among payload packets, sent by this end only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "CoverTraffic")]
pub struct CoverSettings {
    pub enabled: bool,
    /// Maximum cover traffic in percent of the payload bytes sent, plus a few dozen bytes a second: 1 to 50.
    #[schemars(range(min = 1, max = 50))]
    pub budget_pct: u64,
    /// At least one.
    pub machines: Vec<CoverMachine>,
}

impl Default for CoverSettings {
    fn default() -> Self {
        let machines = vec![CoverMachine::Front, CoverMachine::Tail, CoverMachine::Idle];
        Self { enabled: false, budget_pct: 10, machines }
    }
}

impl Group for CoverSettings {
    const KEY: &'static str = "splitting.cover";
    const NOUN: &'static str = "splitting_cover";

    fn validate(&self, _: &State, problems: &mut Problems) {
        check_range("budget_pct", self.budget_pct, 1..=50, problems);
        if self.machines.is_empty() {
            problems.add(code::RANGE, "machines", "Name at least one; enabled: false turns cover off.");
        }
        for (index, machine) in self.machines.iter().enumerate() {
            if self.machines[..index].contains(machine) {
                let message = format!("{machine} is named twice.");
                problems.add(code::DUPLICATE, format!("machines[{index}]"), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::edit::EditError;
    use crate::settings::group::GroupKind;

    #[test]
    fn cover_is_off_with_a_budget_of_a_tenth_by_default() {
        let settings: CoverSettings = State::default().group();
        assert_eq!((settings.enabled, settings.budget_pct, settings.machines.len()), (false, 10, 3));
    }

    #[test]
    fn a_budget_beyond_half_and_machines_that_are_none_or_double_are_refused() {
        let group = GroupKind::find("splitting.cover").unwrap();
        for (input, path) in [
            (json!({"budget_pct": 0}), "budget_pct"),
            (json!({"budget_pct": 51}), "budget_pct"),
            (json!({"machines": []}), "machines"),
            (json!({"machines": ["tail", "tail"]}), "machines[1]"),
            (json!({"machines": ["loud"]}), "machines[0]"),
        ] {
            let mut draft = State::default().begin("2026-11-22T12:00:00Z".parse().unwrap());
            let EditError::Invalid(problems) = group.put(&mut draft, input.clone()).unwrap_err() else {
                panic!("not a validation error")
            };
            assert!(problems.has(path), "{input}: {problems}");
        }
    }
}
