//! Verdict on the gateway: does anything leak.

use std::time::Duration;

use gateway_core::gateway_verdict::{self, HostCounts, Share, Word};
use gateway_core::health::{CheckState, TrackedCheck};
use gateway_core::phrase::Phrase;
use gateway_ctl::services::gateway_verdict::GatewayVerdict;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::probe::FunctionCheck;

/// Age from which a verdict is worthless.
const MAX_AGE: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "GatewayVerdict")]
pub(crate) struct VerdictView {
    /// `OK`; `BLOCKED`: nothing leaks, and hosts are cut off on purpose; `LEAK`: packets left past the egress guard in
    /// the last five minutes; `UNKNOWN`: the plan is not enforced as it should be, the tap behind the guard has
    /// not observed since the start or fails, no host was seen, or the last check is older than 30 seconds.
    pub word: Word,
    /// Human-readable: the word, the hosts, why some are cut off, and the age of the check.
    pub sentence: String,
    /// The sentence as codes with parameters, for clients with texts of their own.
    pub phrases: Vec<Phrase>,
    /// Only with the word `OK`, and if hosts leave directly that no policy is for: how many are covered. Such a verdict is
    /// drawn amber. Null otherwise.
    pub share: Option<Share>,
    /// Time since which the word is the same; null before the first check.
    pub since: Option<Timestamp>,
    /// Time of the last check; null before the first.
    pub checked_at: Option<Timestamp>,
    pub counts: HostCounts,
    /// Forwarded packets that left past the egress guard while the tap observed. Not zero is a leak.
    pub leaked_packets: u64,
    /// Packets that the egress guard dropped since boot.
    pub guard_drops: u64,
    /// Functions that do not work or only partially, as `/observer` has them. The sentence names them, too. They do not
    /// change the word, which is about leaks.
    pub checks: Vec<FunctionCheck>,
}

/// Returns the view of the last verdict.
pub(super) fn show(verdict: Option<&GatewayVerdict>, now: Timestamp, checks: &[TrackedCheck]) -> VerdictView {
    let impaired = checks.iter().filter(|tracked| is_impaired(tracked));
    let checks: Vec<FunctionCheck> = impaired.map(|tracked| FunctionCheck::new(tracked, true)).collect();
    let Some(verdict) = verdict else {
        let text = "UNKNOWN whether anything leaks: nothing has been checked yet.".to_owned();
        let phrase = Phrase::new("not_checked", [], text);
        return VerdictView {
            word: Word::Unknown,
            sentence: phrase.text.clone(),
            phrases: vec![phrase],
            share: None,
            since: None,
            checked_at: None,
            counts: HostCounts::default(),
            leaked_packets: 0,
            guard_drops: 0,
            checks,
        };
    };
    let GatewayVerdict { word, mut phrases, since, checked_at, counts, leaked_packets, guard_drops } =
        verdict.clone();
    let age = u64::try_from(now.duration_since(checked_at).as_secs()).unwrap_or(0);
    let word = if age > MAX_AGE.as_secs() && word != Word::Leak {
        let text = format!("UNKNOWN whether anything leaks: the last check was {age} s ago.");
        phrases = vec![Phrase::new("check_too_old", [("seconds", json!(age))], text)];
        Word::Unknown
    } else {
        phrases.extend(of_functions(&checks));
        phrases.push(Phrase::new("checked", [("seconds", json!(age))], format!("Checked {age} s ago.")));
        word
    };
    let sentence = gateway_verdict::sentence(&phrases);
    let share = counts.share();
    let share = (word == Word::Ok && share.covered < share.total).then_some(share);
    let (since, checked_at) = (Some(since), Some(checked_at));
    VerdictView {
        word,
        sentence,
        phrases,
        share,
        since,
        checked_at,
        counts,
        leaked_packets,
        guard_drops,
        checks,
    }
}

fn is_impaired(tracked: &TrackedCheck) -> bool {
    matches!(tracked.check.state, CheckState::Degraded | CheckState::Failed)
}

/// Returns the part of the sentence about functions. Empty if all are well.
fn of_functions(checks: &[FunctionCheck]) -> Vec<Phrase> {
    let mut phrases = Vec::new();
    for (state, code, says) in [
        (CheckState::Failed, "function_failed", "does not work"),
        (CheckState::Degraded, "function_degraded", "is degraded"),
    ] {
        for check in checks.iter().filter(|check| check.state == state) {
            let (reason, why, findings) = match &check.details {
                Some(details) => (details.code, details.message.as_str(), details.findings.as_slice()),
                None => ("", "", [].as_slice()),
            };
            let params = [
                ("check", json!(check.name)),
                ("reason", json!(reason)),
                ("message", json!(why)),
                ("findings", json!(findings)),
            ];
            phrases.push(Phrase::new(code, params, format!("{} {says}: {why}.", check.name)));
        }
    }
    phrases
}

#[cfg(test)]
mod tests {
    use gateway_core::health::{Check, Finding};

    use super::*;

    fn verdict(word: Word) -> GatewayVerdict {
        let at: Timestamp = "2026-11-20T12:00:00Z".parse().expect("a time");
        GatewayVerdict {
            word,
            phrases: vec![Phrase::new("ok", [], "OK, no leaks.".to_owned())],
            since: at,
            checked_at: at,
            counts: HostCounts::default(),
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
