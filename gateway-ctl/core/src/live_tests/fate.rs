//! Fate of a packet of a live test.

use std::collections::BTreeSet;

use gateway_common::verdict::Reason;

use crate::leak_check::{Expected, NameAnswer, Outcome, Probe, SightingKind, Token};

/// Extended DNS errors of names that were not to be resolved (RFC 8914, section 4).
const BLOCKED: u16 = 15;
const FILTERED: u16 = 17;
const PROHIBITED: u16 = 18;

/// Fate of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Interfaces by which it left.
    Left(BTreeSet<String>),
    Proxied(String),
    /// The gateway takes it.
    Local,
    Stopped(String),
    Answered(NameAnswer),
    Unknown(String),
}

impl Fate {
    /// Returns the fate of a probe by its plan and its outcome.
    pub(super) fn of(probe: &Probe, outcome: &Outcome, failure: Option<&str>) -> Fate {
        let left = outcome.sightings.keys().filter(|sighting| sighting.kind == SightingKind::Left);
        let left: BTreeSet<String> = left.map(|sighting| sighting.interface.clone()).collect();
        if !left.is_empty() {
            return Fate::Left(left);
        }
        if let Some(answer) = &outcome.answer {
            return Fate::Answered(answer.clone());
        }
        if let Some(failure) = failure {
            return Fate::Unknown(failure.to_owned());
        }
        let Some(verdict) = outcome.verdict else {
            return Fate::Unknown("the packet did not reach the kernel program".to_owned());
        };
        match &probe.expected {
            Expected::Stopped(reason) => Fate::Stopped(reason.clone()),
            Expected::Proxied(proxy) => Fate::Proxied(proxy.clone()),
            Expected::Answered if matches!(probe.token, Token::Query { .. }) => {
                Fate::Unknown("the resolver did not answer within three seconds".to_owned())
            }
            Expected::Answered => Fate::Local,
            Expected::Leaves { .. } => Fate::Unknown(format!(
                "the packet was let through ({}), but was not seen at any interface",
                Reason::as_str(verdict)
            )),
        }
    }

    /// Clause that completes "the host …".
    pub(super) fn clause(&self) -> String {
        match self {
            Fate::Left(interfaces) => {
                format!("its packet left by {}", interfaces.iter().cloned().collect::<Vec<_>>().join(", "))
            }
            Fate::Proxied(proxy) => format!("its packet is carried by the proxy {proxy}"),
            Fate::Local => "the gateway takes its packet".to_owned(),
            Fate::Stopped(reason) => format!("its packet does not leave: {reason}"),
            Fate::Answered(answer) => format!("its query gets {}", shown(answer)),
            Fate::Unknown(reason) => reason.clone(),
        }
    }
}

/// Reports whether a filter has decided on the name.
pub(super) fn is_blocked(answer: &NameAnswer) -> bool {
    matches!(answer.error, Some(BLOCKED | FILTERED | PROHIBITED))
}

/// Describes an answer: `the query gets …`.
pub(super) fn shown(answer: &NameAnswer) -> String {
    let addresses: Vec<String> = answer.addresses.iter().map(ToString::to_string).collect();
    match (is_blocked(answer), answer.rcode, addresses.is_empty()) {
        (true, ..) => "an answer of the filter".to_owned(),
        (_, 0, false) => addresses.join(", "),
        (_, 0, true) => "no address".to_owned(),
        (_, 3, _) => "that it does not exist".to_owned(),
        (_, code, _) => format!("the error {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_blocked_only_if_the_resolver_says_so() {
        let answer = |rcode, error| NameAnswer { rcode, addresses: Vec::new(), error };
        assert!(is_blocked(&answer(0, Some(BLOCKED))) && is_blocked(&answer(3, Some(FILTERED))));
        // A name that does not exist, and one whose servers do not answer, are not blocked.
        assert!(!is_blocked(&answer(3, None)) && !is_blocked(&answer(2, Some(23))));
        assert_eq!(shown(&answer(3, None)), "that it does not exist");
    }
}
