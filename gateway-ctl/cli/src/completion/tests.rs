//! Tests of the completions that clap makes of the table.

use std::ffi::OsString;

use clap_complete::engine::complete;

use super::*;

/// Returns the completions after these words. The last word is incomplete.
fn offered(words: &[&str]) -> Vec<String> {
    let words: Vec<OsString> = ["gateway-ctl"].iter().chain(words).map(OsString::from).collect();
    let last = words.len() - 1;
    let offered = complete(&mut program(&table()), words, last, None).expect("completions");
    offered.iter().map(|one| one.get_value().display().to_string()).collect()
}

#[test]
fn every_row_of_the_table_is_offered() {
    for kind in table() {
        assert!(offered(&[kind.name]).contains(&kind.name.to_owned()), "{}", kind.name);
        for command in &kind.commands {
            let mut words = vec![kind.name];
            if !command.verb.is_empty() {
                assert!(offered(&[kind.name, ""]).contains(&command.verb.to_owned()), "{}", command.verb);
                words.push(command.verb);
            }
            for flag in command.flags {
                let options = offered(&[&words[..], &["--"]].concat());
                assert!(options.contains(&format!("--{}", flag.name)), "{} {}", kind.name, flag.name);
            }
        }
    }
}

#[test]
fn values_and_files_are_offered() {
    assert_eq!(offered(&["completion", "z"]), ["zsh"]);
    assert!(offered(&["apply", "/etc/host"]).contains(&"/etc/hosts".to_owned()));
    assert!(offered(&["devices", "update", "laptop", "/etc/host"]).contains(&"/etc/hosts".to_owned()));
}

#[test]
fn every_shell_gets_a_script_that_calls_the_client() {
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        assert!(script.contains(VARIABLE) && script.contains("gateway-ctl"), "{shell}:\n{script}");
        assert_eq!(script.contains("funcstack"), shell == "zsh");
    }
}
