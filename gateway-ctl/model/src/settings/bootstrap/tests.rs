//! Tests of the bootstrap configuration.

use proptest::prelude::*;

use super::*;

fn errors(text: &str) -> Vec<(String, usize, usize)> {
    parse(text).unwrap_err().into_iter().map(|error| (error.path, error.line, error.column)).collect()
}

#[test]
fn the_example_has_every_key_with_its_default() {
    let example = Bootstrap { given: GivenKeys::default(), ..parse(EXAMPLE).unwrap() };
    assert_eq!(example, Bootstrap::default());
    let yaml: serde_yaml::Value = serde_yaml::from_str(EXAMPLE).unwrap();
    let defaults = serde_json::to_value(Bootstrap::default()).unwrap();
    assert_every_key(&defaults, &yaml, "");
}

fn assert_every_key(defaults: &Value, yaml: &serde_yaml::Value, path: &str) {
    for (key, value) in defaults.as_object().into_iter().flatten() {
        let shown = yaml.get(key.as_str());
        assert!(shown.is_some(), "{path}{key} is not in the example");
        assert_every_key(value, shown.unwrap(), &format!("{path}{key}."));
    }
}

#[test]
fn an_empty_file_gives_the_defaults() {
    assert_eq!(parse("").unwrap(), Bootstrap::default());
    assert_eq!(parse("# nothing\nnetwork:\n").unwrap(), Bootstrap::default());
}

#[test]
fn every_error_is_reported_with_line_and_column() {
    let text = "\
log:
  level: loud
network:
  mod: primary
  lan_iface: [eth1, a b]
reconcile:
  interval_sec: 4
auth:
  api_keys:
    - role: viewer
      key: 12
listen:
  api_addr: nowhere
colour: red
";
    assert_eq!(
        errors(text),
        [
            ("log.level".into(), 2, 3),
            ("network.mod".into(), 4, 3),
            ("network.lan_iface".into(), 5, 3),
            ("reconcile.interval_sec".into(), 7, 3),
            ("auth.api_keys[0].key".into(), 11, 7),
            ("listen.api_addr".into(), 13, 3),
            ("colour".into(), 14, 1),
        ]
    );
}

#[test]
fn unsupported_settings_are_refused_by_name() {
    let errors = parse("network:\n  mode: embedded\n").unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("not supported by this version"), "{errors:?}");
}

#[test]
fn an_own_certificate_is_given_whole_and_by_absolute_paths() {
    assert!(parse("tls: { enabled: true }").is_ok());
    assert!(parse("tls: { enabled: true, cert: /a.pem, key: /b.pem }").is_ok());
    assert_eq!(errors("tls:\n  enabled: true\n  cert: /a.pem\n")[0].0, "tls.key");
    assert_eq!(errors("tls:\n  key: /a.pem\n")[0].0, "tls.cert");
    assert_eq!(errors("tls:\n  cert: a.pem\n  key: /b.pem\n"), [("tls.cert".into(), 2, 3)]);
}

#[test]
fn sign_in_can_be_required_and_hosts_are_names() {
    let config = parse("auth: { enabled: true }\nlisten: { host_names: [gateway.lan, box] }\n").unwrap();
    assert!(config.auth.enabled && config.listen.host_names.len() == 2);
    assert!(!Bootstrap::default().auth.enabled);
    let text =
        "listen:\n  host_names:\n    - gateway.lan\n    - http://gateway.lan\n    - gateway.lan:8080\n";
    let wrong: Vec<String> = errors(text).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(wrong, ["listen.host_names[1]", "listen.host_names[2]"]);
}

#[test]
fn broken_yaml_is_shown_where_it_breaks() {
    let errors = errors("log:\n  level: [info\nx: 1\n");
    assert_eq!(errors.len(), 1);
    assert!(errors[0].1 >= 2, "{errors:?}");
    assert_eq!(parse("- a\n- b\n").unwrap_err().len(), 1);
    assert_eq!(parse("1: a\n").unwrap_err().len(), 1);
}

#[test]
fn a_key_given_twice_is_an_error() {
    assert!(parse("log:\n  level: info\nlog:\n  level: warn\n").is_err());
}

#[test]
fn the_lan_may_be_one_interface_or_several_and_never_the_uplink() {
    let lans = |text: &str| parse(text).unwrap().lans().iter().map(IfName::to_string).collect::<Vec<_>>();
    assert_eq!(lans("network:\n  lan_iface: br0\n"), ["br0"]);
    assert_eq!(lans("network:\n  lan_iface: [br0, br1]\n"), ["br0", "br1"]);
    assert_eq!(errors("network:\n  lan_iface: eth0\n"), [("network.lan_iface".into(), 2, 3)]);
    assert_eq!(
        errors("network:\n  lan_iface:\n    - br0\n    - br0\n"),
        [("network.lan_iface[1]".into(), 4, 5)]
    );
    assert!(parse("network:\n  lan_iface: []\n").is_err());
}

#[test]
fn uplinks_come_from_the_list_or_from_the_single_one() {
    assert_eq!(Bootstrap::default().uplinks()[0].as_str(), "eth0");
    let listed = parse("network:\n  wans:\n    - interface: ppp0\n").unwrap();
    assert_eq!(listed.uplinks()[0].as_str(), "ppp0");
    let disabled = parse("network: { wans: [{interface: ppp0, enabled: false}] }").unwrap();
    assert!(disabled.uplinks().is_empty());
    assert!(listed.network.wans[0].balance && listed.network.wans[0].weight == 1);
    let several = "network: { wans: [{interface: ppp0, enabled: false}, {interface: eth2, gateway: 192.0.2.1}, {interface: eth3}] }";
    let several = parse(several).unwrap();
    let names: Vec<String> = several.uplinks().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["eth2", "eth3"]);
    let gateways: Vec<_> = several.network.wans[1..].iter().map(Wan::gateway_address).collect();
    assert_eq!(gateways, [Some("192.0.2.1".parse().unwrap()), None]);
    for wrong in ["gateway: nowhere", "weight: 0", "weight: 257", "probe: {fail: 0}", "probe: {targets: []}"]
    {
        assert!(parse(&format!("network: {{ wans: [{{interface: ppp0, {wrong}}}] }}")).is_err(), "{wrong}");
    }
}

#[test]
fn initial_tunnels_follow_the_rules_of_the_api() {
    let text = "\
tunnels:
  - name: home
    type: wireguard
    private_key: \"QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=\"
    addresses: [10.64.0.2]
  - name: Home
    type: wireguard
    privat_key: x
    peers:
      - endpoint: nowhere
";
    let paths: Vec<String> = errors(text).into_iter().map(|(path, ..)| path).collect();
    for path in [
        "tunnels[1].name",
        "tunnels[1].private_key",
        "tunnels[1].peers[0].public_key",
        "tunnels[1].peers[0].endpoint",
    ] {
        assert!(paths.contains(&path.to_owned()), "{path} not in {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.starts_with("tunnels[0]")), "{paths:?}");
    let one = text.split("  - name: Home").next().unwrap();
    let bootstrap = parse(one).unwrap();
    assert!(bootstrap.tunnels[0].public_key.is_some());
    assert!(!format!("{bootstrap:?}").contains("QAAAAAAA"));
    assert!(!serde_json::to_string(&bootstrap).unwrap().contains("QAAAAAAA"));
}

#[test]
fn no_message_quotes_a_secret() {
    let text = "auth:\n  api_keys:\n    - key: [very-secret-text]\n    - key: tiny-secret\n";
    let shown = parse(text).unwrap_err().iter().map(ConfigError::to_string).collect::<String>();
    assert!(!shown.contains("secret"), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_text_makes_it_panic(text in "(network|dns|log|auth|tunnels|wans|key|[a-z]{1,4}|[:\\-\\[\\]{}#\"'|&*! 0-9\\n]){0,40}") {
        let _ = parse(&text);
    }
}
