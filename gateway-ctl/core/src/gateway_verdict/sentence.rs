//! Sentence of a verdict.

use super::devices::Devices;
use super::word::{Observed, Word};

/// Most causes that are named.
const MOST_CAUSES: usize = 2;

/// Returns the sentence of a verdict, without the age of the check.
pub fn sentence(word: Word, devices: &Devices, observed: &Observed) -> String {
    let head = match word {
        Word::Ok => "OK, no leaks.".to_owned(),
        Word::Blocked => "BLOCKED, no leaks.".to_owned(),
        Word::Leak => {
            format!("LEAK: {} left past the egress guard.", number(observed.escaped_recently, "packet"))
        }
        Word::Unknown => {
            format!("UNKNOWN whether anything leaks: {}.", observed.unknown.join("; "))
        }
    };
    let mut sentences = vec![head];
    if word != Word::Unknown {
        sentences.extend(of_devices(devices));
        let before = observed.escaped - observed.escaped_recently.min(observed.escaped);
        if before > 0 {
            sentences.push(format!("Earlier, {} left past the egress guard.", number(before, "packet")));
        }
    }
    sentences.join(" ")
}

fn of_devices(devices: &Devices) -> Vec<String> {
    let counts = &devices.counts;
    let direct = counts.direct_by_exception + counts.failed_open + counts.no_policy;
    if counts.protected + direct == 0 {
        return vec!["No device is known.".to_owned()];
    }
    let mut sentences = Vec::new();
    match (counts.protected, counts.blocked) {
        (0, _) => {}
        (protected, 0) => {
            let leave = if protected == 1 { "leaves" } else { "leave" };
            let their = if protected == 1 { "its" } else { "their" };
            sentences.push(format!(
                "{} {leave} through {their} policy.",
                number_of(protected, "protected device")
            ));
        }
        (protected, blocked) => {
            let mut causes: Vec<(&String, &usize)> = devices.causes.iter().collect();
            causes.sort_by_key(|(_, devices)| std::cmp::Reverse(**devices));
            let named: Vec<&str> = causes.iter().take(MOST_CAUSES).map(|(cause, _)| cause.as_str()).collect();
            let others = if causes.len() > MOST_CAUSES { ", and others" } else { "" };
            let through = counts.through_policy;
            let leave = if through == 1 { "leaves through its" } else { "leave through their" };
            let are = if blocked == 1 { "is" } else { "are" };
            sentences.push(format!(
                "Of {} {through} {leave} policy, {blocked} {are} cut off on purpose: {}{others}.",
                number_of(protected, "protected device"),
                named.join("; "),
            ));
        }
    }
    let directly = [
        (counts.direct_by_exception, "by an exception"),
        (counts.failed_open, "because the policy fails open"),
        (counts.no_policy, "without a policy"),
    ];
    let directly = directly.iter().filter(|(devices, _)| *devices > 0);
    let directly: Vec<String> = directly.map(|(devices, why)| format!("{devices} {why}")).collect();
    if !directly.is_empty() {
        let leave = if direct == 1 { "leaves" } else { "leave" };
        sentences.push(format!("{} {leave} directly: {}.", number_of(direct, "device"), directly.join(", ")));
    }
    sentences
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

    use super::super::devices::DeviceCounts;
    use super::super::word::word;
    use super::*;

    fn devices(through_policy: usize, blocked: usize, no_policy: usize) -> Devices {
        let protected = through_policy + blocked;
        let counts =
            DeviceCounts { protected, through_policy, blocked, no_policy, ..DeviceCounts::default() };
        let causes = BTreeMap::from([("tunnel wg-a is down (no handshake for 192 s)".to_owned(), blocked)]);
        Devices { counts, causes: if blocked == 0 { BTreeMap::new() } else { causes } }
    }

    fn said(devices: &Devices, observed: &Observed) -> String {
        sentence(word(devices, observed), devices, observed)
    }

    #[test]
    fn one_sentence_tells_what_leaves_and_what_does_not() {
        let quiet = Observed::default();
        assert_eq!(said(&devices(0, 0, 0), &quiet), "OK, no leaks. No device is known.");
        assert_eq!(
            said(&devices(1, 0, 0), &quiet),
            "OK, no leaks. 1 protected device leaves through its policy."
        );
        assert_eq!(
            said(&devices(5, 2, 1), &quiet),
            "BLOCKED, no leaks. Of 7 protected devices 5 leave through their policy, 2 are cut off on purpose: \
             tunnel wg-a is down (no handshake for 192 s). 1 device leaves directly: 1 without a policy."
        );
    }

    #[test]
    fn a_leak_outweighs_what_is_unknown() {
        let unknown = Observed { unknown: vec!["no plan is active".to_owned()], ..Observed::default() };
        assert_eq!(said(&devices(1, 0, 0), &unknown), "UNKNOWN whether anything leaks: no plan is active.");
        let leaking = Observed { escaped_recently: 3, escaped: 3, ..unknown };
        assert!(said(&devices(1, 0, 0), &leaking).starts_with("LEAK: 3 packets left past the egress guard."));
        let earlier = Observed { escaped: 1, ..Observed::default() };
        let sentence = said(&devices(1, 0, 0), &earlier);
        assert!(
            sentence.starts_with("OK") && sentence.ends_with("Earlier, 1 packet left past the egress guard.")
        );
    }
}
