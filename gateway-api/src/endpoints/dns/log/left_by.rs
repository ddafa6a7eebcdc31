//! Way by which a query left the gateway, or the cause that kept it from leaving.

use gateway_core::host_egress::hops_down;
use gateway_dns::query_log::DisplayRecord;
use gateway_model::kinds::DnsForwarder;
use schemars::JsonSchema;
use serde::Serialize;

/// Way by which a query left the gateway.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LeftBy {
    kind: LeftByKind,
    /// Tunnel, uplink or proxy by which the query left. Null for the default route, and if the query is blocked.
    name: Option<String>,
    /// Hops of the policy that are down, if that blocks the query.
    down: Vec<String>,
    /// Sentence of it, such as `Allowed, direct`, `Allowed by wg-a` or `Blocked: wg-a is down`.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LeftByKind {
    /// By an uplink, outside of all tunnels.
    Direct,
    /// By a tunnel or proxy.
    Egress,
    /// Not at all: the policy of the client, or the route of the domain, lets nothing out at present.
    Blocked,
}

impl LeftBy {
    /// Returns `None` if no query was sent for another reason: the answer is known here, or there is no upstream.
    pub(super) fn of(record: &DisplayRecord, is_uplink: impl Fn(&str) -> bool) -> Option<LeftBy> {
        if record.blocked {
            return Some(LeftBy::blocked(record.detail.as_deref().unwrap_or_default()));
        }
        let egress = record.egress.as_deref()?;
        let name = (egress != DnsForwarder::AUTO).then(|| egress.to_owned());
        let is_direct = name.as_deref().is_none_or(is_uplink);
        let (kind, text) = match is_direct {
            true => (LeftByKind::Direct, "Allowed, direct".to_owned()),
            false => (LeftByKind::Egress, format!("Allowed by {egress}")),
        };
        Some(LeftBy { kind, name, down: Vec::new(), text })
    }

    fn blocked(reason: &str) -> LeftBy {
        let down = hops_down(reason);
        let text = match down.as_slice() {
            [] if reason.is_empty() => "Blocked".to_owned(),
            [] => format!("Blocked: {reason}"),
            [one] => format!("Blocked: {one} is down"),
            several => format!("Blocked: {} are down", several.join(", ")),
        };
        let down = down.into_iter().map(str::to_owned).collect();
        LeftBy { kind: LeftByKind::Blocked, name: None, down, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_block_names_the_hops_that_are_down() {
        let text = |reason| LeftBy::blocked(reason).text;
        assert_eq!(text("the policy \"a \\\" b\" blocks: tunnel wg-a is down"), "Blocked: wg-a is down");
        assert_eq!(
            text("the policy \"x\" blocks: tunnel wg-a, proxy p are down"),
            "Blocked: wg-a, p are down"
        );
        assert_eq!(text("the device is blocked"), "Blocked: the device is blocked");
        assert_eq!(text(""), "Blocked", "the reason is not kept for an anonymous client");
    }
}
