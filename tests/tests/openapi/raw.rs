//! Requests that no HTTP client sends: each has an answer in the envelope.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::openapi::server::Server;

/// Sends bytes and returns the status and the body of the answer.
fn answer(server: &Server, request: &[u8]) -> (u16, Value) {
    let origin = server.origin();
    let mut stream = TcpStream::connect(origin.trim_start_matches("http://")).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream.write_all(request).expect("sent");
    let mut response = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&response).into_owned();
        let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.to_ascii_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            (body.len() >= length.unwrap_or(0)).then(|| (head.to_owned(), body.to_owned()))
        });
        if let Some((head, body)) = whole {
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
            let body =
                serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head}\n{body:?}"));
            return (status, body);
        }
        match stream.read(&mut part).expect("an answer") {
            0 => panic!("the connection ended: {text:?}"),
            count => response.extend_from_slice(&part[..count]),
        }
    }
}

#[test]
fn what_is_no_request_has_an_error_in_the_envelope() {
    let server = Server::start();
    let long = "x".repeat(100_000);
    let host = "Host: localhost\r\n";
    for (status, request) in [
        (400, "NONSENSE\r\n\r\n".to_owned()),
        (400, format!("GET /api/v1/version HTTP/1.1\r\nno colon\r\n{host}\r\n")),
        (414, format!("GET /{long} HTTP/1.1\r\n{host}\r\n")),
        (431, format!("GET /api/v1/version HTTP/1.1\r\n{host}{}\r\n", "X-Many: 1\r\n".repeat(500))),
        (400, format!("GET /api/v1/version HTTP/1.1\r\n{host}{host}\r\n")),
        (400, format!("GET /api/v1/version HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n")),
        (400, format!("GET http://evil.example/api/v1/version HTTP/1.1\r\n{host}\r\n")),
        (
            415,
            format!(
                "POST /api/v1/devices HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Encoding: gzip\r\n\
                 Content-Length: 3\r\n\r\nabc"
            ),
        ),
    ] {
        let shown: String = request.chars().take(80).collect();
        let (found, body) = answer(&server, request.as_bytes());
        assert_eq!(found, status, "{shown}: {body}");
        let error = &body["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{shown}: {body}");
        assert!(error["details"]["request_id"].is_string(), "{shown}: {body}");
    }
    let (status, body) = answer(&server, format!("GET /api/v1/version HTTP/1.1\r\n{host}\r\n").as_bytes());
    assert_eq!((status, body["data"]["api"].as_str()), (200, Some("v1")), "{body}");
}
