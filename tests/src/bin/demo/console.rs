//! Output of the demonstration: steps, commands, expected and observed results.

use std::fmt::Display;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Console {
    steps: usize,
    step: usize,
    failed: usize,
}

impl Console {
    pub(crate) fn new(steps: usize) -> Self {
        Self { steps, step: 0, failed: 0 }
    }

    /// Begins a step.
    pub(crate) fn step(&mut self, name: &str, text: impl Display) {
        self.step += 1;
        println!(" [{}/{}] {name:<9} {text}", self.step, self.steps);
    }

    pub(crate) fn say(&self, text: impl Display) {
        println!("                 {text}");
    }

    /// Shows a command, runs it and returns its output. A failure of the command is no error: the claims check the
    /// result.
    pub(crate) fn run(&self, command: &str) -> Result<String> {
        println!("         $ {command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::null());
        let output = shell.output().with_context(|| format!("run {command}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Shows and runs a `curl` command whose response must contain `data`.
    pub(crate) fn call(&self, command: &str) -> Result<Value> {
        let said = self.run(command)?;
        let mut answer: Value =
            serde_json::from_str(&said).with_context(|| format!("not JSON: {said:?} from {command}"))?;
        ensure!(answer.get("data").is_some(), "{command}: {answer}");
        Ok(answer["data"].take())
    }

    /// Compares expected and observed value and prints the result. A failed claim fails the demonstration at its end.
    pub(crate) fn claim(&mut self, what: &str, expected: impl Display, observed: impl Display) {
        let (expected, observed) = (expected.to_string(), observed.to_string());
        if expected == observed {
            println!("                 {what} -> {observed}   PASS");
        } else {
            self.failed += 1;
            println!(
                "                 {what}   FAIL\n                   expected {expected}\n                   observed {observed}"
            );
        }
    }

    pub(crate) fn held(&self) -> bool {
        self.failed == 0
    }
}
