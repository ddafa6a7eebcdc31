//! Session with a collector of syslog.

use gateway_core::flow_export::syslog;
use gateway_core::flow_log::FlowRecord;
use gateway_model::settings::groups::SyslogCollector;
use gateway_outbound::Resolver;
use gateway_outbound::causes::with_causes;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::connection::{Identity, TIMEOUT, check_open, confirmed, connect};
use crate::tls::{Client, with_authorities};

pub(super) struct Session {
    connection: Connection,
    host_name: String,
}

enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    fn socket(&self) -> &TcpStream {
        match self {
            Connection::Plain(stream) => stream,
            Connection::Tls(session) => session.get_ref().0,
        }
    }
}

impl Session {
    pub(super) async fn open(
        config: &SyslogCollector,
        tls: &Client,
        names: &Resolver,
        identity: Identity,
    ) -> Result<Session, String> {
        let stream = connect(&config.host, config.port, names).await?;
        let host_name = identity.host_name;
        if !config.tls {
            return Ok(Session { connection: Connection::Plain(stream), host_name });
        }
        let name = ServerName::try_from(config.host.clone()).map_err(|_| "the host has no valid name")?;
        let tls = with_authorities(tls, &config.ca_certificate)?;
        let session = tokio::time::timeout(TIMEOUT, tls.connect(name, stream)).await;
        let session = session.map_err(|_| "no TLS session in time")?.map_err(|error| with_causes(&error))?;
        Ok(Session { connection: Connection::Tls(Box::new(session)), host_name })
    }

    pub(super) async fn send(&mut self, records: &[FlowRecord]) -> Result<(), String> {
        if records.is_empty() {
            return check_open(self.connection.socket());
        }
        let mut bytes = Vec::new();
        records.iter().for_each(|record| syslog::append(&mut bytes, record, &self.host_name));
        let written = match &mut self.connection {
            Connection::Plain(stream) => write(stream, &bytes).await,
            Connection::Tls(session) => write(session, &bytes).await,
        };
        written?;
        confirmed(self.connection.socket()).await
    }
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), String> {
    let written = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    let written = tokio::time::timeout(TIMEOUT, written).await.map_err(|_| "the collector does not read")?;
    written.map_err(|error| error.to_string())
}
