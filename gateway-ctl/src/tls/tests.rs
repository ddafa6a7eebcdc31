//! Tests of the factory against itself and against independently configured peers.

use std::io;

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::{ClientConfig, HandshakeKind, NamedGroup, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::*;

/// Certificate as a resolver and as a trusted authority.
struct Identity {
    resolver: Arc<dyn ResolvesServerCert>,
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn identity() -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["gw".to_owned()]).unwrap().self_signed(&key).unwrap();
    let der = certificate.der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = aws_lc_rs::default_provider();
    let certified =
        rustls::sign::CertifiedKey::from_der(vec![der.clone()], key.clone_key(), &provider).unwrap();
    let resolver = Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    Identity { resolver, der, key }
}

fn name() -> ServerName<'static> {
    ServerName::try_from("gw").unwrap()
}

/// Creates a client without the factory.
fn foreign_client(identity: &Identity, groups: Vec<&'static dyn SupportedKxGroup>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(identity.der.clone()).unwrap();
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = groups;
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Creates a server without the factory.
fn foreign_server(
    identity: &Identity,
    groups: Vec<&'static dyn SupportedKxGroup>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> TlsAcceptor {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = groups;
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.der.clone()], identity.key.clone_key())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

type Ends = (client::TlsStream<DuplexStream>, server::TlsStream<DuplexStream>);

/// Exchanges one byte in each direction; afterwards, tickets have arrived.
async fn exchange((client, server): &mut Ends) -> io::Result<()> {
    client.write_all(b"?").await?;
    client.flush().await?;
    assert_eq!(server.read_u8().await?, b'?');
    server.write_all(b"!").await?;
    server.flush().await?;
    assert_eq!(client.read_u8().await?, b'!');
    Ok(())
}

fn group(ends: &Ends) -> NamedGroup {
    ends.0.get_ref().1.negotiated_key_exchange_group().unwrap().name()
}

async fn inbound(
    connector: &TlsConnector,
    server: &Server,
) -> (io::Result<client::TlsStream<DuplexStream>>, Result<server::TlsStream<DuplexStream>, Error>) {
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::join!(connector.connect(name(), near), server.accept(far))
}

async fn outbound(
    client: &Client,
    acceptor: &TlsAcceptor,
) -> (Result<client::TlsStream<DuplexStream>, Error>, io::Result<server::TlsStream<DuplexStream>>) {
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::join!(client.connect(name(), near), acceptor.accept(far))
}

fn classic() -> Vec<&'static dyn SupportedKxGroup> {
    vec![kx_group::X25519, kx_group::SECP256R1]
}

fn hybrid() -> Vec<&'static dyn SupportedKxGroup> {
    vec![kx_group::X25519MLKEM768]
}

#[tokio::test]
async fn clients_get_what_the_mode_gives_them() {
    let identity = identity();
    for (mode, classic_group, hybrid_group) in [
        (PqMode::Default, Some(NamedGroup::X25519), Some(NamedGroup::X25519MLKEM768)),
        (PqMode::Preferred, Some(NamedGroup::X25519), Some(NamedGroup::X25519MLKEM768)),
        (PqMode::Required, None, Some(NamedGroup::X25519MLKEM768)),
    ] {
        let factory = Factory::new(mode);
        let server = factory.server(identity.resolver.clone(), &[]);
        for (groups, expected) in [(classic(), classic_group), (hybrid(), hybrid_group)] {
            let connector = foreign_client(&identity, groups);
            match (expected, inbound(&connector, &server).await) {
                (Some(expected), (Ok(client), Ok(server))) => {
                    let mut ends = (client, server);
                    exchange(&mut ends).await.unwrap();
                    assert_eq!(group(&ends), expected, "{mode}");
                }
                (None, (Err(_), Err(error))) => {
                    assert!(error.is_post_quantum(), "{mode}: {error:?}");
                    let text = error.to_string();
                    assert!(text.contains("`required`") && text.contains("X25519MLKEM768"), "{text}");
                }
                (expected, (client, server)) => panic!("{mode}, {expected:?}: {client:?} {server:?}"),
            }
        }
        let seen = factory.inbound();
        assert_eq!(seen.refused, u64::from(mode == PqMode::Required));
        assert_eq!(seen.sessions["X25519MLKEM768"], 1);
    }
}

#[tokio::test]
async fn named_clients_obey_the_mode_and_tell_what_they_agreed_on() {
    let identity = identity();
    let factory = Factory::new(PqMode::Default);
    let client = factory.client("test").with_authorities(vec![identity.der.clone()]);
    let report =
        |last: Option<&str>, pq| ClientReport { name: "test".into(), last_group: last.map(Into::into), pq };
    assert_eq!(factory.clients(), [report(None, false)]);
    let old = foreign_server(&identity, classic(), rustls::ALL_VERSIONS);
    let oldest = foreign_server(&identity, classic(), &[&rustls::version::TLS12]);
    let young = foreign_server(&identity, hybrid(), rustls::ALL_VERSIONS);
    for mode in [PqMode::Default, PqMode::Preferred] {
        factory.set_mode(mode);
        for server in [&old, &oldest] {
            outbound(&client, server).await.0.unwrap();
            assert_eq!(factory.clients(), [report(Some("X25519"), false)], "{mode}");
        }
        outbound(&client, &young).await.0.unwrap();
        assert_eq!(factory.clients(), [report(Some("X25519MLKEM768"), true)], "{mode}");
    }
    factory.set_mode(PqMode::Required);
    outbound(&client, &young).await.0.unwrap();
    for server in [&old, &oldest] {
        let error = outbound(&client, server).await.0.unwrap_err();
        assert!(error.is_post_quantum(), "{error:?}");
        assert!(error.to_string().contains("post-quantum mode is `required`"), "{error}");
    }
    assert_eq!(factory.clients(), [report(Some("X25519MLKEM768"), true)]);
}

#[tokio::test]
async fn a_cached_configuration_refuses_what_the_mode_forbids() {
    let identity = identity();
    let factory = Factory::new(PqMode::Preferred);
    let client = factory.client("test").with_authorities(vec![identity.der.clone()]);
    let kept = TlsConnector::from(client.config().unwrap());
    factory.set_mode(PqMode::Required);
    for versions in [rustls::ALL_VERSIONS, &[&rustls::version::TLS12]] {
        let server = foreign_server(&identity, classic(), versions);
        let (near, far) = tokio::io::duplex(1 << 16);
        let (connected, _) = tokio::join!(kept.connect(name(), near), server.accept(far));
        let error = connected.unwrap_err();
        let reason = client.explain(&error).expect("the reason is the mode");
        assert!(reason.contains("`required`"), "{reason}");
    }
}

#[tokio::test]
async fn an_open_session_survives_and_the_next_one_obeys() {
    let identity = identity();
    let factory = Factory::new(PqMode::Default);
    let server = factory.server(identity.resolver.clone(), &[]);
    let connector = foreign_client(&identity, classic());
    let (client, accepted) = inbound(&connector, &server).await;
    let mut standing = (client.unwrap(), accepted.unwrap());
    exchange(&mut standing).await.unwrap();
    let mut changes = factory.changes();
    factory.set_mode(PqMode::Required);
    changes.changed().await;
    exchange(&mut standing).await.unwrap();
    assert_eq!(group(&standing), NamedGroup::X25519);
    assert!(inbound(&connector, &server).await.1.unwrap_err().is_post_quantum());
    exchange(&mut standing).await.unwrap();
    factory.set_mode(PqMode::Preferred);
    inbound(&connector, &server).await.1.unwrap();
}

#[tokio::test]
async fn no_ticket_outlives_its_mode() {
    let identity = identity();
    let factory = Factory::new(PqMode::Preferred);
    let server = factory.server(identity.resolver.clone(), &[]);
    let connector = foreign_client(&identity, vec![kx_group::X25519MLKEM768, kx_group::X25519]);
    let kind = async |factory: &Factory, server: &Server| {
        let (client, accepted) = inbound(&connector, server).await;
        let mut ends = (client.unwrap(), accepted.unwrap());
        exchange(&mut ends).await.unwrap();
        (ends.1.get_ref().1.handshake_kind().unwrap(), factory.mode())
    };
    assert_eq!(kind(&factory, &server).await, (HandshakeKind::Full, PqMode::Preferred));
    // Control: within one mode, tickets are used.
    assert_eq!(kind(&factory, &server).await, (HandshakeKind::Resumed, PqMode::Preferred));
    for mode in [PqMode::Required, PqMode::Preferred, PqMode::Default] {
        factory.set_mode(mode);
        assert_eq!(kind(&factory, &server).await, (HandshakeKind::Full, mode));
        assert_eq!(kind(&factory, &server).await, (HandshakeKind::Resumed, mode));
    }
}

#[tokio::test]
async fn our_own_sides_agree_in_every_pair_of_modes() {
    let identity = identity();
    for near in [PqMode::Default, PqMode::Preferred, PqMode::Required] {
        for far in [PqMode::Default, PqMode::Preferred, PqMode::Required] {
            let (ours, theirs) = (Factory::new(near), Factory::new(far));
            let client = ours.client("test").with_authorities(vec![identity.der.clone()]);
            let server = theirs.server(identity.resolver.clone(), &[b"http/1.1"]);
            let (a, b) = tokio::io::duplex(1 << 16);
            let (client, server) = tokio::join!(client.connect(name(), a), server.accept(b));
            let mut ends = (client.unwrap(), server.unwrap());
            exchange(&mut ends).await.unwrap();
            assert_eq!(group(&ends), NamedGroup::X25519MLKEM768);
        }
    }
}

#[tokio::test]
async fn an_untrusted_server_is_not_blamed_on_the_mode() {
    let (identity, other) = (identity(), identity());
    let factory = Factory::new(PqMode::Required);
    let client = factory.client("test").with_authorities(vec![other.der.clone()]);
    let server = foreign_server(&identity, hybrid(), rustls::ALL_VERSIONS);
    let error = outbound(&client, &server).await.0.unwrap_err();
    assert!(!error.is_post_quantum(), "{error:?}");
    assert_eq!(client.explain(&error), None);
}
