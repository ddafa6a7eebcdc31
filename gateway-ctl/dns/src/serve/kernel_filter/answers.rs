//! Block answers for the kernel: what the resolver writes around the question.

use gateway_common::dns_filter::answer_index;
use gateway_common::wire::{FILTER_HEAD, FILTER_TAIL, FilterAnswer, MESSAGE_ID};
use gateway_core::dns::ClientIdentity;
use gateway_core::dns::filter::block_decisions;

use crate::hooks::{Client, Logged, QueryEgress, QueryRoute, Resolvers};
use crate::serve::{Now, QueryContext, State, Transport};
use crate::wire::{HEADER, Request, rtype};

/// Type of each type class. All types but those of addresses have the same answer.
const TYPES: [u16; 3] = [rtype::A, rtype::AAAA, rtype::TXT];
/// Flags of the OPT record of each EDNS class.
const EDNS: [Option<u16>; 3] = [None, Some(0), Some(0x8000)];

/// Returns the answers of all kinds, by their index in the map.
pub(super) fn of(state: &State, serial: u64) -> Vec<(u32, FilterAnswer)> {
    let mut answers = Vec::new();
    for (kind, decision) in block_decisions() {
        for (class, qtype) in (0..).zip(TYPES) {
            for (edns_class, edns) in (0..).zip(EDNS) {
                let message = question(qtype, edns);
                // Only a decision with addresses uses the client.
                let client = anyone();
                let Some(answer) = Request::read(&message).ok().and_then(|request| {
                    let now =
                        Now { wall: jiff::Timestamp::UNIX_EPOCH, ms: 0, instant: std::time::Instant::now() };
                    let query = QueryContext::new(state, &request, &client, Transport::Udp, now);
                    let mut out = Vec::new();
                    query.decided(&mut out, &decision)?;
                    split(&out, serial)
                }) else {
                    continue;
                };
                answers.push((answer_index(serial, kind, class * 3 + edns_class), answer));
            }
        }
    }
    answers
}

/// Length of the question about the root.
const QUESTION: usize = 1 + 4;

/// Returns a query about the root.
fn question(qtype: u16, edns: Option<u16>) -> Vec<u8> {
    let mut message = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(edns.is_some()), 0];
    message.extend_from_slice(&qtype.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    if let Some(flags) = edns {
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0]);
        message.extend_from_slice(&flags.to_be_bytes());
        message.extend_from_slice(&[0, 0]);
    }
    message
}

/// Returns what is around the question of an answer; `None` if it is too long.
fn split(message: &[u8], serial: u64) -> Option<FilterAnswer> {
    let head: [u8; FILTER_HEAD] = message.get(MESSAGE_ID..HEADER)?.try_into().ok()?;
    let behind = message.get(HEADER + QUESTION..)?;
    let mut tail = [0; FILTER_TAIL];
    tail.get_mut(..behind.len())?.copy_from_slice(behind);
    Some(FilterAnswer { serial, head, length: u16::try_from(behind.len()).ok()?, _pad: 0, tail })
}

fn anyone() -> Client {
    let route = QueryRoute { partition: 0, route: QueryEgress::Default, resolvers: Resolvers::Usual };
    Client {
        number: 0,
        asker: ClientIdentity::default(),
        name: None,
        route: route.into(),
        rank: None,
        logged: Logged::Off,
        filtered: true,
        strips_ech: false,
        near: false,
    }
}
