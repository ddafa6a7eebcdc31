//! Sentence of a verdict, as phrases with a code and parameters beside the English text.

use serde_json::json;

use super::hosts::{BlockCause, HostCounts, TreatedHosts};
use super::word::{Observed, Word};
use crate::phrase::Phrase;

/// Most causes that are named.
const MOST_CAUSES: usize = 2;

/// Returns the sentence of a verdict, without the age of the check.
pub fn sentence(phrases: &[Phrase]) -> String {
    let texts: Vec<&str> = phrases.iter().map(|phrase| phrase.text.as_str()).collect();
    texts.join(" ")
}

/// Returns the phrases of a verdict.
pub fn phrases(word: Word, hosts: &TreatedHosts, observed: &Observed) -> Vec<Phrase> {
    let share = hosts.counts.share();
    let uncovered = share.total - share.covered;
    let head = match word {
        Word::Ok if uncovered > 0 => Phrase::new(
            "ok_partly",
            [
                ("covered", json!(share.covered)),
                ("total", json!(share.total)),
                ("uncovered", json!(uncovered)),
            ],
            format!(
                "OK for {} of {}; {uncovered} {} directly, no policy covers {}.",
                share.covered,
                number_of(share.total, "host"),
                if uncovered == 1 { "leaves" } else { "leave" },
                if uncovered == 1 { "it" } else { "them" },
            ),
        ),
        Word::Ok => Phrase::new("ok", [], "OK, no leaks.".to_owned()),
        Word::Blocked => Phrase::new("blocked", [], "BLOCKED, no leaks.".to_owned()),
        Word::Leak => Phrase::new(
            "leak",
            [("packets", json!(observed.escaped_recently))],
            format!("LEAK: {} left past the egress guard.", number(observed.escaped_recently, "packet")),
        ),
        Word::Unknown if observed.unknown.is_empty() => Phrase::new(
            "no_host_seen",
            [],
            "UNKNOWN whether anything leaks: no host has been seen on the LAN.".to_owned(),
        ),
        Word::Unknown => Phrase::new(
            "unknown",
            [("reasons", json!(observed.unknown))],
            format!("UNKNOWN whether anything leaks: {}.", observed.unknown.join("; ")),
        ),
    };
    let is_partly = head.code == "ok_partly";
    let mut phrases = vec![head];
    if word != Word::Unknown {
        phrases.extend(of_protected(hosts));
        phrases.extend(of_direct(&hosts.counts, is_partly));
        let before = observed.escaped - observed.escaped_recently.min(observed.escaped);
        if before > 0 {
            let text = format!("Earlier, {} left past the egress guard.", number(before, "packet"));
            phrases.push(Phrase::new("leaked_earlier", [("packets", json!(before))], text));
        }
    }
    phrases.extend(of_silent(hosts.counts.records_silent));
    phrases
}

fn of_protected(hosts: &TreatedHosts) -> Option<Phrase> {
    let HostCounts { protected, through_policy, blocked, .. } = hosts.counts;
    match (protected, blocked) {
        (0, _) => None,
        (protected, 0) => {
            let leave = if protected == 1 { "leaves" } else { "leave" };
            let their = if protected == 1 { "its" } else { "their" };
            let text = format!("{} {leave} through {their} policy.", number_of(protected, "protected host"));
            Some(Phrase::new("through_policy", [("hosts", json!(protected))], text))
        }
        (protected, blocked) => {
            let mut causes: Vec<(&String, &BlockCause)> = hosts.causes.iter().collect();
            causes.sort_by_key(|(_, cause)| std::cmp::Reverse(cause.hosts));
            let first = || causes.iter().take(MOST_CAUSES);
            let named: Vec<&str> = first().map(|(text, _)| text.as_str()).collect();
            let phrases: Vec<&Phrase> = first().map(|(_, cause)| &cause.phrase).collect();
            let others = if causes.len() > MOST_CAUSES { ", and others" } else { "" };
            let leave = if through_policy == 1 { "leaves through its" } else { "leave through their" };
            let are = if blocked == 1 { "is" } else { "are" };
            let text = format!(
                "Of {} {through_policy} {leave} policy, {blocked} {are} cut off on purpose: {}{others}.",
                number_of(protected, "protected host"),
                named.join("; "),
            );
            let params = [
                ("protected", json!(protected)),
                ("through_policy", json!(through_policy)),
                ("blocked", json!(blocked)),
                ("causes", json!(named)),
                ("cause_phrases", json!(phrases)),
                ("more_causes", json!(causes.len() - named.len())),
            ];
            Some(Phrase::new("some_blocked", params, text))
        }
    }
}

/// Returns the phrase on hosts that leave by the default route. The head may have said it of those without a policy.
fn of_direct(counts: &HostCounts, is_said: bool) -> Option<Phrase> {
    let no_policy = if is_said { 0 } else { counts.no_policy };
    let direct = counts.direct_by_exception + counts.failed_open + no_policy;
    let directly = [
        (counts.direct_by_exception, "by an exception"),
        (counts.failed_open, "because the policy fails open"),
        (no_policy, "without a policy"),
    ];
    let directly = directly.iter().filter(|(hosts, _)| *hosts > 0);
    let directly: Vec<String> = directly.map(|(hosts, why)| format!("{hosts} {why}")).collect();
    if directly.is_empty() {
        return None;
    }
    let leave = if direct == 1 { "leaves" } else { "leave" };
    let text = format!("{} {leave} directly: {}.", number_of(direct, "host"), directly.join(", "));
    let params = [
        ("direct", json!(direct)),
        ("direct_by_exception", json!(counts.direct_by_exception)),
        ("failed_open", json!(counts.failed_open)),
        ("no_policy", json!(no_policy)),
    ];
    Some(Phrase::new("direct", params, text))
}

fn of_silent(records: usize) -> Option<Phrase> {
    let text = match records {
        0 => return None,
        1 => "1 device was not seen in the last 24 hours.".to_owned(),
        records => format!("{records} devices were not seen in the last 24 hours."),
    };
    Some(Phrase::new("records_silent", [("devices", json!(records))], text))
}

fn number_of(count: usize, noun: &str) -> String {
    number(count as u64, noun)
}

fn number(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::word::word;
    use super::*;

    fn hosts(through_policy: usize, blocked: usize, no_policy: usize) -> TreatedHosts {
        let protected = through_policy + blocked;
        let counts = HostCounts { protected, through_policy, blocked, no_policy, ..HostCounts::default() };
        let text = "tunnel wg-a is down (no handshake for 192 s)";
        let cause = BlockCause { hosts: blocked, phrase: Phrase::new("hop_down", [], text) };
        let causes = BTreeMap::from([(text.to_owned(), cause)]);
        TreatedHosts { counts, causes: if blocked == 0 { BTreeMap::new() } else { causes } }
    }

    fn said(hosts: &TreatedHosts, observed: &Observed) -> String {
        sentence(&phrases(word(hosts, observed), hosts, observed))
    }

    #[test]
    fn the_sentence_says_which_hosts_leave_and_which_do_not() {
        let quiet = Observed::default();
        assert_eq!(
            said(&hosts(1, 0, 0), &quiet),
            "OK, no leaks. 1 protected host leaves through its policy."
        );
        assert_eq!(
            said(&hosts(5, 2, 1), &quiet),
            "BLOCKED, no leaks. Of 7 protected hosts 5 leave through their policy, 2 are cut off on purpose: \
             tunnel wg-a is down (no handshake for 192 s). 1 host leaves directly: 1 without a policy."
        );
    }

    #[test]
    fn hosts_that_no_policy_covers_are_in_the_first_phrase() {
        let quiet = Observed::default();
        assert_eq!(
            said(&hosts(2, 0, 3), &quiet),
            "OK for 2 of 5 hosts; 3 leave directly, no policy covers them. \
             2 protected hosts leave through their policy."
        );
        assert_eq!(
            said(&hosts(0, 0, 1), &quiet),
            "OK for 0 of 1 host; 1 leaves directly, no policy covers it."
        );
        let first = phrases(Word::Ok, &hosts(2, 0, 3), &quiet).remove(0);
        assert_eq!(first.code, "ok_partly");
        assert_eq!(json!(first.params), json!({"covered": 2, "total": 5, "uncovered": 3}));
    }

    #[test]
    fn without_a_host_nothing_is_known_however_many_records_there_are() {
        let mut empty = hosts(0, 0, 0);
        empty.counts.records_silent = 5001;
        assert_eq!(
            said(&empty, &Observed::default()),
            "UNKNOWN whether anything leaks: no host has been seen on the LAN. \
             5001 devices were not seen in the last 24 hours."
        );
        let mut one = hosts(1, 0, 0);
        one.counts.records_silent = 1;
        assert!(said(&one, &Observed::default()).ends_with("1 device was not seen in the last 24 hours."));
    }

    #[test]
    fn a_leak_outweighs_what_is_unknown() {
        let unknown = Observed { unknown: vec!["no plan is active".to_owned()], ..Observed::default() };
        assert_eq!(said(&hosts(1, 0, 0), &unknown), "UNKNOWN whether anything leaks: no plan is active.");
        let leaking = Observed { escaped_recently: 3, escaped: 3, ..unknown };
        assert!(said(&hosts(1, 0, 0), &leaking).starts_with("LEAK: 3 packets left past the egress guard."));
        let earlier = Observed { escaped: 1, ..Observed::default() };
        let sentence = said(&hosts(1, 0, 0), &earlier);
        assert!(
            sentence.starts_with("OK") && sentence.ends_with("Earlier, 1 packet left past the egress guard.")
        );
    }
}
