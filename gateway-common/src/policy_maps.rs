//! Inputs of the policy decision: the maps that it looks up, and what is known of the flow of the packet.

use crate::wire::*;

/// Map lookups of the policy decision. Kernel programs read BPF maps, userspace reads a plan.
pub trait PolicyMaps {
    /// Slot of the active plan.
    fn live(&self) -> Slot;
    fn plan(&self, slot: Slot) -> Option<PlanValue>;
    fn interface(&self, key: &InterfaceKey) -> Option<InterfaceValue>;
    fn vlan(&self, key: &VlanKey) -> Option<u32>;
    fn device_by_mac(&self, key: &MacKey) -> Option<DeviceValue>;
    fn device_by_address(&self, key: &AddressKey) -> Option<DeviceValue>;
    /// Longest match.
    fn source4(&self, key: &Prefix4) -> Option<u32>;
    fn source6(&self, key: &Prefix6) -> Option<u32>;
    fn destination4(&self, key: &Prefix4) -> Option<u32>;
    fn destination6(&self, key: &Prefix6) -> Option<u32>;
    fn destination_port4(&self, key: &PortPrefix4) -> Option<u32>;
    fn destination_port6(&self, key: &PortPrefix6) -> Option<u32>;
    /// Entry of an address that a client resolved.
    fn domain(&self, key: &FqdnIpKey) -> Option<FqdnIpValue>;
    /// [`SourceKind`] of a source on a LAN interface; longest match.
    fn lan_source4(&self, key: &Prefix4) -> Option<u32>;
    fn lan_source6(&self, key: &Prefix6) -> Option<u32>;
    fn local4(&self, key: &Prefix4) -> Option<LocalValue>;
    fn local6(&self, key: &Prefix6) -> Option<LocalValue>;
    /// Reports whether a leg has an address whose [`LocalValue`] names another leg.
    fn is_shared(&self, key: &SharedAddressKey) -> bool;
    /// Present if the address is one of a known public resolver; longest match.
    fn doh_server4(&self, key: &Prefix4) -> Option<u32>;
    fn doh_server6(&self, key: &Prefix6) -> Option<u32>;
    /// Present if a domain is that of a known public resolver.
    fn doh_name(&self, key: &DomainKey) -> Option<u32>;
    /// Progress in a ClientHello of several segments.
    fn hello(&self, key: &FlowKey) -> Option<HelloProgress>;
    fn remember_hello(&self, key: &FlowKey, progress: &HelloProgress);
    fn action(&self, slot: Slot, rank: u32) -> Option<&ActionValue>;
    /// Advances the round-robin counter of a policy and returns it.
    fn next_turn(&self, policy: u32) -> u64;
    /// Reads the record of a flow, whose key has this hash. Returns false if there is none, or only a mixture of two.
    fn read_flow(&self, key: &FlowKey, hash: u64, value: &mut FlowValue) -> bool;
    fn remember(&self, key: &FlowKey, hash: u64, value: &FlowValue);
    /// Counts a new flow against a budget with [`NewFlows::next`].
    fn count_new_flow(&self, index: u32, window: u32) -> NewFlows;
    /// Monotonic time in nanoseconds, with a resolution of milliseconds.
    fn now(&self) -> u64;
    /// Time since boot in nanoseconds, including suspend; the clock of deadlines.
    fn since_boot(&self) -> u64;
}

/// Egress that a flow had in another generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PreviousEgress {
    /// 0 without one.
    pub leg: u8,
    /// The default route of the main routing table.
    pub is_main_table: bool,
    /// A proxy, which the leg leads to.
    pub is_proxy: bool,
}

impl PreviousEgress {
    pub const NONE: PreviousEgress = PreviousEgress { leg: 0, is_main_table: false, is_proxy: false };

    #[inline(always)]
    pub const fn of(flow: &FlowValue) -> PreviousEgress {
        PreviousEgress {
            leg: flow.leg,
            // A reset flow without a leg had this egress: it must not go on where the reset was lost.
            is_main_table: flow.mark == Mark::DIRECT.0 || flow.mark == Mark::RESET.0 && flow.leg == 0,
            is_proxy: flow.mark & Mark::PROXY_MASK == Mark::PROXY,
        }
    }
}

/// Input of the policy lookup beside the packet: the slot of the plan, and the state of the flow.
///
/// The kernel program gives it to a function that the verifier follows by itself, so it holds no pointer and no padding.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PolicyInput {
    pub slot: Slot,
    pub plan: PlanValue,
    /// In [`FLOW_TICK_SHIFT`] units.
    pub now: u32,
    /// Egress of the flow in another generation.
    pub previous: PreviousEgress,
    /// The flow has a record, valid or not.
    pub recorded: bool,
    /// The flow was evaluated in another generation, so expired FQDN entries of its client still apply to it.
    pub continued: bool,
    /// Protocols that the flow has shown so far: bits of [`flow_flags`].
    pub shown: u8,
    pub _pad: [u8; 2],
}
