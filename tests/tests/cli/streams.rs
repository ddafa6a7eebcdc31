//! Pipes and terminals.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use gateway_tests::wait::wait_until;
use nix::pty::openpty;

use crate::cli::client::{Ran, command, inside};
use crate::cli::quiet_scene;

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let testbed = quiet_scene();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut client = inside(testbed, command(&["trust-classes"]));
    let ran = Ran::of(client.stdout(writer).output().expect("gateway-ctl runs"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn tables_are_bare_in_a_pipe() {
    let ran = crate::cli::client::run(quiet_scene(), &["trust-classes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains(" \t"), "{:?}", ran.stdout);
    let columns = |line: &str| line.split('\t').count();
    let header = ran.stdout.lines().next().expect("a header");
    assert!(ran.stdout.lines().all(|line| columns(line) == columns(header)));
}

#[test]
fn an_empty_list_hints_only_on_a_terminal() {
    let testbed = quiet_scene();
    let terminal = openpty(None, None).expect("a terminal");
    let mut client = inside(testbed, command(&["devices"]));
    let mut child = client.stdout(terminal.slave).spawn().expect("gateway-ctl runs");
    let mut hint = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut hint).expect("UTF-8");
    let status =
        wait_until(Duration::from_secs(10), "the client to end", || child.try_wait().expect("a child"));
    assert_eq!(status.expect("it ends").code(), Some(0));
    assert!(hint.starts_with("There are none."), "{hint}");
    let mut shown = [0; 4096];
    let length = File::from(terminal.master).read(&mut shown).expect("the table");
    let shown = String::from_utf8_lossy(&shown[..length]);
    assert!(shown.starts_with("ID\tNAME\tMAC\tHOSTNAME\tTRUST_CLASS\tPRIVACY_CLASS"), "{shown:?}");
}

#[test]
fn a_terminal_as_input_is_not_waited_for() {
    let terminal = openpty(None, None).expect("a terminal");
    let mut client = inside(quiet_scene(), command(&["devices", "create"]));
    let ran = Ran::of(client.stdin(Stdio::from(terminal.slave)).output().expect("gateway-ctl runs"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error: json is missing"), "{}", ran.stderr);
}
