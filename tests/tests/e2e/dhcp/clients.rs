//! The clients of Debian, their leases, and their names.

use anyhow::ensure;
use gateway_tests::dhcp::{Parameters, Program};
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::{enable, forget_address, leases, settings, wait_for_name};
use crate::e2e::SOON;

#[test]
fn clients_of_debian_get_addresses_parameters_and_names() {
    let testbed = Testbed::start().expect("scene");
    let (laptop, tv) = (&testbed.network.laptop, &testbed.network.tv);
    let printer = json!({"mac": "02:00:00:10:00:77", "ip": "192.168.10.77", "hostname": "printer"});
    testbed.api().post("/dhcp/reservations", &printer).expect("reserved");
    wait_for_name(laptop, &["printer.lan"], "192.168.10.77");
    wait_for_name(laptop, &["-x", "192.168.10.77"], "printer.lan.");
    assert_eq!(enable(&testbed, &settings(100, 109)), [] as [serde_json::Value; 0]);
    forget_address(tv);
    for (program, name) in [
        (Program::Udhcpc, "Kitchen-Radio"),
        (Program::Dhclient, "tv.local"),
        (Program::Dhcpcd, "dhcpcd-host"),
        (Program::Networkd, "networkd-host"),
    ] {
        let client = program.start(tv, name).expect("a client");
        let found = client.bound().expect("an address");
        let expected = Parameters {
            address: found.address.clone(),
            router: "192.168.10.1".into(),
            dns: "192.168.10.1".into(),
            domain: "lan".into(),
            server: "192.168.10.1".into(),
            lease_sec: "600".into(),
            ntp: "192.168.10.1".into(),
        };
        assert_eq!(found, expected, "{program:?}");
        let label = name.split('.').next().expect("a part").to_lowercase();
        wait_for_name(laptop, &[&format!("{label}.lan")], &found.address);
        wait_for_name(laptop, &["-x", &found.address], &format!("{label}.lan."));
        let listed = leases(testbed.api(), &format!("?ip={}", found.address));
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!((&listed[0]["mac"], &listed[0]["state"]), (&json!(tv.mac), &json!("active")));
        assert_eq!((&listed[0]["hostname"], &listed[0]["reserved"]), (&json!(label), &json!(false)));
        drop(client);
        forget_address(tv);
    }
}

/// A reservation takes a client to its address at the next renewal, and a change of the range takes no one's address.
#[test]
fn changes_of_the_settings_keep_leases_and_reservations_move_clients() {
    let testbed = Testbed::start().expect("scene");
    let (api, tv) = (testbed.api(), &testbed.network.tv);
    enable(&testbed, &settings(100, 109));
    forget_address(tv);
    let client = Program::Udhcpc.start(tv, "tv").expect("a client");
    let first = client.bound().expect("an address").address;
    let renew = || {
        let pid = Pid::from_raw(i32::try_from(client.process.pid()).expect("a pid"));
        kill(pid, Signal::SIGUSR1).expect("signalled");
    };
    enable(&testbed, &settings(150, 159));
    renew();
    let renewed = client.wait_for("renew").expect("renewed");
    assert_eq!(renewed.address, first, "the lease outlives the range");
    let reservation = json!({"mac": tv.mac, "ip": "192.168.10.42", "hostname": "screen"});
    api.post("/dhcp/reservations", &reservation).expect("reserved");
    let excluded = json!({"exclusions": ["192.168.10.150-192.168.10.158"]});
    let mut narrow = settings(150, 159);
    narrow.as_object_mut().expect("an object").extend(excluded.as_object().expect("an object").clone());
    enable(&testbed, &narrow);
    wait_ok(SOON, "the client to move", || {
        renew();
        let moved = client.bound()?;
        ensure!(moved.address == "192.168.10.42", "{moved:?}");
        Ok(())
    })
    .expect("moved");
    wait_for_name(&testbed.network.laptop, &["screen.lan"], "192.168.10.42");
    let reserved = leases(api, "?reserved=true");
    assert_eq!((reserved.len(), &reserved[0]["ip"]), (1, &json!("192.168.10.42")), "{reserved:?}");
    assert_eq!(leases(api, &format!("?ip={first}"))[0]["state"], "released");
}
