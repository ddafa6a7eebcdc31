//! Health of functions: checks, each with a state, a code with parameters, a sentence and a remedy.
//!
//! `/health`, `/observer`, the verdict, the metrics, the log and `gatewayd preflight` all show these checks. A check is
//! about what a client of the gateway gets, not about a process that runs.
//!
//! A resolver without an upstream was well beside hosts without names, as long as its process ran. `status` of
//! `/health` stays about the daemon, with HTTP 200: a service manager must not restart a gateway because its provider
//! fails; `?full=true` answers 503 for monitors. Callers without the right to read get names and states only.

mod code;
mod findings;
mod history;

use std::collections::BTreeMap;

pub use code::Code;
pub use findings::{Level, PortHolder, PortUse, Protocol, level};
use gateway_model::text_enum;
pub use history::{CheckHistory, StateChange, TrackedCheck};

text_enum! {
    /// State of a check, from the best to the worst.
    pub enum CheckState {
        Ok = "ok",
        /// Not checked yet, or not possible to check here.
        Unknown = "unknown",
        /// Works partially, or will soon fail.
        Degraded = "degraded",
        /// The function is not there.
        Failed = "failed",
    }
}

/// Parameters of a sentence, by name.
pub type Params = BTreeMap<&'static str, String>;

/// One reason for which a function is not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub state: CheckState,
    pub code: Code,
    pub params: Params,
    /// Human-readable reason, without a full stop.
    pub message: String,
    /// Human-readable remedy, without a full stop.
    pub remedy: String,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Name of the function.
    pub name: &'static str,
    pub state: CheckState,
    /// Code and parameters of the worst finding.
    pub code: Code,
    pub params: Params,
    /// All findings, in the order of the sentence. Empty if the function works.
    pub findings: Vec<Finding>,
    /// All findings in one sentence.
    pub message: String,
    /// Remedy of the worst finding. Empty if none is needed.
    pub remedy: String,
}

impl Check {
    /// Combines the findings of a function. Without any, it works, and `message` says what it does.
    pub fn of(name: &'static str, findings: Vec<Finding>, message: impl Into<String>) -> Check {
        // The first of several that are equally bad.
        let worst = findings.iter().rev().max_by_key(|finding| finding.state).cloned();
        let Some(worst) = worst else {
            return Check {
                name,
                state: CheckState::Ok,
                code: Code::Ok,
                params: Params::new(),
                findings,
                message: message.into(),
                remedy: String::new(),
            };
        };
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        let message = messages.join("; ");
        let Finding { state, code, params, remedy, .. } = worst;
        Check { name, state, code, params, findings, message, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_shows_its_worst_finding_and_all_sentences() {
        let findings = vec![
            Finding::upstream_down("192.0.2.1", "no answer"),
            Finding::no_upstream(),
            Finding::memory_low(3),
        ];
        let check = Check::of("dns_upstreams", findings, "");
        assert_eq!(
            (check.state, check.code),
            (CheckState::Degraded, Code::UpstreamDown),
            "the first of equals"
        );
        assert_eq!(check.message.matches("; ").count(), 2, "{}", check.message);
        assert_eq!(check.params["upstream"], "192.0.2.1");
        let well = Check::of("dns", Vec::new(), "answers");
        assert_eq!((well.state, well.code, &*well.message), (CheckState::Ok, Code::Ok, "answers"));
    }
}
