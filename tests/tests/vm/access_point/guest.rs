//! The test that runs in the guest.

use std::net::IpAddr;
use std::time::Duration;

use gateway_tests::daemon::Api;
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::ask_within;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::station::{SLOW, Security, Station, move_radio};

const BLOCKED: Duration = Duration::from_secs(3);
const LAPTOP: &str = "192.168.10.10";
/// A configuration without quoting would break at these characters.
const SSID: &str = "home \"of\" Ada";
const PASSPHRASE: &str = "correct horse";
const OF_GUESTS: &str = "battery staple";

fn status(api: &Api) -> Value {
    api.get("/access-point/status").expect("a state")
}

fn wait_for(api: &Api, what: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    wait_ok(SLOW, what, || {
        let status = status(api);
        anyhow::ensure!(is_met(&status), "{status}");
        Ok(status)
    })
    .expect(what)
}

fn is_on(status: &Value) -> bool {
    status["radio"]["state"] == "ENABLED"
        && status["radio"]["networks"].as_array().is_some_and(|all| all.len() == 2)
}

fn station<'s>(status: &'s Value, mac: &str) -> Option<&'s Value> {
    status["stations"].as_array()?.iter().find(|station| station["mac"] == mac)
}

/// Waits until the server sees a station with an address.
fn wait_until_seen_as(of: &Station, expected: IpAddr) {
    wait_ok(SLOW, &format!("the station to be seen as {expected}"), || {
        let answer = ask_within(&of.namespace, (server(false), HTTP).into(), BLOCKED);
        anyhow::ensure!(answer.seen() == Some(expected), "{answer}");
        Ok(())
    })
    .expect("the way");
}

fn start() -> Testbed {
    let mut testbed = Testbed::prepare().expect("a scene");
    move_radio(0, &testbed.network.gateway);
    let ap = json!({"interface": "wlan0", "subnet": "10.9.0.0/24", "ip": "10.9.0.1", "enabled": true,
        "ssid": SSID, "passphrase": PASSPHRASE, "country": "DE",
        "guest": {"ssid": "guests", "passphrase": OF_GUESTS, "subnet": "10.8.0.0/24", "ip": "10.8.0.1"}});
    testbed
        .daemon
        .configure(&json!({"network": {"lan_iface": ["eth1", "wlan0"], "ap": ap}}))
        .expect("configured");
    testbed.daemon.start().expect("the daemon");
    testbed
}

#[test]
#[ignore = "runs inside the guest"]
fn stations_join_with_the_passphrase_and_have_their_policies() {
    let mut testbed = start();
    let shown = wait_for(testbed.api(), "the access point to be on", is_on);
    assert_eq!((&shown["radio"]["channel"], &shown["needs"]), (&json!(6), &Value::Null), "{shown}");
    assert_eq!(shown["radio"]["networks"][0]["ssid"], SSID, "{shown}");
    let mut phone = Station::new(&testbed.network.prefix, 1);
    joins_and_has_its_policies(&testbed, &mut phone);
    wrong_passphrase_does_not_join(&testbed, &mut phone);
    guests_reach_the_internet_alone(&testbed, &mut phone);
    is_ended_with_the_daemon_and_comes_back(&mut testbed, &mut phone);
}

fn joins_and_has_its_policies(testbed: &Testbed, phone: &mut Station) {
    let (api, network) = (testbed.api(), &testbed.network);
    let mac = phone.mac();
    for (security, name) in [(Security::Wpa2, "wpa2"), (Security::Wpa3, "wpa3")] {
        let address = phone.join(SSID, PASSPHRASE, security);
        assert!(address.to_string().starts_with("10.9.0."), "{address}");
        wait_for(api, name, |status| {
            station(status, &mac).is_some_and(|one| one["security"] == name && one["authorized"] == true)
        });
    }
    wait_until_seen_as(phone, wan(false));
    assert!(phone.reaches(LAPTOP), "another network of the LAN");
    let hosts = api.get("/hosts").expect("the hosts");
    let host = hosts.as_array().into_iter().flatten().find(|host| host["mac"] == mac.as_str());
    assert_eq!(host.expect("a host")["interface"], "wlan0", "{hosts}");

    testbed.tunnel("home", &network.exit_a).expect("a tunnel");
    let device = create(api, "/devices", &json!({"name": "phone", "mac": mac})).expect("a device");
    testbed.policy(&policy("vpn", 10, ("device", &device), &["home"])).expect("a policy");
    wait_until_seen_as(phone, network.exit_a.address(false));
    network.settle().expect("silence");
    network.tap.reset();
    network.exit_a.kill9().expect("the exit dies");
    let answer = ask_within(&phone.namespace, (server(false), HTTP).into(), BLOCKED);
    assert_eq!(answer.seen(), None, "{answer}");
    assert_eq!(network.tap.counts().leaked.total(), 0);
}

fn wrong_passphrase_does_not_join(testbed: &Testbed, phone: &mut Station) {
    let mac = phone.mac();
    phone.leave();
    wait_for(testbed.api(), "the station to be gone", |status| station(status, &mac).is_none());
    phone.begin(SSID, "wrong horse", Security::Wpa2);
    wait_ok(SLOW, "the passphrase to be refused", || {
        let log = phone.log();
        anyhow::ensure!(log.contains("WRONG_KEY"), "{log}");
        Ok(())
    })
    .expect("refused");
    assert!(!phone.has_joined());
    let status = status(testbed.api());
    assert!(station(&status, &mac).is_none_or(|one| one["authorized"] == false), "{status}");
}

fn guests_reach_the_internet_alone(testbed: &Testbed, phone: &mut Station) {
    let phone_address = phone.join(SSID, PASSPHRASE, Security::Wpa2).to_string();
    let [mut one, mut other] = [2, 3].map(|radio| Station::new(&testbed.network.prefix, radio));
    let [of_one, _] = [&mut one, &mut other].map(|guest| {
        let address = guest.join("guests", OF_GUESTS, Security::Wpa2);
        assert!(address.to_string().starts_with("10.8.0."), "{address}");
        address
    });
    wait_until_seen_as(&one, wan(false));
    assert!(one.reaches("10.8.0.1"), "the gateway");
    assert!(phone.reaches(LAPTOP), "so a host of the LAN answers");
    for address in [LAPTOP, &phone_address] {
        assert!(!one.reaches(address), "{address} is no host of the guests");
    }
    assert!(other.reaches("10.8.0.1") && !other.reaches(&of_one.to_string()), "guests reach one another");
    // The class of a device does not open the guest network.
    create(
        testbed.api(),
        "/devices",
        &json!({"name": "visitor", "mac": one.mac(), "trust_class": "trusted"}),
    )
    .expect("a device");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert!(!one.reaches(LAPTOP), "a guest with the address of a trusted device");
    let rendered = testbed.api().get("/render").expect("the plan").to_string();
    assert!(rendered.contains("no other LAN network for all hosts"), "{rendered}");
    assert!(!rendered.contains(OF_GUESTS) && !rendered.contains(PASSPHRASE));
}

/// Returns the processes of hostapd in this machine.
fn hostapds() -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_hostapd = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "hostapd")
    };
    pids.filter(is_hostapd).collect()
}

fn is_ended_with_the_daemon_and_comes_back(testbed: &mut Testbed, phone: &mut Station) {
    let before = hostapds();
    assert_eq!(before.len(), 1, "{before:?}");
    let command_line = std::fs::read_to_string(format!("/proc/{}/cmdline", before[0])).expect("a process");
    assert!(!command_line.contains("horse"), "{command_line}");
    testbed.daemon.kill9().expect("killed");
    wait_ok(SLOW, "hostapd to end", || {
        anyhow::ensure!(hostapds().is_empty(), "{:?}", hostapds());
        Ok(())
    })
    .expect("ended");
    testbed.network.gateway.ip("link show dev ap-guest").expect_err("the interface of the guests is gone");
    testbed.daemon.start().expect("the daemon");
    wait_for(testbed.api(), "the access point to be back", is_on);
    phone.join(SSID, PASSPHRASE, Security::Wpa3);
    assert!(phone.reaches("10.9.0.1"));
    // One that is killed is started again.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(hostapds()[0]).expect("a process"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
    wait_for(testbed.api(), "the end to be seen", |status| status["running"] == false);
    wait_for(testbed.api(), "the access point to be back", is_on);
    assert!(testbed.daemon.terminate().expect("ended").success());
    assert_eq!(hostapds(), Vec::<u32>::new());
}
