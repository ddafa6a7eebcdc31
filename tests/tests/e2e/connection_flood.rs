//! A large number of concurrent connections through a proxy, some of which are never read.

use std::fs;

use gateway_tests::connection_flood::{Answering, ConnectionFlood, ENDLESS};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;

const CONNECTIONS: usize = 10_000;
/// Number of unread connections; exceeds the number of pipes.
const DEAF: usize = 300;
/// Descriptors that the relay leaves to the rest of the daemon.
const RESERVED: usize = 1024;
/// Limit of the daemon's own memory for a connection.
const MOST_MEMORY: usize = 16 << 10;
const ECHO: u16 = 7012;

#[test]
fn ten_thousand_connections_all_answer() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let proxy = Answering::start(&network.exit_a);
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.proxy(&proxy.object("many"), "up").expect("proxy up");
    let mut through = policy("by-proxy", 10, ("device", &laptop), &[]);
    through["hops"] = json!([{"type": "proxy", "target": "many"}]);
    testbed.policy(&through).expect("policy");
    let pid = testbed.daemon.pid().expect("a daemon");
    // If the limit of open files cannot be raised, the test opens as many connections as it permits.
    let most = (number(&format!("/proc/{pid}/limits"), "Max open files") - RESERVED) / 2;
    let connections = most.min(CONNECTIONS);

    let flood = ConnectionFlood::at(&network.laptop);
    flood.open(64, (server(false), ECHO).into()).expect("the first ones");
    let memory = || number(&format!("/proc/{pid}/status"), "VmRSS:") << 10;
    let descriptors = || fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors").count();
    let (memory_before, descriptors_before) = (memory(), descriptors());
    let more = connections - 64 - DEAF;
    let opened = flood.open(more, (server(false), ECHO).into()).expect("all connections");
    let each = memory().saturating_sub(memory_before) / more;
    println!(
        "{connections} connections of {CONNECTIONS}: {each} bytes of the daemon's memory for each; opened in {opened:?}"
    );
    assert!(each < MOST_MEMORY, "{each} bytes");
    let again = flood.ask().expect("all answer");
    println!("asked again: {again:?}");
    assert_eq!(again.connections, connections - DEAF);

    flood.open_and_never_read(DEAF, (server(false), ENDLESS).into()).expect("those who never read");
    // They get no answer to wait for, so the relay may still be connecting some of them.
    wait_ok(SOON, "the relay to connect all", || {
        let open = relayed(&testbed)["connections"].as_u64();
        anyhow::ensure!(open == Some(connections as u64), "{open:?}");
        Ok(())
    })
    .expect("all connections");
    let beside = flood.ask().expect("all others answer");
    println!("asked beside {DEAF} that are stuck: {beside:?}");
    if most < CONNECTIONS {
        let refused = flood.open(RESERVED, (server(false), ECHO).into());
        refused.expect_err("more than there may be");
        assert!(relayed(&testbed)["over_limit"].as_u64() > Some(0), "{}", relayed(&testbed));
    }
    let counts = network.tap.counts();
    assert_eq!(counts.leaked.total(), 0, "{counts}");

    drop(flood);
    wait_ok(SOON, "all connections to end", || {
        let open = relayed(&testbed)["connections"].as_u64();
        anyhow::ensure!(open == Some(0), "{open:?}");
        // Those of the first connections are closed as well.
        anyhow::ensure!(descriptors() < descriptors_before, "{} descriptors", descriptors());
        Ok(())
    })
    .expect("nothing is left");
}

fn relayed(testbed: &Testbed) -> serde_json::Value {
    testbed.api().get("/tproxy/status").expect("status")["by_proxy"][0].clone()
}

/// Returns the first number in the line of a file with this prefix.
fn number(file: &str, start: &str) -> usize {
    let text = fs::read_to_string(file).expect("a file of the kernel");
    let line = text.lines().find_map(|line| line.strip_prefix(start)).expect("its line");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}
