//! Secrets of every kind, with changed destinations.

use serde_json::{Value, json};

use crate::registry::{self, KINDS};
use crate::settings::group::{GROUPS, GroupKind};
use crate::state::State;

const OVPN: &str = "client\ndev tun\nremote vpn.example 1194 udp\nauth-user-pass\nremote-cert-tls server\n\
                    <ca>\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n</ca>\n";

/// A kind or a group with secrets that are sent: an input with all of them, and inputs without them that change the
/// destination. A new one needs an entry here.
struct Case {
    name: &'static str,
    input: Value,
    elsewhere: Vec<Value>,
    /// Change that leaves the destination.
    here: Value,
}

fn cases() -> Vec<Case> {
    let target = json!({"type": "s3", "url": "https://s3.example", "username": "key-id", "path": "bucket",
        "secret": "s3cret", "private_key": "-----BEGIN X"});
    vec![
        Case {
            name: "proxy",
            input: json!({"name": "home", "address": "proxy.example", "username": "gw", "password": "s3cret"}),
            elsewhere: vec![json!({"address": "evil.example"}), json!({"port": 4444})],
            here: json!({"notes": "x", "address": "PROXY.example"}),
        },
        Case {
            name: "tunnel",
            input: json!({"name": "home", "type": "openvpn", "config": OVPN, "username": "gw",
                "password": "s3cret", "key_passphrase": "s3cret"}),
            elsewhere: vec![
                json!({"config": OVPN.replace("vpn.example", "evil.example")}),
                json!({"config": OVPN.replace("1194", "1195")}),
                json!({"config": OVPN.replace("MIIB", "MIIC")}),
                json!({"config": OVPN.replace("remote-cert-tls server\n", "")}),
            ],
            here: json!({"config": format!("{OVPN}verb 3\n"), "notes": "x"}),
        },
        Case {
            name: "ai",
            input: json!({"endpoint": "http://127.0.0.1:8000", "api_key": "s3cret"}),
            elsewhere: vec![json!({"endpoint": "http://127.0.0.1:8001"})],
            here: json!({"endpoint": "http://127.0.0.1:8000/", "model": "other"}),
        },
        Case {
            name: "alerts.email",
            input: json!({"host": "smtp.example", "username": "gw", "password": "s3cret"}),
            elsewhere: vec![
                json!({"host": "evil.example"}),
                json!({"port": 25}),
                json!({"ca_certificate": "-----BEGIN CERTIFICATE-----"}),
            ],
            here: json!({"host": "SMTP.example", "username": "other"}),
        },
        Case {
            name: "alerts.mqtt",
            input: json!({"host": "mqtt.example", "username": "gw", "password": "s3cret"}),
            elsewhere: vec![
                json!({"host": "evil.example"}),
                json!({"port": 1884}),
                json!({"tls": true}),
                json!({"ca_certificate": "-----BEGIN CERTIFICATE-----"}),
            ],
            here: json!({"host": "MQTT.example", "username": "other"}),
        },
        Case {
            name: "alerts.webhook",
            input: json!({"url": "https://alerts.example", "secret": "s3cret", "token": "s3cret"}),
            elsewhere: vec![
                json!({"url": "https://evil.example"}),
                json!({"ca_certificate": "-----BEGIN CERTIFICATE-----"}),
            ],
            here: json!({"retries": 3}),
        },
        Case {
            name: "dns.extfilter",
            input: json!({"url": "http://192.0.2.2", "password": "s3cret"}),
            elsewhere: vec![json!({"url": "http://192.0.2.3"})],
            here: json!({"resolver": "192.0.2.2"}),
        },
        Case {
            name: "federation.bus",
            input: json!({"url": "tls://hub.example", "credentials": "gw:s3cret"}),
            elsewhere: vec![
                json!({"url": "tls://evil.example"}),
                json!({"url": "nats://hub.example"}),
                json!({"url": "tls://hub.example", "ca_certificate": "-----BEGIN CERTIFICATE-----"}),
            ],
            here: json!({"url": "tls://HUB.example/", "enabled": true}),
        },
        Case {
            name: "flows.export",
            input: json!({"otlp": {"url": "https://otlp.example", "bearer": "s3cret"}}),
            elsewhere: vec![
                json!({"otlp": {"url": "https://evil.example", "bearer": "s3cret"}}),
                json!({"otlp": {"url": "https://otlp.example", "bearer": "s3cret",
                    "ca_certificate": "-----BEGIN CERTIFICATE-----"}}),
            ],
            here: json!({"ipfix": {"port": 4740}}),
        },
        Case {
            name: "backup.config",
            input: json!({"target": target}),
            elsewhere: ["url", "ca_certificate"]
                .map(|field| {
                    let mut changed = target.clone();
                    let value =
                        if field == "url" { "https://evil.example" } else { "-----BEGIN CERTIFICATE-----" };
                    changed[field] = json!(value);
                    json!({"target": changed})
                })
                .into(),
            here: json!({"retain": 3}),
        },
    ]
}

fn draft() -> State {
    State::default().begin("2026-11-29T12:00:00Z".parse().expect("a time"))
}

/// Place of a stored case.
enum Stored {
    Object(&'static registry::Kind, String),
    Group(&'static GroupKind),
}

impl Stored {
    fn new(case: &Case, state: &mut State) -> Self {
        if let Some(kind) = registry::kind(case.name) {
            let created = kind.create(state, case.input.clone()).expect("an object");
            return Stored::Object(kind, created.id.to_string());
        }
        let group = GroupKind::find(case.name).expect("a group");
        group.put(state, case.input.clone()).expect("a group");
        Stored::Group(group)
    }

    fn sent(&self) -> &'static [&'static str] {
        match self {
            Stored::Object(kind, _) => kind.sent_secrets,
            Stored::Group(group) => group.sent_secrets,
        }
    }

    /// Returns the paths of warnings of a replacement; an invalid one changes nothing.
    fn replace(&self, state: &mut State, input: Value) -> Option<Vec<String>> {
        let warnings = match self {
            Stored::Object(kind, id) => kind.replace(state, id, None, input).ok()?.warnings,
            Stored::Group(group) => group.put(state, input).ok()?,
        };
        Some(warnings.into_iter().map(|warning| warning.path).collect())
    }

    /// Returns the sent secrets that are set.
    fn set(&self, state: &State) -> Vec<&'static str> {
        let shown = match self {
            Stored::Object(kind, id) => kind.get(state, id).expect("an object").0,
            Stored::Group(group) => group.shown(state),
        };
        let is_set = |path: &str| {
            let (parent, leaf) = path.rsplit_once('.').unwrap_or(("", path));
            let parent = parent.split('.').filter(|step| !step.is_empty()).fold(&shown, |at, step| &at[step]);
            parent[format!("has_{leaf}")] == true
        };
        self.sent().iter().copied().filter(|path| is_set(path)).collect()
    }
}

/// Returns an input without the sent secrets, with other values for some fields.
fn without_secrets(case: &Case, sent: &[&str], change: &Value) -> Value {
    let mut input = case.input.clone();
    for (key, value) in change.as_object().expect("fields") {
        input[key] = value.clone();
    }
    for path in sent {
        let mut steps: Vec<&str> = path.split('.').collect();
        let leaf = steps.pop().expect("a field");
        let parent = steps.into_iter().fold(&mut input, |at, step| &mut at[step]);
        parent.as_object_mut().expect("an object").shift_remove(leaf);
    }
    input
}

#[test]
fn every_kind_and_group_says_where_its_secrets_go() {
    let kinds = KINDS.iter().map(|kind| (kind.noun, kind.secrets, kind.sent_secrets, kind.local_secrets));
    let groups =
        GROUPS.iter().map(|group| (group.key, group.secrets, group.sent_secrets, group.local_secrets));
    let cases = cases();
    for (name, secrets, sent, local) in kinds.chain(groups) {
        let said = |path: &&str| sent.contains(path) != local.contains(path);
        assert!(secrets.iter().all(said), "{name}: is each secret sent or not? {secrets:?}");
        assert_eq!(secrets.len(), sent.len() + local.len(), "{name}");
        let tested = cases.iter().any(|case| case.name == name);
        assert_eq!(!sent.is_empty(), tested, "{name}: a case for this test");
    }
}

#[test]
fn change_of_the_destination_drops_stored_secrets_unless_they_are_sent_again() {
    for case in cases() {
        for change in &case.elsewhere {
            let mut state = draft();
            let stored = Stored::new(&case, &mut state);
            assert_eq!(stored.set(&state), stored.sent(), "{}", case.name);
            let input = without_secrets(&case, stored.sent(), change);
            match stored.replace(&mut state, input.clone()) {
                Some(warned) => {
                    assert_eq!(stored.set(&state), [""; 0], "{} {change}", case.name);
                    for path in stored.sent() {
                        assert!(warned.contains(&(*path).to_owned()), "{} {path}: {warned:?}", case.name);
                    }
                }
                // Refused, because it needs the secret: nothing changed.
                None => assert_eq!(stored.set(&state), stored.sent(), "{}", case.name),
            }
            // With the secrets in the same input, they stay.
            let mut again = case.input.clone();
            for (key, value) in change.as_object().expect("fields") {
                again[key] = value.clone();
            }
            assert!(stored.replace(&mut state, again).is_some(), "{}", case.name);
            assert_eq!(stored.set(&state), stored.sent(), "{}", case.name);
        }
    }
}

#[test]
fn stored_secrets_stay_while_the_destination_does() {
    for case in cases() {
        let mut state = draft();
        let stored = Stored::new(&case, &mut state);
        let input = without_secrets(&case, stored.sent(), &case.here);
        stored.replace(&mut state, input).unwrap_or_else(|| panic!("{}", case.name));
        assert_eq!(stored.set(&state), stored.sent(), "{}", case.name);
    }
}
