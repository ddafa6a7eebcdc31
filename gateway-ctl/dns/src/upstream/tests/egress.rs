//! Nothing leaves by another egress than requested.

use gateway_core::dns::NameRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::server::{Act, Came, Server};
use super::*;
use gateway_outbound::Login;

async fn fine(last: u8) -> Server {
    Server::new(move |came: &Came| Act::Say(came.address(last))).await
}

#[tokio::test]
async fn a_blocked_route_opens_no_socket() {
    let server = fine(1).await;
    let bench = Bench::new(sequential(vec![udp(server.at), upstream(DnsProtocol::Tcp, server.at)]));
    for route in [QueryEgress::Blocked("the tunnel is down".into()), marked([])] {
        assert!(matches!(bench.ask_by(route, "www.example.com").await, Err(Failure::Blocked(_))));
    }
    let mut plan = sequential(vec![udp(server.at)]);
    plan.groups[0].route = QueryEgress::Blocked("no such uplink".into());
    bench.upstreams.replace(plan);
    let blocked = bench.send_query("www.example.com").await;
    assert!(
        matches!(&blocked, Err(Failure::Blocked(why)) if why.as_ref() == "no such uplink"),
        "{blocked:?}"
    );
    assert_eq!((bench.seen.peers().len(), server.count()), (0, 0));
}

#[tokio::test]
async fn sockets_carry_the_marks_of_the_route_in_round_robin() {
    let server = Server::new(|came: &Came| {
        // Over TCP, too.
        Act::Say(if came.over_tcp { came.address(2) } else { came.truncated() })
    })
    .await;
    let bench = Bench::new(sequential(vec![udp(server.at)]));
    for _ in 0..4 {
        bench.ask_by(marked([0x11, 0x12]), "www.example.com").await.unwrap();
    }
    // One connection per mark, kept for the second query of its mark.
    assert_eq!(bench.seen.marks(), [0x11, 0x11, 0x12, 0x12, 0x11, 0x12]);
    bench.send_query("www.example.com").await.unwrap();
    assert_eq!(bench.seen.marks()[6..], [0, 0], "and none is lent to another way");
}

#[tokio::test]
async fn turns_go_on_when_a_plan_is_replaced() {
    let server = fine(5).await;
    let plan = sequential(vec![udp(server.at)]);
    let bench = Bench::new(plan.clone());
    let servers: std::sync::Arc<[_]> = vec![udp(server.at)].into();
    for resolvers in [Resolvers::Usual, Resolvers::Only(servers)] {
        for _ in 0..4 {
            let mut query = query(marked([0x11, 0x12]), "www.example.com");
            query.route =
                Arc::new(QueryRoute { resolvers: resolvers.clone(), ..QueryRoute::clone(&query.route) });
            bench.upstreams.send_query(query).await.unwrap();
            bench.upstreams.replace(plan.clone());
        }
    }
    assert_eq!(bench.seen.marks(), [0x11, 0x12].repeat(4));
}

#[tokio::test]
async fn a_mark_without_replies_is_not_used() {
    let server = fine(6).await;
    let bench = Bench::new(sequential(vec![upstream(DnsProtocol::Tcp, server.at)]));
    let nowhere: SocketAddr = ([127, 0, 0, 1], 1).into();
    let route = || marked([0x51, 0x52]);
    bench.seen.only.lock().insert(0x51, nowhere);
    let mut failed = 0;
    for _ in 0..20 {
        failed += usize::from(bench.ask_by(route(), "www.example.com").await.is_err());
    }
    assert!((1..=4).contains(&failed), "{failed}");
}

#[tokio::test]
async fn the_route_of_the_client_precedes_that_of_the_forwarder() {
    let server = fine(3).await;
    let mut plan = sequential(vec![udp(server.at)]);
    plan.groups[0].route = marked([0x20]);
    plan.groups[0].egress = "wg0".into();
    plan.called.insert(Mark(0x20), "wg0".into());
    let bench = Bench::new(plan.clone());
    bench.send_query("www.example.com").await.unwrap();
    bench.ask_by(marked([0x21]), "www.example.com").await.unwrap();
    assert_eq!(bench.seen.marks(), [0x20, 0x21]);
    let egress: Vec<String> = bench.upstreams.status().into_iter().map(|status| status.egress).collect();
    assert_eq!(egress, ["wg0", "mark 0x21"]);

    // State of a path is dropped when the path changes.
    plan.called.insert(Mark(0x20), "wg1".into());
    bench.upstreams.replace(plan);
    let egress: Vec<String> = bench.upstreams.status().into_iter().map(|status| status.egress).collect();
    assert_eq!(egress, ["mark 0x21"]);
}

/// Proxy that accepts clients with the password, and connects to one server for any request.
async fn proxy(to: SocketAddr, wanted: Arc<Mutex<Vec<SocketAddr>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let wanted = wanted.clone();
            tokio::spawn(async move {
                let mut hello = [0; 3];
                stream.read_exact(&mut hello).await.unwrap();
                assert_eq!(hello, [5, 1, 2]);
                stream.write_all(&[5, 2]).await.unwrap();
                let mut login = [0; 9];
                stream.read_exact(&mut login).await.unwrap();
                let good = login == *b"\x01\x02me\x04s3cr";
                stream.write_all(&[1, u8::from(!good)]).await.unwrap();
                let mut request = [0; 10];
                if stream.read_exact(&mut request).await.is_err() {
                    return;
                }
                let ip: [u8; 4] = request[4..8].try_into().unwrap();
                let port = u16::from_be_bytes([request[8], request[9]]);
                wanted.lock().push((ip, port).into());
                stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
                let mut server = tokio::net::TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    at
}

#[tokio::test]
async fn queries_through_a_proxy_go_to_the_proxy_only() {
    let server = fine(4).await;
    let wanted = Arc::<Mutex<Vec<SocketAddr>>>::default();
    let proxy = proxy(server.at, wanted.clone()).await;
    let far: SocketAddr = "192.0.2.53:53".parse().unwrap();
    let by = |password: &str| {
        let login = Login { user: "me".into(), password: password.to_owned().into() };
        QueryEgress::Proxy { server: proxy, mark: Mark(0x30), user: Some(Arc::new(login)) }
    };
    let bench = Bench::new(sequential(vec![udp(far)]));
    for _ in 0..3 {
        assert_eq!(address(&bench.ask_by(by("s3cr"), "www.example.com").await.unwrap()), "192.0.2.4");
    }
    assert_eq!(*wanted.lock(), [far]);
    assert_eq!(*bench.seen.sockets.lock(), [(proxy, Some(Mark(0x30)))]);
    assert_eq!((server.count(), server.over_tcp()), (3, 3));
    let refused = bench.ask_by(by("fail"), "www.example.com").await.unwrap_err();
    assert_eq!(refused.to_string(), "SOCKS5 proxy rejected the user name or password");
    assert!(!format!("{refused:?} {:?}", by("s3cr")).contains("s3cr"));
    assert!(bench.seen.peers().iter().all(|to| *to == proxy));
}

#[tokio::test]
async fn upstreams_by_name_are_resolved_by_the_same_route_and_keep_the_old_address() {
    let server = fine(5).await;
    let bootstrap = Server::new(|came: &Came| {
        let qtype = came.message[came.message.len() - 11 - 3];
        Act::Say(if qtype == 1 { came.address(77) } else { came.rcode(0) })
    })
    .await;
    let named = super::Server {
        place: ServerAddress::Name(Name::from(&DomainName::parse("dns.example.net").unwrap()), 53),
        bootstrap: vec!["192.0.2.9".parse().unwrap()],
        ..upstream(DnsProtocol::Tcp, server.at)
    };
    let bench = Bench::new(sequential(vec![named]));
    let to = |text: &str| text.parse::<SocketAddr>().unwrap();
    bench.seen.instead.lock().extend([(to("192.0.2.9:53"), bootstrap.at), (to("192.0.2.77:53"), server.at)]);
    for _ in 0..2 {
        let reply = bench.ask_by(marked([0x40]), "www.example.com").await.unwrap();
        assert_eq!(address(&reply), "192.0.2.5");
    }
    let mut sockets = bench.seen.sockets.lock().clone();
    sockets.dedup();
    assert_eq!(sockets, ["192.0.2.9:53", "192.0.2.77:53"].map(|end| (to(end), Some(Mark(0x40)))));
    assert_eq!(bootstrap.count(), 2, "both families, once");
}

#[tokio::test]
async fn primaries_of_a_zone_get_non_recursive_queries() {
    let referring = |came: &Came| {
        let mut message = came.rcode(0);
        message[9] = 1;
        message.extend_from_slice(b"\xc0\x0c\0\x02\0\x01\0\0\0\x3c\0\x02\xc0\x0c");
        Act::Say(message)
    };
    let server = Server::new(referring).await;
    let mut plan = sequential(vec![udp(server.at)]);
    plan.groups[0].recursion = false;
    let bench = Bench::new(plan);
    let failure = bench.send_query("www.example.com").await.unwrap_err();
    assert_eq!(failure.to_string(), "the upstream answers with a referral and does not resolve");
    assert_eq!(server.came.lock()[0].message[2] & 1, 0);
    assert_eq!(bench.upstreams.status()[0].address, server.at.to_string());
    assert!(Plan::default().domains().get(&NameRef::ROOT.to_owned()).is_none());
}

#[tokio::test]
async fn a_route_with_its_own_resolvers_uses_only_them_and_the_forwarders_of_domains() {
    let (usual, own, corporate) = (fine(1).await, fine(2).await, fine(3).await);
    let mut plan = sequential(vec![udp(usual.at)]);
    let domain = Name::from(&DomainName::parse("corp.test").unwrap());
    let group = Group { domain, servers: vec![udp(corporate.at)], ..Group::for_all() };
    plan.groups.push(group);
    let bench = Bench::new(plan.clone());
    let only = |at| Resolvers::Only([udp(at)].into());
    let asked = async |name: &str, resolvers: Resolvers| {
        let mut query = query(QueryEgress::Default, name);
        query.route = Arc::new(QueryRoute { partition: 1, route: QueryEgress::Default, resolvers });
        bench.upstreams.send_query(query).await
    };
    assert_eq!(address(&asked("www.example.com", Resolvers::Usual).await.unwrap()), "192.0.2.1");
    assert_eq!(address(&asked("www.example.com", only(own.at)).await.unwrap()), "192.0.2.2");
    assert_eq!(address(&asked("www.corp.test", only(own.at)).await.unwrap()), "192.0.2.3");
    // Other upstreams do not touch it, and neither does that there are none.
    bench.upstreams.replace(Plan::default());
    assert_eq!(address(&asked("www.corp.test", only(own.at)).await.unwrap()), "192.0.2.2");
    assert!(matches!(asked("www.example.com", Resolvers::Usual).await, Err(Failure::NoUpstream)));
    let none = Resolvers::Only(Arc::new([]));
    bench.upstreams.replace(plan);
    assert!(matches!(asked("www.example.com", none).await, Err(Failure::NoUpstream)));
    let shown: Vec<String> = bench.upstreams.status().into_iter().map(|status| status.address).collect();
    assert!(shown.contains(&own.at.to_string()), "{shown:?}");
    assert_eq!((usual.count(), own.count(), corporate.count()), (1, 2, 1));
}
