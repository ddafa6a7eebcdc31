//! Golden plans: each file of `tests/plans` holds a state with facts, and the plan that comes of it.
//!
//! `UPDATE=1 cargo test -p gateway-core golden` writes the plans again; the diff is for reading.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gateway_core::compile::Compiled;
use gateway_core::indexes::LegId;
use gateway_core::render::{enforce, render};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PEER, PRESHARED_KEY, PRIVATE_KEY};

/// Between what is given and what comes of it.
const SEPARATOR: &str = "---\n# The plan. Written by UPDATE=1.\n";

/// Input of a golden test, in addition to that of [`Fixture::new`].
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GoldenInput {
    lan: Option<Vec<String>>,
    uplinks: Option<Vec<String>>,
    links: BTreeMap<String, GivenLink>,
    without_links: Vec<String>,
    addresses: BTreeMap<String, Vec<String>>,
    default_routes: Vec<(String, String)>,
    neighbours: BTreeMap<String, Vec<std::net::IpAddr>>,
    unusable: Vec<String>,
    /// Objects as users send them, with their kind; `$name` stands for the id of an object.
    state: Vec<Value>,
    /// Removed after the apply: kind and name.
    then_delete: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenLink {
    index: u32,
    vlan: Option<(String, u16)>,
}

#[derive(Serialize)]
struct Shown {
    policies: Vec<String>,
    findings: Vec<String>,
    valid_until: Option<String>,
    maps: BTreeMap<&'static str, Vec<String>>,
    attach: Vec<String>,
    rules: Vec<String>,
    routes: Vec<String>,
    addresses: Vec<String>,
    wireguard: BTreeMap<String, Value>,
    sysctls: BTreeMap<String, String>,
}

impl GoldenInput {
    fn build(&self) -> Fixture {
        let mut fixture = Fixture::new();
        if let Some(lan) = &self.lan {
            fixture.network.lan = lan.clone();
        }
        if let Some(uplinks) = &self.uplinks {
            let settings = |(number, name): (u8, &String)| gateway_core::network::UplinkSettings {
                number: LegId::new(number).expect("a leg"),
                interface: name.clone(),
                ..Default::default()
            };
            fixture.network.uplinks = (1..).zip(uplinks).map(settings).collect();
        }
        for (name, link) in &self.links {
            fixture.link(name, link.index);
            let made = fixture.facts.links.get_mut(name).expect("just made");
            made.vlan.clone_from(&link.vlan);
            made.lower = link.vlan.as_ref().map(|(parent, _)| parent.clone());
        }
        for (name, addresses) in &self.addresses {
            for address in addresses {
                fixture.address(name, address);
            }
        }
        for (name, gateway) in &self.default_routes {
            fixture.default_route(name, gateway);
        }
        for (mac, addresses) in &self.neighbours {
            let mac: gateway_model::MacAddr = mac.parse().expect("an address");
            fixture.facts.neighbours.entry(mac.octets()).or_default().extend(addresses);
        }
        for object in &self.state {
            self.create(&mut fixture, object.clone());
        }
        for name in &self.unusable {
            fixture.set_usable(name, false);
        }
        fixture.facts.links.retain(|name, _| !self.without_links.contains(name));
        fixture.apply();
        for (kind, name) in &self.then_delete {
            let kind = gateway_model::registry::kind(kind).expect("a kind");
            kind.delete(&mut fixture.state, &fixture.ids[name].to_string(), None, true).expect("a deletion");
        }
        fixture
    }

    fn create(&self, fixture: &mut Fixture, object: Value) {
        let mut object = resolve(object, fixture);
        let kind = object.as_object_mut().and_then(|map| map.shift_remove("kind")).expect("a kind");
        let kind = kind.as_str().expect("a text").to_owned();
        if kind == "tunnel" {
            let defaults = json!({
                "type": "wireguard", "private_key": PRIVATE_KEY, "addresses": ["10.64.0.2/32", "fd64::2/128"],
                "peers": [{"public_key": PEER, "preshared_key": PRESHARED_KEY, "endpoint": "203.0.113.9:51820", "allowed_ips": ["0.0.0.0/0", "::/0"]}],
            });
            for (key, value) in defaults.as_object().expect("an object") {
                object.as_object_mut().expect("an object").entry(key).or_insert(value.clone());
            }
        }
        let name = object["name"].as_str().unwrap_or_default().to_owned();
        fixture.create(&kind, object).unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
        if kind == "tunnel" {
            let index = 100 + u32::try_from(fixture.state.tunnels.len()).expect("few tunnels");
            fixture.link(&format!("wg-{name}"), index).set_usable(&name, true);
        }
    }
}

fn resolve(value: Value, fixture: &Fixture) -> Value {
    match value {
        Value::String(text) if text.contains('$') => {
            let one = |part: &str| match part.trim().strip_prefix('$') {
                Some(name) => fixture.ids[name].to_string(),
                None => part.to_owned(),
            };
            text.split(',').map(one).collect::<Vec<_>>().join(",").into()
        }
        Value::Array(list) => list.into_iter().map(|value| resolve(value, fixture)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, resolve(value, fixture))).collect(),
        other => other,
    }
}

fn shown(fixture: &Fixture, compiled: &Compiled) -> String {
    let view = render(compiled, 1);
    let enforced = enforce(&fixture.input(), compiled);
    // Ids differ from run to run.
    let named = |text: String| {
        fixture.ids.iter().fold(text, |text, (name, id)| text.replace(&id.to_string(), &format!("${name}")))
    };
    let list = |list: Vec<String>| list.into_iter().map(named).collect::<Vec<_>>();
    let policies = enforced.policies.iter().map(|policy| {
        let hops: Vec<String> = policy
            .hops
            .iter()
            .map(|hop| {
                let reason = if hop.usable { String::new() } else { format!(" ({})", hop.reason) };
                format!("{}:{}{reason}", hop.r#type, hop.target)
            })
            .collect();
        format!(
            "#{} {} [{}]: {} -> IPv4 {}; IPv6 {}; {}; hops {}",
            policy.rank,
            policy.name,
            policy.status,
            policy.matches.join(", "),
            policy.action.ipv4,
            policy.action.ipv6,
            policy.fail_policy,
            if hops.is_empty() { "none".to_owned() } else { hops.join(", ") },
        )
    });
    let findings = enforced.findings.iter().map(|finding| {
        let policy = finding.policy_id.map_or_else(String::new, |id| format!("{id}: "));
        format!("{policy}{}: {}", finding.code, finding.message)
    });
    let wireguard = view.wireguard.into_iter().map(|(name, device)| {
        let text = serde_json::to_string(&device).expect("a view");
        (name, serde_json::from_str(&named(text)).expect("a view"))
    });
    let maps = view.maps.into_iter().filter(|(_, map)| map.count > 0);
    let shown = Shown {
        policies: list(policies.collect()),
        findings: list(findings.collect()),
        valid_until: enforced.valid_until.map(|time| time.to_string()),
        maps: maps.map(|(name, map)| (name, map.entries)).collect(),
        attach: enforced
            .attach
            .iter()
            .map(|attach| format!("{} {}", attach.interface, attach.program))
            .collect(),
        rules: view.rules.into_iter().filter(|rule| !rule.starts_with("policy")).collect(),
        routes: view.routes,
        addresses: view.addresses,
        wireguard: wireguard.collect(),
        sysctls: view.sysctls,
    };
    serde_yaml::to_string(&shown).expect("a plan")
}

#[test]
fn golden_plans_are_what_the_compiler_makes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 13, "{} files", files.len());
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file");
        let (given, want) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
        let parsed: GoldenInput =
            serde_yaml::from_str(given).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let fixture = parsed.build();
        let have = shown(&fixture, &fixture.compiled());
        if have == want {
            continue;
        }
        if update {
            std::fs::write(&file, format!("{given}{SEPARATOR}{have}")).expect("written");
        } else {
            wrong.push(difference(&file.file_name().unwrap_or_default().to_string_lossy(), want, &have));
        }
    }
    assert!(wrong.is_empty(), "plans changed; UPDATE=1 takes them over:\n{}", wrong.join("\n"));
}

fn difference(name: &str, want: &str, have: &str) -> String {
    let missing =
        want.lines().filter(|line| !have.lines().any(|other| other == *line)).map(|l| format!("- {l}"));
    let added =
        have.lines().filter(|line| !want.lines().any(|other| other == *line)).map(|l| format!("+ {l}"));
    format!("{name}\n{}", missing.chain(added).collect::<Vec<_>>().join("\n"))
}
