//! Session token: a JWT (HS256) that names a session, and the cookie that carries it.
//!
//! The token identifies a session and nothing more. Every request looks up whether the session still exists, its user
//! and the rights of that user, so revocation is immediate.

use gateway_ctl::store::Session;
use gateway_model::Id;
use http::header::{self, HeaderMap, HeaderValue};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::ApiError;

pub(crate) const COOKIE: &str = "gw_session";

/// Signer and verifier of tokens.
pub struct Signer {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    /// User id.
    sub: Id,
    /// Session id.
    jti: Uuid,
    iat: i64,
    exp: i64,
}

impl Signer {
    pub fn new(key: &[u8; 32]) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        // The stored session has its own end, by the clock of the gateway.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        Self { encoding: EncodingKey::from_secret(key), decoding: DecodingKey::from_secret(key), validation }
    }

    pub fn sign(&self, session: &Session) -> Result<String, ApiError> {
        let claims = Claims {
            sub: session.user,
            jti: session.id,
            iat: session.created_at.as_second(),
            exp: session.expires_at.as_second(),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(|error| ApiError::internal(&error))
    }

    /// Returns the session of a token that this gateway signed.
    pub fn read(&self, token: &str) -> Option<Uuid> {
        let read = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation);
        read.ok().map(|token| token.claims.jti)
    }
}

/// Returns the tokens in the cookies of a request. A browser may send several of the same name.
pub(crate) fn from_cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, value)| *name == COOKIE && !value.is_empty())
        .map(|(_, value)| value.trim_matches('"'))
}

/// Returns the cookie for a token. `secure`: the connection is encrypted.
pub(crate) fn set_cookie(token: &str, seconds: i64, secure: bool) -> Result<HeaderValue, ApiError> {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).map_err(|error| ApiError::internal(&error))
}

/// Returns the cookie that makes a browser delete the session.
pub(crate) fn clear_cookie(secure: bool) -> Result<HeaderValue, ApiError> {
    set_cookie("", 0, secure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session::new(Id::default(), 0, "2026-11-20T12:00:00Z".parse().expect("a time"), None, None)
    }

    #[test]
    fn a_token_names_its_session_and_only_under_the_key_that_signed_it() {
        let (signer, session) = (Signer::new(&[7; 32]), session());
        let token = signer.sign(&session).expect("signed");
        assert_eq!(signer.read(&token), Some(session.id));
        assert_eq!(Signer::new(&[8; 32]).read(&token), None);
        for position in [0, token.len() / 2, token.len() - 1] {
            let mut altered = token.clone().into_bytes();
            altered[position] = if altered[position] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).expect("ASCII");
            assert_eq!(signer.read(&altered), None, "altered at {position}");
        }
        for bad in ["", ".", "..", "a.b.c", &token[..token.len() - 10]] {
            assert_eq!(signer.read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_token_without_a_signature_is_none() {
        // `{"alg":"none"}` with the claims of a session.
        let token = Signer::new(&[7; 32]).sign(&session()).expect("signed");
        let claims = token.split('.').nth(1).expect("claims");
        let unsigned = format!("eyJhbGciOiJub25lIn0.{claims}.");
        assert_eq!(Signer::new(&[7; 32]).read(&unsigned), None);
    }

    #[test]
    fn the_cookie_is_out_of_reach_of_scripts_and_other_sites() {
        let text = |value: HeaderValue| value.to_str().expect("text").to_owned();
        let plain = text(set_cookie("abc", 43_200, false).expect("a cookie"));
        assert_eq!(plain, "gw_session=abc; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
        assert!(text(set_cookie("abc", 1, true).expect("a cookie")).ends_with("; Secure"));
        assert!(text(clear_cookie(false).expect("a cookie")).contains("Max-Age=0"));
    }

    #[test]
    fn the_token_is_found_among_other_cookies() {
        let mut headers = HeaderMap::new();
        let mut found = |text: &str| {
            headers.insert(header::COOKIE, HeaderValue::from_str(text).expect("text"));
            from_cookies(&headers).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(found("a=b; gw_session=t1; c=d"), ["t1"]);
        assert_eq!(found("gw_session=\"t1\";gw_session=t2"), ["t1", "t2"]);
        assert!(found("gw_session=; xgw_session=t; gw_sessions=t").is_empty());
    }
}
