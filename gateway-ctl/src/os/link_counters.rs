//! Traffic of interfaces, as the kernel counts it (proc_pid_net(5), `/proc/net/dev`).

use std::collections::BTreeMap;
use std::{fs, io};

/// The file of the thread's own network namespace: `/proc/net` is that of the process.
const FILE: &str = "/proc/thread-self/net/dev";
/// Indexes of the numbers of a line.
const RECEIVED_BYTES: usize = 0;
const RECEIVED_PACKETS: usize = 1;
const SENT_BYTES: usize = 8;
const SENT_PACKETS: usize = 9;

/// Bytes through an interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraffic {
    pub received: u64,
    pub sent: u64,
}

/// Returns the number of packets that each interface has sent.
pub fn sent_packets() -> io::Result<BTreeMap<String, u64>> {
    Ok(parse(&fs::read_to_string(FILE)?, |numbers| numbers.get(SENT_PACKETS).copied()))
}

/// Returns the number of packets that each interface has received and sent.
pub fn packets() -> io::Result<BTreeMap<String, u64>> {
    Ok(parse(&fs::read_to_string(FILE)?, all_packets))
}

fn all_packets(numbers: &[u64]) -> Option<u64> {
    Some(numbers.get(RECEIVED_PACKETS)? + numbers.get(SENT_PACKETS)?)
}

/// Returns the bytes through each interface.
pub fn traffic() -> io::Result<BTreeMap<String, LinkTraffic>> {
    let of_line = |numbers: &[u64]| {
        let (received, sent) = (*numbers.get(RECEIVED_BYTES)?, *numbers.get(SENT_BYTES)?);
        Some(LinkTraffic { received, sent })
    };
    Ok(parse(&fs::read_to_string(FILE)?, of_line))
}

fn parse<T>(text: &str, of_line: impl Fn(&[u64]) -> Option<T>) -> BTreeMap<String, T> {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
        Some((name.trim().to_owned(), of_line(&numbers)?))
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
        let sent = parse(text, |numbers| numbers.get(SENT_PACKETS).copied());
        assert_eq!(sent, BTreeMap::from([("eth0".to_owned(), 77), ("lo".to_owned(), 10)]));
        assert_eq!(parse(text, all_packets)["eth0"], 177);
        let bytes = parse(text, |numbers| Some((numbers[RECEIVED_BYTES], numbers[SENT_BYTES])));
        assert_eq!(bytes["eth0"], (9_999_999, 8888));
        assert!(traffic().unwrap().contains_key("lo"));
        assert!(sent_packets().unwrap().contains_key("lo"));
    }
}
