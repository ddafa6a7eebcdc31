//! DNS messages (RFC 1035), also those of multicast DNS (RFC 6762).

use hickory_proto::op::{Message, MessageType};

/// Maximum number of answers in the text.
const MAX_ANSWERS: usize = 4;

/// Returns the text about a message.
pub fn read(payload: &[u8]) -> String {
    let Ok(message) = Message::from_vec(payload) else { return "malformed or cut off".to_owned() };
    let metadata = &message.metadata;
    let mut info = match metadata.message_type {
        MessageType::Query => "query".to_owned(),
        MessageType::Response => format!("response {}", metadata.response_code),
    };
    for query in &message.queries {
        info.push_str(&format!(" {} {}", query.query_type, query.name.to_ascii()));
    }
    for answer in message.answers.iter().take(MAX_ANSWERS) {
        info.push_str(&format!(", {} {}", answer.record_type(), answer.data));
    }
    if let Some(further) = message.answers.len().checked_sub(MAX_ANSWERS).filter(|further| *further > 0) {
        info.push_str(&format!(", {further} more"));
    }
    info
}
