//! Shell completion, in bash, which is always installed.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::client::{Ran, command, inside, program};
use crate::cli::quiet_scene;

/// Returns the completions that bash offers after these words. The last word is incomplete.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = program().parent().expect("a folder").to_path_buf();
    let mut path = vec![folder];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(
        "source <(gateway-ctl completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
         _clap_complete_gateway_ctl gateway-ctl \"${COMP_WORDS[COMP_CWORD]}\"; \
         printf '%s\\n' \"${COMPREPLY[@]}\"",
    );
    bash.arg("bash").arg("gateway-ctl").args(words).env("PATH", std::env::join_paths(path).expect("a path"));
    bash.stdin(Stdio::null());
    let ran = Ran::of(inside(quiet_scene(), bash).output().expect("bash runs"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}");
    ran.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_offers_kinds_verbs_options_and_names() {
    assert_eq!(offered(&["device"]), ["devices", "device-groups"]);
    assert_eq!(offered(&["capture", "st"]), ["start", "stop"]);
    assert_eq!(offered(&["capture", "start", "--"]), ["--iface", "--filter", "--count", "--help"]);
    assert_eq!(offered(&["completion", ""]), ["bash", "zsh", "fish", "--help"]);
    assert_eq!(offered(&["trust-classes", "get", "tr"]), ["trusted"]);
    assert_eq!(offered(&["status", ""]), ["--help"]);
    assert!(offered(&["apply", "/etc/host"]).contains(&"/etc/hosts".to_owned()));
}

/// A gateway that does not answer must not block the shell.
#[test]
fn completion_waits_half_a_second_at_most() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let start = Instant::now();
    let mut client = command(&["--", "gateway-ctl", "devices", "get", ""]);
    client.env("GATEWAY_CTL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3").env("GATEWAY_ADDR", address);
    let ran = Ran::of(client.output().expect("gateway-ctl runs"));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "--help", ""));
    // Half a second plus a margin for a busy machine.
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}
