//! Runs the kernel programs on test packets by BPF_PROG_TEST_RUN, without any interface.

use anyhow::{Context as _, Result};
use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};
use gateway_common::wire::{InterfaceKey, InterfaceValue, RANK_NONE, SourceKind};
use gateway_core::plan::Dataplane;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::time::Duration;

/// `struct __sk_buff` (include/uapi/linux/bpf.h): its length, and the offsets of these fields.
const LENGTH: usize = 192;
const MARK: usize = 8;
const INGRESS_IFINDEX: usize = 36;
const IFINDEX: usize = 40;

/// Metadata of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// 1 is the loopback interface, which every namespace has.
    pub interface: u32,
    pub ingress: u32,
    pub mark: u32,
}

impl Default for Arrival {
    fn default() -> Arrival {
        Arrival { interface: 1, ingress: 0, mark: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Return value of the program: 2 drops, -1 continues.
    pub action: i32,
    pub mark: u32,
}

/// Runs a program once on a packet.
pub fn run(program: &SchedClassifier, packet: &[u8], arrival: Arrival) -> Result<Run> {
    let context_in = context(arrival);
    let mut context_out = [0u8; LENGTH];
    let options = TestRunOptions {
        data_in: Some(packet),
        ctx_in: Some(&context_in),
        ctx_out: Some(&mut context_out),
        ..TestRunOptions::default()
    };
    let result = program.test_run(options).context("BPF_PROG_TEST_RUN")?;
    let mark = u32::from_ne_bytes(context_out[MARK..MARK + 4].try_into().context("four bytes")?);
    Ok(Run { action: result.return_value as i32, mark })
}

/// Runs a program once on a packet, and returns the resulting packet.
pub fn run_and_read(program: &SchedClassifier, packet: &[u8], arrival: Arrival) -> Result<(Run, Vec<u8>)> {
    let context_in = context(arrival);
    let mut context_out = [0u8; LENGTH];
    let mut packet_out = vec![0u8; packet.len() + 1024];
    let options = TestRunOptions {
        data_in: Some(packet),
        data_out: Some(&mut packet_out),
        ctx_in: Some(&context_in),
        ctx_out: Some(&mut context_out),
        ..TestRunOptions::default()
    };
    let result = program.test_run(options).context("BPF_PROG_TEST_RUN")?;
    let length = result.data_size_out as usize;
    packet_out.truncate(length);
    let mark = u32::from_ne_bytes(context_out[MARK..MARK + 4].try_into().context("four bytes")?);
    Ok((Run { action: result.return_value as i32, mark }, packet_out))
}

/// Runs a program many times on one packet. Returns the mean time of a run.
pub fn measure(program: &SchedClassifier, packet: &[u8], arrival: Arrival, repeat: u32) -> Result<Duration> {
    let context_in = context(arrival);
    let options = TestRunOptions {
        data_in: Some(packet),
        ctx_in: Some(&context_in),
        repeat,
        ..TestRunOptions::default()
    };
    Ok(program.test_run(options).context("BPF_PROG_TEST_RUN")?.duration)
}

fn context(arrival: Arrival) -> [u8; LENGTH] {
    let mut context = [0u8; LENGTH];
    context[MARK..MARK + 4].copy_from_slice(&arrival.mark.to_ne_bytes());
    context[INGRESS_IFINDEX..INGRESS_IFINDEX + 4].copy_from_slice(&arrival.ingress.to_ne_bytes());
    context[IFINDEX..IFINDEX + 4].copy_from_slice(&arrival.interface.to_ne_bytes());
    context
}

/// Makes an interface a LAN of the plan that accepts any source.
pub fn admit_all(plan: &mut Dataplane, index: u32) {
    let key = InterfaceKey { slot: 0, index, vlan: 0, _pad: 0 };
    plan.interfaces.insert(key, InterfaceValue { rank: RANK_NONE, ..InterfaceValue::default() });
    for net in [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())] {
        plan.lan_sources.insert((0, net), SourceKind::Lan as u32);
    }
}
