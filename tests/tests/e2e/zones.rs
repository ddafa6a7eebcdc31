//! Secondary zones and signed zones, with an independent name server and validator.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server::ADDRESS;
use gateway_tests::netns::Namespace;
use gateway_tests::process::Process;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::topology::LAN_V4;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::e2e::SOON;

const SERVFAIL: u8 = 2;

/// Returns a daemon whose resolver has one upstream, which resolves every name.
fn resolving() -> (Testbed, Upstream) {
    let mut testbed = Testbed::prepare().expect("scene");
    let upstream = Upstream::start(&testbed.network.internet).expect("upstream");
    testbed.daemon.configure(&json!({"dns": {"upstream_servers": [ADDRESS]}})).expect("configured");
    testbed.daemon.start().expect("daemon");
    (testbed, upstream)
}

/// NSD with the zone `corp.example`, beside the upstream at another port.
struct Primary {
    _process: Process,
    _folder: TempDir,
}

const PORT: u16 = 5300;

impl Primary {
    fn start(internet: &Namespace, serial: u32) -> Primary {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let zone = format!(
            "$ORIGIN corp.example.\n$TTL 300\n@ SOA ns admin {serial} 3600 600 86400 60\n@ NS ns\nns A 192.0.2.53\n\
             www A 192.0.2.{}\n*.wild TXT \"any\"\nodd TYPE65280 \\# 3 010203\nold DNAME new\nx.new A 192.0.2.99\n\
             sub NS ns.sub\nns.sub A 192.0.2.54\n",
            serial % 256
        );
        fs::write(at.join("corp.zone"), zone).expect("the zone");
        let folder_text = at.display();
        let configuration = format!(
            "server:\n ip-address: {ADDRESS}@{PORT}\n username: \"\"\n chroot: \"\"\n zonesdir: \"{folder_text}\"\n \
             pidfile: \"{folder_text}/nsd.pid\"\n database: \"\"\n zonelistfile: \"{folder_text}/zones.list\"\n \
             xfrdfile: \"{folder_text}/xfrd.state\"\n xfrdir: \"{folder_text}\"\n server-count: 1\n\
             remote-control:\n control-enable: no\n\
             zone:\n name: corp.example\n zonefile: corp.zone\n provide-xfr: 0.0.0.0/0 NOKEY\n"
        );
        let file = at.join("nsd.conf");
        fs::write(&file, configuration).expect("its configuration");
        let mut command = internet.command("nsd");
        command.args(["-d", "-c"]).arg(&file);
        let process = internet.spawn(command).expect("nsd");
        Primary { _process: process, _folder: folder }
    }
}

fn dig(testbed: &Testbed, arguments: &[&str]) -> String {
    let all = [&["@192.168.10.1", "+short", "+norecurse"][..], arguments].concat();
    testbed.network.laptop.namespace.run("dig", &all).expect("dig").trim().to_owned()
}

fn zone(testbed: &Testbed, id: &str) -> Value {
    testbed.api().get(&format!("/dns/zones/{id}")).expect("the zone")
}

fn wait_for_serial(testbed: &Testbed, id: &str, serial: u32) -> Value {
    wait_ok(SOON, "the copy", || {
        let zone = testbed.api().get(&format!("/dns/zones/{id}"))?;
        ensure!(zone["serial"] == serial, "{zone}");
        Ok(zone)
    })
    .expect("a copy")
}

#[test]
fn a_secondary_zone_is_its_servers_copy_and_outlives_them() {
    let (mut testbed, upstream) = resolving();
    let primary = Primary::start(&testbed.network.internet, 41);
    let body = json!({
        "name": "corp.example", "type": "secondary", "upstreams": [format!("{ADDRESS}:{PORT}")],
    });
    let id = create(testbed.api(), "/dns/zones", &body).expect("a zone");
    let shown = wait_for_serial(&testbed, &id, 41);
    assert_eq!((&shown["records_count"], &shown["error"]), (&json!(10), &Value::Null), "{shown}");
    assert!(shown["expires_at"].is_string() && shown["last_updated"].is_string(), "{shown}");
    let served = |testbed: &Testbed| {
        let mut client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
        wait_ok(SOON, "the zone to be served", || {
            let reply = client.ask("www.corp.example", A)?;
            ensure!(reply.addresses == [std::net::IpAddr::from([192, 0, 2, 41])], "{reply:?}");
            Ok(())
        })
        .expect("the copy is served");
        assert_eq!(dig(testbed, &["a.wild.corp.example", "TXT"]), "\"any\"");
        assert_eq!(dig(testbed, &["odd.corp.example", "TYPE65280"]), "\\# 3 010203");
        assert_eq!(
            dig(testbed, &["x.old.corp.example", "A"]),
            "new.corp.example.\nx.new.corp.example.\n192.0.2.99"
        );
        assert_eq!(client.ask("none.corp.example", A).expect("an answer").rcode, 3);
    };
    served(&testbed);
    // Before it had the zone, the resolver forwarded these queries upstream.
    let before = upstream.askers("www.corp.example").len();

    // Its server is gone, and so is the daemon's state.
    drop(primary);
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    served(&testbed);
    assert_eq!(zone(&testbed, &id)["serial"], 41);
    assert_eq!(upstream.askers("www.corp.example").len(), before, "a question elsewhere");
}

#[test]
fn a_secondary_zone_without_data_is_answered_with_servfail_and_not_forwarded() {
    let (testbed, upstream) = resolving();
    let body = json!({"name": "gone.example", "type": "secondary", "upstreams": ["192.0.2.53:5399"]});
    let id = create(testbed.api(), "/dns/zones", &body).expect("a zone");
    let mut client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
    wait_ok(SOON, "the zone", || {
        let reply = client.ask("www.gone.example", A)?;
        ensure!(reply.rcode == SERVFAIL && reply.addresses.is_empty(), "{reply:?}");
        let zone = testbed.api().get(&format!("/dns/zones/{id}"))?;
        ensure!(zone["serial"].is_null() && zone["error"].is_string(), "{zone}");
        Ok(())
    })
    .expect("a failure");
    // Before it had the zone, the resolver forwarded these queries upstream.
    let before = upstream.askers("www.gone.example").len();
    for _ in 0..20 {
        assert_eq!(client.ask("www.gone.example", A).expect("an answer").rcode, SERVFAIL);
    }
    assert_eq!(upstream.askers("www.gone.example").len(), before, "a question elsewhere");
}

fn record(testbed: &Testbed, zone: &str, name: &str, kind: &str, value: &str) {
    let body = json!({"zone": zone, "name": name, "type": kind, "value": value});
    create(testbed.api(), "/dns/records", &body).expect("a record");
}

/// Returns delv's output for a query to the gateway, with the zone's key as the trust anchor.
fn delv(testbed: &Testbed, anchors: &Path, root: &str, name: &str, kind: &str) -> String {
    let mut command = testbed.network.laptop.namespace.command("delv");
    command.arg("@192.168.10.1").arg("-a").arg(anchors).arg(format!("+root={root}")).args([name, kind]);
    let output = command.output().expect("delv");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

#[test]
fn a_signed_zone_proves_itself_to_a_validator() {
    let (testbed, _upstream) = resolving();
    let top =
        testbed.api().post("/dns/zones", &json!({"name": "corp.example", "dnssec": true})).expect("a zone");
    assert_eq!(top["has_signing_key"], true);
    let mut body = json!({"name": "lab.corp.example", "dnssec": true});
    create(testbed.api(), "/dns/zones", &body).expect("a zone");
    body = json!({"name": "plain.corp.example"});
    create(testbed.api(), "/dns/zones", &body).expect("a zone");
    record(&testbed, "corp.example", "www", "A", "192.0.2.1");
    record(&testbed, "corp.example", "www", "A", "192.0.2.2");
    record(&testbed, "corp.example", "*.wild", "TXT", "any");
    record(&testbed, "corp.example", "alias", "CNAME", "x.wild.corp.example");
    record(&testbed, "corp.example", "@", "MX", "10 www.corp.example");
    record(&testbed, "corp.example", "a.b.c", "HTTPS", "1 . alpn=h2");
    record(&testbed, "corp.example", "sub", "NS", "ns.sub.corp.example");
    record(&testbed, "corp.example", "ns.sub", "A", "192.0.2.53");
    record(&testbed, "corp.example", "safe", "NS", "ns.sub.corp.example");
    let digest = "B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17";
    record(&testbed, "corp.example", "safe", "DS", &format!("60485 13 2 {digest}"));
    record(&testbed, "lab.corp.example", "www", "A", "192.0.2.3");
    record(&testbed, "plain.corp.example", "www", "A", "192.0.2.4");

    let folder = tempfile::tempdir().expect("a folder");
    // The DS record for the parent zone, in the form of a key file.
    let ds = top["ds"].as_str().expect("a DS record");
    let mut words = ds.splitn(4, ' ');
    let [tag, algorithm, kind, digest] = std::array::from_fn(|_| words.next().expect("four words"));
    let anchors = folder.path().join("anchors");
    let text =
        format!("trust-anchors {{ corp.example. static-ds {tag} {algorithm} {kind} \"{digest}\"; }};\n");
    fs::write(&anchors, text).expect("the anchors");
    let keyed = folder.path().join("key");
    let key = top["dnskey"].as_str().expect("a DNSKEY record").replacen(" 3 13 ", " 3 13 \"", 1);
    fs::write(&keyed, format!("trust-anchors {{ corp.example. static-key {key}\"; }};\n")).expect("the key");

    const PROVED: &str = "; fully validated";
    const DENIED: &str = "; negative response, fully validated";
    let cases = [
        ("www.corp.example", "A", PROVED),
        ("corp.example", "SOA", PROVED),
        ("corp.example", "NS", PROVED),
        ("corp.example", "MX", PROVED),
        ("corp.example", "DNSKEY", PROVED),
        ("a.b.c.corp.example", "HTTPS", PROVED),
        ("anything.wild.corp.example", "TXT", PROVED),
        ("alias.corp.example", "TXT", PROVED),
        ("safe.corp.example", "DS", PROVED),
        ("lab.corp.example", "DS", PROVED),
        ("www.lab.corp.example", "A", PROVED),
        ("www.corp.example", "AAAA", DENIED),
        ("none.corp.example", "A", DENIED),
        ("b.c.corp.example", "A", DENIED),
        ("anything.wild.corp.example", "A", DENIED),
        ("sub.corp.example", "DS", DENIED),
        ("none.lab.corp.example", "A", DENIED),
        ("www.plain.corp.example", "A", "; unsigned answer"),
    ];
    let first = |name: &str, kind: &str, want: &str| {
        wait_ok(SOON, "the answer to be proved", || {
            let said = delv(&testbed, &anchors, "corp.example", name, kind);
            ensure!(said.lines().any(|line| line == want), "{name} {kind}: {said}");
            Ok(())
        })
    };
    for (name, kind, want) in cases {
        first(name, kind, want).expect("proved");
    }
    let said = delv(&testbed, &keyed, "corp.example", "www.corp.example", "A");
    assert!(said.contains(PROVED), "{said}");
    let plain = dig(&testbed, &["www.corp.example", "A"]);
    assert_eq!(plain.lines().count(), 2, "nobody asked for signatures: {plain}");

    // The key belongs to the zone object: it persists over a change, and a new zone gets another one.
    let id = top["id"].as_str().expect("an id");
    let patched = testbed
        .api()
        .put(&format!("/dns/zones/{id}"), &json!({"name": "corp.example", "dnssec": true, "ttl": 60}));
    assert_eq!(patched.expect("changed")["ds"], top["ds"]);
    let body = json!({"name": "corp.example", "dnssec": true, "signing_key": null});
    let changed = testbed.api().put(&format!("/dns/zones/{id}"), &body).expect("changed");
    assert_ne!(changed["ds"], top["ds"]);
    wait_ok(SOON, "the old key to prove nothing", || {
        let said = delv(&testbed, &anchors, "corp.example", "www.corp.example", "A");
        ensure!(!said.contains(PROVED), "{said}");
        Ok(())
    })
    .expect("another key");
}
