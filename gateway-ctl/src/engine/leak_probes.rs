//! Probes of a leak check in transit: they enter by the LAN interface, and a tap behind the egress guard observes them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gateway_common::recorded_verdict::flow_key;
use gateway_core::dns::{Name, Question};
use gateway_core::leak_check::{
    Expected, NameAnswer, Outcome, Plan, Probe, Run, Sighting, SightingKind, Token, recognise,
};
use gateway_dns::wire::{Answer, rtype};
use gateway_model::domain::DomainName;

use crate::os::egress_tap::EgressTap;
use crate::reconcile::KernelDataplane;

/// Time for which probes that must not leave are observed.
const OBSERVATION: Duration = Duration::from_secs(1);
/// Time within which an expected packet leaves.
const LONGEST_OBSERVATION: Duration = Duration::from_secs(3);

/// Sends the probes of a plan and observes them.
pub(super) fn run(dataplane: &KernelDataplane, plan: &Plan) -> anyhow::Result<Run> {
    let tap = EgressTap::open().context("cannot observe the interfaces")?;
    let mut control = Control::send().context("cannot send the control packet")?;
    let mut outcomes = vec![Outcome::default(); plan.probes.len()];
    for probe in &plan.probes {
        dataplane
            .with(|programs| programs.inject(probe.interface, &probe.frame))
            .context("cannot send a probe")?;
    }
    let start = Instant::now();
    let mut packet = Vec::new();
    loop {
        while let Some(interface) = tap.next(&mut packet).context("cannot observe the interfaces")? {
            control.is_seen |= control.is(&packet);
            if let Some((index, kind)) = recognise(&plan.probes, &packet) {
                let sighting = Sighting { interface: name(interface), kind };
                if kind == SightingKind::Answer {
                    outcomes[index].answer = read_answer(&plan.probes[index], &packet);
                }
                *outcomes[index].sightings.entry(sighting).or_default() += 1;
            }
        }
        let is_complete = control.is_seen
            && plan.probes.iter().zip(&outcomes).all(|(probe, outcome)| is_complete(probe, outcome));
        let end = start + if is_complete { OBSERVATION } else { LONGEST_OBSERVATION };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        tap.wait(left.min(OBSERVATION / 4)).context("cannot observe the interfaces")?;
    }
    for (probe, outcome) in plan.probes.iter().zip(&mut outcomes) {
        let key = flow_key(&probe.packet);
        outcome.verdict =
            dataplane.with(|programs| programs.reason_of_flow(&key)).context("cannot read the flow table")?;
    }
    let failure = (!control.is_seen).then(|| "the tap did not see its control packet".to_owned());
    Ok(Run { outcomes, failure, ..Run::default() })
}

/// Reports whether nothing more is expected of a probe.
fn is_complete(probe: &Probe, outcome: &Outcome) -> bool {
    let has = |kind: SightingKind| outcome.sightings.keys().any(|sighting| sighting.kind == kind);
    match &probe.expected {
        Expected::Answered if matches!(probe.token, Token::Query { .. }) => has(SightingKind::Answer),
        Expected::Stopped(_) | Expected::Proxied(_) | Expected::Answered => true,
        Expected::Leaves { .. } => has(SightingKind::Left),
    }
}

/// Returns the answer to a query for the addresses of a name. Probes to the resolver go to an IPv4 address of it, so the
/// packet has an IPv4 header.
fn read_answer(probe: &Probe, packet: &[u8]) -> Option<NameAnswer> {
    let Token::Query { name, .. } = &probe.token else { return None };
    let name = Name::from(&DomainName::parse(name).ok()?);
    let header = usize::from(packet.first()? & 15) * 4;
    let message = packet.get(header + 8..)?;
    let answer = Answer::read(message, Question { name: name.as_ref(), qtype: rtype::A }, false).ok()?;
    let addresses = answer.answers.iter().filter(|record| record.rtype == rtype::A);
    let addresses =
        addresses.filter_map(|record| <[u8; 4]>::try_from(&record.rdata[..]).ok()).map(Ipv4Addr::from);
    Some(NameAnswer {
        rcode: answer.rcode,
        addresses: addresses.collect(),
        error: answer.ede.map(|(code, _)| code),
    })
}

fn name(interface: u32) -> String {
    #[expect(clippy::disallowed_methods, reason = "looks the name of an interface up, and sends nothing")]
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
    let name = socket.and_then(|socket| rustix::net::netdevice::index_to_name(&socket, interface));
    name.unwrap_or_else(|_| format!("interface {interface}"))
}

/// Packet of this host to itself. A tap that does not see it sees nothing.
struct Control {
    socket: UdpSocket,
    to: SocketAddr,
    is_seen: bool,
}

impl Control {
    fn send() -> std::io::Result<Control> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_ttl(1)?;
        let to = socket.local_addr()?;
        socket.send_to(b"control", to)?;
        Ok(Control { socket, to, is_seen: false })
    }

    /// Compares the destination of an IPv4 packet without options.
    fn is(&self, packet: &[u8]) -> bool {
        let _ = &self.socket;
        packet.get(16..20) == Some(&Ipv4Addr::LOCALHOST.octets()[..])
            && packet.get(22..24) == Some(&self.to.port().to_be_bytes()[..])
    }
}
