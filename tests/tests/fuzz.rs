//! Replay of the fuzzers' corpora and of many mutations: bad input does no harm (`tests/fuzz`).
//!
//! Without coverage feedback this finds few new defects; it prevents regressions.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use gateway_tests::fuzz::mutation::{Numbers, mutated};
use gateway_tests::fuzz::{TARGETS, Target};

/// Maximum length of inputs that the fuzzers keep.
const LONGEST: usize = 1024;

fn replay(name: &str, mutations: usize) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus = corpus(name);
    for (file, input) in &corpus {
        run(target, input, &format!("corpus file {file}"));
    }
    let seed = match std::env::var("FUZZ_SEED") {
        Ok(text) => text.parse().expect("FUZZ_SEED is a number"),
        Err(_) => 2026,
    };
    println!("{name}: {} inputs of the corpus, {mutations} mutations, FUZZ_SEED={seed}", corpus.len());
    let inputs: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
    let mut numbers = Numbers::new(seed);
    for number in 0..mutations {
        let input = mutated(&inputs, target.words, LONGEST, &mut numbers);
        run(target, &input, &format!("mutation {number} of seed {seed}"));
    }
}

fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("a file of the corpus").path();
            let input = fs::read(&path).expect("a file of the corpus");
            (path.file_name().expect("a name").to_string_lossy().into_owned(), input)
        })
        .collect();
    // Directory order differs between machines and would change the inputs of a seed.
    files.sort();
    assert!(files.len() >= 5, "the corpus {} is nearly empty", folder.display());
    files
}

fn run(target: &Target, input: &[u8], which: &str) {
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if let Err(panic) = result {
        eprintln!("target {} fails on {which}: b\"{}\"", target.name, input.escape_ascii());
        resume_unwind(panic);
    }
}

#[test]
fn no_reply_of_a_model_is_unbounded() {
    replay("assistant", 30_000);
}

#[test]
fn no_client_hello_has_two_names() {
    replay("client_hello", 30_000);
}

#[test]
fn no_quic_packet_changes_a_name() {
    replay("quic_initial", 30_000);
}

#[test]
fn no_record_of_the_flow_log_is_misread() {
    replay("flow_record", 30_000);
}

#[test]
fn no_record_of_a_plan_is_misread() {
    replay("plan_record", 30_000);
}

#[test]
fn no_router_advertisement_is_misread() {
    replay("router_advertisement", 30_000);
}

#[test]
fn no_dhcpv6_message_breaks_a_lease() {
    replay("dhcp6", 30_000);
}

#[test]
fn no_private_value_passes_into_a_support_bundle() {
    replay("pseudonyms", 10_000);
}

#[test]
fn no_captured_packet_breaks_its_summary() {
    replay("captured_packet", 30_000);
}

#[test]
fn no_message_of_a_gateway_changes_what_was_not_asked_for() {
    replay("federation", 20_000);
}

#[test]
fn no_message_of_a_hub_is_misread() {
    replay("federation_bus", 20_000);
}

#[test]
fn no_stun_message_is_misread() {
    replay("stun", 30_000);
}

#[test]
fn no_message_of_the_mesh_passes_for_authentic() {
    replay("mesh", 4_000);
}

#[test]
fn no_dhcp_message_breaks_a_promise() {
    replay("dhcp4", 20_000);
}

#[test]
fn no_report_makes_an_impossible_lease() {
    replay("dhcp_report", 30_000);
}

#[test]
fn no_reply_of_hostapd_makes_an_impossible_state() {
    replay("hostapd_reply", 30_000);
}

#[test]
fn no_portal_passes_for_the_internet() {
    replay("captive_answer", 30_000);
}

#[test]
fn no_packet_breaks_the_decision() {
    replay("packet", 60_000);
}

#[test]
fn no_state_breaks_the_compiler() {
    replay("plan", 6_000);
}

#[test]
fn no_conf_breaks_the_parser() {
    replay("conf", 20_000);
}

#[test]
fn no_ovpn_breaks_the_parser() {
    replay("ovpn", 20_000);
}

#[test]
fn no_file_breaks_the_configuration() {
    replay("yaml", 12_000);
}

#[test]
fn no_json_breaks_the_model() {
    replay("json", 12_000);
}

#[test]
fn no_message_breaks_the_resolver() {
    replay("dns", 40_000);
}

#[test]
fn no_list_breaks_the_filter() {
    replay("lists", 4_000);
}

#[test]
fn no_record_breaks_its_zone() {
    replay("zone", 4_000);
}

/// A target that never fails would make the tests above worthless.
#[test]
fn a_target_that_panics_is_noticed() {
    let broken = Target { name: "broken", run: |input| assert!(input != b"bad"), words: &[] };
    run(&broken, b"good", "an input that passes");
    catch_unwind(|| run(&broken, b"bad", "an input that fails")).expect_err("the panic gets through");
}
