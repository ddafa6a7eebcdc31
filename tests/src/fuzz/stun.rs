//! Target: answers of STUN servers.

use gateway_core::stun::{BindingAnswer, TransactionId, binding_request, parse_answer};

/// Reads the bytes as an answer to the request whose id they have, and as the attributes of a valid answer. Checks that
/// the request itself and an answer to another request are none, and that a cut answer is none.
pub fn stun(data: &[u8]) {
    let id = data.get(8..20).and_then(|id| id.try_into().ok()).map_or(TransactionId([7; 12]), TransactionId);
    let mut whole = binding_request(id).to_vec();
    assert_eq!(parse_answer(&whole, id), None, "a request is no answer");
    check(data, id);
    let attributes = &data[..data.len().min(1000)];
    whole[..2].copy_from_slice(&[1, 1]);
    whole[2..4].copy_from_slice(&u16::try_from(attributes.len()).expect("few").to_be_bytes());
    whole.extend(attributes);
    check(&whole, id);
}

fn check(message: &[u8], id: TransactionId) {
    let Some(answer) = parse_answer(message, id) else { return };
    let other = TransactionId(id.0.map(|byte| !byte));
    assert_eq!(parse_answer(message, other), None, "an answer to another request");
    assert_eq!(parse_answer(&message[..message.len() - 1], id), None, "a cut answer");
    match answer {
        BindingAnswer::Address(_) => assert!(message.len() >= 20 + 4 + 8, "an address from nowhere"),
        BindingAnswer::Refused(code) => assert!((300..700).contains(&code), "{code}"),
    }
}
