//! Filter and local zones behind the interface that the resolver uses.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::filter::Filter;
use gateway_core::dns::zones::Zones;
use gateway_core::dns::{ClientIdentity, Decision, Local, NameRef, Question};
use gateway_dns::hooks::LocalAnswers;
use gateway_dns::transfer::Secondaries;
use jiff::Timestamp;

pub(super) struct FilterAndZones {
    pub filter: Arc<Filter>,
    pub zones: Arc<Zones>,
    pub secondaries: Arc<Secondaries>,
}

impl LocalAnswers for FilterAndZones {
    fn decide(&self, asker: &ClientIdentity, question: Question<'_>, now: Timestamp) -> Decision {
        self.filter.decide(asker, question, now)
    }

    fn inspect_name(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        target: NameRef<'_>,
        now: Timestamp,
    ) -> Decision {
        self.filter.inspect_name(asker, question, target, now)
    }

    fn inspect_address(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        address: IpAddr,
        now: Timestamp,
    ) -> Decision {
        self.filter.inspect_address(asker, question, address, now)
    }

    fn local(&self, question: Question<'_>, proved: bool) -> Option<Local> {
        self.zones.answer(question, proved)
    }

    fn filter(&self) -> Option<Arc<Filter>> {
        Some(self.filter.clone())
    }

    fn notified(&self, zone: NameRef<'_>, from: IpAddr) -> bool {
        self.secondaries.notified(zone, from)
    }
}
