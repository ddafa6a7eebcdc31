//! Queries over UDP (RFC 5452): each uses its own port, an unpredictable ID and an unpredictable letter case.

use std::net::SocketAddr;

use super::context::Context;
use super::error::{Error, random};
use super::message::{QueryEncoding, ReplyHeader, UpstreamQuery, Verdict, check_reply};
use gateway_common::wire::Mark;

#[derive(Debug)]
pub(super) enum Outcome {
    Answer(Vec<u8>, ReplyHeader),
    /// Everything matches except the letter case: the server does not preserve it, or an attacker guesses answers.
    OtherCase,
}

/// Sends a query and waits for the answer without a timeout. It ignores packets that do not match, so a guess cannot
/// end the wait.
pub(super) async fn exchange(
    context: &Context,
    mark: Option<Mark>,
    to: SocketAddr,
    query: &UpstreamQuery,
    edns: bool,
    mixed: bool,
) -> Result<Outcome, Error> {
    let [id @ .., a, b] = random::<34>()?;
    let case = if mixed { id } else { [0; 32] };
    let form = QueryEncoding { id: u16::from_be_bytes([a, b]), edns, padded: false, case };
    let sent = query.message(&form);
    let _place = context.sockets_left.acquire().await.map_err(|_| Error::Exhausted)?;
    let socket = context.sockets.datagrams(to, mark)?;
    socket.send(&sent).await?;
    // Larger than the requested size: some servers ignore it.
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
