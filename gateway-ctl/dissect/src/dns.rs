//! DNS messages (RFC 1035), also those of multicast DNS (RFC 6762).

use hickory_proto::op::{Message, MessageType, OpCode};

/// Maximum number of answers in the text.
const MAX_ANSWERS: usize = 4;

/// Returns the text about a message.
pub(crate) fn read(payload: &[u8]) -> String {
    Message::from_vec(payload).map_or_else(|_| "malformed or cut off".to_owned(), |message| text(&message))
}

/// Returns the text about a payload at any port if it is a message with one question (RFC 1035, section 4.1.2).
pub(crate) fn read_question(payload: &[u8]) -> Option<String> {
    let message = Message::from_vec(payload).ok().filter(|message| message.queries.len() == 1)?;
    (message.metadata.op_code == OpCode::Query).then(|| text(&message))
}

fn text(message: &Message) -> String {
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
