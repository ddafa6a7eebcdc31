//! XDP of the fast path: attaches the program where the setting and the interface allow it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use gateway_common::wire::{Mac, XdpAnswers, XdpLink, XdpSide, xdp_link_index};
use gateway_core::facts::{Facts, Link};
use gateway_core::plan::{Attachment, Plan};
use gateway_core::xdp::{Candidate, Obstacle};
use gateway_model::settings::bootstrap::XdpMode;
use gateway_outbound::causes::with_causes;

use crate::os::bpf::{Programs, Xdp, XdpState};
use crate::os::driver_state::{shapers, xdp_abilities};
use crate::reconcile::KernelDataplane;

/// Interval at which a refused attachment is tried again. Some drivers reset the hardware in each attempt.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Attachments of XDP.
pub(super) struct XdpControl {
    dataplane: KernelDataplane,
    xdp: Xdp,
    /// Refused attachments by the index of the interface.
    refused: BTreeMap<u32, Refusal>,
}

struct Refusal {
    mtu: u32,
    time: Instant,
    retry_interval: Duration,
    error: String,
}

/// An interface that is to have XDP.
struct Wanted<'a> {
    name: &'a str,
    mode: XdpMode,
    link: &'a Link,
    side: XdpSide,
}

impl XdpControl {
    /// Takes over the attachments of an earlier run.
    pub(super) fn open(dataplane: KernelDataplane) -> XdpControl {
        let xdp = dataplane.xdp().clone();
        let control = XdpControl { dataplane, xdp, refused: BTreeMap::new() };
        if let Err(error) = control.adopt() {
            tracing::warn!(%error, "failed to take over XDP programs: they are detached");
            report(control.xdp.detach_except(&BTreeSet::new()));
        }
        control
    }

    fn adopt(&self) -> io::Result<()> {
        if self.xdp.is_left()? {
            self.dataplane.with(Programs::load_xdp);
        }
        self.xdp.adopt()
    }

    /// Brings the attachments to the state that plan and facts demand. Captured interfaces have none: a capture would
    /// not see the packets that XDP forwards.
    pub(super) fn update(&mut self, plan: &Plan, facts: &Facts, captured: &BTreeSet<String>) {
        let (mut states, mut wanted) = (BTreeMap::new(), Vec::new());
        for (name, attachment) in &plan.attach {
            let mode = plan.xdp.of(name);
            let side = match attachment {
                Attachment::Ingress => XdpSide::Lan,
                Attachment::Guard => XdpSide::Uplink,
            };
            let obstacle = match facts.links.get(name) {
                _ if mode == XdpMode::Off => Obstacle::Off,
                _ if !plan.fast_path => Obstacle::FastPathOff,
                _ if captured.contains(name) => Obstacle::Captured,
                None => Obstacle::Absent,
                Some(link) => {
                    wanted.push(Wanted { name, mode, link, side });
                    continue;
                }
            };
            states.insert(name.clone(), XdpState::without(mode, obstacle));
        }
        if !wanted.is_empty() {
            self.dataplane.with(Programs::load_xdp);
        }
        if let Err(error) = self.attach(facts, &wanted, &mut states) {
            // Without an attachment all packets take the tcx program.
            tracing::warn!(%error, "failed to update XDP: it is off");
            report(self.xdp.detach_except(&BTreeSet::new()));
            for Wanted { name, mode, .. } in wanted {
                let refused = Obstacle::Refused(error.to_string());
                states.insert(name.to_owned(), XdpState::without(mode, refused));
            }
        }
        self.xdp.set_states(states);
    }

    fn attach(
        &mut self,
        facts: &Facts,
        wanted: &[Wanted<'_>],
        states: &mut BTreeMap<String, XdpState>,
    ) -> io::Result<()> {
        let (mut shaped, mut abilities) = (BTreeMap::new(), None);
        if !wanted.is_empty() {
            (shaped, abilities) = (shapers()?, xdp_abilities()?);
        }
        let (mut attached, mut elements) = (BTreeMap::new(), BTreeSet::new());
        for one in wanted {
            let candidate = candidate(one, facts, &shaped, abilities.as_ref());
            let mut attach = || {
                candidate.attach(one.mode)?;
                if !elements.insert(xdp_link_index(one.link.index)) {
                    let index = one.link.index;
                    let error =
                        format!("its index {index} has the same element as that of another interface");
                    return Err(Obstacle::Refused(error));
                }
                self.attach_one(one.link)
            };
            match attach() {
                Ok(()) => {
                    attached.insert(one.link.index, one);
                }
                Err(obstacle) => {
                    states.insert(one.name.to_owned(), XdpState::without(one.mode, obstacle));
                }
            }
        }
        self.xdp.detach_except(&attached.keys().copied().collect())?;
        self.refused.retain(|index, _| wanted.iter().any(|one| one.link.index == *index));
        // Some drivers accept frames only while they have a program.
        if !attached.is_empty() {
            abilities = xdp_abilities()?;
        }
        let (mut links, mut ports) = (BTreeMap::new(), BTreeSet::new());
        for (index, one) in attached {
            let send = candidate(one, facts, &shaped, abilities.as_ref()).send();
            let state = XdpState {
                mode: one.mode,
                attached: true,
                sends: send.is_ok(),
                obstacle: send.as_ref().err().cloned(),
            };
            states.insert(one.name.to_owned(), state);
            if let Some(mac) = one.link.mac {
                let answers = answers(one.link, &send) as u16;
                let link =
                    XdpLink { mac: Mac::new(mac), side: one.side as u16, answers, ..XdpLink::default() };
                links.insert(index, link);
            }
            if send.is_ok() {
                ports.insert(index);
            }
        }
        self.xdp.set(&links, &ports).map_err(|error| io::Error::other(with_causes(&error)))
    }

    fn attach_one(&mut self, link: &Link) -> Result<(), Obstacle> {
        let before = self.refused.get(&link.index).filter(|refusal| refusal.mtu == link.mtu);
        if let Some(refusal) = before
            && refusal.time.elapsed() < refusal.retry_interval
        {
            return Err(Obstacle::Refused(refusal.error.clone()));
        }
        let Err(failure) = self.xdp.attach(link.index) else {
            self.refused.remove(&link.index);
            return Ok(());
        };
        let error = failure.to_string();
        if before.is_none_or(|refusal| refusal.error != error) {
            tracing::warn!(interface = link.index, %error, "XDP was refused: the tcx program stays alone");
        }
        // The program of the version before leaves once the plan is applied. Until then, the driver is not involved.
        let is_busy = failure.kind() == io::ErrorKind::ResourceBusy;
        let retry_interval = if is_busy { Duration::ZERO } else { RETRY_INTERVAL };
        let refusal = Refusal { mtu: link.mtu, time: Instant::now(), retry_interval, error: error.clone() };
        self.refused.insert(link.index, refusal);
        Err(Obstacle::Refused(error))
    }
}

/// Returns the way of DNS answers. A virtual interface that accepts no frames would lose them, and a queueing discipline is
/// not passed by.
fn answers(link: &Link, send: &Result<(), Obstacle>) -> XdpAnswers {
    match send {
        Err(Obstacle::Shaped(_)) => XdpAnswers::None,
        _ if link.kind.is_empty() => XdpAnswers::Transmit,
        Ok(()) => XdpAnswers::Redirect,
        Err(_) => XdpAnswers::None,
    }
}

fn candidate<'a>(
    one: &Wanted<'a>,
    facts: &Facts,
    shaped: &'a BTreeMap<u32, String>,
    abilities: Option<&BTreeMap<u32, u64>>,
) -> Candidate<'a> {
    let is_on_it = |other: &Link| other.vlan.as_ref().is_some_and(|(parent, _)| parent == one.name);
    Candidate {
        link: one.link,
        has_vlans: facts.links.values().any(is_on_it),
        shaper: shaped.get(&one.link.index).map(String::as_str),
        abilities: abilities.map(|abilities| abilities.get(&one.link.index).copied().unwrap_or(0)),
    }
}

fn report(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(%error, "failed to detach XDP");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_take_the_way_that_loses_none_and_pass_no_discipline_by() {
        let link = |kind: &str| Link { kind: kind.to_owned(), ..Link::default() };
        let (physical, virtual_link) = (link(""), link("veth"));
        let shaped = Err(Obstacle::Shaped("cake".to_owned()));
        for (link, send, wanted) in [
            (&physical, Ok(()), XdpAnswers::Transmit),
            (&physical, Err(Obstacle::NoTransmit), XdpAnswers::Transmit),
            (&physical, shaped.clone(), XdpAnswers::None),
            (&virtual_link, Ok(()), XdpAnswers::Redirect),
            (&virtual_link, Err(Obstacle::NoTransmit), XdpAnswers::None),
            (&virtual_link, shaped, XdpAnswers::None),
        ] {
            assert_eq!(answers(link, &send), wanted, "{link:?} {send:?}");
        }
    }
}
