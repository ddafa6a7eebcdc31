//! Main function of the child process of a capture.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufWriter, Stdout, Write as _};
use std::mem::ManuallyDrop;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gateway_common::classify::{Classified, IpPacket, TCP, UDP, classify};
use gateway_common::packet::HEADER_WINDOW;
use gateway_dissect::{Dissector, LinkType};
use socket2::SockFilter;

use super::record::{
    CaptureFailure, CaptureOrder, CapturedFrame, ChildEnd, Direction, PacketFlow, Record, write,
};
use super::ring::{Ring, RingPacket};
use super::{libpcap, sandbox};

/// Blocks of all rings together, and of one at least.
const BLOCKS: usize = 24;
const MIN_BLOCKS: usize = 4;
/// Interval at which counters are reported.
const COUNT_INTERVAL: Duration = Duration::from_millis(500);
/// Time for which blocks that are not full are awaited at the end.
const DRAIN_TIME: Duration = Duration::from_millis(200);
const OUT_BYTES: usize = 256 << 10;
/// Instruction of classic BPF that accepts so many bytes of a packet (`BPF_RET | BPF_K`).
const RETURN: u16 = 0x06;

/// Runs a capture by the order on standard input, until it is complete or the input ends.
pub fn run() -> ExitCode {
    let mut line = String::new();
    let order = io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string());
    let order = order.and_then(|_| serde_json::from_str(&line).map_err(|error| error.to_string()));
    let mut out = Output::new();
    let outcome = match order {
        Ok(order) => capture(&order, &mut out),
        Err(error) => Err(CaptureFailure::System(format!("the order is not readable: {error}"))),
    };
    let sent = match outcome {
        Ok(()) => out.flush(),
        Err(failure) => out.send(&Record::Failed(failure), &[]).and_then(|()| out.flush()),
    };
    // The daemon is gone, and nobody is left to tell.
    if sent.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Output {
    out: BufWriter<Stdout>,
    buffer: Vec<u8>,
}

impl Output {
    fn new() -> Output {
        Output { out: BufWriter::with_capacity(OUT_BYTES, io::stdout()), buffer: Vec::new() }
    }

    fn send(&mut self, record: &Record, bytes: &[u8]) -> io::Result<()> {
        write(&mut self.out, record, bytes, &mut self.buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn system(context: &'static str) -> impl Fn(io::Error) -> CaptureFailure {
    move |error| CaptureFailure::System(format!("{context}: {error}"))
}

fn capture(order: &CaptureOrder, out: &mut Output) -> Result<(), CaptureFailure> {
    sandbox::leave_network().map_err(system("failed to leave the network"))?;
    // They end with the process, which may not close them.
    let mut rings = ManuallyDrop::new(open_rings(order)?);
    sandbox::enter().map_err(system("failed to give up rights"))?;
    let lost = system("failed to write to the daemon");
    out.send(&Record::Ready, &[]).and_then(|()| out.flush()).map_err(&lost)?;
    let mut reader = Reader {
        order,
        left_out: order.left_out.iter().copied().collect(),
        dissector: Dissector::default(),
        packets: 0,
        left_out_packets: 0,
    };
    let end = follow(&mut rings, &mut reader, out).map_err(&lost)?;
    send_counters(&mut rings, out).map_err(&lost)?;
    out.send(&Record::Ended { left_out: reader.left_out_packets, end }, &[]).map_err(&lost)
}

fn open_rings(order: &CaptureOrder) -> Result<Vec<Ring>, CaptureFailure> {
    let blocks = (BLOCKS / order.interfaces.len().max(1)).max(MIN_BLOCKS);
    let mut filters: Vec<Vec<SockFilter>> = Vec::new();
    for interface in &order.interfaces {
        filters.push(match order.filter.trim() {
            "" => vec![SockFilter::new(RETURN, 0, 0, order.snaplen)],
            filter => libpcap::compile(filter, &interface.name, interface.link, order.snaplen)?,
        });
    }
    order
        .interfaces
        .iter()
        .zip(filters)
        .map(|(interface, filter)| {
            let cooked = interface.link != LinkType::Ethernet;
            Ring::open(interface.index, cooked, &filter, blocks, order.promiscuous).map_err(|error| {
                CaptureFailure::System(format!("failed to capture on {}: {error}", interface.name))
            })
        })
        .collect()
}

/// Reads packets until the end.
fn follow(rings: &mut [Ring], reader: &mut Reader<'_>, out: &mut Output) -> io::Result<ChildEnd> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(reader.order.max_seconds);
    let mut counted = begun;
    loop {
        let now = Instant::now();
        let stopped = wait(rings, until.min(now + COUNT_INTERVAL))?;
        reader.read_all(rings, out)?;
        let end = match () {
            () if reader.is_full() => Some(ChildEnd::Count),
            () if stopped => Some(ChildEnd::Stopped),
            () if Instant::now() >= until => Some(ChildEnd::Duration),
            () => None,
        };
        if let Some(end) = end {
            reader.drain(rings, out)?;
            return Ok(end);
        }
        if counted.elapsed() >= COUNT_INTERVAL {
            counted = Instant::now();
            send_counters(rings, out)?;
        }
        out.flush()?;
    }
}

fn send_counters(rings: &mut [Ring], out: &mut Output) -> io::Result<()> {
    let counters = rings.iter_mut().map(Ring::counters).collect::<io::Result<_>>()?;
    out.send(&Record::Counters(counters), &[])
}

/// Waits for a block, at most until then. Returns true if the daemon has closed standard input.
fn wait(rings: &[Ring], until: Instant) -> io::Result<bool> {
    let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<_> =
        std::iter::once(libc::STDIN_FILENO).chain(rings.iter().map(Ring::descriptor)).map(watched).collect();
    let left = until.saturating_duration_since(Instant::now());
    let millis = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX).saturating_add(1);
    // SAFETY: the pointer is to so many structures, which live through the call.
    if unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) } < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
    }
    Ok(polled[0].revents != 0)
}

struct Reader<'a> {
    order: &'a CaptureOrder,
    left_out: BTreeSet<(IpAddr, u16)>,
    dissector: Dissector,
    packets: u64,
    left_out_packets: u64,
}

impl Reader<'_> {
    fn is_full(&self) -> bool {
        self.packets >= self.order.max_packets
    }

    /// Reads the blocks that are ready.
    fn read_all(&mut self, rings: &mut [Ring], out: &mut Output) -> io::Result<()> {
        for (interface, ring) in rings.iter_mut().enumerate() {
            while !self.is_full() && ring.read_block(&mut |packet| self.take(interface, &packet, out))? {}
        }
        Ok(())
    }

    /// Reads the packets that have arrived before the end.
    fn drain(&mut self, rings: &mut [Ring], out: &mut Output) -> io::Result<()> {
        let until = Instant::now() + DRAIN_TIME;
        while !self.is_full() && Instant::now() < until {
            let mut polled: Vec<_> = rings
                .iter()
                .map(|ring| libc::pollfd { fd: ring.descriptor(), events: libc::POLLIN, revents: 0 })
                .collect();
            // SAFETY: as in `wait`.
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 50) };
            self.read_all(rings, out)?;
        }
        Ok(())
    }

    /// Sends a packet on. Returns false if the capture is complete.
    fn take(&mut self, position: usize, packet: &RingPacket<'_>, out: &mut Output) -> io::Result<bool> {
        let Some(interface) = self.order.interfaces.get(position) else { return Ok(false) };
        if interface.loopback && packet.outgoing {
            return Ok(true);
        }
        let classified = ip_packet(interface.link, packet, interface.index);
        let flow = classified.as_ref().map(PacketFlow::from);
        if flow.as_ref().is_some_and(|flow| self.is_left_out(flow)) {
            self.left_out_packets += 1;
            return Ok(true);
        }
        let frame = CapturedFrame {
            interface: position,
            time_ns: packet.time_ns,
            length: packet.length,
            direction: if packet.outgoing { Direction::Out } else { Direction::In },
            summary: self.dissector.summarize(interface.link, packet.bytes),
            flow,
        };
        out.send(&Record::Packet(frame), packet.bytes)?;
        self.packets += 1;
        Ok(!self.is_full())
    }

    fn is_left_out(&self, flow: &PacketFlow) -> bool {
        let is_one = |address, port| self.left_out.contains(&(address, port));
        matches!(flow.protocol, TCP | UDP)
            && (is_one(flow.source, flow.source_port) || is_one(flow.destination, flow.destination_port))
    }
}

/// Returns the packet as the decision function reads it. Packets without a header of the link get one.
fn ip_packet(link: LinkType, packet: &RingPacket<'_>, interface: u32) -> Option<IpPacket> {
    let classified = match link {
        LinkType::Ethernet => classify(packet.bytes, interface),
        _ => {
            let mut frame = [0; HEADER_WINDOW];
            frame[12..14].copy_from_slice(&packet.protocol.to_be_bytes());
            let length = packet.bytes.len().min(HEADER_WINDOW - 14);
            frame[14..14 + length].copy_from_slice(&packet.bytes[..length]);
            classify(&frame[..14 + length], interface)
        }
    };
    match classified {
        Ok(Classified::Ip(ip)) => Some(ip),
        _ => None,
    }
}
