//! Service while leases wait for their storage, and what follows.

use super::*;

/// Server that has started without its stored leases. Client 9 has a reservation.
fn without_leases() -> Server {
    let mut server = server(reserved(config(scope(100, 110)), mac(9), host(50)));
    server.set_withholding(true);
    server
}

/// Returns the leases of a server, as a journal has them.
fn stored(server: &Server) -> Vec<Lease> {
    server.stored().cloned().collect()
}

#[test]
fn without_stored_leases_only_reservations_are_served_and_they_are_probed() {
    let mut server = without_leases();
    for request in [discover(1), reboot(1, host(101)), renew(1, host(101)), select(1, host(101))] {
        silent(&mut server, request, at(0));
    }
    assert_eq!((server.counters().withheld, server.len()), (4, 0));
    silent(&mut server, reboot(9, host(50)), at(0));
    let (answers, output) = ask(&mut server, discover(9), at(0));
    assert_eq!((answers.len(), output.probes.len()), (0, 1));
    let mut output = Output::default();
    server.poll(at(1000), &mut output);
    assert_eq!(read(&output.replies[0]).address, host(50));
    let ack = one(&mut server, select(9, host(50)), at(1001));
    assert_eq!((ack.kind, ack.address), (ACK, host(50)));
}

#[test]
fn leases_in_memory_are_renewed_and_new_clients_wait() {
    let mut server = server(config(scope(100, 110)));
    let address = lease(&mut server, 1, at(0));
    server.set_withholding(true);
    let later = at(i64::from(LEASE_SEC) * 500);
    assert_eq!(one(&mut server, renew(1, address), later).kind, ACK);
    assert_eq!(one(&mut server, reboot(1, address), later).kind, ACK);
    assert_eq!(one(&mut server, reboot(2, address), later).kind, NAK);
    silent(&mut server, discover(2), later);
    server.set_withholding(false);
    assert_ne!(lease(&mut server, 2, later), address);
}

#[test]
fn stored_leases_join_those_in_memory_which_are_newer() {
    let mut earlier = server(config(scope(100, 110)));
    let addresses = [1, 2, 9].map(|client| lease(&mut earlier, client, at(0)));
    let mut server = without_leases();
    let mut output = Output::default();
    server.handle(discover(9), LINK, at(1000), &mut output);
    server.poll(at(2000), &mut output);
    one(&mut server, select(9, host(50)), at(2001));
    server.adopt(stored(&earlier), None, at(3000));
    server.set_withholding(false);
    assert_eq!(one(&mut server, renew(1, addresses[0]), at(4000)).kind, ACK);
    assert_eq!(one(&mut server, reboot(3, addresses[1]), at(4000)).kind, NAK);
    // The client with the reservation has left its address of before.
    let status = |address| server.leases(at(4000)).find(|(lease, _)| lease.address == address);
    assert_eq!(status(addresses[2]).map(|(_, status)| status), Some(LeaseStatus::Released));
    assert_eq!(server.pools()[0].active, 2);
}

#[test]
fn leases_that_a_lost_run_may_have_renewed_are_kept_for_one_lease_time() {
    let mut earlier = server(config(scope(100, 101)));
    let (ended, unknown) = (lease(&mut earlier, 1, at(0)), lease(&mut earlier, 2, at(60_000)));
    let since = at(0).as_second() + i64::from(LEASE_SEC) + 30;
    let mut server = server(config(scope(100, 101)));
    server.set_withholding(true);
    let now = at(i64::from(LEASE_SEC) * 3000);
    server.adopt(stored(&earlier), Some(since), now);
    server.set_withholding(false);
    assert_eq!(lease(&mut server, 3, now), ended, "it had ended before the last write");
    silent(&mut server, discover(4), now);
    let later = now + SignedDuration::from_secs(i64::from(LEASE_SEC) + 2);
    let mut output = Output::default();
    server.poll(later, &mut output);
    let given = [4, 5].map(|client| lease(&mut server, client, later));
    assert!(given.contains(&unknown), "{given:?}");
}
