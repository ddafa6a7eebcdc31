//! Commands for the stored objects, with the verbs of all kinds.

use super::build::{BODY, column, command, delete, get, list, operand, post, put};
use crate::grammar::{Arity, Bad, Column, Command, Group, Kind, Operand, ParameterKind, Verdict, Work};

/// Collection of the API.
struct Collection {
    name: &'static str,
    about: &'static str,
    path: &'static str,
    item: &'static str,
    columns: &'static [Column],
    verbs: &'static [Verb],
    /// Name and input in the examples.
    example: (&'static str, &'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    List,
    Get,
    /// Reads one object from the list: there is no endpoint for a single one.
    Pick,
    Create,
    Update,
    Delete,
}

const ALL: &[Verb] = &[Verb::List, Verb::Get, Verb::Create, Verb::Update, Verb::Delete];

fn id(path: &'static str) -> Operand {
    operand("id", ParameterKind::Object(path), Arity::One)
}

const COLLECTIONS: &[Collection] = &[
    Collection {
        name: "devices",
        about: "Devices of the LAN",
        path: "/devices",
        item: "/devices/{id}",
        verbs: ALL,
        example: ("laptop", r#"{"name":"laptop","mac":"02:00:00:00:00:0a"}"#),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("MAC", "mac"),
            column("HOSTNAME", "hostname"),
            column("TRUST_CLASS", "trust_class"),
            column("PRIVACY_CLASS", "privacy_class"),
        ],
    },
    Collection {
        name: "device-groups",
        about: "Groups of devices",
        path: "/device-groups",
        item: "/device-groups/{id}",
        verbs: ALL,
        example: ("office", r#"{"name":"office"}"#),
        columns: &[column("ID", "id"), column("NAME", "name"), column("MEMBERS", "members")],
    },
    Collection {
        name: "trust-classes",
        about: "Permissions of a device on the LAN and towards the internet",
        path: "/trust-classes",
        item: "/trust-classes/{id}",
        verbs: ALL,
        example: ("trusted", r#"{"name":"printers","internet":"none"}"#),
        columns: &[
            column("NAME", "name"),
            column("DESCRIPTION", "description"),
            column("LEVEL", "level"),
            column("LAN_ACCESS", "lan_access"),
            column("INTERNET", "internet"),
            column("BUILTIN", "builtin"),
            column("ID", "id"),
        ],
    },
    Collection {
        name: "privacy-classes",
        about: "Privacy rules for the traffic of a device",
        path: "/privacy-classes",
        item: "/privacy-classes/{id}",
        verbs: ALL,
        example: ("strict", r#"{"name":"quiet","block_doh":true}"#),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("DNS_MODE", "dns_mode"),
            column("WEBRTC", "webrtc"),
            column("QUERY_LOG", "query_log"),
            column("BUILTIN", "builtin"),
            column("DESCRIPTION", "description"),
        ],
    },
    Collection {
        name: "profiles",
        about: "Egress profiles of policies, devices and groups",
        path: "/profiles",
        item: "/profiles/{id}",
        verbs: ALL,
        example: ("work", r#"{"name":"work","hops":[{"type":"vpn","target":"office"}]}"#),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("HOPS", "hops"),
            column("FAIL_POLICY", "fail_policy"),
            column("SPLITTING", "splitting"),
            column("DESCRIPTION", "description"),
        ],
    },
    Collection {
        name: "chains",
        about: "Chains: named sequences of hops",
        path: "/chains",
        item: "/chains/{id}",
        verbs: ALL,
        example: (
            "double",
            r#"{"name":"double","hops":[{"type":"vpn","target":"a"},{"type":"vpn","target":"b"}]}"#,
        ),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("HOPS", "hops"),
            column("ENABLED", "enabled"),
            column("STATUS", "status"),
        ],
    },
    Collection {
        name: "exceptions",
        about: "Temporary overrides of the policies",
        path: "/exceptions",
        item: "/exceptions/{id}",
        verbs: &[Verb::List, Verb::Get, Verb::Create, Verb::Delete],
        example: ("ID", r#"{"type":"temporary-direct","device_id":"ID","duration_min":30}"#),
        columns: &[
            column("ID", "id"),
            column("TYPE", "type"),
            column("DEVICE_ID", "device_id"),
            column("ALLOW_DIRECT", "allow_direct"),
            column("EXPIRES_AT", "expires_at"),
            column("REASON", "reason"),
            column("STATUS", "status"),
        ],
    },
    Collection {
        name: "federation-roles",
        about: "Permissions of a federation peer",
        path: "/federation-roles",
        item: "/federation-roles/{id}",
        verbs: &[Verb::List, Verb::Pick, Verb::Create, Verb::Update, Verb::Delete],
        example: ("observer", r#"{"name":"mirror","permissions":[{"kind":"dns","pull":true}]}"#),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("PERMISSIONS", "permissions"),
            column("BUILTIN", "builtin"),
        ],
    },
    Collection {
        name: "test-definitions",
        about: "Network tests that can prevent an apply",
        path: "/test-definitions",
        item: "/test-definitions/{id}",
        verbs: ALL,
        example: ("no-leak", r#"{"name":"no-leak","source":{"device":"ID"},"deny":["192.0.2.1:443"]}"#),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("ENABLED", "enabled"),
            column("MODE", "mode"),
            column("GATE", "gate"),
        ],
    },
    Collection {
        name: "tunnels",
        about: "Tunnels and their status",
        path: "/tunnels",
        item: "/tunnels/{id}",
        verbs: &[Verb::List, Verb::Get],
        example: ("exit", ""),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("TYPE", "type"),
            column("STATUS", "status"),
            column("HEALTHY", "healthy"),
            column("ENDPOINT", "endpoint_ip"),
        ],
    },
    Collection {
        name: "proxy",
        about: "SOCKS5 proxies",
        path: "/proxies",
        item: "/proxies/{id}",
        verbs: &[Verb::List, Verb::Get, Verb::Create, Verb::Delete],
        example: ("office", r#"{"name":"office","address":"192.0.2.1","port":1080}"#),
        columns: &[
            column("ID", "id"),
            column("NAME", "name"),
            column("ADDRESS", "address"),
            column("ENABLED", "enabled"),
        ],
    },
];

pub(super) fn kinds(kinds: &mut Vec<Kind>) {
    for collection in COLLECTIONS {
        let mut commands: Vec<Command> =
            collection.verbs.iter().map(|verb| collection.command(*verb)).collect();
        match collection.name {
            "tunnels" => commands.extend(tunnel_verbs()),
            "test-definitions" => commands.push(
                command("run", post("/test-definitions/run"), "Run the enabled tests")
                    .verdict(Verdict { field: "/pass", bad: Bad::False, exit: 7 })
                    .examples(["test-definitions run", "test-definitions run | jq ."]),
            ),
            _ => {}
        }
        kinds.push(Kind { name: collection.name, group: Group::Objects, about: collection.about, commands });
    }
}

fn tunnel_verbs() -> [Command; 2] {
    [
        command("up", post("/tunnels/{id}/up"), "Bring a tunnel up")
            .operands([id("/tunnels")])
            .examples(["tunnels up exit", "tunnels up exit | jq -r .status"]),
        command(
            "down",
            post("/tunnels/{id}/down"),
            "Take a tunnel down; its traffic is blocked or falls back",
        )
        .operands([id("/tunnels")])
        .examples(["tunnels down exit", "tunnels down exit | jq -r .status"]),
    ]
}

impl Collection {
    fn command(&self, verb: Verb) -> Command {
        let (kind, (name, input)) = (self.name, self.example);
        match verb {
            Verb::List => list(get(self.path), "List the objects", self.columns)
                .examples([&format!("{kind} | cut -f1,2"), &format!("{kind} list")]),
            Verb::Get => command("get", get(self.item), "Show an object with all its fields")
                .operands([id(self.path)])
                .examples([&format!("{kind} get {name}"), &format!("{kind} get {name} > {kind}.json")]),
            Verb::Pick => command("get", get(self.path), "Show an object with all its fields")
                .operands([id(self.path)])
                .work(Work::Pick)
                .examples([&format!("{kind} get {name}"), &format!("{kind} get {name} > {kind}.json")]),
            Verb::Create => command("create", post(self.path), "Create an object and print it with its id")
                .operands([BODY])
                .examples([&format!("{kind} create '{input}'"), &format!("{kind} create {kind}.json")]),
            Verb::Update => {
                command("update", put(self.item), "Replace an object; read-only fields are ignored")
                    .operands([id(self.path), BODY])
                    .examples([
                        &format!("{kind} update {name} {kind}.json"),
                        &format!(
                            "{kind} get {name} | jq '.name = \"other\"' | gateway-ctl {kind} update {name} -"
                        ),
                    ])
            }
            Verb::Delete => {
                command("delete", delete(self.item), "Delete an object; rejected while others refer to it")
                    .operands([id(self.path)])
                    .examples([
                        &format!("{kind} delete {name}"),
                        &format!("{kind} delete 0199f1c2-0000-7000-8000-000000000001"),
                    ])
            }
        }
    }
}
