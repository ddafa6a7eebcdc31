//! Device, decision and leg of captured packets, as the gateway knows them.

use std::collections::HashMap;
use std::sync::Arc;

use gateway_common::recorded_verdict::flow_key;
use gateway_core::evaluate::matching::device_behind;
use gateway_core::evaluate::{CapturedDecision, decide_captured};
use jiff::Timestamp;

use super::context::CaptureContext;
use super::session::CapturedPacket;
use crate::os::capture::{CapturedFrame, Direction, OrderedInterface, PacketFlow};
use crate::world::World;

/// Maximum number of flows whose decision is remembered. All are forgotten beyond it.
const MAX_FLOWS: usize = 4096;

/// Device and decision of a flow.
type Found = (Option<String>, Option<CapturedDecision>);

/// Source of annotations. It follows the plan.
pub(super) struct Annotations {
    context: CaptureContext,
    world: Arc<World>,
    flows: HashMap<(usize, Direction, PacketFlow), Found>,
}

impl Annotations {
    pub(super) fn new(context: CaptureContext) -> Annotations {
        let world = context.worlds.last();
        Annotations { context, world, flows: HashMap::new() }
    }

    /// Returns the summary of a packet with this number.
    pub(super) fn packet(
        &mut self,
        no: u64,
        interface: &OrderedInterface,
        frame: &CapturedFrame,
    ) -> CapturedPacket {
        self.follow_plan();
        let (device, decision) = match &frame.flow {
            Some(flow) if self.world.network.lan.contains(&interface.name) => {
                let key = (frame.interface, frame.direction, *flow);
                match self.flows.get(&key) {
                    Some(known) => known.clone(),
                    None => {
                        let found = self.lan_packet(interface, frame, flow);
                        if self.flows.len() >= MAX_FLOWS {
                            self.flows.clear();
                        }
                        self.flows.entry(key).or_insert(found).clone()
                    }
                }
            }
            _ => (None, None),
        };
        let summary = &frame.summary;
        CapturedPacket {
            no,
            time: Timestamp::from_nanosecond(i128::from(frame.time_ns)).unwrap_or(Timestamp::UNIX_EPOCH),
            interface: interface.name.clone(),
            direction: frame.direction,
            src: summary.source.clone(),
            dst: summary.destination.clone(),
            src_port: summary.source_port,
            dst_port: summary.destination_port,
            proto: summary.protocol,
            vlan: summary.vlan,
            length: frame.length,
            info: summary.info.clone(),
            device,
            decision,
            leg: self.leg(&interface.name),
        }
    }

    /// Forgets decisions of an earlier plan.
    fn follow_plan(&mut self) {
        let world = self.context.worlds.last();
        if !Arc::ptr_eq(&world, &self.world) {
            if !Arc::ptr_eq(world.live(), self.world.live()) || !Arc::ptr_eq(&world.state, &self.world.state)
            {
                self.flows.clear();
            }
            self.world = world;
        }
    }

    fn lan_packet(
        &self,
        interface: &OrderedInterface,
        frame: &CapturedFrame,
        flow: &PacketFlow,
    ) -> (Option<String>, Option<CapturedDecision>) {
        let (input, compiled) = (self.world.input(), self.world.live());
        let device = match frame.direction {
            Direction::In => device_behind(&input, flow.mac, flow.source),
            // The MAC address is that of the gateway.
            Direction::Out => device_behind(&input, [0; 6], flow.destination),
        };
        let device = device.map(|device| device.name.to_string());
        if frame.direction == Direction::Out {
            return (device, None);
        }
        let packet = flow.packet(interface.index, frame.length);
        let key = flow_key(&packet);
        let record = self.context.dataplane.with(|programs| programs.flow(&key)).ok().flatten();
        (device, Some(decide_captured(&input, compiled, &packet, record.as_ref())))
    }

    fn leg(&self, interface: &str) -> Option<String> {
        let legs = &self.world.live().legs.by_number;
        let leg = legs.values().find(|leg| leg.interface == interface)?;
        Some(leg.name(&self.world.state).to_owned())
    }
}
