//! Remote ends of the forwarding benches: a sink that counts packets, and an echo that replies to them.
//!
//! Both are classifiers: an XDP program on a veth would convert each packet to a frame first, which costs as much as
//! forwarding it.

use std::net::IpAddr;

use anyhow::{Context, Result};
use gateway_tests::netns::Namespace;

use crate::bpf::instruction::*;
use crate::bpf::{Attached, Instruction, Kind, Numbers, Program};
use crate::flows::ROTATION_PAYLOAD;
use crate::frame::{DESTINATION, DESTINATION_PORT, PAYLOAD, SOURCE, SOURCE_MAC, SOURCE_PORT, SOURCE6};

const TC_PASS: i32 = 0;
const TC_DROP: i32 = 2;
/// Offsets in `struct __sk_buff`.
const SKB_DATA: i16 = 76;
const SKB_DATA_END: i16 = 80;
/// Bytes that the programs read.
const WINDOW: i32 = PAYLOAD as i32 + 4;
const ETHERTYPE: i16 = 12;

/// Sink that counts and drops packets.
#[derive(Debug)]
pub(crate) struct Sink {
    counts: Numbers<3>,
    _attached: Attached,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub arrived: u64,
    /// Packets with the gateway's own address as their source.
    pub masqueraded: u64,
    /// Those of them that are of a rotation of flows.
    pub rotated: u64,
}

impl Counts {
    pub(crate) fn since(&self, before: &Counts) -> Counts {
        Counts {
            arrived: self.arrived - before.arrived,
            masqueraded: self.masqueraded - before.masqueraded,
            rotated: self.rotated - before.rotated,
        }
    }
}

impl Sink {
    pub(crate) fn attach(namespace: &Namespace, interface: &str, masqueraded: IpAddr) -> Result<Self> {
        let counts = Numbers::<3>::new()?;
        let (offset, source) = match masqueraded {
            IpAddr::V4(address) => (SOURCE, address.octets()),
            IpAddr::V6(address) => {
                let [.., a, b, c, d] = address.octets();
                (SOURCE6 + 12, [a, b, c, d])
            }
        };
        let add_one = |index: i32| {
            let mut code = map_value(1, counts.number(), 8 * index).to_vec();
            code.push(atomic_add64(1, 0, 0));
            code
        };
        let is_equal = |offset: i16, bytes: [u8; 4], code: &[Instruction]| {
            let test = [load32(5, 2, offset), skip_unless_equal(5, i32::from_ne_bytes(bytes), 3)];
            [&test[..], code].concat()
        };
        let mut body = vec![set(0, 1)];
        body.extend(add_one(0));
        let rotated = is_equal(PAYLOAD, ROTATION_PAYLOAD, &add_one(2));
        let skipped = 3 + i16::try_from(rotated.len()).context("program")?;
        body.extend([load32(5, 2, offset), skip_unless_equal(5, i32::from_ne_bytes(source), skipped)]);
        body.extend(add_one(1));
        body.extend(rotated);
        let mut code = vec![load32(2, 1, SKB_DATA), load32(3, 1, SKB_DATA_END), copy(4, 2), add(4, WINDOW)];
        code.push(skip_if_greater(4, 3, i16::try_from(body.len()).context("program")?));
        code.extend(body);
        code.extend([set(0, TC_DROP), exit()]);
        let program = Program::load(Kind::Classifier, &code).context("the sink")?;
        let attached = namespace.within(|| program.attach(nix::net::if_::if_nametoindex(interface)?))?;
        Ok(Self { counts, _attached: attached })
    }

    pub(crate) fn counts(&self) -> Result<Counts> {
        let [arrived, masqueraded, rotated] = self.counts.read()?;
        Ok(Counts { arrived, masqueraded, rotated })
    }
}

/// Remote end that sends each IPv4 packet back with its addresses and ports exchanged.
#[derive(Debug)]
pub(crate) struct Echo {
    _attached: Attached,
}

impl Echo {
    pub(crate) fn attach(namespace: &Namespace, interface: &str) -> Result<Self> {
        let index = namespace.within(|| nix::net::if_::if_nametoindex(interface))?;
        let word = |first: i16, second: i16| {
            [load32(1, 7, first), load32(2, 7, second), store32(7, first, 2), store32(7, second, 1)]
        };
        let half = |first: i16, second: i16| {
            [load16(1, 7, first), load16(2, 7, second), store16(7, first, 2), store16(7, second, 1)]
        };
        let mut body = Vec::new();
        body.extend(word(0, SOURCE_MAC));
        body.extend(half(4, SOURCE_MAC + 4));
        body.extend(word(SOURCE, DESTINATION));
        body.extend(half(SOURCE_PORT, DESTINATION_PORT));
        body.extend([set(1, index.try_into().context("index")?), set(2, 0), call(REDIRECT), exit()]);
        let skipped = i16::try_from(body.len()).context("program")?;
        let mut code = vec![load32(7, 1, SKB_DATA), load32(3, 1, SKB_DATA_END), copy(4, 7), add(4, WINDOW)];
        code.push(skip_if_greater(4, 3, 2 + skipped));
        let ipv4 = u16::from_ne_bytes([0x08, 0]);
        code.extend([load16(5, 7, ETHERTYPE), skip_unless_equal(5, ipv4.into(), skipped)]);
        code.extend(body);
        code.extend([set(0, TC_PASS), exit()]);
        let program = Program::load(Kind::Classifier, &code).context("the echo")?;
        let attached = namespace.within(|| program.attach(index))?;
        Ok(Self { _attached: attached })
    }
}
