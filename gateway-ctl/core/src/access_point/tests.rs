//! Configuration and replies of hostapd.

use gateway_model::settings::bootstrap::{AccessPoint, parse};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn access_point(more: &serde_json::Value) -> AccessPoint {
    let mut value = json!({"interface": "wlan0", "subnet": "10.9.0.0/24", "ip": "10.9.0.1", "enabled": true,
        "ssid": "home", "passphrase": "correct horse", "country": "DE"});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn text(ap: &AccessPoint) -> String {
    config_file(ap, None, "/run/gatewayd/access-point").unwrap().expose().to_owned()
}

fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn each_mode_of_security_has_its_suites_and_protected_frames() {
    for (security, suites, frames) in
        [("wpa2", "WPA-PSK", "1"), ("wpa3", "SAE", "2"), ("wpa2-wpa3", "WPA-PSK SAE", "1")]
    {
        let file = text(&access_point(&json!({"security": security})));
        assert_eq!(values(&file, "wpa_key_mgmt"), [suites]);
        assert_eq!(values(&file, "ieee80211w"), [frames]);
        assert_eq!(values(&file, "wpa_passphrase"), ["correct horse"]);
        assert_eq!(values(&file, "ssid2"), ["686f6d65"]);
    }
}

#[test]
fn channels_have_the_width_and_the_centre_of_their_block() {
    for (channel, width, capability, centre) in [
        (36, 80, Some("[HT40+]"), Some("42")),
        (40, 80, Some("[HT40-]"), Some("42")),
        (161, 80, Some("[HT40-]"), Some("155")),
        (112, 40, Some("[HT40-]"), None),
        (165, 20, None, None),
    ] {
        let more = json!({"band": "5ghz", "channel": channel, "width_mhz": width});
        let file = text(&access_point(&more));
        assert_eq!(values(&file, "ht_capab").first().copied(), capability, "{channel}");
        assert_eq!(values(&file, "vht_oper_centr_freq_seg0_idx").first().copied(), centre, "{channel}");
    }
    let file = text(&access_point(&json!({})));
    assert_eq!((values(&file, "hw_mode"), values(&file, "channel")), (vec!["g"], vec!["6"]));
}

#[test]
fn guests_are_isolated_and_have_a_network_of_their_own() {
    let guest =
        json!({"ssid": "guests", "passphrase": "battery staple", "subnet": "10.8.0.0/24", "ip": "10.8.0.1"});
    let file = text(&access_point(&json!({"guest": guest})));
    assert_eq!(values(&file, "bss"), ["ap-guest"]);
    assert_eq!(values(&file, "ap_isolate"), ["0", "1"]);
    assert_eq!(values(&file, "wpa_passphrase"), ["correct horse", "battery staple"]);
    let mut off = guest;
    off["enabled"] = json!(false);
    assert!(values(&text(&access_point(&json!({"guest": off}))), "bss").is_empty());
}

#[test]
fn passphrase_with_the_end_of_a_line_makes_no_file() {
    let ap = access_point(&json!({"passphrase": "correct\nwpa=0"}));
    let error = config_file(&ap, None, "/run").unwrap_err().to_string();
    assert!(error.contains("wpa_passphrase") && !error.contains("correct"), "{error}");
}

proptest! {
    /// Whatever the settings let pass, each line of the file is one that the gateway wrote.
    #[test]
    fn no_value_adds_a_line(
        ssid in any::<String>(),
        passphrase in any::<String>(),
        country in any::<String>(),
        interface in "[!-~]{1,15}",
    ) {
        let mut value = serde_json::to_value(access_point(&json!({}))).unwrap();
        value.as_object_mut().unwrap().remove("has_passphrase");
        value["ssid"] = json!(ssid);
        value["passphrase"] = json!(passphrase);
        value["country"] = json!(country);
        value["interface"] = json!(interface);
        let Ok(ap) = serde_json::from_value::<AccessPoint>(value.clone()) else { return Ok(()) };
        let lines = text(&access_point(&json!({}))).lines().count();
        if let Ok(file) = config_file(&ap, None, "/run/gatewayd/access-point") {
            prop_assert_eq!(file.expose().lines().count(), lines);
            prop_assert_eq!(values(file.expose(), "wpa"), ["2"]);
        } else {
            // The settings refuse these values as well.
            let yaml = serde_json::to_string(&json!({"network": {"lan_iface": interface, "ap": value}})).unwrap();
            prop_assert!(parse(&yaml).is_err());
        }
    }

    #[test]
    fn replies_of_any_form_are_read(text in any::<String>(), lines in "([a-z_]{1,12}(\\[[0-9]\\])?=.{0,20}\n){0,12}") {
        for text in [&text, &lines] {
            let _ = parse_status(text);
            let _ = parse_station(text);
        }
        if let Some(state) = parse_status(&format!("state=ENABLED\n{lines}")) {
            prop_assert!(state.networks.len() <= 16);
        }
    }
}

const STATUS: &str = "state=ENABLED\nphy=phy0\nfreq=2437\nnum_sta_non_erp=0\nchannel=6\nbeacon_int=100\n\
    bss[0]=wlan0\nbssid[0]=02:00:00:00:00:00\nssid[0]=caf\\xc3\\xa9 \\\\ \\\"\nnum_sta[0]=1\n\
    bss[1]=ap-guest\nbssid[1]=42:00:00:00:00:00\nssid[1]=guests\nnum_sta[1]=0\n";

#[test]
fn status_has_channel_and_networks() {
    let state = parse_status(STATUS).unwrap();
    assert_eq!((state.state.as_str(), state.channel, state.frequency_mhz), ("ENABLED", Some(6), Some(2437)));
    let names: Vec<_> =
        state.networks.iter().map(|net| (net.interface.as_str(), net.ssid.as_str())).collect();
    assert_eq!(names, [("wlan0", "café \\ \""), ("ap-guest", "guests")]);
    assert_eq!((state.networks[0].stations, state.networks[1].stations), (Some(1), Some(0)));
    assert_eq!(parse_status("FAIL\n"), None);
}

#[test]
fn station_has_its_security_and_its_traffic() {
    let reply = "02:00:00:00:01:00\nflags=[AUTH][ASSOC][AUTHORIZED][WMM][MFP]\naid=1\nAKMSuiteSelector=00-0f-ac-8\n\
        rx_packets=5\nrx_bytes=812\ntx_bytes=640\nsignal=-30\nconnected_time=12\n";
    let station = parse_station(reply).unwrap();
    assert_eq!(station.mac.to_string(), "02:00:00:00:01:00");
    assert_eq!((station.authorized, station.security, station.signal_dbm), (true, Some("wpa3"), Some(-30)));
    assert_eq!((station.rx_bytes, station.connected_sec), (Some(812), Some(12)));
    let unknown = parse_station("02:00:00:00:01:00\nflags=[AUTH]\n").unwrap();
    assert_eq!((unknown.authorized, unknown.security, unknown.signal_dbm), (false, None, None));
    assert_eq!(parse_station("FAIL\n"), None);
    assert_eq!(parse_station(""), None);
}
