//! Commands for the network services: DNS, addresses, peers.

use super::build::{BODY, column, command, delete, get, list, operand, post};
use crate::grammar::{Arity, Column, Flag, Group, Kind, ParameterKind, Prints, Special, Work};

const PRESETS: &[Column] = &[
    column("ID", "id"),
    column("NAME", "name"),
    column("CATEGORY", "category"),
    column("BUILTIN", "builtin"),
];

const SEGMENTS: &[Column] = &[
    column("ID", "id"),
    column("NAME", "name"),
    column("VLAN_ID", "vlan_id"),
    column("INTERFACE", "interface"),
    column("CIDR", "cidr"),
    column("TRUST_CLASS", "trust_class"),
    column("ISOLATION", "isolation"),
];

const VLANS: &[Column] = &[
    column("VLAN_ID", "vlan_id"),
    column("SEGMENT", "segment"),
    column("INTERFACE", "interface"),
    column("PARENT", "parent"),
    column("UP", "up"),
    column("LAN", "lan"),
];

const HOSTS: &[Column] = &[
    column("ID", "id"),
    column("MAC", "mac"),
    column("ADDRESSES", "ips"),
    column("VENDOR", "vendor"),
    column("INTERFACE", "interface"),
    column("ONLINE", "online"),
    column("STATUS", "status"),
    column("DECISION", "path.decision"),
    column("EGRESS", "path.egress"),
    column("SENT_BPS", "rate.sent_bps"),
    column("RECEIVED_BPS", "rate.received_bps"),
];

const PEERS: &[Column] = &[
    column("ID", "id"),
    column("NAME", "name"),
    column("ADDRESS", "ips"),
    column("ONLINE", "online"),
    column("LAST_SEEN", "last_seen"),
];

const NODES: &[Column] = &[
    column("ID", "id"),
    column("NAME", "name"),
    column("STATUS", "status"),
    column("SYNC_POLICY", "sync_policy"),
    column("SYNC_RESOURCES", "sync_resources"),
];

const ROTATE: &[Flag] = &[Flag {
    name: "overlap",
    value: "seconds",
    field: "overlap_sec",
    integer: true,
    required: false,
    about: "Time for which both keys count (default 604800, 7 days)",
}];
const HUB: &[Flag] = &[
    Flag {
        name: "listen",
        value: "address",
        field: "listen",
        integer: false,
        required: false,
        about: "Address and port at which it listens (default 0.0.0.0:4222)",
    },
    Flag {
        name: "tls-certificate",
        value: "file",
        field: "tls_certificate",
        integer: false,
        required: false,
        about: "Its certificate in PEM (default: no TLS)",
    },
    Flag {
        name: "tls-key",
        value: "file",
        field: "tls_key",
        integer: false,
        required: false,
        about: "Key of the certificate in PEM",
    },
];
const SYNC: &[Flag] = &[Flag {
    name: "peer",
    value: "url",
    field: "peer",
    integer: false,
    required: true,
    about: "URL of the peer to pull from",
}];

pub(super) fn kinds(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Network, about, commands });
    };
    let host = operand("id", ParameterKind::Text, Arity::One);
    kind(
        "hosts",
        "Hosts that were observed on the LAN, devices or not",
        vec![
            list(get("/hosts"), "List the hosts; those that are online come first", HOSTS)
                .examples(["hosts", "hosts | cut -f2,3,7"]),
            command("adopt", post("/hosts/{id}/adopt"), "Make a device of a host")
                .operands([host, BODY])
                .remark("Fields that the input does not have are those of the host: MAC address, host name, name.")
                .examples([
                    r#"hosts adopt 686f7374-4a6e-8000-8000-02000000000a '{"name":"television"}'"#,
                    "hosts adopt 686f7374-4a6e-8000-8000-02000000000a '{}' | jq -r .id",
                ]),
            command("forget", delete("/hosts/{id}"), "Forget a host; its device stays")
                .operands([host])
                .remark("A host that is still there is observed again, as new.")
                .examples([
                    "hosts forget 686f7374-4a6e-8000-8000-02000000000a",
                    "hosts forget 686f7374-4a6e-8000-8000-02000000000a | jq .deleted",
                ]),
        ],
    );
    let status = "Resolver: upstreams, cache, blocking";
    let domains = operand("domain", ParameterKind::Text, Arity::Many);
    kind(
        "dns",
        "Resolver status and blocked domains",
        vec![
            command("status", get("/dns/status"), status)
                .examples(["dns", "dns | jq '.upstreams[] | select(.ok | not)'"]),
            command("block", post("/dns/blocklist"), "Block domains and their subdomains")
                .operands([domains])
                .work(Work::Special(Special::Block))
                .examples(["dns block ads.example.com", "dns block a.example b.example | jq '.changed[]'"]),
            command("unblock", delete("/dns/blocklist"), "Remove domains from the blocklist")
                .operands([domains])
                .work(Work::Special(Special::Unblock))
                .examples(["dns unblock ads.example.com", "dns unblock a.example b.example"]),
        ],
    );
    lan(kinds);
    remote_gateways(kinds);
}

/// Adds the DNS filter, the captive portal and the LAN.
fn lan(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Network, about, commands });
    };
    kind(
        "extfilter",
        "External DNS filter",
        vec![
            command(
                "status",
                get("/dns/extfilter/status"),
                "Status of the external filter: configured, reachable, blocking",
            )
            .examples(["extfilter", "extfilter | jq .reachable"]),
            command("enable", post("/dns/extfilter/enable"), "Use the external filter")
                .examples(["extfilter enable", "extfilter enable | jq .enabled"]),
            command("disable", post("/dns/extfilter/disable"), "Stop using the external filter")
                .examples(["extfilter disable", "extfilter disable | jq .enabled"]),
        ],
    );
    let about = "Check for a captive portal on the uplink";
    kind(
        "captive",
        about,
        vec![command("", post("/captive/check"), about).examples(["captive", "captive | jq ."])],
    );
    let about = "Presets of traffic policies";
    kind(
        "presets",
        about,
        vec![list(get("/presets"), about, PRESETS).examples(["presets", "presets | cut -f2,3"])],
    );
    let about = "Segments of the LAN";
    kind(
        "segments",
        about,
        vec![list(get("/segments"), about, SEGMENTS).examples(["segments", "segments | cut -f2,5"])],
    );
    let about = "VLANs of the LAN";
    kind("vlan", about, vec![list(get("/vlans"), about, VLANS).examples(["vlan", "vlan | cut -f1,2"])]);
    let about = "State of the access point and its stations";
    kind(
        "access-point",
        about,
        vec![
            command("", get("/access-point/status"), about)
                .examples(["access-point", "access-point | jq .stations"]),
        ],
    );
    let about = "Settings of the DHCP server";
    kind(
        "dhcp",
        about,
        vec![
            command("", get("/dhcp"), about).prints(Prints::Fields).examples(["dhcp", "dhcp | grep ^range_"]),
        ],
    );
}

/// Adds the mesh and the federation.
fn remote_gateways(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Network, about, commands });
    };
    let about = "State of the mesh: this node, coordinator, relays";
    kind(
        "mesh",
        about,
        vec![
            command("", get("/mesh/status"), about).examples(["mesh", "mesh | jq -r .state"]),
            command("config", get("/mesh/config"), "Membership of this gateway in a mesh of another coordinator")
                .examples(["mesh config", "mesh config | jq -r .coordinator_url"]),
            command("register", post("/mesh/register"), "Register this gateway at a coordinator, and join its mesh")
                .operands([BODY])
                .remark("A file keeps the pre-auth key and the authorities out of the history of the shell.")
                .examples([
                    "mesh register @member.json",
                    r#"mesh register '{"coordinator_url":"https://gw.example.net:8443","auth_key":"KEY"}' | jq -r .state"#,
                ]),
            command("up", post("/mesh/up"), "Follow the map of the mesh again")
                .examples(["mesh up", "mesh up | jq -r .state"]),
            command("down", post("/mesh/down"), "Leave the mesh until it is switched on again")
                .remark("The registration and the keys stay.")
                .examples(["mesh down", "mesh down | jq -r .state"]),
            command("create-key", post("/mesh/create-key"), "Create a key by which clients join the mesh")
                .operands([BODY])
                .remark("Only this answer shows the key.")
                .examples([
                    "mesh create-key '{}' | jq -r .qr_text",
                    r#"mesh create-key '{"reusable":true,"expires_in":600}' | jq -r .command"#,
                ]),
        ],
    );
    let about = "Peers of the mesh";
    let peer = operand("id", ParameterKind::Text, Arity::One);
    kind(
        "nodes",
        about,
        vec![
            list(get("/mesh/peers"), about, PEERS).examples(["nodes", "nodes | cut -f2,4"]),
            command("get", get("/mesh/peers/{id}"), "Show a peer of the mesh")
                .operands([peer])
                .examples(["nodes get 1", "nodes get 1 | jq .routes"]),
            command("routes", post("/mesh/peers/{id}/routes"), "Approve the prefixes that a peer may route")
                .operands([peer, BODY])
                .remark("They replace those that were approved before.")
                .examples([
                    r#"nodes routes 1 '{"routes":["192.168.50.0/24"]}'"#,
                    r#"nodes routes 1 '{"routes":[]}' | jq .routes"#,
                ]),
            command("delete", delete("/mesh/peers/{id}"), "Remove a peer, which loses access at once")
                .operands([peer])
                .examples(["nodes delete 1", "nodes delete 1 | jq .id"]),
        ],
    );
    let about = "Gateways that synchronise with this one";
    kind(
        "gateway-nodes",
        about,
        vec![
            list(get("/gateway-nodes"), about, NODES)
                .examples(["gateway-nodes", "gateway-nodes | cut -f2,3"]),
        ],
    );
    kind(
        "federation",
        "Synchronisation with other gateways",
        vec![
            command("status", get("/federation/status"), "State of the federation")
                .examples(["federation", "federation | jq ."]),
            command("peers", get("/federation/peers"), "Peers of the federation")
                .examples(["federation peers", "federation peers | jq -r '.[].name'"]),
            command("sync", post("/federation/sync"), "Pull from a peer now").flags(SYNC).examples([
                "federation sync --peer https://gateway2.example:8080",
                "federation sync --peer=https://gateway2.example:8080",
            ]),
            command("rotate-key", post("/federation/rotate-key"), "Replace the signing key of this gateway")
                .flags(ROTATE)
                .examples([
                    "federation rotate-key",
                    "federation rotate-key --overlap 86400 | jq -r .fingerprint_words",
                ]),
            command("hub", get("/federation/hub"), "Configuration and unit for a NATS server as the hub")
                .flags(HUB)
                .examples([
                    "federation hub | jq -r .configuration",
                    "federation hub --tls-certificate /etc/hub.pem --tls-key /etc/hub.key | jq -r .configuration",
                ]),
        ],
    );
}
