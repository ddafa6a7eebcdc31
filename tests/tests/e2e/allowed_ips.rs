//! Destinations that the peers of a WireGuard tunnel do not take: the gateway rejects them at once, and explains it.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{OTHER_SERVER_V4, SERVER_V4, server};
use gateway_tests::wait::wait_ok;
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);
/// Far longer than a refusal needs. A host without an answer gives up then.
const LATE: Duration = Duration::from_secs(8);

#[test]
fn destinations_outside_of_them_are_refused_at_once_and_explained() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let mut tunnel = network.exit_a.tunnel("wg-a");
    tunnel["peers"][0]["allowed_ips"] = json!([format!("{SERVER_V4}/32")]);
    create(testbed.api(), "/tunnels", &tunnel).expect("tunnel");
    testbed.policy(&policy("narrow", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let connect =
        |to: SocketAddr| network.laptop.namespace.within(|| TcpStream::connect_timeout(&to, LATE)).map(drop);
    wait_ok(SOON, "the tunnel to carry what it takes", || Ok(connect((SERVER_V4, HTTP).into())?))
        .expect("carried");
    network.tap.reset();
    for to in [OTHER_SERVER_V4.into(), server(true)] {
        let error = connect(SocketAddr::new(to, HTTP)).expect_err("refused");
        assert_ne!(error.kind(), ErrorKind::TimedOut, "{to}: {error}");
        let question = json!({"device_id": laptop, "destination": to.to_string(), "port": HTTP});
        let answer = testbed.api().post("/policy/evaluate", &question).expect("explained");
        let sentence = answer["sentence"].as_str().expect("a sentence");
        assert!(
            sentence.contains(&format!("wg-a is chosen, but its AllowedIPs do not include {to}")),
            "{sentence}"
        );
        assert_eq!(answer["decision"], "block", "{sentence}");
    }
    network.settle().expect("silence");
    assert_eq!(network.tap.counts().leaked.total(), 0);
    let found = testbed.api().act("/policy/conflicts").expect("conflicts").to_string();
    assert!(found.contains(&format!("the tunnel wg-a takes traffic to {SERVER_V4}/32 only")), "{found}");
}
