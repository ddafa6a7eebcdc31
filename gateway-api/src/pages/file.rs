//! An embedded file, and the response that has it.

use std::io::Read as _;

use axum::body::Body;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use super::negotiation::Coding;
use crate::dispatch::conditional;
use crate::error::ApiError;

/// Prefix of the files whose names contain a hash of their content.
pub(crate) const ASSETS: &str = "/assets/";

/// Scripts, styles, images and requests only from the gateway itself, and nothing inline; no page of others around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'";

/// Functions of the device that the dashboard does not use.
const PERMISSIONS: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
    magnetometer=(), microphone=(), midi=(), payment=(), usb=()";

/// An embedded file.
#[derive(Debug)]
pub struct File {
    /// Path in a request, with its first slash.
    pub path: &'static str,
    pub media: &'static str,
    /// Hash of the content.
    pub digest: &'static str,
    pub content: Embedded,
}

/// The bytes of a file as the daemon embeds them: in one form, for its size.
#[derive(Debug)]
pub enum Embedded {
    Identity(&'static [u8]),
    /// A gzip member (RFC 1952), which is what almost all clients get.
    Gzip(&'static [u8]),
}

impl File {
    pub const fn uncompressed(
        path: &'static str,
        media: &'static str,
        digest: &'static str,
        content: &'static [u8],
    ) -> Self {
        Self { path, media, digest, content: Embedded::Identity(content) }
    }

    /// Returns the strong entity tag of the content in a coding. The bytes differ by coding, so the tags do too.
    fn tag(&self, coding: Coding) -> String {
        match coding {
            Coding::Identity => format!("\"{}\"", self.digest),
            Coding::Gzip => format!("\"{}-{}\"", self.digest, coding.name()),
        }
    }

    fn is_available(&self, coding: Coding) -> bool {
        match coding {
            Coding::Gzip => matches!(self.content, Embedded::Gzip(_)),
            Coding::Identity => true,
        }
    }

    /// Returns the content in a coding that is available.
    fn content(&self, coding: Coding) -> std::io::Result<Bytes> {
        match (&self.content, coding) {
            (Embedded::Identity(content), _) | (Embedded::Gzip(content), Coding::Gzip) => {
                Ok(Bytes::from_static(content))
            }
            (Embedded::Gzip(compressed), Coding::Identity) => {
                let mut content = Vec::new();
                GzDecoder::new(*compressed).read_to_end(&mut content)?;
                Ok(Bytes::from(content))
            }
        }
    }
}

/// Builds the response of a file: 304 if the client has it, else its content in the best coding.
pub fn response(
    file: &'static File,
    status: StatusCode,
    request: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let coding = Coding::choose(request, |coding| file.is_available(coding));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("permissions-policy"), PERMISSIONS);
    if status == StatusCode::OK {
        match file.path.starts_with(ASSETS) {
            // Another content has another name.
            true => {
                set(header::CACHE_CONTROL, "public, max-age=31536000, immutable");
                set(header::VARY, "Accept-Encoding");
            }
            false => {
                set(header::CACHE_CONTROL, "no-cache");
                set(header::VARY, "Accept, Accept-Encoding");
            }
        }
        let tag = file.tag(coding);
        let known = conditional::header(request, &header::IF_NONE_MATCH)?;
        let is_known = known.is_some_and(|known| conditional::names_tag(&known, &tag));
        headers
            .insert(header::ETAG, HeaderValue::from_str(&tag).map_err(|error| ApiError::internal(&error))?);
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.media));
    if coding != Coding::Identity {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    let content = file.content(coding).map_err(|error| ApiError::internal(&error))?;
    *response.body_mut() = Body::from(content);
    Ok(response)
}
