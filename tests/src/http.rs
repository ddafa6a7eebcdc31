//! One HTTP/1.1 exchange over an open connection, limited to the features that the tests need.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};

/// An unmodified response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Sends one request and reads the answer to the end of the connection.
pub fn exchange(
    mut connection: impl Read + Write,
    method: &str,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Result<Response> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body.unwrap_or_default());
    connection.write_all(&request).context("send the request")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).context("read the answer")?;
    parse(&answer)
}

fn parse(answer: &[u8]) -> Result<Response> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").context("no end of the headers")?;
    let head = std::str::from_utf8(&answer[..end]).context("headers")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?;
    let status = status.parse().with_context(|| format!("status {status}"))?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut response = Response { status, headers, body: answer[end + 4..].to_vec() };
    if response.header("transfer-encoding").is_some_and(|encoding| encoding.contains("chunked")) {
        response.body = unchunk(&response.body)?;
    } else if let Some(length) = response.header("content-length") {
        let length: usize = length.parse().context("content-length")?;
        if response.body.len() < length {
            bail!("the answer breaks off after {} of {length} bytes", response.body.len());
        }
        response.body.truncate(length);
    }
    Ok(response)
}

fn unchunk(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end =
            rest.windows(2).position(|window| window == b"\r\n").context("no end of a chunk's length")?;
        let length = std::str::from_utf8(&rest[..end]).context("a chunk's length")?;
        let length = length.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(length, 16).context("a chunk's length")?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + length).context("a chunk breaks off")?);
        rest = rest.get(end + 4 + length..).context("a chunk breaks off")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_known_length_is_read() {
        let response =
            parse(b"HTTP/1.1 201 Created\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nok").expect("answer");
        assert_eq!((response.status, response.body.as_slice()), (201, b"ok".as_slice()));
        assert_eq!(response.header("location"), Some("/x"));
    }

    #[test]
    fn an_answer_in_chunks_is_put_together() {
        let response = parse(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
        );
        assert_eq!(response.expect("answer").body, b"abcde");
    }

    #[test]
    fn an_answer_that_breaks_off_is_an_error() {
        for cut in [
            b"HTTP/1.1 200".as_slice(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        ] {
            assert!(parse(cut).is_err());
        }
    }
}
