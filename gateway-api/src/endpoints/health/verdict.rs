//! Verdict on the gateway: does anything leak.

use std::time::Duration;

use gateway_core::gateway_verdict::{DeviceCounts, Word};
use gateway_ctl::services::gateway_verdict::GatewayVerdict;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

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
}

/// Returns the view of the last verdict.
pub fn show(verdict: Option<&GatewayVerdict>, now: Timestamp) -> VerdictView {
    let Some(verdict) = verdict else {
        return VerdictView {
            word: Word::Unknown,
            sentence: "UNKNOWN whether anything leaks: nothing has been checked yet.".to_owned(),
            since: None,
            checked_at: None,
            counts: DeviceCounts::default(),
            leaked_packets: 0,
            guard_drops: 0,
        };
    };
    let GatewayVerdict { word, sentence, since, checked_at, counts, leaked_packets, guard_drops } =
        verdict.clone();
    let age = u64::try_from(now.duration_since(checked_at).as_secs()).unwrap_or(0);
    let (word, sentence) = if age > MAX_AGE.as_secs() && word != Word::Leak {
        let text = format!("UNKNOWN whether anything leaks: the last check was {age} s ago.");
        (Word::Unknown, text)
    } else {
        (word, format!("{sentence} Checked {age} s ago."))
    };
    let (since, checked_at) = (Some(since), Some(checked_at));
    VerdictView { word, sentence, since, checked_at, counts, leaked_packets, guard_drops }
}

#[cfg(test)]
mod tests {
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
            show(Some(&verdict), verdict.checked_at + Duration::from_secs(seconds))
        };
        assert_eq!(shown(Word::Ok, 4).sentence, "OK, no leaks. Checked 4 s ago.");
        assert_eq!(shown(Word::Ok, 30).word, Word::Ok);
        assert_eq!(shown(Word::Ok, 31).word, Word::Unknown);
        assert_eq!(shown(Word::Leak, 31).word, Word::Leak);
        assert_eq!(show(None, Timestamp::now()).word, Word::Unknown);
    }
}
