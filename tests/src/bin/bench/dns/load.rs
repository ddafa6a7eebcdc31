//! The load: dnsperf at a fixed rate or at the rate of the answers.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use gateway_tests::netns::Namespace;

use super::peer::first_on;
use super::testbed::{Cores, RESOLVER};

/// Maximum wait for an answer in seconds. After it the query counts as lost.
const TIMEOUT: &str = "2";
/// Share of lost queries that is no failure: a full queue may drop datagrams.
const LOST: f64 = 0.001;

/// Result of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub answered: u64,
    pub per_second: f64,
}

/// Sends the queries of the file, at `rate` per second if given. Fails unless all are answered correctly.
pub(super) fn ask(
    lan: &Namespace,
    cores: &Cores,
    file: &Path,
    rate: Option<u32>,
    seconds: u32,
) -> Result<Outcome> {
    let said = dnsperf(lan, cores, file, rate, seconds, false)?;
    read(&said).with_context(|| format!("what dnsperf says: {said}"))
}

/// Returns the 99th percentile of the latency in microseconds at this rate of queries per second.
pub(super) fn slowest(lan: &Namespace, cores: &Cores, file: &Path, rate: u32, seconds: u32) -> Result<f64> {
    let said = dnsperf(lan, cores, file, Some(rate), seconds, true)?;
    let (answers, summary): (Vec<&str>, Vec<&str>) = said.lines().partition(|line| line.starts_with("> "));
    read(&summary.join("\n")).with_context(|| format!("what dnsperf says: {}", summary.join("\n")))?;
    let seconds = |line: &&str| line.rsplit(' ').next()?.parse::<f64>().ok();
    let mut times: Vec<f64> = answers.iter().filter_map(seconds).collect();
    times.sort_by(f64::total_cmp);
    let rank = times.len() * 99 / 100;
    Ok(times.get(rank).context("no answers")? * 1e6)
}

fn dnsperf(
    lan: &Namespace,
    cores: &Cores,
    file: &Path,
    rate: Option<u32>,
    seconds: u32,
    each: bool,
) -> Result<String> {
    let mut command = first_on(lan, &cores.of_the_load(), "dnsperf");
    command.args(["-s", &RESOLVER.to_string(), "-t", TIMEOUT, "-O", "suppress=timeout", "-d"]).arg(file);
    command.args(["-l", &seconds.to_string()]);
    if let Some(rate) = rate {
        command.args(["-Q", &rate.to_string()]);
    }
    if each {
        command.arg("-v");
    }
    let output = command.stdin(Stdio::null()).output().context("start dnsperf")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "dnsperf: {}", complaint.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read(said: &str) -> Result<Outcome> {
    let after = |label: &str| {
        let line = said.lines().find_map(|line| line.trim_start().strip_prefix(label));
        line.map(str::trim).with_context(|| format!("no {label}"))
    };
    let number = |label: &str| -> Result<f64> {
        Ok(after(label)?.split_whitespace().next().unwrap_or_default().parse()?)
    };
    let (sent, answered) = (number("Queries sent:")?, number("Queries completed:")?);
    ensure!(sent - answered <= sent * LOST, "{} of {sent} questions were not answered", sent - answered);
    let codes = after("Response codes:")?;
    ensure!(codes.starts_with("NOERROR") && codes.ends_with("(100.00%)"), "it was answered with {codes}");
    Ok(Outcome { answered: answered as u64, per_second: number("Queries per second:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Statistics:\n\n  Queries sent:         1000\n  Queries completed:    1000 (100.00%)\n  \
                        Queries lost:         0 (0.00%)\n\n  Response codes:       NOERROR 1000 (100.00%)\n  \
                        Queries per second:   958.25\n";

    #[test]
    fn a_summary_is_read() {
        let outcome = read(SAID).expect("a summary");
        assert_eq!((outcome.answered, outcome.per_second), (1000, 958.25));
    }

    #[test]
    fn a_load_that_was_not_answered_well_is_an_error() {
        for wrong in [
            SAID.replace("completed:    1000", "completed:    998"),
            SAID.replace("NOERROR 1000 (100.00%)", "NOERROR 900 (90.00%), SERVFAIL 100 (10.00%)"),
            SAID.replace("NOERROR 1000", "REFUSED 1000"),
            String::new(),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
