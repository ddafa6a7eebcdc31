//! Phrases: texts of the gateway with a code and parameters, so that a client can have texts of its own.
//!
//! Decision 0119 says why.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gateway_common::reason::Reason;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

/// Codes of phrases. The code of a [`Reason`] is its name.
const CODES: &[&str] = &[
    // Verdict on the gateway.
    "ok",
    "ok_partly",
    "blocked",
    "leak",
    "unknown",
    "no_host_seen",
    "not_checked",
    "check_too_old",
    "through_policy",
    "some_blocked",
    "direct",
    "leaked_earlier",
    "records_silent",
    "function_failed",
    "function_degraded",
    "checked",
    // Decisions on packets.
    "policy_matched",
    "exception_holds",
    "exception_direct",
    "quarantine",
    "unknown_host_lan",
    "unknown_host_internet",
    "guest_network",
    "segment_class",
    "hop_down",
    "hops_down",
    "no_hops",
    "no_family",
    "no_hop_for_host",
    "not_for_proxy",
    "below_floor",
    "uplinks_disabled",
    "egress_unreachable",
    "content_blocked",
    "doh_name_blocked",
    // Policies that were tried.
    "only_family",
    "disabled",
    "ended",
    "nothing_to_match",
    "more_reasons",
    "all_traffic",
    "interface_is",
    "interface_is_not",
    "vlan_is",
    "vlan_is_not",
    "device_is",
    "device_is_not",
    "group_has",
    "group_has_not",
    "group_missing",
    "source_within",
    "source_not_within",
    "destination_within",
    "destination_not_within",
    "destination_is",
    "port_is_not",
    "no_port",
    "name_matches",
    "name_matches_not",
    "no_name",
];

/// Returns all codes.
pub fn codes() -> impl Iterator<Item = &'static str> {
    let reasons = (0..=u8::MAX).map_while(Reason::from_wire).map(Reason::as_str);
    CODES.iter().copied().chain(reasons)
}

/// Part of a text from the server: a code with parameters for clients that have texts of their own, and English.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phrase {
    #[schemars(with = "PhraseCode")]
    pub code: &'static str,
    /// A parameter may be a phrase itself, or a list of phrases.
    pub params: BTreeMap<&'static str, Value>,
    pub text: String,
}

impl Phrase {
    pub fn new<const N: usize>(
        code: &'static str,
        params: [(&'static str, Value); N],
        text: impl Into<String>,
    ) -> Phrase {
        debug_assert!(codes().any(|known| known == code), "the code {code} is in no list");
        Phrase { code, params: params.into(), text: text.into() }
    }

    pub fn of_reason<const N: usize>(
        reason: Reason,
        params: [(&'static str, Value); N],
        text: impl Into<String>,
    ) -> Phrase {
        Phrase { code: reason.as_str(), params: params.into(), text: text.into() }
    }
}

/// Code of a phrase, as the OpenAPI document lists it.
struct PhraseCode;

impl JsonSchema for PhraseCode {
    fn schema_name() -> Cow<'static, str> {
        "PhraseCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = codes().collect();
        json_schema!({
            "type": "string",
            "enum": codes,
            "description": "Code of a phrase. Later versions may have others.",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_code_is_listed_once() {
        let unique: BTreeSet<&str> = codes().collect();
        assert_eq!(unique.len(), codes().count());
    }
}
