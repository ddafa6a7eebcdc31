//! DNS over HTTPS (RFC 8484), on HTTP/2.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};

use super::super::settings::Streams;
use super::super::{Shared, Transport};
use crate::hooks::Host;
use crate::upstream::message::shortest_life;

/// Path of the DoH endpoint. RFC 9461 allows URI templates; this path is the common one.
pub(super) const PATH: &str = "/dns-query";
const MEDIA_TYPE: &str = "application/dns-message";
const MAX_MESSAGE_BYTES: usize = 65_535;
const HEADERS: u32 = 16 << 10;

/// Time when the last request ended, and number of requests in progress.
struct Activity {
    last: Instant,
    busy: usize,
}

struct ActiveRequest<'a>(&'a Mutex<Activity>);

impl<'a> ActiveRequest<'a> {
    fn new(activity: &'a Mutex<Activity>) -> ActiveRequest<'a> {
        activity.lock().busy += 1;
        ActiveRequest(activity)
    }
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let mut activity = self.0.lock();
        *activity = Activity { last: Instant::now(), busy: activity.busy - 1 };
    }
}

/// Answers requests until the connection is closed or idle.
pub(super) async fn serve<S>(shared: Arc<Shared>, stream: S, host: Host, limits: Streams) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Mutex::new(Activity { last: Instant::now(), busy: 0 }));
    let own = activity.clone();
    let service = service_fn(move |request| {
        let (shared, activity) = (shared.clone(), own.clone());
        async move {
            let _busy = ActiveRequest::new(&activity);
            Ok::<_, Infallible>(respond(&shared, request, host, limits.idle).await)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(u32::try_from(limits.pipelined.max(1)).unwrap_or(u32::MAX))
        .max_header_list_size(HEADERS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let (mut until, mut ending) = (Instant::now() + limits.idle, false);
    loop {
        tokio::select! {
            done = connection.as_mut() => return done.map_err(io::Error::other),
            () = sleep_until(until) => {
                let (last, busy) = {
                    let activity = activity.lock();
                    (activity.last, activity.busy)
                };
                let now = Instant::now();
                if busy > 0 {
                    until = now + limits.idle;
                } else if !ending && last + limits.idle > now {
                    until = last + limits.idle;
                } else if ending {
                    // A client that does not read the end of the connection loses it.
                    return Err(io::ErrorKind::TimedOut.into());
                } else {
                    connection.as_mut().graceful_shutdown();
                    (until, ending) = (now + limits.idle, true);
                }
            }
        }
    }
}

async fn respond(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    host: Host,
    timeout: Duration,
) -> Response<Full<Bytes>> {
    let question = match question(request, timeout).await {
        Ok(question) => question,
        Err(refusal) => return refusal,
    };
    let mut answer = Vec::with_capacity(512);
    shared.answer(&question, host, Transport::Https, shared.clock.now(), &mut answer).await;
    if answer.is_empty() {
        return refusal(StatusCode::BAD_REQUEST);
    }
    // HTTP caches may keep the answer no longer than its shortest TTL (RFC 8484, section 5.1). An answer without
    // records is not cached.
    let life = shortest_life(&answer).map_or(0, |life| life.as_secs());
    let mut response = Response::new(Full::new(Bytes::from(answer)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(MEDIA_TYPE));
    if let Ok(value) = http::HeaderValue::try_from(format!("private, max-age={life}")) {
        headers.insert(CACHE_CONTROL, value);
    }
    response
}

async fn question(request: Request<Incoming>, limit: Duration) -> Result<Bytes, Response<Full<Bytes>>> {
    if request.uri().path() != PATH {
        return Err(refusal(StatusCode::NOT_FOUND));
    }
    match *request.method() {
        Method::GET => {
            let query = request.uri().query().unwrap_or_default();
            encoded(query).ok_or_else(|| refusal(StatusCode::BAD_REQUEST))
        }
        Method::POST => {
            let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
            if !kind.eq_ignore_ascii_case(MEDIA_TYPE) {
                return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE));
            }
            let body = Limited::new(request.into_body(), MAX_MESSAGE_BYTES).collect();
            match timeout(limit, body).await {
                Ok(Ok(body)) => Ok(body.to_bytes()),
                Ok(Err(_)) => Err(refusal(StatusCode::PAYLOAD_TOO_LARGE)),
                Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT)),
            }
        }
        _ => {
            let mut refusal = refusal(StatusCode::METHOD_NOT_ALLOWED);
            refusal.headers_mut().insert(ALLOW, http::HeaderValue::from_static("GET, POST"));
            Err(refusal)
        }
    }
}

/// Returns the query in the `dns` parameter of a request (RFC 8484, section 4.1). None: it is missing or malformed.
fn encoded(query: &str) -> Option<Bytes> {
    let text = query.split('&').find_map(|part| part.strip_prefix("dns="))?;
    let question = URL_SAFE_NO_PAD.decode(text).ok()?;
    (!question.is_empty()).then(|| question.into())
}

fn refusal(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_messages_are_found_in_the_query_string() {
        // RFC 8484, section 4.1.1.
        let text = "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
        let question = encoded(&format!("dns={text}")).unwrap();
        assert_eq!(question.len(), 33);
        assert_eq!(encoded(&format!("ct=x&dns={text}&more=1")), Some(question));
        for odd in ["", "dns=", "dns=A", "dns=+/+/", "dns=AAAB==", "xdns=AAAB", "DNS=AAAB"] {
            assert_eq!(encoded(odd), None, "{odd}");
        }
    }
}
