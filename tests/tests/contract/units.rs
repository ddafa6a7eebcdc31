//! The unit files of the package: directives for the service manager.

use std::path::Path;
use std::process::Command;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging")
}

/// Returns settings as (section, key, value) in file order.
fn read(name: &str) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(folder().join(name)).expect("a unit");
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name.to_owned(),
            None => {
                let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
                settings.push((section.clone(), key.to_owned(), value.to_owned()));
            }
        }
    }
    settings
}

fn value(unit: &[(String, String, String)], section: &str, key: &str) -> String {
    let found = unit.iter().filter(|(s, k, _)| s == section && k == key).map(|(_, _, v)| v.as_str());
    found.collect::<Vec<_>>().join(" ")
}

#[test]
fn units_enforce_early_restart_for_ever_and_keep_secrets_in() {
    let daemon = read("gatewayd.service");
    for (section, key, expected) in [
        ("Unit", "StartLimitIntervalSec", "0"),
        ("Service", "Type", "notify"),
        ("Service", "Restart", "always"),
        ("Service", "LimitCORE", "0"),
        ("Service", "NoNewPrivileges", "yes"),
        ("Service", "ProtectSystem", "strict"),
        ("Service", "StateDirectory", "gatewayd"),
        ("Service", "RuntimeDirectory", "gatewayd"),
    ] {
        assert_eq!(value(&daemon, section, key), expected, "{key}");
    }
    assert!(value(&daemon, "Service", "OOMScoreAdjust").parse::<i32>().is_ok_and(|score| score < -500));
    assert!(value(&daemon, "Service", "WatchdogSec").parse::<u32>().is_ok_and(|seconds| seconds >= 60));
    for mount in ["/var/lib/gatewayd", "/etc/gatewayd"] {
        assert!(value(&daemon, "Unit", "RequiresMountsFor").split(' ').any(|path| path == mount), "{mount}");
    }
    // An upgrade of an older installation writes the marker there.
    assert!(value(&daemon, "Service", "ReadWritePaths").split(' ').any(|path| path == "/etc/gatewayd"));
    let guard = read("gatewayd-guard.service");
    assert!(value(&guard, "Unit", "Before").contains("network-pre.target"));
    assert_eq!(value(&guard, "Service", "Restart"), "on-failure");
    for unit in [&daemon, &guard] {
        let waits = unit.iter().any(|(_, _, value)| value.contains("network-online.target"));
        assert!(!waits, "enforcement waits for an uplink");
        // Administrators or packages run `gatewayd init`; a start never does.
        let initialises =
            unit.iter().any(|(_, key, value)| key.starts_with("Exec") && value.contains("init"));
        assert!(!initialises, "a start that initialises would take a lost store for a first start");
    }
}

#[test]
fn service_manager_understands_the_units() {
    let here = tempfile::tempdir().expect("a folder");
    let mut verify = Command::new("systemd-analyze");
    verify.arg("verify");
    for name in ["gatewayd.service", "gatewayd-guard.service"] {
        let text = std::fs::read_to_string(folder().join(name)).expect("a unit");
        let path = here.path().join(name);
        // The program is not installed where tests run.
        std::fs::write(&path, text.replace("/usr/sbin/gatewayd", "/bin/true")).expect("written");
        verify.arg(path);
    }
    // Without systemd, only the other test checks the files.
    let Ok(output) = verify.output() else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Unknown"), "{said}");
}
