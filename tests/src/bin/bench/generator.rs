//! The load of the forwarding benches: frames that enter the gateway at its LAN interface as if received by the driver.
//!
//! An XDP program on live frames generates several million packets per second on one core. Receive, decision, routing
//! and transmission all run on that core too, so only the packet path is measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gateway_tests::cores::keep_to;
use gateway_tests::netns::Namespace;

use crate::bpf::instruction::*;
use crate::bpf::{Kind, Numbers, Program};
use crate::flows::Flows;
use crate::frame::Udp;
use crate::sink::{Counts, Sink};

/// Frames between two polls of the remote end, whose queue holds 256.
const BATCH: u32 = 64;
const BURST: u32 = 64 * 512;
/// Each call of the kernel allocates and frees its frames, which takes 3 ms. So it sends many.
const MIN_SENT_AT_ONCE: u32 = 64 * BATCH;

const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;

/// Generator of frames.
#[derive(Debug)]
pub(crate) struct Generator {
    program: Program,
    frame: Vec<u8>,
    flows: Flows,
    _counter: Numbers<1>,
}

/// Extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// At least so long.
    Time(Duration),
    Packets(u32),
}

impl Generator {
    /// Creates a generator. The low bits of both bytes of the source port and of the low byte of the destination have to
    /// be 0.
    ///
    /// With the index of a link, the frames leave by it, and enter at its other end.
    pub(crate) fn new(headers: &Udp, flows: Flows, link: Option<u32>) -> Result<Self> {
        let (frame, counter) = (flows.frame(headers)?, Numbers::<1>::new()?);
        let length = i32::try_from(frame.len()).context("frame")?;
        let mut code = vec![load32(7, 1, 0), load32(3, 1, 4), copy(4, 7), add(4, length)];
        // The kernel reuses frames after they passed, so the program writes every byte again.
        let mut body = Vec::new();
        let words = frame.chunks_exact(8);
        let (rest, end) = (words.remainder(), frame.len() - frame.len() % 8);
        for (index, eight) in words.enumerate() {
            let value = u64::from_ne_bytes(eight.try_into().context("eight bytes")?);
            body.extend(set64(1, value));
            body.push(store64(7, i16::try_from(8 * index).context("frame")?, 1));
        }
        if let Ok(four) = <[u8; 4]>::try_from(rest) {
            body.extend([
                set(1, i32::from_ne_bytes(four)),
                store32(7, i16::try_from(end).context("frame")?, 1),
            ]);
        } else {
            ensure!(rest.is_empty(), "frames have whole words");
        }
        body.extend(flows.variation(headers, counter.number()));
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
        let program = Program::load(Kind::Xdp, &code).context("the generator")?;
        Ok(Self { program, frame, flows, _counter: counter })
    }

    /// Sends so many packets. Returns the packets at the sink per second of the core's processor time, so time of other
    /// programs does not count.
    pub(crate) fn run(
        &self,
        namespace: &Namespace,
        interface: u32,
        sink: &Sink,
        extent: Extent,
    ) -> Result<Rate> {
        namespace.within(|| {
            pin()?;
            self.send(interface, self.flows.warm_up().max(BURST))?;
            let before = sink.counts()?;
            let (started, used, mut sent) = (Instant::now(), processor_time()?, 0u64);
            match extent {
                Extent::Time(time) => {
                    while started.elapsed() < time {
                        self.send(interface, BURST)?;
                        sent += u64::from(BURST);
                    }
                }
                Extent::Packets(packets) => {
                    self.send(interface, packets)?;
                    sent = packets.into();
                }
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

    /// Sends so many packets a second for this time, as long as the core is fast enough. Returns the number of packets
    /// that were due, and the counts of those that arrived within the time.
    pub(crate) fn run_at(
        &self,
        namespace: &Namespace,
        interface: u32,
        sink: &Sink,
        (packets_per_second, time): (u32, Duration),
    ) -> Result<(u64, Counts)> {
        namespace.within(|| {
            pin()?;
            let before = sink.counts()?;
            let due = |elapsed: Duration| (elapsed.as_secs_f64() * f64::from(packets_per_second)) as u64;
            let (started, mut sent) = (Instant::now(), 0u64);
            loop {
                let elapsed = started.elapsed();
                if elapsed >= time {
                    break;
                }
                // What one call sends takes few milliseconds, so it hardly lasts beyond the end.
                let count = (due(elapsed) - sent).min(u64::from(2 * MIN_SENT_AT_ONCE)) as u32;
                if count < MIN_SENT_AT_ONCE {
                    std::hint::spin_loop();
                    continue;
                }
                self.send(interface, count)?;
                sent += u64::from(count);
            }
            let after = sink.counts()?;
            Ok((due(time), after.since(&before)))
        })
    }

    fn send(&self, interface: u32, packets: u32) -> Result<()> {
        self.program.send(&self.frame, interface, packets, BATCH)
    }
}

/// Packets per second of processor time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub sent: f64,
    pub arrived: f64,
    pub masqueraded: f64,
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
pub(crate) fn core() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) - 1
}

/// Pins the calling thread to the core of the load with the highest priority.
pub(crate) fn pin() -> Result<()> {
    keep_to(&[core()]).context("keep to one core")
}
