//! Connection to the hub: by the rules of the gateway's own connections, with TLS where it is asked for, and the sign-in.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway_core::federation::bus::nkey::user_nkey;
use gateway_core::federation::bus::wire::{Greeting, SignIn, is_nonce};
use gateway_model::settings::groups::{FederationBus, HubAddress};
use gateway_outbound::causes::with_causes;
use gateway_outbound::{Dialer, KernelSockets};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;

use super::session::{Session, Stream, TIMEOUT, greeting, in_time};
use crate::services::federation::Federation;
use crate::services::federation::exchange::nonce;
use crate::services::federation::identity::Identity;
use crate::supervise::blocking;
use crate::tls::with_authorities;

/// Open session, and what the server says of itself.
pub(super) struct Connection {
    pub session: Session,
    pub greeting: Greeting,
}

impl Federation {
    /// Connects to the hub and signs in.
    pub(super) async fn connect_bus(
        &self,
        config: &FederationBus,
        identity: &Identity,
    ) -> Result<Connection, String> {
        let address = config.address().ok_or("the URL of the hub is not valid")?;
        let dialer = Dialer::by_default_route(&KernelSockets::QUICK, &self.client.endpoint_names, TIMEOUT);
        let dialed = dialer.connect(&address.host, address.port).await;
        let mut stream = dialed.map_err(|error| with_causes(&error))?;
        let greeting = in_time(greeting(&mut stream)).await.map_err(|error| error.to_string())?;
        let is_tls = address.needs_tls || greeting.tls_required;
        let stream = self.encrypt(config, address, &greeting, stream).await?;
        let sign_in = sign_in(config, identity, &greeting).await?;
        let name = format!("gatewayd {}", Self::own_name());
        let key = user_nkey(identity.public_key());
        let inbox = format!("_INBOX.{key}.{}", nonce());
        let opened = Session::open(stream, &name, is_tls, &sign_in, inbox).await;
        let session = opened.map_err(|error| with_causes(&error))?;
        Ok(Connection { session, greeting })
    }

    async fn encrypt(
        &self,
        config: &FederationBus,
        address: HubAddress,
        greeting: &Greeting,
        stream: TcpStream,
    ) -> Result<Box<dyn Stream>, String> {
        let HubAddress { host, needs_tls, .. } = address;
        if !needs_tls && !greeting.tls_required {
            return Ok(Box::new(stream));
        }
        if !greeting.tls_required && !greeting.tls_available {
            return Err("the hub has no TLS, and its URL begins with tls://".to_owned());
        }
        let name = ServerName::try_from(host).map_err(|_| "the hub has no valid name".to_owned())?;
        let tls = with_authorities(&self.client.tls, &config.ca_certificate)?;
        let handshake = tokio::time::timeout(TIMEOUT, tls.connect(name, stream)).await;
        let stream = handshake.map_err(|_| "no TLS session in time".to_owned())?;
        Ok(Box::new(stream.map_err(|error| with_causes(&error))?))
    }
}

/// Returns the sign-in: the stored credentials, else the key of this gateway if the server asks for one.
async fn sign_in(config: &FederationBus, identity: &Identity, greeting: &Greeting) -> Result<SignIn, String> {
    let credentials = config.credentials.clone();
    let text = blocking(move || credentials.is_readable().then(|| credentials.expose().to_owned())).await;
    let text = text.ok_or("the credentials cannot be decrypted: set them again")?;
    if !text.is_empty() {
        return Ok(match text.split_once(':') {
            Some((user, password)) => {
                SignIn::Password { user: user.to_owned(), password: password.to_owned() }
            }
            None => SignIn::Token(text),
        });
    }
    if greeting.nonce.is_empty() {
        return Ok(SignIn::None);
    }
    // The key signs messages between gateways as well: the server may not choose one of them.
    if !is_nonce(&greeting.nonce) {
        return Err("the hub asks to sign something else than a nonce".to_owned());
    }
    let signature = URL_SAFE_NO_PAD.encode(identity.sign(greeting.nonce.as_bytes()).0);
    Ok(SignIn::Key { nkey: user_nkey(identity.public_key()), signature })
}
