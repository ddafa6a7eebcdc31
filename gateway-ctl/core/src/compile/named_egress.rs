//! Legs that objects and settings name as the egress of connections that the gateway itself makes: DNS forwarders, and the
//! receivers of alerts. They need a route though no policy names them.

use gateway_model::State;
use gateway_model::settings::groups::{AlertEmail, AlertMqtt, AlertWebhook};

use super::leg::{Leg, named_leg};
use crate::indexes::LegId;

/// Returns the legs that are named.
pub(super) fn legs<'a>(
    state: &State,
    legs: impl Iterator<Item = &'a Leg> + Clone,
) -> impl Iterator<Item = LegId> {
    let forwarders = state.dns_forwarders.iter().filter(|forwarder| forwarder.enabled);
    let mut names: Vec<String> = forwarders.map(|forwarder| forwarder.egress.clone()).collect();
    // A receiver that is not enabled can be tested.
    names.push(state.group::<AlertWebhook>().egress);
    names.push(state.group::<AlertEmail>().egress);
    names.push(state.group::<AlertMqtt>().egress);
    names.into_iter().filter_map(move |name| named_leg(state, legs.clone(), &name)).map(|leg| leg.number)
}
