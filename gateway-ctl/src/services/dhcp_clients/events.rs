//! Events of DHCP clients, and their effect on the state.

use gateway_core::dhcp_report::Report;
use jiff::Timestamp;

use crate::world::reports::dhcp_clients::{DhcpStage, DhcpState};

/// Event of a client.
#[derive(Debug)]
pub(super) enum Event {
    Report(Report),
    Ended(String),
}

impl DhcpState {
    pub(super) fn take(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Report(Report::Leased(lease)) => {
                *self = DhcpState {
                    stage: DhcpStage::Bound,
                    lease: Some(lease),
                    leased_at: Some(now),
                    error: None,
                };
            }
            Event::Report(Report::Unleased) => {
                *self = DhcpState { error: self.error.take(), ..DhcpState::default() };
            }
            Event::Report(Report::NoServer) => {
                self.lose(DhcpStage::Searching, "no server answers".to_owned())
            }
            Event::Report(Report::Refused) => {
                self.lose(DhcpStage::Searching, "the server refused the address".to_owned());
            }
            Event::Report(Report::Unusable(reason)) => self.lose(DhcpStage::Searching, reason.to_owned()),
            Event::Ended(end) => self.lose(DhcpStage::Failed, end),
        }
    }

    fn lose(&mut self, stage: DhcpStage, reason: String) {
        *self = DhcpState { stage, error: Some(reason), ..DhcpState::default() };
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::facts::Lease;

    use super::*;

    #[test]
    fn a_lease_lasts_until_the_client_loses_it() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let lease = Lease {
            address: "192.0.2.7/24".parse().unwrap(),
            gateway: None,
            dns: Vec::new(),
            server: None,
            seconds: 60,
        };
        let mut state = DhcpState::default();
        state.take(Event::Report(Report::NoServer), now);
        assert_eq!(state.error.as_deref(), Some("no server answers"));
        state.take(Event::Report(Report::Leased(lease.clone())), now);
        assert_eq!((state.stage, &state.error), (DhcpStage::Bound, &None));
        assert_eq!(state.expires_at(), Some("2026-11-20T12:01:00Z".parse().unwrap()));
        state.take(Event::Report(Report::Unleased), now);
        assert_eq!((state.stage, state.lease.is_none()), (DhcpStage::Searching, true));
        state.take(Event::Report(Report::Leased(lease)), now);
        state.take(Event::Ended("exit status: 1".to_owned()), now);
        assert_eq!((state.stage, state.lease.is_none()), (DhcpStage::Failed, true));
    }
}
