//! The maps as the environment of the decision.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

use aya_ebpf::maps::lpm_trie::{Key, LpmTrie};
use gateway_common::maps::action_index;
use gateway_common::policy_maps::PolicyMaps;
use gateway_common::wire::*;

use crate::flow_table;
use crate::maps::*;

pub struct Kernel;

/// A whole key: the trie finds the longest stored prefix of it.
#[inline(always)]
fn longest<K, V: Copy>(trie: &LpmTrie<K, V>, key: K) -> Option<V> {
    trie.get(Key::new(8 * size_of::<K>() as u32, key)).copied()
}

/// Returns 0 if the trie of a table has no entry for an IPv4 address.
// Ten lookups have a filter. The verifier follows these two once, because they are global functions.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_may_have4(table: u32, slot_and_list: u32, scope: u32, address: u32) -> u32 {
    may_have(table, slot_and_list, |level, mask| filter_bit4(table, level, mask, scope, address))
}

/// Returns 0 if the trie of a table has no entry for an IPv6 address.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_may_have6(table: u32, slot_and_list: u32, scope: u32, address: *const Address) -> u32 {
    // SAFETY: the caller has a reference. A global function must reckon with null, for which the trie decides.
    let Some(address) = (unsafe { address.as_ref() }) else { return 1 };
    may_have(table, slot_and_list, |level, mask| filter_bit6(table, level, mask, scope, address))
}

#[inline(always)]
fn may_have(table: u32, slot_and_list: u32, bit: impl Fn(usize, &Address) -> FilterBit) -> u32 {
    let (slot, _) = list_of_slot(slot_and_list);
    let Some(levels) = PREFIX_LEVELS.get(slot) else { return 1 };
    let Some(levels) = levels.0.get(table as usize) else { return 1 };
    let mut level = 0;
    while level < LEVELS {
        let at = &levels[level];
        if at.used == 0 {
            return 0;
        }
        let bit = bit(level, &at.mask);
        let page = filter_page_index(slot, bit.page).and_then(|index| PREFIX_BITS.get(index));
        // Pages exist for each slot. Without one the trie decides.
        match page {
            Some(page) if page.0[bit.word] & bit.mask == 0 => level += 1,
            _ => return 1,
        }
    }
    0
}

impl PolicyMaps for Kernel {
    #[inline(always)]
    fn live(&self) -> Slot {
        ACTIVE_SLOT.get(0).map_or(SLOT_NONE, |slot| *slot)
    }

    #[inline(always)]
    fn plan(&self, slot: Slot) -> Option<PlanValue> {
        PLAN_HEADERS.get(slot).copied()
    }

    #[inline(always)]
    fn interface(&self, key: &InterfaceKey) -> Option<InterfaceValue> {
        // SAFETY: values are plain bytes; a concurrent update of another slot does not touch this one.
        unsafe { INTERFACES.get(key).copied() }
    }

    #[inline(always)]
    fn vlan(&self, key: &VlanKey) -> Option<u32> {
        // SAFETY: as for interfaces.
        unsafe { VLANS.get(key).copied() }
    }

    #[inline(always)]
    fn device_by_mac(&self, key: &MacKey) -> Option<DeviceValue> {
        // SAFETY: as for interfaces.
        unsafe { DEVICE_MACS.get(key).copied() }
    }

    #[inline(always)]
    fn device_by_address(&self, key: &AddressKey) -> Option<DeviceValue> {
        // SAFETY: as for interfaces.
        unsafe { DEVICE_ADDRESSES.get(key).copied() }
    }

    #[inline(always)]
    fn source4(&self, key: &Prefix4) -> Option<u32> {
        if gw_may_have4(PrefixTable::Sources4 as u32, key.slot, filter_scope(key.slot, 0), key.address) == 0 {
            return None;
        }
        longest(&SOURCES4, *key)
    }

    #[inline(always)]
    fn source6(&self, key: &Prefix6) -> Option<u32> {
        if gw_may_have6(PrefixTable::Sources6 as u32, key.slot, filter_scope(key.slot, 0), &key.address) == 0
        {
            return None;
        }
        longest(&SOURCES6, *key)
    }

    #[inline(always)]
    fn destination4(&self, key: &Prefix4) -> Option<u32> {
        if gw_may_have4(PrefixTable::Destinations4 as u32, key.slot, filter_scope(key.slot, 0), key.address)
            == 0
        {
            return None;
        }
        longest(&DESTINATIONS4, *key)
    }

    #[inline(always)]
    fn destination6(&self, key: &Prefix6) -> Option<u32> {
        if gw_may_have6(PrefixTable::Destinations6 as u32, key.slot, filter_scope(key.slot, 0), &key.address)
            == 0
        {
            return None;
        }
        longest(&DESTINATIONS6, *key)
    }

    #[inline(always)]
    fn destination_port4(&self, key: &PortPrefix4) -> Option<u32> {
        let slot = u32::from(key.slot);
        let scope = filter_scope(slot, key.port);
        if gw_may_have4(PrefixTable::DestinationPorts4 as u32, slot, scope, key.address) == 0 {
            return None;
        }
        longest(&DESTINATION_PORTS4, *key)
    }

    #[inline(always)]
    fn destination_port6(&self, key: &PortPrefix6) -> Option<u32> {
        let slot = u32::from(key.slot);
        let scope = filter_scope(slot, key.port);
        if gw_may_have6(PrefixTable::DestinationPorts6 as u32, slot, scope, &key.address) == 0 {
            return None;
        }
        longest(&DESTINATION_PORTS6, *key)
    }

    #[inline(always)]
    fn domain(&self, key: &FqdnIpKey) -> Option<FqdnIpValue> {
        // SAFETY: as for interfaces.
        unsafe { FQDN_IPS.get(key).copied() }
    }

    #[inline(always)]
    fn lan_source4(&self, key: &Prefix4) -> Option<u32> {
        longest(&LAN_SOURCES4, *key)
    }

    #[inline(always)]
    fn lan_source6(&self, key: &Prefix6) -> Option<u32> {
        longest(&LAN_SOURCES6, *key)
    }

    #[inline(always)]
    fn local4(&self, key: &Prefix4) -> Option<LocalValue> {
        longest(&LOCALS4, *key)
    }

    #[inline(always)]
    fn local6(&self, key: &Prefix6) -> Option<LocalValue> {
        longest(&LOCALS6, *key)
    }

    #[inline(always)]
    fn is_shared(&self, key: &SharedAddressKey) -> bool {
        SHARED_IPS.get_ptr(key).is_some()
    }

    #[inline(always)]
    fn doh_server4(&self, key: &Prefix4) -> Option<u32> {
        longest(&DOH_SERVERS4, *key)
    }

    #[inline(always)]
    fn doh_server6(&self, key: &Prefix6) -> Option<u32> {
        longest(&DOH_SERVERS6, *key)
    }

    #[inline(always)]
    fn doh_name(&self, key: &DomainKey) -> Option<u32> {
        // SAFETY: as for interfaces.
        unsafe { DOH_NAMES.get(key).copied() }
    }

    #[inline(always)]
    fn hello(&self, key: &FlowKey) -> Option<HelloProgress> {
        // SAFETY: all bit patterns are valid. The progress of another connection finds no name in this one.
        unsafe { HELLOS.get(key).copied() }
    }

    #[inline(always)]
    fn remember_hello(&self, key: &FlowKey, progress: &HelloProgress) {
        // What is not remembered ends without a name.
        let _ = HELLOS.insert(key, progress, 0);
    }

    #[inline(always)]
    fn action(&self, slot: Slot, rank: u32) -> Option<&ActionValue> {
        ACTIONS.get(action_index(slot, rank)?)
    }

    #[inline(always)]
    fn next_turn(&self, policy: u32) -> u64 {
        match RR_COUNTERS.get_ptr_mut(policy) {
            // Sequentially consistent, because LLVM loses the result of a relaxed one
            // (llvm-project 210280). The type has no fetch_add: the target has no compare-and-swap.
            // SAFETY: a pointer into an array map is valid and aligned; all access is atomic.
            Some(turn) => unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(turn, 1) },
            None => 0,
        }
    }

    #[inline(always)]
    fn read_flow(&self, key: &FlowKey, hash: u64, value: &mut FlowValue) -> bool {
        flow_table::read(key, hash, value)
    }

    #[inline(always)]
    fn remember(&self, key: &FlowKey, hash: u64, value: &FlowValue) {
        flow_table::write(key, hash, value);
    }

    #[inline(always)]
    fn count_new_flow(&self, index: u32, window: u32) -> NewFlows {
        let Some(counted) = NEW_FLOWS.get_ptr_mut(index) else { return NewFlows::default() };
        // SAFETY: a pointer into an array map is valid and aligned. A value is one word, so another processor's update
        // may be lost, but is never seen in part.
        unsafe {
            let before = counted.read();
            let flows = before.next(window);
            if flows != before {
                counted.write(flows);
            }
            flows
        }
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: the helper has no preconditions.
        unsafe { aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns() }
    }

    #[inline(always)]
    fn since_boot(&self) -> u64 {
        // SAFETY: the helper has no preconditions.
        unsafe { aya_ebpf::helpers::generated::bpf_ktime_get_boot_ns() }
    }
}
