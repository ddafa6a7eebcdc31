//! Inventory of a daemon's resources: kernel objects, processes, file descriptors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use gateway_tests::testbed::Testbed;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inventory {
    /// Number of occurrences of each line in each list.
    lists: BTreeMap<&'static str, BTreeMap<String, usize>>,
    /// Counts by kind of resource.
    numbers: BTreeMap<&'static str, usize>,
}

impl Inventory {
    pub(super) fn take(testbed: &Testbed) -> Self {
        let gateway = &testbed.network.gateway;
        let said = |program: &str, arguments: &[&str]| -> Vec<String> {
            // iproute2 fails on a table without routes.
            let said = gateway.run(program, arguments).unwrap_or_default();
            said.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        let lines =
            |program, arguments: &[&str]| counted(said(program, arguments).iter().map(|l| unnumbered(l)));
        let links = said("ip", &["-br", "link"]);
        let names = links.iter().filter_map(|line| line.split_whitespace().next().map(str::to_owned));
        // Links are named by the index of their interface, and a tunnel gets a new one.
        let unindexed = |path: String| path.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let pins = counted(walk(testbed.daemon.pin_directory()).into_iter().map(unindexed));
        let lists = BTreeMap::from([
            ("links", counted(names)),
            ("routes of IPv4", lines("ip", &["-4", "route", "show", "table", "all", "proto", "71"])),
            ("routes of IPv6", lines("ip", &["-6", "route", "show", "table", "all", "proto", "71"])),
            ("rules of IPv4", lines("ip", &["-4", "rule"])),
            ("rules of IPv6", lines("ip", &["-6", "rule"])),
            ("nftables", lines("nft", &["-s", "list", "ruleset"])),
            ("pins", pins),
        ]);
        let pid = testbed.daemon.pid().expect("the daemon runs");
        let process = Path::new("/proc").join(pid.to_string());
        let files: Vec<String> = entries(&process.join("fd"))
            .iter()
            .filter_map(|name| fs::read_link(process.join("fd").join(name)).ok())
            .map(|target| target.to_string_lossy().into_owned())
            .collect();
        // Journals open a file with their first block, and each has a folder in the state folder.
        let state = testbed.daemon.state_directory();
        let is_of_journal = |target: &&String| {
            let folder = Path::new(target.as_str()).parent();
            folder.is_some_and(|folder| folder != state && folder.starts_with(&state))
        };
        let numbers = BTreeMap::from([
            ("file descriptors", files.iter().filter(|target| !is_of_journal(target)).count()),
            ("BPF maps", files.iter().filter(|target| target.contains("bpf-map")).count()),
            ("BPF programs", files.iter().filter(|target| target.contains("bpf-prog")).count()),
            ("BPF links", files.iter().filter(|target| target.contains("bpf_link")).count()),
            ("sockets", files.iter().filter(|target| target.starts_with("socket:")).count()),
            ("openvpn processes", testbed.openvpn_processes().len()),
        ]);
        Self { lists, numbers }
    }

    /// Fails if anything is missing or was added.
    pub(super) fn compare(&self, now: &Self) -> Result<()> {
        for (what, before) in &self.lists {
            let now = &now.lists[what];
            let unlike = |one: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>| -> Vec<String> {
                let lines = one.iter().filter(|(line, count)| other.get(*line) != Some(*count));
                lines.map(|(line, count)| format!("{count} x {line}")).collect()
            };
            let (new, gone) = (unlike(now, before), unlike(before, now));
            ensure!(new.is_empty() && gone.is_empty(), "{what}: now {new:#?}, before {gone:#?}");
        }
        for (what, before) in &self.numbers {
            let now = now.numbers[what];
            ensure!(now <= *before, "{what}: {before} before, {now} now");
        }
        Ok(())
    }

    /// Asserts that nothing of any tunnel exists.
    pub(super) fn without_tunnels(&self) -> Result<()> {
        let of_tunnel = |line: &&String| line.contains("wg-") || line.contains("ov-");
        for (what, list) in &self.lists {
            let left: Vec<_> = list.keys().filter(of_tunnel).collect();
            ensure!(left.is_empty(), "{what}: {left:#?}");
        }
        ensure!(self.numbers["openvpn processes"] == 0, "{:?}", self.numbers);
        Ok(())
    }
}

fn counted(lines: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    lines.into_iter().for_each(|line| *counts.entry(line).or_default() += 1);
    counts
}

/// Removes the numbers that change when a tunnel is created again: table, priority, mark, and the address that an
/// OpenVPN server assigns.
fn unnumbered(line: &str) -> String {
    // The digest of a rule set with such an address.
    if let Some((before, _)) = line.split_once("comment \"gateway-") {
        return before.to_owned();
    }
    let words = line.split_whitespace().map(|word| {
        let number = word.trim_end_matches(':').parse::<u32>();
        let of_leg = number.is_ok_and(|n| (4700..7000).contains(&n) || (47_000..48_000).contains(&n));
        let given = word.starts_with("10.67.") || word.starts_with("fd67:");
        if of_leg || given || word.starts_with("0x47") { "#" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn walk(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in entries(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            found.extend(walk(&path));
        }
        found.insert(path.to_string_lossy().into_owned());
    }
    found
}
