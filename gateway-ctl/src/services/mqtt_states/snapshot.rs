//! States of one instant, as they are published.

use gateway_core::gateway_verdict::Word;
use gateway_core::network::UplinkSettings;
use gateway_core::notifications::Sender;
use gateway_core::notifications::home_assistant::{Identity, Link, States};
use gateway_model::kinds::tunnel_health::TunnelStatus;
use gateway_model::settings::groups::AlertMqtt;
use gateway_model::settings::keys;
use gateway_model::settings::uplink::UplinkState;

use super::MqttStates;
use crate::services::deliveries::sender;
use crate::services::gateway_verdict::Verdicts;
use crate::supervise::blocking;
use crate::world::World;

impl MqttStates {
    pub(super) fn identity(&self, config: &AlertMqtt) -> Identity {
        let world = self.worlds.now();
        let Sender { node: name, url } = sender(&world);
        let node_id = world.state.settings.get(keys::NODE_ID).and_then(|id| id.as_str().map(str::to_owned));
        Identity {
            node_id: node_id.unwrap_or_else(|| name.clone()),
            name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            url,
            topic_prefix: config.topic_prefix.clone(),
            discovery_prefix: config.discovery_prefix.clone(),
        }
    }

    pub(super) async fn states(&self) -> States {
        let source = self.source.clone();
        let alerts = blocking(move || source.active()).await;
        let world = self.worlds.now();
        let verdict = self.handles.get::<Verdicts>().borrow().as_ref().map(|verdict| word(verdict.word));
        States { verdict, uplinks: uplinks(&world), tunnels: tunnels(&world), alerts }
    }
}

/// Returns the word as the API shows it.
fn word(word: Word) -> String {
    let text = match word {
        Word::Ok => "OK",
        Word::Blocked => "BLOCKED",
        Word::Unknown => "UNKNOWN",
        Word::Leak => "LEAK",
    };
    text.to_owned()
}

fn uplinks(world: &World) -> Vec<Link> {
    let states = &world.reports.uplinks.uplinks;
    let link = |uplink: &UplinkSettings| {
        let state = states.get(&uplink.interface).map(|report| report.state).unwrap_or_default();
        let name = if uplink.name.is_empty() { &uplink.interface } else { &uplink.name };
        Link {
            key: uplink.interface.clone(),
            name: name.clone(),
            is_up: matches!(state, UplinkState::Online | UplinkState::Degraded | UplinkState::Disconnecting),
            status: state.to_string(),
        }
    };
    world.network.uplinks.iter().map(link).collect()
}

fn tunnels(world: &World) -> Vec<Link> {
    let states = &world.reports.tunnels.tunnels;
    let tunnels = world.state.tunnels.iter().map(|tunnel| {
        let status = states.get(&tunnel.meta.id).map(|live| live.status).unwrap_or_default();
        Link {
            key: tunnel.meta.id.to_string(),
            name: tunnel.name.clone(),
            is_up: matches!(status, TunnelStatus::Up | TunnelStatus::Degraded),
            status: status.to_string(),
        }
    });
    tunnels.collect()
}
