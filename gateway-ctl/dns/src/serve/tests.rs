//! Tests of whole queries through `serve`, with test doubles for the hooks.

mod answers;
mod encrypted;
mod known_names;
mod paths;
mod sockets;
mod waiting;

use hickory_proto::op::{Message, ResponseCode};

/// Returns the answer section as text, in its order.
fn lines(message: &Message) -> Vec<String> {
    message.answers.iter().map(ToString::to_string).collect()
}

/// Returns the extended DNS error (RFC 8914): code and text.
fn extended(message: &Message) -> Option<(u16, String)> {
    let edns = message.edns.as_ref()?;
    let found = edns.options().get_all(hickory_proto::rr::rdata::opt::EdnsCode::Unknown(15));
    let hickory_proto::rr::rdata::opt::EdnsOption::Unknown(_, data) = found.first()? else { return None };
    Some((u16::from_be_bytes([data[0], data[1]]), String::from_utf8_lossy(&data[2..]).into_owned()))
}

fn code(message: &Message) -> ResponseCode {
    message.metadata.response_code
}
