//! The dashboard in a real browser, against a running daemon with traffic. Each test is a journey in `ui/journeys`, which
//! Node runs with playwright. Pictures of all pages are in `target/dashboard` afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::dns::Upstream;
use gateway_tests::process::Process;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::two_uplinks::TwoUplinks;
use gateway_tests::wait::wait_until;
use gateway_tests::{examples, name_server, relay};
use serde_json::json;

/// Timeout of a journey.
const LONGEST: Duration = Duration::from_secs(600);

/// Held by the journey that takes all processors for a while; the others share it.
static PROCESSORS: RwLock<()> = RwLock::new(());

/// State of the gateway before a journey.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// A gateway that was set up just now, with sign-in.
    FirstRun,
    /// Hosts on the LAN, of which none is a device.
    Strangers,
    /// Two tunnels, two devices, a policy of each kind, queries in the log.
    LivedIn,
    /// Two probed uplinks, a device that leaves directly and one that leaves by a tunnel.
    TwoUplinks,
}

#[test]
fn a_first_evening() -> Result<()> {
    run("first-evening", Start::FirstRun)
}

#[test]
fn every_page_is_well_in_both_themes_and_on_a_phone() -> Result<()> {
    run("pages", Start::LivedIn)
}

#[test]
fn nothing_is_green_while_the_daemon_does_not_answer() -> Result<()> {
    run("stopped", Start::LivedIn)
}

#[test]
fn names_of_devices_and_queries_are_text() -> Result<()> {
    run("names", Start::LivedIn)
}

#[test]
fn two_administrators_change_one_policy() -> Result<()> {
    run("two-admins", Start::LivedIn)
}

#[test]
fn every_page_is_reached_by_keys() -> Result<()> {
    run("keyboard", Start::LivedIn)
}

#[test]
fn the_order_of_policies_is_changed_applied_undone_and_kept() -> Result<()> {
    run("order", Start::LivedIn)
}

#[test]
fn the_setup_and_the_sign_in_need_no_mouse() -> Result<()> {
    run("setup-by-keys", Start::FirstRun)
}

#[test]
fn a_preset_is_chosen_applied_and_discarded() -> Result<()> {
    run("presets", Start::LivedIn)
}

#[test]
fn policies_move_to_a_position_and_as_a_block() -> Result<()> {
    run("positions", Start::LivedIn)
}

#[test]
fn two_uplinks_and_what_leaves_directly_are_in_the_overview() -> Result<()> {
    run("uplinks", Start::TwoUplinks)
}

#[test]
fn ten_tabs_share_one_event_stream() -> Result<()> {
    run("tabs", Start::LivedIn)
}

#[test]
fn live_regions_are_silent_while_nothing_changes() -> Result<()> {
    run("idle", Start::LivedIn)
}

#[test]
fn a_new_page_has_a_title_and_the_focus() -> Result<()> {
    run("headings", Start::LivedIn)
}

#[test]
fn the_palette_has_actions_and_settings_on_a_phone_too() -> Result<()> {
    run("palette", Start::LivedIn)
}

#[test]
fn a_tunnel_that_is_used_is_replaced_before_it_is_deleted() -> Result<()> {
    run("delete-tunnel", Start::LivedIn)
}

#[test]
fn the_query_log_says_what_was_blocked_and_what_left_directly() -> Result<()> {
    run("log-words", Start::LivedIn)
}

#[test]
fn hosts_become_devices_in_the_overview() -> Result<()> {
    run("hosts", Start::Strangers)
}

#[test]
fn forms_offer_the_hosts_that_are_there() -> Result<()> {
    run("host-pickers", Start::Strangers)
}

#[test]
fn the_setup_chooses_resolvers_a_list_and_the_way_of_unknown_hosts() -> Result<()> {
    run("setup-names", Start::Strangers)
}

#[test]
fn german_pages_mark_the_english_that_stays() -> Result<()> {
    run("german", Start::LivedIn)
}

#[test]
fn blocking_is_paused_and_resumed_on_the_overview() -> Result<()> {
    run("pause", Start::LivedIn)
}

#[test]
fn a_device_is_kept_from_a_service_and_searches_safely() -> Result<()> {
    run("services", Start::LivedIn)
}

#[test]
fn a_tunnel_that_goes_down_is_an_alert_with_its_consequence() -> Result<()> {
    run("alerts", Start::LivedIn)
}

#[test]
fn packets_of_a_device_are_captured_with_their_decision() -> Result<()> {
    run("captures", Start::LivedIn)
}

#[test]
fn anomalies_show_what_they_rest_on_and_collectors_their_state() -> Result<()> {
    run("anomalies", Start::LivedIn)
}

#[test]
fn another_gateway_is_approved_by_the_words_of_its_key_and_revoked() -> Result<()> {
    run("federation", Start::LivedIn)
}

#[test]
fn a_support_bundle_is_built_and_downloaded() -> Result<()> {
    run("support-bundle", Start::LivedIn)
}

#[test]
fn flows_say_why_they_left_and_lead_to_the_forms_that_change_it() -> Result<()> {
    run("flows", Start::LivedIn)
}

#[test]
fn a_key_of_the_mesh_is_created_and_shown_once() -> Result<()> {
    run("mesh", Start::LivedIn)
}

#[test]
fn of_many_devices_pages_draw_only_what_is_in_view() -> Result<()> {
    let _alone = PROCESSORS.write().unwrap_or_else(PoisonError::into_inner);
    walk("many", Start::LivedIn)
}

fn run(journey: &str, start: Start) -> Result<()> {
    let _shared = PROCESSORS.read().unwrap_or_else(PoisonError::into_inner);
    walk(journey, start)
}

fn walk(journey: &str, start: Start) -> Result<()> {
    let mut testbed = Testbed::prepare()?;
    let upstream = Upstream::start(&testbed.network.internet)?;
    testbed.daemon.configure(
        &json!({"dns": {"upstream_servers": [name_server::ADDRESS], "rate_limit_per_client": 0}}),
    )?;
    if start == Start::FirstRun {
        testbed.daemon.configure(&json!({"auth": {"enabled": true}}))?;
    }
    testbed.daemon.start()?;
    let outcome = match start {
        Start::FirstRun | Start::Strangers => play(journey, &testbed),
        Start::LivedIn => live_in(&testbed).and_then(|()| play(journey, &testbed)),
        Start::TwoUplinks => {
            let uplinks = TwoUplinks::add_to(testbed, false, [1, 1])?;
            live_with_two_uplinks(&uplinks.testbed).and_then(|()| play(journey, &uplinks.testbed))
        }
    };
    drop(upstream);
    outcome
}

/// Runs the journey in the browser against the daemon as it is.
fn play(journey: &str, testbed: &Testbed) -> Result<()> {
    let door = relay::open_anywhere(testbed.network.gateway.entrance())?;
    let directory =
        tempfile::Builder::new().prefix("gateway-journey-").tempdir().context("temporary directory")?;
    let network = &testbed.network;
    let folder = ui();
    let artefacts = folder.parent().context("the folder of the workspace")?.join("target/dashboard");
    let context = json!({
        "base": format!("http://{door}"),
        "pid": testbed.daemon.pid(),
        "browser": "/usr/bin/chromium",
        "artefacts": artefacts,
        "state": testbed.daemon.state_directory(),
        "directory": directory.path(),
        "namespaces": {
            "laptop": network.laptop.namespace.name(), "tv": network.tv.namespace.name(), "gateway": network.gateway.name(),
            "internet": network.internet.name(),
        },
        "devices": {"laptop": network.laptop.mac, "tv": network.tv.mac},
        "exits": {"a": network.exit_a.configuration_file(), "b": network.exit_b.configuration_file()},
    });
    let file = directory.path().join("context.json");
    fs::write(&file, context.to_string()).context("write the context")?;
    let mut command = Command::new("node");
    command.arg("journeys/lib/run.js").arg(journey).arg(&file).current_dir(&folder);
    let mut process = Process::spawn(command)?;
    let status = wait_until(LONGEST, &format!("the end of the journey {journey}"), || process.ended())?;
    ensure!(status.success(), "the journey {journey} failed; pictures are in {}", artefacts.display());
    Ok(())
}

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("ui")
}

/// Makes the gateway one that has been in use: devices, tunnels, policies that carry, block and let out, and a query log.
fn live_in(testbed: &Testbed) -> Result<()> {
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop)?;
    let tv = testbed.device(&network.tv)?;
    testbed.tunnel("wg-a", &network.exit_a)?;
    let down = testbed.tunnel("wg-b", &network.exit_b)?;
    testbed.store_policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"]))?;
    testbed.policy(&policy("tv-streaming", 20, ("device", &tv), &["wg-b"]))?;
    testbed.bring_down(&down)?;
    for name in ["www.example", "updates.example", "tracker.example"] {
        // Only that the query is in the log matters.
        let _ = network.laptop.namespace.run("dig", &["+tries=1", "+time=2", "@192.168.10.1", name]);
    }
    live_with_one_of_each_kind(testbed, &tv)
}

/// Lets one device leave by a tunnel and another one directly, and both send something.
fn live_with_two_uplinks(testbed: &Testbed) -> Result<()> {
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop)?;
    let tv = testbed.device(&network.tv)?;
    testbed.tunnel("wg-a", &network.exit_a)?;
    testbed.store_policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"]))?;
    let mut direct = policy("tv-direct", 20, ("device", &tv), &[]);
    direct["fail_policy"] = json!("fail-open");
    testbed.policy(&direct)?;
    for host in [&network.laptop, &network.tv] {
        // Only that there is traffic matters.
        let _ = host.namespace.run("curl", &["-s", "-m", "2", "http://198.18.0.1/ip"]);
    }
    Ok(())
}

/// Makes one object of each kind that has a page.
fn live_with_one_of_each_kind(testbed: &Testbed, tv: &str) -> Result<()> {
    let api = testbed.api();
    for (collection, object) in [
        ("/device-groups", json!({"name": "family", "members": [tv]})),
        ("/profiles", examples::profile(1)),
        ("/chains", examples::chain(1)),
        ("/bridges", examples::bridge(1)),
        ("/proxies", examples::proxy(1)),
        ("/test-definitions", examples::test_definition(1)),
        ("/dns/zones", json!({"name": "home.example"})),
        (
            "/dns/records",
            json!({"zone": "home.example", "name": "printer", "type": "A", "value": "192.168.10.9"}),
        ),
        ("/dns/filter-rules", json!({"pattern": "ads.example", "match": "suffix", "action": "block"})),
        ("/dns/blocklist", json!({"domain": "tracker.example"})),
        (
            "/dhcp/reservations",
            json!({"mac": "02:00:00:00:00:09", "ip": "192.168.10.9", "hostname": "printer"}),
        ),
        ("/auth/users", json!({"username": "ben", "password": "a long enough password", "role": "viewer"})),
        (
            "/exceptions",
            json!({
                "type": "temporary-direct", "device_id": tv, "allow_direct": true, "duration_min": 60, "reason": "a film",
            }),
        ),
    ] {
        api.post(collection, &object).with_context(|| format!("create one of {collection}"))?;
    }
    Ok(())
}
