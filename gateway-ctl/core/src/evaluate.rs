//! Dry run: the treatment of a device's traffic, decided by the function that the kernel runs.
//!
//! Explains the *applied* policies. Nothing is sent and nothing is remembered.

mod captured_packet;
mod evaluation;
mod explanation;
mod interface_limits;
pub mod live_flow;
pub mod matching;
mod outcome;
pub mod past;
pub mod recorded_flow;
mod request;
pub mod route;
mod subject;
mod test_packet;
mod verdict;

use gateway_common::wire::{Address, ClientKey, Mac};
use gateway_model::Device;
use gateway_model::kinds::exception::ExceptionType;
use gateway_model::kinds::privacy_class::PrivacyClass;
use gateway_model::problem::Problems;

use crate::compile::{Compiled, CompiledPolicy, Input};
use crate::fqdn_cache::Key;
pub use captured_packet::{CapturedDecision, decide_captured};
pub use evaluation::{
    ActiveException, ComparisonResult, Decision, EffectiveSettings, EvaluatedDevice, EvaluatedFlow,
    Evaluation, Families, FamilyVerdict, FastPathView, FlowComparison, HopView, KernelView, MatchedPolicy,
    PlanInForce, PolicyRef,
};
pub(crate) use explanation::{hop_words, hops_down_in_words, leg_name, legs_of, reason as blocking_reason};
use matching::Considered;
pub use request::{Family, Protocol, Refusal, Request};
pub(crate) use subject::Subject;
pub use test_packet::Entry;
pub(crate) use test_packet::packets as test_packets;
pub(crate) use test_packet::{entry, host_of, interface_of_vlan, packet, public_address};
pub(crate) use verdict::{EvaluatedPacket, decide_on_behalf, decide_packet, evaluate_packet};

/// Maximum number of listed policies that do not match. All matching ones are listed.
const MOST_UNMATCHED: usize = 1000;

/// Returns the key of the DNS-learned address of the subject. `None` if the destination is not an address.
pub fn fqdn_key(input: &Input<'_>, compiled: &Compiled, request: &Request) -> Option<Key> {
    let (address, _) = test_packet::destination(request, &mut Problems::new())?;
    let mac = Subject::find(input, request).ok()?.mac?.octets();
    let number = compiled.plan.dataplane.devices_by_mac.get(&mac).map_or(0, |device| device.number);
    Some((ClientKey::new(number, Mac::new(mac), &Address::default()), address.into()))
}

/// Evaluates a request by the plan. `compiled` must come from the same input.
pub fn evaluate(input: &Input<'_>, compiled: &Compiled, request: &Request) -> Result<Evaluation, Refusal> {
    let mut trace = Vec::new();
    let subject = Subject::find(input, request)?.knowing(request);
    let packets = test_packet::packets(input, compiled, request, &subject, &mut trace)?;
    let evaluated: Vec<EvaluatedPacket> =
        packets.iter().map(|packet| verdict::evaluate_packet(input, compiled, &subject, packet)).collect();
    let considered = consider(input, compiled, &subject, &packets, &evaluated, &mut trace);
    let (main, said) = summarised(&subject, &evaluated);
    let policy = main.and_then(|evaluated| evaluated.policy);
    for evaluated in &evaluated {
        trace.extend(evaluated.trace.iter().cloned());
    }
    let pending = pending_changes(input);
    if pending > 0 {
        trace.push(format!(
            "{pending} policy changes are saved and not applied: they are not considered here"
        ));
    }
    let matched = considered.listed.iter().filter(|policy| policy.matched).map(|policy| MatchedPolicy {
        id: policy.id.clone(),
        name: policy.name.clone(),
        priority: policy.priority,
        reason: policy.reason.clone(),
    });
    let matched_policies = matched.collect();
    Ok(Evaluation {
        sentence: said,
        decision: main.map_or(Decision::Block, |evaluated| evaluated.verdict.decision),
        device: subject.shown(input),
        matched_policies,
        considered_omitted: considered.omitted,
        considered: considered.listed,
        effective: EffectiveSettings {
            policy: policy.map(|policy| PolicyRef { id: policy.id, name: policy.name.clone() }),
            hop: main.and_then(|evaluated| evaluated.hop.clone()),
            fail_policy: policy.map(|policy| policy.fail_policy),
            dns: None,
            privacy_class: privacy_class(input, &subject, policy),
            exceptions: subject.device.map(|device| exceptions_of(input, device)).unwrap_or_default(),
        },
        hops: policy.map(|policy| policy.hops.iter().map(hop_view).collect()).unwrap_or_default(),
        kernel: main.map(|evaluated| evaluated.verdict.kernel.clone()).unwrap_or_default(),
        families: {
            let of =
                |ipv6| evaluated.iter().find(|evaluated| evaluated.ipv6 == ipv6).map(|j| j.verdict.clone());
            Families { ipv4: of(false), ipv6: of(true) }
        },
        pending_changes: pending,
        as_of: None,
        flow: None,
        trace,
    })
}

/// Returns the family that exposes more, of equals the first; and the sentence on all families.
pub(crate) fn summarised<'a, 'b>(
    subject: &Subject<'_>,
    evaluated: &'b [EvaluatedPacket<'a>],
) -> (Option<&'b EvaluatedPacket<'a>>, String) {
    let words: Vec<(&str, &explanation::Explanation)> = evaluated
        .iter()
        .map(|evaluated| (if evaluated.ipv6 { "IPv6" } else { "IPv4" }, &evaluated.words))
        .collect();
    let main = evaluated.iter().rev().max_by_key(|evaluated| evaluated.verdict.decision);
    (main, explanation::sentence(&subject.label(), &words))
}

pub(crate) fn hop_view(hop: &crate::compile::HopState) -> HopView {
    HopView {
        r#type: hop.hop.r#type.to_string(),
        target: hop.hop.target.clone(),
        usable: hop.usable,
        reason: hop.reason.clone(),
    }
}

/// Returns the policies that were tried, and reports in the trace whether they agree with the plan.
fn consider(
    input: &Input<'_>,
    compiled: &Compiled,
    subject: &Subject<'_>,
    packets: &[gateway_common::classify::IpPacket],
    evaluated: &[EvaluatedPacket<'_>],
    trace: &mut Vec<String>,
) -> Considered {
    let tried = compiled.tried(input);
    let considered = matching::consider_packets(input, tried, packets, &subject.names, MOST_UNMATCHED);
    for (first, evaluated) in considered.first.iter().zip(evaluated) {
        let won = evaluated.rank.and_then(|rank| compiled.policy(rank)).map(|policy| policy.id);
        if won.is_some() && won != *first {
            trace.push(
                "the plan at work was compiled from other policies than these: the verdict is the plan's"
                    .to_owned(),
            );
        }
    }
    considered
}

/// Returns only the verdicts, one for each address family of the request.
pub(crate) fn verdicts(
    input: &Input<'_>,
    compiled: &Compiled,
    request: &Request,
) -> Result<Vec<FamilyVerdict>, Refusal> {
    let subject = Subject::find(input, request)?;
    let packets = test_packet::packets(input, compiled, request, &subject, &mut Vec::new())?;
    let evaluated = packets.iter().map(|packet| verdict::evaluate_packet(input, compiled, &subject, packet));
    Ok(evaluated.map(|evaluated| evaluated.verdict).collect())
}

fn privacy_class(
    input: &Input<'_>,
    subject: &Subject<'_>,
    policy: Option<&CompiledPolicy>,
) -> Option<String> {
    let of_policy = policy.and_then(|policy| input.policy(policy.id)).and_then(|policy| {
        input.state.referred::<PrivacyClass>(&policy.privacy_class).map(|class| class.name.clone())
    });
    let of_device = || Some(input.state.privacy_class_of(subject.device?)?.name.clone());
    of_policy.or_else(of_device)
}

fn exceptions_of(input: &Input<'_>, device: &Device) -> Vec<ActiveException> {
    let of_device =
        input.state.exceptions_of(device.meta.id).filter(|exception| exception.is_active(input.now));
    of_device
        .map(|exception| ActiveException {
            id: exception.meta.id,
            r#type: exception.r#type,
            allow_direct: exception.allow_direct,
            expires_at: exception.expires_at,
            effective: (exception.diverts() || exception.r#type == ExceptionType::Quarantine)
                && input.is_in_force(exception),
        })
        .collect()
}

/// Returns the number of policies that differ between the stored and the applied state.
pub fn pending_changes(input: &Input<'_>) -> usize {
    input.state.pending_policies()
}
