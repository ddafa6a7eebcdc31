//! The load of the forwarding benches: frames that enter the gateway at its LAN interface as if received by the driver,
//! and the sink that counts the packets at the remote end.
//!
//! An XDP program on live frames generates several million packets per second on one core. Receive, decision, routing
//! and transmission all run on that core too, so only the packet path is measured.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gateway_tests::cores::keep_to;
use gateway_tests::netns::Namespace;

use crate::bpf::instruction::*;
use crate::bpf::{Attached, Kind, Numbers, Program};
use crate::frame::{DESTINATION_LOW, IDENTIFICATION_LOW, SOURCE_ADDRESS, SOURCE_PORT_LOW, Udp};

/// Flows of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flows {
    One,
    /// 64 flows, which differ in the low bits of the source port and of the destination. With one destination, plain
    /// forwarding would look up one route for a whole batch.
    Few,
    /// 1 024 flows, which differ in more bits of the source port.
    Thousand,
}
/// Frames between two polls of the remote end, whose queue holds 256.
const BATCH: u32 = 64;
const BURST: u32 = 64 * 512;

const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const GET_RANDOM: i32 = 7;
const REDIRECT: i32 = 23;
const TC_DROP: i32 = 2;
/// Offsets in `struct __sk_buff`.
const SKB_DATA: i16 = 76;
const SKB_DATA_END: i16 = 80;

/// Generator of frames.
#[derive(Debug)]
pub struct Generator {
    program: Program,
    frame: Vec<u8>,
}

impl Generator {
    /// Creates a generator. The low bits of both bytes of the source port and of the low byte of the destination have to
    /// be 0.
    ///
    /// With the index of a link, the frames leave by it, and enter at its other end.
    pub fn new(udp: &Udp, flows: Flows, link: Option<u32>) -> Result<Self> {
        let frame = udp.frame().context("addresses of one family")?;
        let length = i32::try_from(frame.len()).context("frame")?;
        let mut code = vec![load32(7, 1, 0), load32(3, 1, 4), copy(4, 7), add(4, length)];
        // The kernel reuses frames after they passed, so the program writes every byte again.
        let mut body = Vec::new();
        for (index, eight) in frame.chunks_exact(8).enumerate() {
            let value = u64::from_ne_bytes(eight.try_into().context("eight bytes")?);
            body.extend(set64(1, value));
            body.push(store64(7, i16::try_from(8 * index).context("frame")?, 1));
        }
        let (identification, full) = IDENTIFICATION_LOW;
        // The identification decreases as the destination increases, so the header checksum stays valid.
        if flows == Flows::Thousand {
            let [high, _] = udp.source_port.to_be_bytes();
            body.extend([call(GET_RANDOM), and(0, 15), add(0, high.into())]);
            body.push(store8(7, SOURCE_PORT_LOW - 1, 0));
        }
        let mask = if flows == Flows::One { 0 } else { 63 };
        body.extend([call(GET_RANDOM), and(0, mask), store8(7, SOURCE_PORT_LOW, 0)]);
        body.extend([store8(7, DESTINATION_LOW, 0), set(1, full.into()), subtract(1, 0)]);
        body.push(store8(7, identification, 1));
        match link {
            None => body.push(set(0, XDP_PASS)),
            Some(index) => {
                body.extend([set(1, index.try_into().context("index")?), set(2, 0), call(REDIRECT)]);
            }
        }
        body.push(exit());
        code.push(skip_if_greater(4, 3, i16::try_from(body.len()).context("program")?));
        code.extend(body);
        code.extend([set(0, XDP_DROP), exit()]);
        Ok(Self { program: Program::load(Kind::Xdp, &code).context("the generator")?, frame })
    }

    /// Sends for at least this duration. Returns the packets at the sink per second of the core's processor time, so
    /// time of other programs does not count.
    pub fn run(&self, namespace: &Namespace, interface: u32, sink: &Sink, time: Duration) -> Result<Rate> {
        namespace.within(|| {
            pin()?;
            self.program.send(&self.frame, interface, BURST, BATCH)?;
            let before = sink.counts()?;
            let (started, used, mut sent) = (Instant::now(), processor_time()?, 0u64);
            while started.elapsed() < time {
                self.program.send(&self.frame, interface, BURST, BATCH)?;
                sent += u64::from(BURST);
            }
            let seconds = (processor_time()? - used).as_secs_f64();
            let after = sink.counts()?;
            let per_second = |count: u64| count as f64 / seconds;
            Ok(Rate {
                sent: per_second(sent),
                arrived: per_second(after.arrived - before.arrived),
                masqueraded: per_second(after.masqueraded - before.masqueraded),
            })
        })
    }
}

/// Packets per second of processor time.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub sent: f64,
    pub arrived: f64,
    pub masqueraded: f64,
}

/// Sink that counts and drops packets at the remote end. It is a classifier: an XDP program on a veth would convert
/// each packet to a frame first, which costs as much as forwarding it.
#[derive(Debug)]
pub struct Sink {
    counts: Numbers<2>,
    _attached: Attached,
}

#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub arrived: u64,
    /// Packets with the gateway's own address as their source.
    pub masqueraded: u64,
}

impl Sink {
    pub fn attach(namespace: &Namespace, interface: &str, masqueraded: Ipv4Addr) -> Result<Self> {
        let counts = Numbers::<2>::new()?;
        let source = i32::from_ne_bytes(masqueraded.octets());
        let mut code = vec![load32(2, 1, SKB_DATA), load32(3, 1, SKB_DATA_END), copy(4, 2), add(4, 34)];
        let mut body = vec![load32(5, 2, SOURCE_ADDRESS), set(0, 1)];
        body.extend(map_value(1, counts.number(), 0));
        body.extend([atomic_add64(1, 0, 0), skip_unless_equal(5, source, 3)]);
        body.extend(map_value(1, counts.number(), 8));
        body.push(atomic_add64(1, 0, 0));
        code.push(skip_if_greater(4, 3, i16::try_from(body.len()).context("program")?));
        code.extend(body);
        code.extend([set(0, TC_DROP), exit()]);
        let program = Program::load(Kind::Classifier, &code).context("the sink")?;
        let attached = namespace.within(|| program.attach(nix::net::if_::if_nametoindex(interface)?))?;
        Ok(Self { counts, _attached: attached })
    }

    pub fn counts(&self) -> Result<Counts> {
        let [arrived, masqueraded] = self.counts.read()?;
        Ok(Counts { arrived, masqueraded })
    }
}

/// Returns the processor time of the calling thread, including the kernel's work for its packets.
fn processor_time() -> Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time to a local variable.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    ensure!(failed == 0, "no processor time: {}", std::io::Error::last_os_error());
    Ok(Duration::new(
        time.tv_sec.try_into().context("seconds")?,
        time.tv_nsec.try_into().context("nanoseconds")?,
    ))
}

/// Returns the core of the load: the last one, as the first one gets most of the machine's interrupts.
pub fn core() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) - 1
}

/// Pins the calling thread to the core of the load with the highest priority.
pub fn pin() -> Result<()> {
    keep_to(&[core()]).context("keep to one core")
}
