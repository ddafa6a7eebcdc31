//! Packets that interfaces have sent, as the kernel counts them (proc_pid_net(5), `/proc/net/dev`).

use std::collections::BTreeMap;
use std::{fs, io};

/// The file of the thread's own network namespace: `/proc/net` is that of the process.
const FILE: &str = "/proc/thread-self/net/dev";
/// Index of the number of sent packets among the numbers of a line.
const SENT_PACKETS: usize = 9;

/// Returns the number of packets that each interface has sent.
pub fn sent_packets() -> io::Result<BTreeMap<String, u64>> {
    Ok(parse(&fs::read_to_string(FILE)?))
}

fn parse(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let sent = numbers.split_whitespace().nth(SENT_PACKETS)?.parse().ok()?;
        Some((name.trim().to_owned(), sent))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_packets_are_read_by_interface() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
            lo: 1234      10    0    0    0     0          0         0     1234      10    0    0    0     0       0          0\n  \
            eth0:9999999 100 0 0 0 0 0 0 8888 77 0 0 0 0 0 0\n";
        let sent = parse(text);
        assert_eq!(sent, BTreeMap::from([("eth0".to_owned(), 77), ("lo".to_owned(), 10)]));
        assert!(sent_packets().unwrap().contains_key("lo"));
    }
}
