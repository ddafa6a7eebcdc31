//! Meaning of a receiver's response for a delivery.

use jiff::{SignedDuration, Timestamp};

use super::outbox::Outcome;

/// Returns the outcome of a delivery by its status code. What an operator can repair at the receiver is tried again.
pub fn outcome(status: u16, retry_after: Option<SignedDuration>) -> Outcome {
    let error = format!("the receiver answered {status}");
    match status {
        200..=299 => Outcome::Accepted,
        300..=399 => {
            Outcome::Refused { error: format!("{error}, a redirection: set the URL that it leads to") }
        }
        410 => Outcome::Gone,
        401 | 403 | 404 | 408 | 425 | 429 | 500..=599 => Outcome::Failed { error, retry_after },
        _ => Outcome::Refused { error },
    }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
pub fn retry_after(text: &str, now: Timestamp) -> Option<SignedDuration> {
    let text = text.trim();
    let asked = match text.parse::<u32>() {
        Ok(seconds) => SignedDuration::from_secs(seconds.into()),
        Err(_) => jiff::fmt::rfc2822::parse(text).ok()?.timestamp().duration_since(now),
    };
    Some(asked.max(SignedDuration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_codes_are_accepted_tried_again_or_final() {
        let word = |status| match outcome(status, None) {
            Outcome::Accepted => "accepted",
            Outcome::Failed { .. } => "failed",
            Outcome::Refused { .. } => "refused",
            Outcome::Gone => "gone",
        };
        let statuses = [200, 204, 301, 307, 400, 401, 404, 410, 413, 429, 500, 503, 100, 600];
        let words = statuses.map(word).join(" ");
        assert_eq!(
            words,
            "accepted accepted refused refused refused failed failed gone refused failed failed failed refused refused"
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let seconds = |text| retry_after(text, now).map(|asked| asked.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds("Mon, 30 Nov 2026 12:02:00 GMT"), Some(120));
        assert_eq!(seconds("Mon, 30 Nov 2026 11:00:00 GMT"), Some(0));
        assert_eq!(["", "soon", "-1", "99999999999999"].map(seconds), [None; 4]);
    }
}
