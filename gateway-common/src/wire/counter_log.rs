//! Packets that are not in the counters of policies and devices yet.
//!
//! With many policies, the counter of a packet is in no cache, and the processor would wait for it at the end of each
//! packet. The counters of several packets at once are independent of each other, so it waits for all of them together.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::CounterValue;

/// Packets after which the log is emptied into the counters.
pub const LOGGED_PACKETS: usize = 64;

/// A packet to be counted. Zeroes count nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LoggedPacket {
    /// Number of the policy, 0 without one.
    pub policy: u32,
    /// Number of the device, 0 without one.
    pub device: u32,
    pub length: u32,
    pub _pad: u32,
}

/// Log of one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CounterLog {
    /// Changes at the begin and at the end of each emptying, so it is odd meanwhile.
    pub sequence: u64,
    /// Number of packets in the log.
    pub count: u64,
    pub packets: [LoggedPacket; LOGGED_PACKETS],
}

impl CounterLog {
    /// Sums the packets with a number. `number` is the field to compare.
    pub fn sum(&self, number: u32, field: impl Fn(&LoggedPacket) -> u32) -> CounterValue {
        let mut sum = CounterValue::default();
        for packet in self.packets.iter().filter(|packet| field(packet) == number) {
            sum.packets += 1;
            sum.bytes += u64::from(packet.length);
        }
        sum
    }
}

/// Returns the counter of a processor with the packets of its log, from a read of the counter between two of the log.
/// `None` if the log was emptied meanwhile.
pub fn count_with_log(
    before: &CounterLog,
    counted: CounterValue,
    after: &CounterLog,
    number: u32,
    field: impl Fn(&LoggedPacket) -> u32,
) -> Option<CounterValue> {
    if before.sequence != after.sequence || !after.sequence.is_multiple_of(2) {
        return None;
    }
    let logged = after.sum(number, field);
    Some(CounterValue { packets: counted.packets + logged.packets, bytes: counted.bytes + logged.bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(sequence: u64, packets: &[LoggedPacket]) -> CounterLog {
        let mut log = CounterLog {
            sequence,
            count: packets.len() as u64,
            packets: [LoggedPacket::default(); LOGGED_PACKETS],
        };
        log.packets[..packets.len()].copy_from_slice(packets);
        log
    }

    #[test]
    fn packets_of_the_log_count_once() {
        let packet = |policy, device, length| LoggedPacket { policy, device, length, _pad: 0 };
        let logged = log(2, &[packet(7, 1, 100), packet(7, 0, 60), packet(8, 1, 50)]);
        let counted = CounterValue { packets: 10, bytes: 1000 };
        let count = |before: &CounterLog, number, field: fn(&LoggedPacket) -> u32| {
            count_with_log(before, counted, &logged, number, field)
        };
        assert_eq!(count(&log(2, &[]), 7, |p| p.policy), Some(CounterValue { packets: 12, bytes: 1160 }));
        assert_eq!(count(&log(2, &[]), 1, |p| p.device), Some(CounterValue { packets: 12, bytes: 1150 }));
        assert_eq!(count(&log(2, &[]), 9, |p| p.policy), Some(counted));
        assert_eq!(count(&log(0, &[]), 7, |p| p.policy), None, "emptied between the reads");
        assert_eq!(
            count_with_log(&log(3, &[]), counted, &log(3, &[]), 7, |p| p.policy),
            None,
            "is being emptied"
        );
    }
}
