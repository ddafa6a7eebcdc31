//! Verdict on the gateway: does anything leak.

use std::time::Duration;

use gateway_core::gateway_verdict::{DeviceCounts, Word};
use gateway_core::health::{CheckState, TrackedCheck};
use gateway_ctl::services::gateway_verdict::GatewayVerdict;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::probe::FunctionCheck;

/// Age from which a verdict is worthless.
const MAX_AGE: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "GatewayVerdict")]
pub struct VerdictView {
    /// `OK`; `BLOCKED`: nothing leaks, and devices are cut off on purpose; `LEAK`: packets left past the egress guard in
    /// the last five minutes; `UNKNOWN`: the plan is not enforced as it should be, the tap behind the guard has
    /// not observed since the start or fails, or the last check is older than 30 seconds.
    pub word: Word,
    /// Human-readable: the word, the devices, why some are cut off, and the age of the check.
    pub sentence: String,
    /// Time since which the word is the same; null before the first check.
    pub since: Option<Timestamp>,
    /// Time of the last check; null before the first.
    pub checked_at: Option<Timestamp>,
    pub counts: DeviceCounts,
    /// Forwarded packets that left past the egress guard while the tap observed. Not zero is a leak.
    pub leaked_packets: u64,
    /// Packets that the egress guard dropped since boot.
    pub guard_drops: u64,
    /// Functions that do not work or only partially, as `/observer` has them. The sentence names them, too. They do not
    /// change the word, which is about leaks.
    pub checks: Vec<FunctionCheck>,
}

/// Returns the view of the last verdict.
pub fn show(verdict: Option<&GatewayVerdict>, now: Timestamp, checks: &[TrackedCheck]) -> VerdictView {
    let impaired = checks.iter().filter(|tracked| is_impaired(tracked));
    let checks: Vec<FunctionCheck> = impaired.map(|tracked| FunctionCheck::new(tracked, true)).collect();
    let Some(verdict) = verdict else {
        return VerdictView {
            word: Word::Unknown,
            sentence: "UNKNOWN whether anything leaks: nothing has been checked yet.".to_owned(),
            since: None,
            checked_at: None,
            counts: DeviceCounts::default(),
            leaked_packets: 0,
            guard_drops: 0,
            checks,
        };
    };
    let GatewayVerdict { word, sentence, since, checked_at, counts, leaked_packets, guard_drops } =
        verdict.clone();
    let age = u64::try_from(now.duration_since(checked_at).as_secs()).unwrap_or(0);
    let (word, sentence) = if age > MAX_AGE.as_secs() && word != Word::Leak {
        let text = format!("UNKNOWN whether anything leaks: the last check was {age} s ago.");
        (Word::Unknown, text)
    } else {
        (word, format!("{sentence}{} Checked {age} s ago.", of_functions(&checks)))
    };
    let (since, checked_at) = (Some(since), Some(checked_at));
    VerdictView { word, sentence, since, checked_at, counts, leaked_packets, guard_drops, checks }
}

fn is_impaired(tracked: &TrackedCheck) -> bool {
    matches!(tracked.check.state, CheckState::Degraded | CheckState::Failed)
}

/// Returns the part of the sentence about functions, which begins with a space; empty if all are well.
fn of_functions(checks: &[FunctionCheck]) -> String {
    let mut text = String::new();
    for (state, says) in [("failed", "does not work"), ("degraded", "is degraded")] {
        for check in checks.iter().filter(|check| check.state == state) {
            let why = check.details.as_ref().map(|details| details.message.as_str()).unwrap_or_default();
            text.push_str(&format!(" {} {says}: {why}.", check.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use gateway_core::health::{Check, Finding};

    use super::*;

    fn verdict(word: Word) -> GatewayVerdict {
        let at: Timestamp = "2026-11-20T12:00:00Z".parse().expect("a time");
        GatewayVerdict {
            word,
            sentence: "OK, no leaks.".to_owned(),
            since: at,
            checked_at: at,
            counts: DeviceCounts::default(),
            leaked_packets: 0,
            guard_drops: 0,
        }
    }

    #[test]
    fn an_old_verdict_is_worthless_unless_it_is_a_leak() {
        let shown = |word, seconds: u64| {
            let verdict = verdict(word);
            show(Some(&verdict), verdict.checked_at + Duration::from_secs(seconds), &[])
        };
        assert_eq!(shown(Word::Ok, 4).sentence, "OK, no leaks. Checked 4 s ago.");
        assert_eq!(shown(Word::Ok, 30).word, Word::Ok);
        assert_eq!(shown(Word::Ok, 31).word, Word::Unknown);
        assert_eq!(shown(Word::Leak, 31).word, Word::Leak);
        assert_eq!(show(None, Timestamp::now(), &[]).word, Word::Unknown);
    }

    #[test]
    fn a_function_that_fails_is_in_the_sentence_and_leaves_the_word() {
        let since = Timestamp::UNIX_EPOCH;
        let checks = [vec![], vec![Finding::no_upstream()]]
            .map(|findings| TrackedCheck { check: Check::of("dns_upstreams", findings, ""), since });
        let verdict = verdict(Word::Ok);
        let shown = show(Some(&verdict), verdict.checked_at, &checks);
        assert_eq!(shown.word, Word::Ok);
        let says = "OK, no leaks. dns_upstreams is degraded: no upstream is set";
        assert!(shown.sentence.starts_with(says), "{}", shown.sentence);
        assert_eq!(shown.checks.len(), 1, "one that is well is not among them");
        assert_eq!(shown.checks[0].details.as_ref().map(|details| details.code), Some("no_upstream"));
    }
}
