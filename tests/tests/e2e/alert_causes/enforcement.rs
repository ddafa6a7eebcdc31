//! A plan that the kernel refuses.

use std::io::{PipeWriter, Write as _, pipe};
use std::process::Stdio;

use gateway_tests::netns::Namespace;
use gateway_tests::process::Process;
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::{set_rule, wait_for_alert, wait_for_end};
use crate::e2e::SOON;

/// Starts a program that replaces the table of the gateway by one of its own, which the kernel lets no other program change. The
/// table goes with the program.
fn own_the_table(gateway: &Namespace) -> (Process, PipeWriter) {
    let (output, mut input) = pipe().expect("a pipe");
    let mut command = gateway.command("nft");
    command.arg("-i").stdin(output).stdout(Stdio::null()).stderr(Stdio::null());
    let program = gateway.spawn(command).expect("nft");
    let rules = "delete table inet gateway; add table inet gateway { flags owner; }\n";
    input.write_all(rules.as_bytes()).expect("written");
    (program, input)
}

#[test]
fn table_that_another_program_owns_is_an_alert_until_the_plan_is_in_force() {
    let testbed = Testbed::start().expect("scene");
    let (api, gateway) = (testbed.api(), &testbed.network.gateway);
    set_rule(api, "apply_failed", &json!({"window_sec": 0}));
    let owner = own_the_table(gateway);
    let failed = wait_for_alert(api, "apply_failed", "plan", 2 * SOON);
    assert_eq!((&failed["severity"], &failed["caused_by"]), (&json!("critical"), &Value::Null));
    assert!(failed["message"].as_str().is_some_and(|text| text.starts_with("nft: ")), "{failed}");
    drop(owner);
    wait_for_end(api, &failed, 2 * SOON);
    wait_ok(SOON, "the rules of the gateway", || {
        let table = gateway.run("nft", &["list", "table", "inet", "gateway"])?;
        anyhow::ensure!(table.contains("chain") && !table.contains("owner"), "{table}");
        Ok(())
    })
    .expect("in force");
}
