//! Signature of a webhook (Standard Webhooks 1.0): HMAC-SHA256 over id, time and body.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

/// Prefix of a secret in Base64, as senders of Standard Webhooks give it out.
const ENCODED_PREFIX: &str = "whsec_";

/// Returns the headers of one attempt: id and time, and with a secret the signature. The id is the same in each attempt,
/// so a receiver knows a message again.
pub fn headers(id: &str, at: Timestamp, body: &[u8], secret: Option<&str>) -> Vec<(&'static str, String)> {
    let time = at.as_second().to_string();
    let mut headers = vec![("webhook-id", id.to_owned()), ("webhook-timestamp", time.clone())];
    if let Some(secret) = secret {
        let parts = [id.as_bytes(), b".", time.as_bytes(), b".", body];
        let mac = authenticate(&key(secret), &parts);
        headers.push(("webhook-signature", format!("v1,{}", STANDARD.encode(mac))));
    }
    headers
}

/// Returns the key of a secret: decoded after `whsec_`, else the bytes of the text.
fn key(secret: &str) -> Vec<u8> {
    let encoded = secret.strip_prefix(ENCODED_PREFIX);
    let decoded = encoded.and_then(|encoded| STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')).ok());
    decoded.unwrap_or_else(|| secret.as_bytes().to_vec())
}

fn authenticate(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the specification's reference implementations.
    #[test]
    fn signature_is_that_of_the_reference_implementations() {
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let headers = headers(id, at, br#"{"test": 2432232314}"#, Some(secret));
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned();
        assert_eq!(headers[2], ("webhook-signature", signature));
        assert_eq!(headers[1], ("webhook-timestamp", "1614265330".to_owned()));
    }

    #[test]
    fn secret_without_the_prefix_is_the_key_itself() {
        let at = Timestamp::from_second(1).unwrap();
        let encoded = format!("whsec_{}", STANDARD.encode("correct horse battery"));
        let signed = |secret| headers("msg_1", at, b"body", Some(secret));
        assert_eq!(signed("correct horse battery"), signed(&encoded));
        assert_ne!(signed("correct horse batterz"), signed(&encoded));
        assert_eq!(headers("msg_1", at, b"body", None).len(), 2);
    }
}
