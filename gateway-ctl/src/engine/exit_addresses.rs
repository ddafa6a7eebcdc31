//! STUN exchanges of a leak check: by each egress in question, the gateway asks servers for the address that they see.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::{join_all, select_ok};
use gateway_core::indexes::LegId;
use gateway_core::leak_check::{ExitAnswers, ExitQuery, Plan};
use gateway_core::stun::{BindingAnswer, TransactionId, binding_request, parse_answer};
use gateway_model::validated::{Endpoint, Host};
use gateway_outbound::{Resolver, SocketBinding};
use socket2::{Protocol, Type};
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

/// Time for all servers of an egress, which are asked at the same time as those of the others.
const DEADLINE: Duration = Duration::from_secs(2);
/// Time after which the next server is asked as well.
const NEXT_SERVER_DELAY: Duration = Duration::from_millis(250);
/// Time after which a request is sent again. It doubles each time (RFC 8489, section 6.2.1).
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_millis(500);
/// Longer answers are cut, and not recognised.
const MAX_ANSWER_BYTES: usize = 1500;

/// Asks by all egresses of a plan.
pub(super) async fn ask(plan: &Plan, names: &Resolver) -> ExitAnswers {
    let queries = plan.exits.iter().flat_map(|exits| exits.queries().enumerate());
    let asked = queries.map(|(index, query)| async move {
        let mut servers = plan.servers.clone();
        // No server should see the addresses of two egresses, which it would know to belong together.
        servers.rotate_left(index % plan.servers.len().max(1));
        (query.clone(), ask_by(query, &servers, names).await)
    });
    join_all(asked).await.into_iter().collect()
}

/// Asks one server after the other, until one answers. The error is a human-readable reason.
async fn ask_by(query: &ExitQuery, servers: &[Endpoint], names: &Resolver) -> Result<IpAddr, String> {
    let is_of_family = |server: &&Endpoint| match server.host {
        Host::Address(address) => address.is_ipv6() == query.source.is_ipv6(),
        Host::Name(_) => true,
    };
    let delays = (0..).map(|number| NEXT_SERVER_DELAY * number);
    let attempts = servers.iter().filter(is_of_family).zip(delays).map(|(server, delay)| {
        Box::pin(async move {
            sleep(delay).await;
            ask_server(query, server, names).await.map_err(|error| format!("{server}: {error}"))
        })
    });
    let attempts: Vec<_> = attempts.collect();
    if attempts.is_empty() {
        return Err(format!("no server has an {} address", family(query)));
    }
    match timeout(DEADLINE, select_ok(attempts)).await {
        Ok(Ok((address, _))) => Ok(address),
        Ok(Err(reason)) => Err(reason),
        Err(_) => Err(format!("within {} s", DEADLINE.as_secs())),
    }
}

/// Resolves and asks a server, both by the egress of the query.
async fn ask_server(query: &ExitQuery, server: &Endpoint, names: &Resolver) -> io::Result<IpAddr> {
    let mark = LegId::host_mark(Some(query.leg));
    let to = match server.host {
        Host::Address(address) => SocketAddr::new(address, server.port),
        Host::Name(_) => {
            let mut found = names.resolve(&server.to_string(), Some(mark)).await?.into_iter();
            let of_family = found.find(|address| address.is_ipv6() == query.source.is_ipv6());
            of_family.ok_or_else(|| io::Error::other(format!("it has no {} address", family(query))))?
        }
    };
    let binding = SocketBinding { interface: query.interface.clone(), source: Some(query.source), mark };
    let socket = binding.datagrams(to, Type::DGRAM, Protocol::UDP)?;
    let seen = exchange(&socket).await?.ip().to_canonical();
    if seen.is_ipv6() == to.is_ipv6() {
        Ok(seen)
    } else {
        Err(io::Error::other(format!("it answered {seen}, of the other address family")))
    }
}

fn family(query: &ExitQuery) -> &'static str {
    if query.source.is_ipv6() { "IPv6" } else { "IPv4" }
}

/// Sends a request until the server answers. The socket is connected, so it receives from the server only.
async fn exchange(socket: &UdpSocket) -> io::Result<SocketAddr> {
    let mut id = [0; 12];
    getrandom::fill(&mut id).map_err(io::Error::other)?;
    let id = TransactionId(id);
    let mut pause = RETRANSMISSION_TIMEOUT;
    loop {
        socket.send(&binding_request(id)).await?;
        match timeout(pause, receive(socket, id)).await {
            Ok(answer) => return answer,
            Err(_) => pause *= 2,
        }
    }
}

async fn receive(socket: &UdpSocket, id: TransactionId) -> io::Result<SocketAddr> {
    let mut buffer = [0; MAX_ANSWER_BYTES];
    loop {
        let length = socket.recv(&mut buffer).await?;
        match parse_answer(&buffer[..length], id) {
            Some(BindingAnswer::Address(seen)) => return Ok(seen),
            Some(BindingAnswer::Refused(code)) => {
                return Err(io::Error::other(format!("the server refused the request with error {code}")));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an answer to a request, with this address in clear text.
    fn answer(request: &[u8], last: u8) -> Vec<u8> {
        let attribute = [0, 1, 0, 8, 0, 1, 0, 7, 192, 0, 2, last];
        let mut answer = [request, &attribute].concat();
        (answer[0], answer[3]) = (1, 12);
        answer
    }

    async fn pair() -> (UdpSocket, UdpSocket) {
        let server = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let client = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        client.connect(server.local_addr().expect("an address")).await.expect("connected");
        (client, server)
    }

    #[tokio::test]
    async fn a_lost_request_is_repeated_and_a_foreign_answer_is_ignored() {
        let (client, server) = pair().await;
        let serve = async {
            let (mut lost, mut request) = ([0; 100], [0; 100]);
            let (length, _) = server.recv_from(&mut lost).await.expect("a request");
            let (_, from) = server.recv_from(&mut request).await.expect("the request again");
            assert_eq!(request, lost);
            let mut foreign = answer(&request[..length], 1);
            foreign[8] ^= 1;
            server.send_to(&foreign, from).await.expect("sent");
            server.send_to(&answer(&request[..length], 2), from).await.expect("sent");
        };
        let (seen, ()) = tokio::join!(exchange(&client), serve);
        assert_eq!(seen.expect("an answer"), "192.0.2.2:7".parse().expect("an address"));
    }

    #[tokio::test]
    async fn an_answer_of_another_host_is_ignored() {
        let (client, server) = pair().await;
        let other = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let serve = async {
            let mut request = [0; 100];
            let (length, from) = server.recv_from(&mut request).await.expect("a request");
            other.send_to(&answer(&request[..length], 1), from).await.expect("sent");
            server.send_to(&answer(&request[..length], 2), from).await.expect("sent");
        };
        let (seen, ()) = tokio::join!(exchange(&client), serve);
        assert_eq!(seen.expect("an answer").ip(), IpAddr::from([192, 0, 2, 2]));
    }

    #[tokio::test]
    async fn a_refusal_ends_the_exchange_with_its_code() {
        let (client, server) = pair().await;
        let serve = async {
            let mut request = [0; 100];
            let (length, from) = server.recv_from(&mut request).await.expect("a request");
            let mut refusal = [&request[..length], &[0, 9, 0, 4, 0, 0, 4, 0]].concat();
            refusal[..4].copy_from_slice(&[1, 0x11, 0, 8]);
            server.send_to(&refusal, from).await.expect("sent");
        };
        let (seen, ()) = tokio::join!(exchange(&client), serve);
        assert!(seen.expect_err("a refusal").to_string().contains("400"));
    }
}
