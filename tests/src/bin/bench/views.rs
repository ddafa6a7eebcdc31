//! `evaluate_5k`: the dry run of the decision for one device. `leak_matrix_5k`: the leak matrix to the first byte of the
//! response. Both through the REST API with 5 000 policies. The peer is the same request to a daemon with 10.

use std::time::Instant;

use anyhow::{Context, Result};
use gateway_tests::daemon::API;

use crate::api::Client;
use crate::policies::subnet_policy;
use crate::row::{Row, Target, alternate};
use crate::topology::{Road, Way};

const POLICIES: usize = 5_000;
const ROUNDS: usize = 7;
const QUESTION: &str = r#"{"mac": "02:00:00:00:00:77"}"#;

pub(crate) fn run() -> Result<Vec<Row>> {
    let many = Road::build(Way::Ours { policies: POLICIES })?;
    let few = Road::build(Way::Ours { policies: 10 })?;
    let mut roads = [many, few];
    let evaluated = alternate(&mut roads, ROUNDS, |road| evaluate(road))?;
    println!("evaluate, ms: median (rounds)\n  {}  5 000 policies\n  {}  10", evaluated[0], evaluated[1]);
    let mut edits = 0;
    let shown = alternate(&mut roads, ROUNDS, |road| {
        edits += 1;
        leak_matrix(road, edits)
    })?;
    println!("leak matrix, ms: median (rounds)\n  {}  5 000 policies\n  {}  10", shown[0], shown[1]);
    let row = |bench, ours, peer, below| Row {
        bench,
        ours,
        peer,
        peer_name: "the same with 10 policies".to_owned(),
        unit: "ms",
        target: Target::OursBelow(below),
    };
    Ok(vec![
        row("evaluate_5k", evaluated[0].median, evaluated[1].median, 5.0),
        row("leak_matrix_5k", shown[0].median, shown[1].median, 100.0),
    ])
}

fn evaluate(road: &Road) -> Result<f64> {
    let length = QUESTION.len();
    let request = format!(
        "POST /api/v1/policy/evaluate HTTP/1.1\r\nHost: {API}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{QUESTION}"
    );
    let mut client = Client::of_request(&road.gateway, API, request)?;
    client.ask()?;
    let started = Instant::now();
    client.ask()?;
    Ok(milliseconds(started))
}

/// Changes a stored policy first, because the daemon keeps the matrix until then.
fn leak_matrix(road: &Road, edit: usize) -> Result<f64> {
    let daemon = road.daemon.as_ref().context("a daemon")?;
    let policy = road.policy.as_ref().context("a policy")?;
    let changed = subnet_policy("host", 900_000, &format!("10.77.{edit}.0/24"), "eth0");
    daemon.api().put(&format!("/routing/policies/{policy}"), &changed)?;
    let request = format!("GET /api/v1/policy/leak-matrix HTTP/1.1\r\nHost: {API}\r\n\r\n");
    let mut client = Client::of_request(&road.gateway, API, request)?;
    let started = Instant::now();
    client.first_byte()?;
    Ok(milliseconds(started))
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}
