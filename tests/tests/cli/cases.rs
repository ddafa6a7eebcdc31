//! The commands whose output is compared with golden files, in execution order: later ones depend on objects of earlier
//! ones.

/// A run of the client.
pub(super) struct Case {
    /// Name of its file below `golden`.
    pub file: &'static str,
    pub arguments: &'static [&'static str],
    /// Standard input.
    pub input: Option<&'static str>,
    pub look: Look,
}

/// Reproducible part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Whole,
    /// Names and types of the fields.
    Shape,
    /// The first line.
    Header,
    /// The columns and the newest row, with placeholders for numbers.
    Newest,
}

const fn case(file: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { file, arguments, input: None, look: Look::Whole }
}

const fn fed(file: &'static str, arguments: &'static [&'static str], input: &'static str) -> Case {
    Case { file, arguments, input: Some(input), look: Look::Whole }
}

const fn shape(file: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { file, arguments, input: None, look: Look::Shape }
}

const fn header(file: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { file, arguments, input: None, look: Look::Header }
}

const fn newest(file: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { file, arguments, input: None, look: Look::Newest }
}

const UNKNOWN: &str = "0199f1c2-0000-7000-8000-000000000001";

pub(super) const CASES: &[Case] = &[
    shape("status", &["status"]),
    shape("health", &["health"]),
    shape("platform", &["platform"]),
    shape("observer", &["observer"]),
    case("version", &["version"]),
    header("drift", &["drift"]),
    case("verify", &["verify"]),
    case("conflicts", &["conflicts"]),
    // Devices: the complete life cycle of an object, with all three sources of a body.
    case("devices-empty", &["devices"]),
    case("devices-create", &["devices", "create", r#"{"name":"laptop","mac":"02:00:00:00:00:0a"}"#]),
    fed(
        "devices-create-stdin",
        &["devices", "create", "-"],
        "{\"name\": \"tv\",\n \"mac\": \"02:00:00:00:00:0b\"}",
    ),
    fed("devices-create-hostile", &["devices", "create"], r#"{"name":"a b","hostname":"x\u001b[2J"}"#),
    case("devices-create-invalid", &["devices", "create", r#"{"mac":"zz"}"#]),
    case("devices-create-unknown-key", &["devices", "create", r#"{"name":"radio","colour":"red"}"#]),
    case("devices-list", &["devices", "list"]),
    case("devices-get", &["devices", "get", "laptop"]),
    case("devices-get-unknown", &["devices", "get", UNKNOWN]),
    case(
        "devices-update",
        &["devices", "update", "tv", r#"{"name":"television","mac":"02:00:00:00:00:0b"}"#],
    ),
    case("evaluate-name", &["evaluate", "laptop"]),
    case("evaluate-mac", &["evaluate", "02:00:00:00:00:0b"]),
    case("evaluate-unknown", &["evaluate", "fridge"]),
    case("evaluate-flow-unknown", &["evaluate", "--flow", "0123456789abcdef"]),
    case("evaluate-both", &["evaluate", "laptop", "--flow", "0123456789abcdef"]),
    case("devices-delete", &["devices", "delete", "television"]),
    case("device-groups-create", &["device-groups", "create", r#"{"name":"office"}"#]),
    case("device-groups-list", &["device-groups"]),
    case("device-groups-get", &["device-groups", "get", "office"]),
    case("device-groups-update", &["device-groups", "update", "office", r#"{"name":"bureau"}"#]),
    case("device-groups-delete", &["device-groups", "delete", "bureau"]),
    case("trust-classes-create", &["trust-classes", "create", r#"{"name":"printers","internet":"none"}"#]),
    case("trust-classes-list", &["trust-classes"]),
    case("trust-classes-get", &["trust-classes", "get", "printers"]),
    case(
        "trust-classes-update",
        &["trust-classes", "update", "printers", r#"{"name":"printers","internet":"policy"}"#],
    ),
    case("trust-classes-delete", &["trust-classes", "delete", "printers"]),
    case("trust-classes-delete-builtin", &["trust-classes", "delete", "trusted"]),
    case("privacy-classes-create", &["privacy-classes", "create", r#"{"name":"quiet","block_doh":true}"#]),
    case("privacy-classes-list", &["privacy-classes"]),
    case("privacy-classes-get", &["privacy-classes", "get", "quiet"]),
    case(
        "privacy-classes-update",
        &["privacy-classes", "update", "quiet", r#"{"name":"quiet","block_doh":false}"#],
    ),
    case("privacy-classes-delete", &["privacy-classes", "delete", "quiet"]),
    case(
        "profiles-create",
        &["profiles", "create", r#"{"name":"work","hops":[{"type":"vpn","target":"exit"}]}"#],
    ),
    case("profiles-list", &["profiles"]),
    case("profiles-get", &["profiles", "get", "work"]),
    case("profiles-update", &["profiles", "update", "work", r#"{"name":"work","hops":[]}"#]),
    case("profiles-delete", &["profiles", "delete", "work"]),
    case(
        "chains-create",
        &[
            "chains",
            "create",
            r#"{"name":"double","hops":[{"type":"interface","target":"eth0"},{"type":"vpn","target":"exit"}]}"#,
        ],
    ),
    case("chains-list", &["chains"]),
    case("chains-get", &["chains", "get", "double"]),
    case(
        "chains-update",
        &[
            "chains",
            "update",
            "double",
            r#"{"name":"twice","hops":[{"type":"interface","target":"eth0"},{"type":"vpn","target":"exit"}]}"#,
        ],
    ),
    case("chains-delete", &["chains", "delete", "twice"]),
    case(
        "exceptions-create",
        &[
            "exceptions",
            "create",
            r#"{"type":"emergency-bypass","device_id":"ID OF /devices?name=laptop","allow_direct":true,"reason":"a call"}"#,
        ],
    ),
    case(
        "exceptions-create-unknown",
        &[
            "exceptions",
            "create",
            r#"{"type":"quarantine","device_id":"0199f1c2-0000-7000-8000-000000000001"}"#,
        ],
    ),
    case("exceptions-list", &["exceptions"]),
    case("exceptions-get", &["exceptions", "get", "ID OF /exceptions/active"]),
    case("exceptions-get-unknown", &["exceptions", "get", UNKNOWN]),
    case("exceptions-delete", &["exceptions", "delete", "ID OF /exceptions/active"]),
    case("exceptions-revoked", &["exceptions"]),
    case(
        "federation-roles-create",
        &["federation-roles", "create", r#"{"name":"mirror","permissions":[{"kind":"dns","pull":true}]}"#],
    ),
    case("federation-roles-list", &["federation-roles"]),
    case("federation-roles-get", &["federation-roles", "get", "mirror"]),
    case(
        "federation-roles-update",
        &["federation-roles", "update", "mirror", r#"{"name":"mirror","permissions":[]}"#],
    ),
    case("federation-roles-delete", &["federation-roles", "delete", "mirror"]),
    case(
        "test-definitions-create",
        &[
            "test-definitions",
            "create",
            r#"{"name":"no-leak","source":{"cidr":"192.0.2.0/24"},"deny":["192.0.2.1:443"]}"#,
        ],
    ),
    case("test-definitions-list", &["test-definitions"]),
    case("test-definitions-get", &["test-definitions", "get", "no-leak"]),
    case(
        "test-definitions-update",
        &["test-definitions", "update", "no-leak", r#"{"name":"no-leak","enabled":false}"#],
    ),
    case("test-definitions-run", &["test-definitions", "run"]),
    case("test-definitions-delete", &["test-definitions", "delete", "no-leak"]),
    case("tunnels-list", &["tunnels"]),
    shape("tunnels-get", &["tunnels", "get", "exit"]),
    shape("tunnels-down", &["tunnels", "down", "exit"]),
    shape("tunnels-up", &["tunnels", "up", "exit"]),
    case(
        "proxy-create",
        &["proxy", "create", r#"{"name":"office","address":"192.0.2.1","port":1080,"enabled":false}"#],
    ),
    case("proxy-list", &["proxy"]),
    case("proxy-get", &["proxy", "get", "office"]),
    case("proxy-delete", &["proxy", "delete", "office"]),
    case("leak-matrix", &["leak-matrix"]),
    case("fail-matrix", &["fail-matrix"]),
    case("leak-check", &["leak-check"]),
    shape("render", &["render"]),
    shape("enforce", &["enforce"]),
    shape("enforce-reconcile", &["enforce", "reconcile"]),
    shape("reconcile", &["reconcile"]),
    fed("validate", &["validate"], r#"{"resources":{"devices":[{"name":"camera"}]}}"#),
    fed("validate-invalid", &["validate", "-"], r#"{"resources":{"devices":[{"mac":"zz"}]}}"#),
    fed("apply", &["apply"], r#"{"resources":{"devices":[{"name":"camera"}]}}"#),
    header("flows", &["flows"]),
    header("flows-top", &["flows", "top", "device", "--limit", "5"]),
    case("flows-verdict", &["flows", "list", "--verdict", "maybe"]),
    header("hosts", &["hosts"]),
    case("hosts-adopt-unknown", &["hosts", "adopt", UNKNOWN, r#"{"name":"television"}"#]),
    case("hosts-forget-unknown", &["hosts", "forget", UNKNOWN]),
    case("dns", &["dns"]),
    case("dns-block", &["dns", "block", "ads.example.com", "b.example"]),
    case("dns-unblock", &["dns", "unblock", "ads.example.com", "c.example"]),
    case("extfilter", &["extfilter"]),
    case("extfilter-enable", &["extfilter", "enable"]),
    case("extfilter-disable", &["extfilter", "disable"]),
    shape("captive", &["captive"]),
    case("presets", &["presets"]),
    case("segments", &["segments"]),
    case("vlan", &["vlan"]),
    case("dhcp", &["dhcp"]),
    case("mesh", &["mesh"]),
    case("mesh-config", &["mesh", "config"]),
    case("mesh-down", &["mesh", "down"]),
    case("mesh-register-invalid", &["mesh", "register", "{}"]),
    case("mesh-up", &["mesh", "up"]),
    case("mesh-create-key-off", &["mesh", "create-key", "{}"]),
    case("nodes", &["nodes"]),
    case("nodes-get-unknown", &["nodes", "get", "7"]),
    case("nodes-routes-unknown", &["nodes", "routes", "7", r#"{"routes":["192.168.50.0/24"]}"#]),
    case("nodes-delete-unknown", &["nodes", "delete", "7"]),
    case("gateway-nodes", &["gateway-nodes"]),
    case("federation", &["federation"]),
    case("federation-peers", &["federation", "peers"]),
    case("federation-sync", &["federation", "sync", "--peer", "https://gateway2.example:8080"]),
    case("federation-hub", &["federation", "hub"]),
    case("federation-rotate-key", &["federation", "rotate-key", "--overlap", "60"]),
    case("pending", &["pending"]),
    case("discard", &["discard"]),
    newest("audit", &["audit"]),
    header("alerts", &["alerts"]),
    case("alerts-mute-unknown", &["alerts", "mute", "7", "--seconds", "3600"]),
    case("alerts-clear-secret-unknown", &["alerts", "clear-secret", "webhook.url"]),
    case("alerts-unmute-unknown", &["alerts", "unmute", "7"]),
    header("anomalies", &["anomalies"]),
    shape("backup-status", &["backup", "status"]),
    case("backup-run", &["backup", "run"]),
    shape("backup-export", &["backup", "export"]),
    case("backup-import", &["backup", "import", "tests/cli/golden/input/export.json"]),
    newest("snapshots", &["snapshots"]),
    case("rollback", &["rollback", "NAME OF /snapshots"]),
    case("rollback-unknown", &["rollback", "never-made"]),
    case("secrets", &["secrets"]),
    case("access-point", &["access-point"]),
    case("bluetooth-status", &["bluetooth", "status"]),
    case("bluetooth-enable", &["bluetooth", "enable"]),
    case("bluetooth-disable", &["bluetooth", "disable"]),
    case("bluetooth-name", &["bluetooth", "name", "gateway"]),
    case("bluetooth-scan", &["bluetooth", "scan", "--seconds", "5"]),
    case("bluetooth-devices", &["bluetooth", "devices"]),
    case("bluetooth-nearby", &["bluetooth", "nearby"]),
    case("bluetooth-rssi", &["bluetooth", "rssi", "00:16:3e:00:00:01"]),
    case("bluetooth-ids", &["bluetooth", "ids"]),
    case("bluetooth-pair", &["bluetooth", "pair", "00:16:3e:00:00:01", "--passkey", "123456"]),
    case("bluetooth-remove", &["bluetooth", "remove", "00:16:3e:00:00:01"]),
    case("bluetooth-connect", &["bluetooth", "connect"]),
    case("bluetooth-disconnect", &["bluetooth", "disconnect"]),
    case("bluetooth-nap-start", &["bluetooth", "nap-start"]),
    case("bluetooth-nap-stop", &["bluetooth", "nap-stop"]),
    case("ai-status", &["ai", "status"]),
    case("ai-query", &["ai", "query", "why is it slow"]),
    case("ai-policy", &["ai", "policy", "block the guests"]),
    case("ai-models", &["ai", "models"]),
    case("ai-load", &["ai", "load", "small"]),
    case("ai-unload", &["ai", "unload", "small"]),
    case("ai-pull", &["ai", "pull", "small"]),
    case("ai-remove", &["ai", "remove", "small"]),
    case("ai-service", &["ai", "service", "restart"]),
    case(
        "ai-validate",
        &["ai", "validate", r#"{"policy": {"name": "x", "hops": [{"type": "vpn", "target": "no"}]}}"#],
    ),
    // This kind of machine has no device-mapper.
    case("storage", &["storage"]),
    case("storage-setup", &["storage", "setup", r#"{"size_mb": 64}"#]),
    case("storage-unlock", &["storage", "unlock", "{}"]),
    case("storage-lock", &["storage", "lock"]),
    case("storage-passphrase", &["storage", "passphrase", r#"{"passphrase": "correct horse battery"}"#]),
    case("storage-store-key", &["storage", "store-key", "{}"]),
    case("storage-remove-key", &["storage", "remove-key"]),
    case("storage-seal-key", &["storage", "seal-key", "{}"]),
    case("storage-remove-sealed-key", &["storage", "remove-sealed-key"]),
    case("storage-teardown", &["storage", "teardown"]),
    case("capture-list", &["capture"]),
    case("capture-start", &["capture", "start", "--iface", "eth1", "--filter", "port 53", "--count", "10"]),
    case("capture-get", &["capture", "get", UNKNOWN]),
    case("capture-stop", &["capture", "stop", UNKNOWN]),
    // The file exists: nothing is built. The test `support_bundle` builds one.
    case("bundle", &["bundle", "tests/cli/golden/input/export.json"]),
    header("completion-bash", &["completion", "bash"]),
    // The help texts are compared as well.
    case("help", &["--help"]),
    case("help-devices", &["devices", "--help"]),
    case("help-devices-update", &["devices", "update", "--help"]),
    case("help-capture-start", &["help", "capture", "start"]),
    case("help-status", &["status", "-h"]),
];
