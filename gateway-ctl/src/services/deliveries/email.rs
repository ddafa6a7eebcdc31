//! One attempt of a mail: submission to the server of the settings, always over the gateway's own TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gateway_core::notifications::email::MailText;
use gateway_core::notifications::outbox::Outcome;
use gateway_model::settings::groups::{AlertEmail, MailSecurity};
use gateway_outbound::causes::with_causes;
use gateway_outbound::{Dialer, Egress, KernelSockets, Resolver, Targets};
use jiff::Timestamp;
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::extension::ClientId;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;

use super::attempt::Attempt;
use super::smtp_stream::{SubmissionStream, begin_tls};
use crate::tls::{Client, Factory, with_authorities};

/// Mechanisms of the sign-in, best first. The password is never in clear text on the wire: all is inside TLS.
const MECHANISMS: &[Mechanism] = &[Mechanism::Plain, Mechanism::Login];
/// Reply codes about the sign-in, which a user can repair before the next attempt.
const SIGN_IN_CODES: [u16; 4] = [530, 534, 535, 538];

/// Sender of mail.
pub(super) struct MailSender {
    tls: Client,
    endpoint_names: Resolver,
}

/// Mail of one attempt.
pub(super) struct Mail<'a> {
    pub message_id: &'a str,
    /// Name of the gateway.
    pub node: &'a str,
    pub text: MailText,
    pub now: Timestamp,
    pub egress: &'a Egress,
}

impl MailSender {
    pub(super) fn new(tls: &Arc<Factory>, endpoint_names: Resolver) -> MailSender {
        MailSender { tls: tls.client("alert mail"), endpoint_names }
    }

    /// Sends a mail once.
    pub(super) async fn send(&self, config: &AlertEmail, mail: Mail<'_>) -> Attempt {
        if config.host.is_empty() || config.to.is_empty() {
            return Attempt::refused(&"no mail server or no recipient is set");
        }
        if !config.password.is_readable() {
            return Attempt::refused(&"the password cannot be decrypted: set it again");
        }
        let message = match compose(config, &mail) {
            Ok(message) => message,
            Err(error) => return Attempt::refused(&error),
        };
        let limit = Duration::from_secs(config.timeout_sec);
        let submission = self.submit(config, &mail, &message, limit);
        match tokio::time::timeout(limit, submission).await {
            Ok(Ok(())) => Attempt { status: None, outcome: Outcome::Accepted },
            Ok(Err(outcome)) => Attempt { status: None, outcome },
            Err(_) => Attempt::failed(format!("no answer within {} s", config.timeout_sec)),
        }
    }

    async fn submit(
        &self,
        config: &AlertEmail,
        mail: &Mail<'_>,
        message: &Message,
        limit: Duration,
    ) -> Result<(), Outcome> {
        let stream = self.connect(config, mail, limit).await.map_err(failed)?;
        let hello = ClientId::Domain(hello_name(mail.node));
        let connected = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await;
        let mut connection = connected.map_err(|error| outcome(&error))?;
        if !config.username.is_empty() {
            let credentials = Credentials::new(config.username.clone(), config.password.expose().to_owned());
            let signed_in = connection.auth(MECHANISMS, &credentials).await;
            signed_in.map_err(|error| outcome(&error))?;
        }
        let sent = connection.send(message.envelope(), &message.formatted()).await;
        sent.map_err(|error| outcome(&error))?;
        // The mail is accepted, whatever the server says to the end of the connection.
        let _ = connection.quit().await;
        Ok(())
    }

    /// Connects, and encrypts the connection.
    async fn connect(
        &self,
        config: &AlertEmail,
        mail: &Mail<'_>,
        limit: Duration,
    ) -> Result<SubmissionStream, String> {
        let dialer = Dialer {
            sockets: &KernelSockets::QUICK,
            names: &self.endpoint_names,
            egress: mail.egress,
            targets: Targets::Any,
            timeout: limit,
        };
        let dialed = dialer.connect(&config.host, config.port).await;
        let mut stream: TcpStream = dialed.map_err(|error| with_causes(&error))?;
        let peer: SocketAddr = stream.peer_addr().map_err(|error| error.to_string())?;
        let greeting = match config.security {
            MailSecurity::Tls => Vec::new(),
            MailSecurity::Starttls => begin_tls(&mut stream, &hello_name(mail.node)).await?,
        };
        let name =
            ServerName::try_from(config.host.clone()).map_err(|_| "the host has no valid name".to_owned())?;
        let tls = with_authorities(&self.tls, &config.ca_certificate)?;
        let session = tls.connect(name, stream).await.map_err(|error| with_causes(&error))?;
        Ok(SubmissionStream::new(session, peer, greeting))
    }
}

/// Returns the name of the gateway for EHLO: one that servers take for a domain.
fn hello_name(node: &str) -> String {
    let is_valid =
        !node.is_empty() && node.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    if is_valid { node.to_owned() } else { "gateway".to_owned() }
}

fn compose(config: &AlertEmail, mail: &Mail<'_>) -> Result<Message, String> {
    let address = |text: &str| text.parse().map_err(|_| format!("{text:?} is no mail address"));
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(mail.now.as_second().try_into().unwrap_or(0));
    let id = format!("<{}@{}>", mail.message_id, hello_name(mail.node));
    let mut message = Message::builder()
        .from(address(&config.from)?)
        .subject(&mail.text.subject)
        .date(time)
        .message_id(Some(id))
        .header(ContentType::TEXT_PLAIN);
    for recipient in &config.to {
        message = message.to(address(recipient)?);
    }
    message.body(mail.text.text.clone()).map_err(|error| with_causes(&error))
}

fn failed(error: String) -> Outcome {
    Outcome::Failed { error, retry_after: None }
}

/// Returns the outcome of an error of SMTP: a permanent one is final unless it is about the sign-in.
fn outcome(error: &lettre::transport::smtp::Error) -> Outcome {
    let code = error.status().map(u16::from);
    let text = with_causes(error);
    let is_final = error.is_permanent() && !code.is_some_and(|code| SIGN_IN_CODES.contains(&code));
    if is_final { Outcome::Refused { error: text } } else { failed(text) }
}
