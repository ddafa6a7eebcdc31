//! Settings of the access point.

use super::super::parse;

fn file(ap: &str) -> String {
    format!("network: {{ lan_iface: [eth1, wlan0], wan_iface: eth0, ap: {ap} }}")
}

fn paths(ap: &str) -> Vec<String> {
    let errors = parse(&file(ap)).err().unwrap_or_default();
    errors
        .into_iter()
        .map(|error| error.path.strip_prefix("network.ap.").unwrap_or(&error.path).to_owned())
        .collect()
}

#[test]
fn address_is_one_of_a_host_inside_of_the_subnet_of_a_lan_interface() {
    for valid in [
        "null",
        "{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.1 }",
        "{ interface: eth1, subnet: 10.9.0.0/31, ip: 10.9.0.0 }",
        "{ interface: wlan0, subnet: 'fd09::/64', ip: 'fd09::1' }",
    ] {
        parse(&file(valid)).unwrap_or_else(|errors| panic!("{valid}: {errors:?}"));
    }
    for (wrong, path) in [
        ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.1.1 }", "ip"),
        ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 'fd09::1' }", "ip"),
        ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.0 }", "ip"),
        ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.255 }", "ip"),
        ("{ interface: wlan0, subnet: 'fd09::/64', ip: 'fd09::' }", "ip"),
        ("{ interface: eth0, subnet: 10.9.0.0/24, ip: 10.9.0.1 }", "interface"),
        ("{ interface: wlan0, subnet: 10.9.0.1/32, ip: 10.9.0.1 }", "subnet"),
        ("{ interface: wlan0, subnet: 224.0.0.0/24, ip: 224.0.0.1 }", "subnet"),
        ("{ interface: wlan0, ip: 10.9.0.1 }", "subnet"),
    ] {
        let errors = parse(&file(wrong)).unwrap_err();
        assert_eq!(errors[0].path, format!("network.ap.{path}"), "{wrong}: {errors:?}");
    }
}

#[test]
fn subnet_does_not_hold_the_router_of_an_uplink() {
    let ap = "ap: { interface: eth1, subnet: 192.0.2.0/24, ip: 192.0.2.1 }";
    let wans = "wans: [{ interface: eth0, gateway: 192.0.2.254 }]";
    let errors = parse(&format!("network: {{ lan_iface: eth1, {wans}, {ap} }}")).unwrap_err();
    assert_eq!(errors[0].path, "network.ap.subnet", "{errors:?}");
}

/// An access point with these values over those that are valid.
fn enabled(more: &str) -> String {
    let all = "interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.1, enabled: true";
    format!("{{ {all}, {more} }}")
}

const RADIO: &str = "ssid: home, passphrase: correct horse, country: DE";

#[test]
fn an_access_point_needs_name_passphrase_and_country() {
    assert_eq!(paths(&enabled("dhcp: true")), ["country", "ssid", "passphrase"]);
    assert!(paths(&enabled(RADIO)).is_empty());
    for (wrong, path) in [
        ("ssid: home, passphrase: short, country: DE", "passphrase"),
        ("ssid: home, passphrase: \"line\\nbreak\\n\", country: DE", "passphrase"),
        ("ssid: home, passphrase: pässwörter, country: DE", "passphrase"),
        ("ssid: \"a\\nb\", passphrase: correct horse, country: DE", "ssid"),
        ("ssid: a name that is longer than thirty-two bytes, passphrase: correct horse, country: DE", "ssid"),
        ("ssid: home, passphrase: correct horse, country: de", "country"),
        ("ssid: home, passphrase: correct horse, country: Germany", "country"),
    ] {
        let errors = parse(&file(&enabled(wrong))).unwrap_err();
        assert_eq!(errors[0].path, format!("network.ap.{path}"), "{wrong}: {errors:?}");
        assert!(!format!("{errors:?}").contains("break"), "a secret is quoted: {errors:?}");
    }
}

#[test]
fn channel_and_width_fit_the_band() {
    let radio = |more: &str| paths(&enabled(&format!("{RADIO}, {more}")));
    for valid in
        ["channel: 13", "band: 5ghz", "band: 5ghz, channel: 100, width_mhz: 80", "band: 5ghz, channel: 165"]
    {
        assert!(radio(valid).is_empty(), "{valid}");
    }
    assert_eq!(radio("channel: 14"), ["channel"]);
    assert_eq!(radio("channel: 36"), ["channel"]);
    assert_eq!(radio("band: 5ghz, channel: 6"), ["channel"]);
    assert_eq!(radio("band: 5ghz, channel: 38"), ["channel"]);
    assert_eq!(radio("width_mhz: 40"), ["width_mhz"]);
    assert_eq!(radio("band: 5ghz, channel: 165, width_mhz: 40"), ["width_mhz"]);
    assert_eq!(radio("band: 5ghz, width_mhz: 60"), ["width_mhz"]);
}

#[test]
fn guests_have_a_network_name_and_interface_of_their_own() {
    let guest = |more: &str| {
        let all = "ssid: guests, passphrase: battery staple, subnet: 10.8.0.0/24, ip: 10.8.0.1";
        paths(&enabled(&format!("{RADIO}, guest: {{ {all}, {more} }}")))
    };
    assert!(guest("dhcp: true").is_empty());
    assert_eq!(guest("interface: wlan0"), ["guest.interface"]);
    assert_eq!(guest("interface: eth0"), ["guest.interface"]);
    assert_eq!(guest("interface: wg-x"), ["guest.interface"]);
    let of = |guest: &str| paths(&enabled(&format!("{RADIO}, guest: {{ {guest} }}")));
    assert_eq!(
        of("ssid: home, passphrase: battery staple, subnet: 10.8.0.0/24, ip: 10.8.0.1"),
        ["guest.ssid"]
    );
    assert_eq!(
        of("ssid: guests, subnet: 10.9.0.128/25, ip: 10.8.0.1, passphrase: battery staple"),
        ["guest.ip", "guest.subnet"]
    );
    assert_eq!(of("ssid: guests, subnet: 10.8.0.0/24, ip: 10.8.0.1"), ["guest.passphrase"]);
}

#[test]
fn interface_may_be_a_port_of_a_bridge_that_is_a_lan() {
    let bridged = "network: { lan_iface: br0, wan_iface: eth0, bridges: [{ name: br0, ports: [eth1, wlan0] }], \
        ap: { interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.1 } }";
    let config = parse(bridged).unwrap();
    let ap = config.network.ap.as_ref().unwrap();
    assert_eq!(ap.lan_interface(&config.network.bridges).as_str(), "br0");
}

#[test]
fn portable_gateway_has_its_access_point_as_a_lan() {
    let guest = "guest: { ssid: guests, passphrase: battery staple, subnet: 10.8.0.0/24, ip: 10.8.0.1 }";
    let portable =
        |ap: &str| format!("network: {{ mode: portable, lan_iface: [], wan_iface: eth0, ap: {ap} }}");
    let config = parse(&portable(&enabled(&format!("{RADIO}, {guest}")))).unwrap();
    let lans: Vec<String> = config.all_lans().iter().map(ToString::to_string).collect();
    assert_eq!(lans, ["wlan0", "ap-guest"]);
    for without in ["null", "{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.1 }"] {
        let errors = parse(&portable(without)).unwrap_err();
        assert_eq!(errors[0].path, "network.mode", "{errors:?}");
    }
    assert_eq!(parse("network: { mode: embedded }").unwrap_err()[0].path, "network.mode");
}
