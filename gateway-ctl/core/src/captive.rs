//! Answers to the check for captive portals: the internet, or a portal in its place.

use schemars::JsonSchema;
use serde::Serialize;

/// State of the internet by one uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptiveState {
    /// A server of the internet answers.
    Online,
    /// Something answers in place of the servers.
    Captive,
    /// Nothing answers.
    Offline,
}

/// Beginning of an answer over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerHead {
    pub status: u16,
    pub location: Option<String>,
    /// Value of `X-Challenge-Response`.
    pub response: Option<String>,
    /// It has content, or may have some.
    pub has_content: bool,
}

const NO_CONTENT: u16 = 204;
/// Longest value of a header that is kept.
const MAX_VALUE: usize = 2048;

/// Parses status line and headers (RFC 9112). `None` if it is no HTTP.
pub fn parse_head(bytes: &[u8]) -> Option<AnswerHead> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let (head, body) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 4..]),
        None => (bytes, &[] as &[u8]),
    };
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let rest = lines.next()?.strip_prefix(b"HTTP/1.")?;
    let code = rest.get(2..5).filter(|_| rest.get(1) == Some(&b' '))?;
    let is_code = code.iter().all(u8::is_ascii_digit) && rest.get(5).is_none_or(|byte| *byte == b' ');
    let status = std::str::from_utf8(code).ok().filter(|_| is_code)?.parse().ok()?;
    let mut answer = AnswerHead { status, has_content: !body.is_empty(), ..AnswerHead::default() };
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let Ok(value) = std::str::from_utf8(&line[colon + 1..]) else { continue };
        let value = value.trim();
        if value.len() > MAX_VALUE {
            continue;
        }
        let is = |name: &str| line[..colon].eq_ignore_ascii_case(name.as_bytes());
        if is("Location") {
            answer.location = Some(value.to_owned());
        } else if is("X-Challenge-Response") {
            answer.response = Some(value.to_owned());
        } else if is("Content-Length") && value != "0" {
            answer.has_content = true;
        }
    }
    Some(answer)
}

/// Returns what an answer tells. `challenge` is the one that the server must have answered to.
pub fn evaluate(answer: &AnswerHead, challenge: Option<&str>) -> CaptiveState {
    let is_met = challenge.is_none_or(|challenge| {
        answer.response.as_deref().and_then(|response| response.strip_prefix("response ")) == Some(challenge)
    });
    if answer.status == NO_CONTENT && !answer.has_content && is_met {
        CaptiveState::Online
    } else {
        CaptiveState::Captive
    }
}

/// Returns the state by the answers of several servers.
pub fn overall(states: impl IntoIterator<Item = CaptiveState>) -> CaptiveState {
    states.into_iter().min().unwrap_or(CaptiveState::Offline)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state(answer: &str, challenge: Option<&str>) -> Option<CaptiveState> {
        parse_head(answer.as_bytes()).map(|answer| evaluate(&answer, challenge))
    }

    #[test]
    fn only_an_empty_204_is_the_internet() {
        let online = Some(CaptiveState::Online);
        let captive = Some(CaptiveState::Captive);
        assert_eq!(state("HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n", None), online);
        assert_eq!(state("HTTP/1.0 204\r\nContent-Length: 0\r\n\r\n", None), online);
        assert_eq!(state("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", None), captive);
        assert_eq!(state("HTTP/1.1 204 No Content\r\n\r\n<html>", None), captive);
        assert_eq!(state("HTTP/1.1 200 OK\r\n\r\n", None), captive);
        assert_eq!(state("HTTP/1.1 511 Network Authentication Required\r\n\r\n", None), captive);
        for other in ["", "SSH-2.0-x\r\n", "HTTP/1.1 2", "HTTP/1.1 2040\r\n\r\n", "HTTP/1.1 abc\r\n"] {
            assert_eq!(state(other, None), None, "{other}");
        }
    }

    #[test]
    fn a_challenge_must_be_answered() {
        let answer =
            |response: &str| format!("HTTP/1.1 204 No Content\r\nx-challenge-response: {response}\r\n\r\n");
        assert_eq!(state(&answer("response 5eed"), Some("5eed")), Some(CaptiveState::Online));
        assert_eq!(state(&answer("response 0000"), Some("5eed")), Some(CaptiveState::Captive));
        assert_eq!(state(&answer("5eed"), Some("5eed")), Some(CaptiveState::Captive));
        assert_eq!(state("HTTP/1.1 204 No Content\r\n\r\n", Some("5eed")), Some(CaptiveState::Captive));
    }

    #[test]
    fn the_portal_is_named_by_the_redirection() {
        let head =
            parse_head(b"HTTP/1.1 302 Found\r\nLOCATION: http://portal.example/\r\n\r\n").expect("HTTP");
        assert_eq!(head.location.as_deref(), Some("http://portal.example/"));
    }

    #[test]
    fn one_server_of_the_internet_is_enough() {
        use CaptiveState::{Captive, Offline, Online};
        assert_eq!(overall([Captive, Online, Offline]), Online);
        assert_eq!(overall([Offline, Captive]), Captive);
        assert_eq!(overall([]), Offline);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse_head(&bytes);
            parse_head(&[b"HTTP/1.1 204 ", bytes.as_slice()].concat());
        }
    }
}
