//! One question over UDP (RFC 5452): each from a port of its own, with an id and a case of letters nobody can foretell.

use std::net::SocketAddr;

use super::context::Context;
use super::error::{Error, random};
use super::message::{Form, Head, UpstreamQuery, Verdict, check_reply};

#[derive(Debug)]
pub enum Outcome {
    Answer(Vec<u8>, Head),
    /// Everything fits but the case of the letters: a server that does not keep it, or somebody who guesses.
    OtherCase,
}

/// Asks and waits, for ever if need be: whatever does not fit is passed over, so nobody can end the wait by guessing.
pub async fn exchange(
    context: &Context,
    mark: u32,
    to: SocketAddr,
    asked: &UpstreamQuery,
    edns: bool,
    mixed: bool,
) -> Result<Outcome, Error> {
    let [id @ .., a, b] = random::<34>()?;
    let case = if mixed { id } else { [0; 32] };
    let form = Form { id: u16::from_be_bytes([a, b]), edns, padded: false, case };
    let sent = asked.message(&form);
    let _place = context.places.acquire().await.map_err(|_| Error::Exhausted)?;
    let socket = context.sockets.datagrams(to, mark)?;
    socket.send(&sent).await?;
    // Larger than what is asked for: there are servers that do not care.
    let mut buffer = vec![0; 4096];
    loop {
        let length = socket.recv(&mut buffer).await?;
        match check_reply(&buffer[..length], &sent) {
            Verdict::Fits(head) => {
                buffer.truncate(length);
                return Ok(Outcome::Answer(buffer, head));
            }
            Verdict::OtherCase => return Ok(Outcome::OtherCase),
            Verdict::Stranger | Verdict::Broken => {}
        }
    }
}
