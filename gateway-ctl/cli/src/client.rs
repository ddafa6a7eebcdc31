//! HTTP client of the API: one request, one response in its envelope.

use std::env;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value};
use ureq::config::Config;
use ureq::http;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::address::{Address, VARIABLE};
use crate::failure::{Failure, Refusal};
use crate::grammar::Method;

/// File with CA certificates that replace those of the system.
pub(crate) const CA_VARIABLE: &str = "GATEWAY_CA";

const CONNECT: Duration = Duration::from_secs(5);
/// Timeouts. A change may have to wait for the kernel, a check for its peers.
const READ: Duration = Duration::from_secs(30);
const CHANGE: Duration = Duration::from_secs(180);
/// Maximum size of a response in bytes. Responses are held in memory; the largest exports are far smaller.
const LIMIT: u64 = 512 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    pub address: Address,
    /// Timeout of all requests that replaces the usual ones.
    limit: Option<Duration>,
}

/// Successful response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub data: Value,
    /// Path and message of each warning.
    pub warnings: Vec<(String, String)>,
    /// Total number of objects, from `X-Total-Count`; the list may have fewer.
    pub total: Option<usize>,
}

impl Client {
    /// Creates a client for the address in the environment.
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let address = match env::var(VARIABLE) {
            Ok(text) => Address::parse(&text)?,
            Err(env::VarError::NotPresent) => Address::parse("")?,
            Err(env::VarError::NotUnicode(_)) => {
                return Err(Failure::usage(format!("{VARIABLE} is not UTF-8")));
            }
        };
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Redirects could send a change to another host. The client connects to its gateway without a proxy.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("gateway-ctl/", env!("CARGO_PKG_VERSION")));
        if address.https {
            config = config.tls_config(tls()?);
        }
        let config: Config = config.build();
        Ok(Self { agent: config.into(), address, limit: None })
    }

    /// Sets a timeout for all requests, for callers that cannot wait.
    pub(crate) fn with_timeout(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.call(Method::Get, path, None)
    }

    /// Sends a request. The body is JSON as the user wrote it.
    pub(crate) fn call(&self, method: Method, path: &str, body: Option<&str>) -> Result<Answer, Failure> {
        let url = self.address.url(path);
        let usual = if method == Method::Get { READ } else { CHANGE };
        let request = http::Request::builder().method(method.as_str()).uri(&url);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_owned()),
            None => request.body(String::new()),
        };
        // Placeholders are escaped, so they cannot break the URL.
        let request = request.map_err(|error| Failure::Other(format!("{url}: {error}")))?;
        let config = self.agent.configure_request(request);
        let request =
            config.timeout_global(Some(self.limit.unwrap_or(usual))).allow_non_standard_methods(true).build();
        let mut response = self.agent.run(request).map_err(|error| self.no_answer(error))?;
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let total =
            response.headers().get("x-total-count").and_then(|value| value.to_str().ok()?.parse().ok());
        let text = response.body_mut().with_config().limit(LIMIT).read_to_vec();
        let text = text.map_err(|error| self.no_answer(error))?;
        let envelope: Option<Map<String, Value>> = serde_json::from_slice(&text).ok();
        let Some(envelope) = envelope else {
            return Err(Failure::Other(format!(
                "{url} answers {status}, but not as a gateway does. Does {VARIABLE} lead to another program?"
            )));
        };
        if (200..300).contains(&status) {
            return answer(envelope, &url).map(|answer| Answer { total, ..answer });
        }
        let error = envelope.get("error").and_then(Value::as_object);
        let word = |name: &str| {
            error.and_then(|error| error.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let message = word("message");
        Err(Refusal {
            method,
            url,
            had_body: body.is_some(),
            status,
            code: word("code"),
            message: if message.is_empty() {
                "The gateway refuses without saying why.".into()
            } else {
                message
            },
            details: error.and_then(|e| e.get("details")?.as_object().cloned()).unwrap_or_default(),
            retry_after,
        }
        .into())
    }

    /// Writes the body of a response that is no JSON.
    pub(crate) fn download(&self, path: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let url = self.address.url(path);
        let mut response = self
            .agent
            .get(&url)
            .config()
            .timeout_global(Some(CHANGE))
            .build()
            .call()
            .map_err(|error| self.no_answer(error))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(Failure::Other(format!("{url} answers {status}")));
        }
        let mut body = response.body_mut().with_config().limit(LIMIT).reader();
        let copied = io::copy(&mut body, out);
        copied
            .map(drop)
            .map_err(|error| Failure::Other(format!("the download from {url} broke off: {error}")))
    }

    fn no_answer(&self, error: ureq::Error) -> Failure {
        let (reason, advice) = match &error {
            ureq::Error::Timeout(_) => ("no answer in time".to_owned(), None),
            ureq::Error::HostNotFound => ("there is no such host".to_owned(), None),
            ureq::Error::ConnectionFailed => ("the connection failed".to_owned(), None),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                ("connection refused".to_owned(), None)
            }
            ureq::Error::Io(error) => {
                let text = error.to_string();
                let advice = text.contains("certificate").then(|| {
                    format!("Its own certificate? {CA_VARIABLE}=FILE names the certificates to trust.")
                });
                (text, advice)
            }
            ureq::Error::Rustls(error) => {
                let advice =
                    format!("Its own certificate? {CA_VARIABLE}=FILE names the certificates to trust.");
                (format!("TLS: {error}"), Some(advice))
            }
            other => (other.to_string(), None),
        };
        Failure::Unreachable { address: self.address.clone(), reason, advice }
    }
}

fn answer(mut envelope: Map<String, Value>, url: &str) -> Result<Answer, Failure> {
    let Some(data) = envelope.remove("data") else {
        return Err(Failure::Other(format!(
            "{url} answers without data: another program, or another version?"
        )));
    };
    let warnings = envelope.get("warnings").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let word = |warning: &Value, name: &str| {
        warning.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let warnings = warnings.iter().map(|warning| (word(warning, "path"), word(warning, "message"))).collect();
    Ok(Answer { data, warnings, total: None })
}

/// Returns the TLS configuration. It prefers post-quantum key exchange, because a gateway may require it.
fn tls() -> Result<TlsConfig, Failure> {
    let roots: Vec<Certificate<'static>> = match env::var_os(CA_VARIABLE).filter(|file| !file.is_empty()) {
        Some(file) => {
            let name = file.to_string_lossy().into_owned();
            let failed = |error: &dyn std::fmt::Display| {
                Failure::usage(format!("{CA_VARIABLE}={name}: {error}"))
                    .advise("It names a file of certificates in PEM form, such as the gateway's own.")
            };
            let read = CertificateDer::pem_file_iter(&file).map_err(|error| failed(&error))?;
            let read: Result<Vec<CertificateDer<'static>>, _> = read.collect();
            let read = read.map_err(|error| failed(&error))?;
            if read.is_empty() {
                return Err(failed(&"there is no certificate in it"));
            }
            read.iter().map(owned).collect()
        }
        // Unreadable system certificates count as missing; the handshake reports the error.
        None => rustls_native_certs::load_native_certs().certs.iter().map(owned).collect(),
    };
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .build())
}

fn owned(certificate: &CertificateDer<'_>) -> Certificate<'static> {
    Certificate::from_der(certificate).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn the_envelope_comes_off() {
        let got =
            answer(map(json!({"data": [1], "warnings": [{"path": "a", "message": "b"}]})), "u").unwrap();
        assert_eq!(got, Answer { data: json!([1]), warnings: vec![("a".into(), "b".into())], total: None });
    }

    #[test]
    fn an_answer_without_data_is_none() {
        assert_eq!(answer(map(json!({"ok": true})), "u").unwrap_err().exit_code(), 1);
    }
}
