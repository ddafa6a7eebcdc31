//! Target: answers to the check for captive portals.

use gateway_core::captive::{CaptiveState, evaluate, parse_head};

/// Reads the bytes as an answer, and as the headers of one. Checks that only the right challenge is met, and that no
/// answer with content is the internet.
pub fn captive_answer(data: &[u8]) {
    let headers = [b"HTTP/1.1 204 No Content\r\n", data].concat();
    for bytes in [data, headers.as_slice()] {
        let Some(answer) = parse_head(bytes) else { continue };
        let state = evaluate(&answer, None);
        assert_eq!(state == CaptiveState::Online, answer.status == 204 && !answer.has_content, "{answer:?}");
        if evaluate(&answer, Some("5eed5eed")) == CaptiveState::Online {
            assert_eq!(answer.response.as_deref(), Some("response 5eed5eed"), "{answer:?}");
        }
        assert!(answer.location.is_none_or(|location| location.len() <= 2048));
    }
}
