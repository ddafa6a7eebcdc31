//! Kinds of alerts, each with the test that causes it for real: by packets, processes, files and requests around a running
//! daemon. A kind without such a test is one whose engine this version does not have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gateway_model::capability::Standing;
use gateway_model::kinds::alert_rule::AlertKind;

/// Kind, file of the test below `tests/tests`, and its name.
type Row = (&'static str, &'static str, &'static str);

const CAUSES: &[Row] = &[
    ("tunnel_down", "e2e/alerts.rs", "dead_tunnel_is_acknowledged_and_resolves_itself"),
    ("tunnel_flapping", "e2e/alert_causes.rs", "silent_tunnel_is_down_then_stale_and_flaps"),
    ("handshake_stale", "e2e/alert_causes.rs", "silent_tunnel_is_down_then_stale_and_flaps"),
    (
        "policy_fallback",
        "e2e/alert_causes/policies.rs",
        "policies_that_lose_a_hop_are_consequences_of_its_tunnel_and_else_stand_for_themselves",
    ),
    (
        "policy_blocked",
        "e2e/alert_causes/policies.rs",
        "policies_that_lose_a_hop_are_consequences_of_its_tunnel_and_else_stand_for_themselves",
    ),
    (
        "leak_detected",
        "e2e/flow_check.rs",
        "every_flow_of_a_run_took_the_path_that_its_plan_decides_and_a_wrong_record_is_an_alert",
    ),
    (
        "dns_bypass_attempt",
        "e2e/alert_causes.rs",
        "device_that_asks_other_resolvers_is_an_alert_and_a_new_one_is_another",
    ),
    (
        "wan_down",
        "e2e/alert_causes/uplinks.rs",
        "uplink_that_degrades_fails_and_flaps_is_reported_with_what_follows",
    ),
    (
        "wan_degraded",
        "e2e/alert_causes/uplinks.rs",
        "uplink_that_degrades_fails_and_flaps_is_reported_with_what_follows",
    ),
    (
        "wan_failover",
        "e2e/alert_causes/uplinks.rs",
        "uplink_that_degrades_fails_and_flaps_is_reported_with_what_follows",
    ),
    (
        "wan_flapping",
        "e2e/alert_causes/uplinks.rs",
        "uplink_that_degrades_fails_and_flaps_is_reported_with_what_follows",
    ),
    (
        "captive_portal",
        "e2e/alert_causes/uplinks.rs",
        "captive_portal_of_an_uplink_is_an_alert_until_it_lets_pass",
    ),
    ("dns_upstream_down", "e2e/resolvers.rs", "a_silent_upstream_has_an_alert_while_it_lasts"),
    ("blocklist_update_failed", "e2e/resolvers.rs", "a_silent_upstream_has_an_alert_while_it_lasts"),
    (
        "new_device",
        "e2e/alert_causes.rs",
        "device_that_asks_other_resolvers_is_an_alert_and_a_new_one_is_another",
    ),
    ("device_offline", "e2e/alert_causes.rs", "device_that_is_unplugged_is_an_alert"),
    ("device_quarantined", "e2e/alerts.rs", "exception_and_quarantine_are_alerts_while_they_last"),
    (
        "rogue_dhcp",
        "e2e/alert_causes/dhcp.rs",
        "other_server_conflicting_address_and_used_up_range_are_alerts_until_they_end",
    ),
    (
        "rogue_ra",
        "e2e/alert_causes.rs",
        "foreign_router_stays_an_alert_over_kill_9_until_it_takes_its_word_back",
    ),
    (
        "ip_conflict",
        "e2e/alert_causes/dhcp.rs",
        "other_server_conflicting_address_and_used_up_range_are_alerts_until_they_end",
    ),
    (
        "dhcp_pool_exhausted",
        "e2e/alert_causes/dhcp.rs",
        "other_server_conflicting_address_and_used_up_range_are_alerts_until_they_end",
    ),
    ("exception_started", "e2e/alerts.rs", "exception_and_quarantine_are_alerts_while_they_last"),
    ("exception_expiring", "e2e/alerts.rs", "exception_and_quarantine_are_alerts_while_they_last"),
    ("drift_detected", "e2e/alerts.rs", "rules_flushed_by_another_program_are_an_alert"),
    (
        "apply_failed",
        "e2e/alert_causes/enforcement.rs",
        "table_that_another_program_owns_is_an_alert_until_the_plan_is_in_force",
    ),
    ("rollback_performed", "e2e/alerts_of_gateway.rs", "key_and_rollback_are_alerts"),
    (
        "backup_failed",
        "e2e/alerts_of_gateway.rs",
        "backup_target_that_refuses_is_an_alert_until_a_backup_succeeds",
    ),
    (
        "node_unreachable",
        "e2e/federation.rs",
        "node_that_is_dead_and_objects_that_conflict_are_alerts_until_they_are_taken",
    ),
    (
        "sync_failed",
        "e2e/federation.rs",
        "node_that_is_dead_and_objects_that_conflict_are_alerts_until_they_are_taken",
    ),
    ("login_lockout", "e2e/alerts_of_gateway.rs", "five_wrong_passwords_are_an_alert_and_four_are_none"),
    ("key_created", "e2e/alerts_of_gateway.rs", "key_and_rollback_are_alerts"),
    ("deadman_warning", "e2e/alert_causes/host.rs", "dead_man_switch_warns_until_an_administrator_checks_in"),
    ("storage_low", "nothing_past/low_disk.rs", "alert_of_the_disk_obeys_the_threshold_of_its_rule"),
    (
        "cpu_temp_high",
        "e2e/alert_causes/host.rs",
        "hot_processor_and_a_clock_that_no_server_sets_are_alerts_until_they_end",
    ),
    ("cert_expiring", "tls/daemon.rs", "certificate_that_ends_in_ten_days_is_an_alert"),
    (
        "secrets_decrypt_failed",
        "e2e/alert_causes.rs",
        "secret_that_cannot_be_decrypted_is_an_alert_until_it_is_set_again",
    ),
    ("bluetooth_ids", "e2e/bluetooth.rs", "flood_of_devices_is_an_alert_and_known_devices_survive_a_restart"),
    (
        "conntrack_full",
        "e2e/conntrack.rs",
        "host_that_fills_the_connection_table_loses_its_own_connections_and_no_others",
    ),
    (
        "clock_unsynchronised",
        "e2e/alert_causes/host.rs",
        "hot_processor_and_a_clock_that_no_server_sets_are_alerts_until_they_end",
    ),
    (
        "encrypted_storage_locked",
        "e2e/encrypted_storage.rs",
        "records_wait_for_a_storage_that_does_not_open_and_are_written_after_its_teardown",
    ),
];

/// Suites whose tests run against a daemon with a kernel.
const SUITES: [&str; 3] = ["e2e/", "nothing_past/", "tls/"];

#[test]
fn each_kind_has_a_test_that_causes_it_or_an_engine_that_does_not_exist() {
    let caused: BTreeSet<&str> = CAUSES.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(caused.len(), CAUSES.len(), "a kind has two rows");
    for kind in AlertKind::ALL {
        let is_missing = kind.needs().is_some_and(|needed| needed.standing() == Standing::Missing);
        assert_ne!(caused.contains(kind.as_str()), is_missing, "{kind}");
    }
    let known: BTreeSet<&str> = AlertKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert!(caused.is_subset(&known), "{caused:?}");
}

/// The test, or a function of its file that it calls, asserts something about the kind.
#[test]
fn tests_that_cause_alerts_exist_and_name_the_kind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (kind, file, test) in CAUSES {
        assert!(SUITES.iter().any(|suite| file.starts_with(suite)), "{file} has no daemon");
        let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(is_named(&source, kind, test), "{test} of {file} does not wait for {kind}");
    }
}

/// Reports whether a test, or a function that it calls, has the text of the kind.
fn is_named(source: &str, kind: &str, test: &str) -> bool {
    if !source.contains(&format!("#[test]\nfn {test}()")) {
        return false;
    }
    let has_kind = |body: &str| {
        let quoted = format!("\"{kind}\"");
        body.contains(&quoted) || body.contains(&format!("kind={kind}&"))
    };
    let (mut visited, mut waiting) = (BTreeSet::new(), vec![test]);
    while let Some(name) = waiting.pop() {
        if !visited.insert(name) {
            continue;
        }
        let Some(body) = body(source, name) else { continue };
        if has_kind(body) {
            return true;
        }
        waiting.extend(functions(source).filter(|called| body.contains(&format!("{called}("))));
    }
    false
}

/// Returns the text of a function of a file, from its name to the brace in the first column.
fn body<'s>(source: &'s str, name: &str) -> Option<&'s str> {
    let text = &source[source.find(&format!("fn {name}("))?..];
    Some(&text[..text.find("\n}\n")?])
}

/// Returns the names of the functions of a file.
fn functions(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        line.strip_prefix("fn ")?.split(['(', '<']).next()
    })
}

#[test]
fn a_kind_counts_only_where_the_test_reaches_it() {
    let source = "#[test]\nfn one() {\n    helper();\n}\n\nfn helper() {\n    wait(\"wan_down\");\n}\n\n\
                  #[test]\nfn two() {\n    wait(\"rogue_ra\");\n}\n";
    assert!(is_named(source, "wan_down", "one"));
    assert!(!is_named(source, "rogue_ra", "one"), "another test has it");
    assert!(!is_named(source, "wan_down", "helper"), "it is no test");
    assert!(!is_named(source, "wan", "one"));
}
