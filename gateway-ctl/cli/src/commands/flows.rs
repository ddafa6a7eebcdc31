//! Commands for the flow log.

use super::build::{column, get, list, operand};
use crate::grammar::{Arity, Column, Flag, Group, Kind, ParameterKind, Prints};

const FLOWS: &[Column] = &[
    column("STARTED_AT", "started_at"),
    column("VERDICT", "verdict"),
    column("REASON", "reason"),
    column("DEVICE", "client.device"),
    column("SOURCE", "client.ip"),
    column("PROTOCOL", "protocol"),
    column("DESTINATION", "destination"),
    column("PORT", "destination_port"),
    column("NAME", "names.0"),
    column("POLICY", "policy.name"),
    column("EGRESS", "egress"),
    column("SENT", "sent.bytes"),
    column("RECEIVED", "received.bytes"),
    column("END", "end"),
    column("FLOW_ID", "flow_id"),
];

const TOTALS: &[Column] = &[
    column("NAME", "name"),
    column("ID", "id"),
    column("FLOWS", "flows"),
    column("DENIED", "denied"),
    column("SENT", "sent.bytes"),
    column("RECEIVED", "received.bytes"),
    column("UNCOUNTED", "uncounted"),
];

const fn flag(name: &'static str, value: &'static str, field: &'static str, about: &'static str) -> Flag {
    Flag { name, value, field, integer: false, required: false, about }
}

const SELECTION: &[Flag] = &[
    flag("client", "address", "client", "Only this client: an address, a MAC address, or the id of a device"),
    flag(
        "domain",
        "name",
        "domain",
        "Only destinations with this text in their names; =NAME for all below it",
    ),
    flag("country", "code", "country", "Only destinations in this country, by its code of two letters"),
    flag("egress", "name", "egress", "Only this tunnel, uplink or proxy"),
    flag("verdict", "word", "verdict", "permitted, dropped or rejected"),
    flag("since", "time", "since", "Only flows that ended at this time or later, or go on"),
    flag("until", "time", "until", "Only flows that began before this time"),
    flag("limit", "n", "limit", "Maximum number of lines, 1000 at most"),
];

/// Properties by which flows are added up.
const PROPERTIES: &[&str] = &["device", "domain", "policy", "egress", "country"];

pub(super) fn kind() -> Kind {
    let by = operand("by", ParameterKind::Word(PROPERTIES), Arity::One);
    Kind {
        name: "flows",
        group: Group::Network,
        about: "Flows that the gateway forwarded or denied",
        commands: vec![
            list(get("/flows"), "List flows: those that go on, then those that have ended", FLOWS)
                .flags(SELECTION)
                .examples(["flows", "flows list --client 192.168.1.20 --egress wg-a"]),
            list(
                get("/flows/top"),
                "Totals by device, domain, policy, egress or country, the largest first",
                TOTALS,
            )
            .verb("top")
            .prints(Prints::TableOf("totals", TOTALS))
            .operands([by])
            .flags(SELECTION)
            .examples(["flows top device", "flows top domain --since 2026-11-29T00:00:00Z"]),
        ],
    }
}
