//! Life cycle of the daemon: listeners that cannot be bound yet, supervised tasks, the service manager's watchdog.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use gateway_tests::http::exchange;
use gateway_tests::testbed::Testbed;
use gateway_tests::traffic::Load;
use gateway_tests::wait::{wait_for, wait_ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::nothing_past::FAMILIES;
use crate::nothing_past::doors::{assert_nothing_leaked, bind_laptop, wait_until_through};
use crate::nothing_past::first_start::assert_direct;

const SOON: Duration = Duration::from_secs(30);

/// Returns `/health` over TCP from an address of the gateway.
fn health_at(testbed: &Testbed, address: SocketAddr) -> anyhow::Result<Value> {
    let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(2));
    let connection = testbed.network.gateway.within(connect)?;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let answer = exchange(&connection, "GET", &address.to_string(), "/api/v1/health", &[], None)?;
    Ok(serde_json::from_slice(&answer.body)?)
}

/// Returns the response for a local tool through the local socket. Before the socket exists the tool would open the
/// store itself.
fn users_by_socket(testbed: &Testbed) -> anyhow::Result<String> {
    let socket = testbed.daemon.state_directory().with_file_name("run").join("api.sock");
    anyhow::ensure!(socket.exists(), "there is no socket");
    testbed.daemon.run(&["user", "list"])
}

#[test]
fn listen_address_that_no_interface_has_yet_is_served_once_it_appears() {
    let mut testbed = Testbed::prepare().expect("scene");
    let address: SocketAddr = "192.168.77.1:8080".parse().expect("an address");
    testbed.daemon.configure(&json!({"listen": {"api_addr": address.to_string()}})).expect("configured");
    testbed.daemon.spawn().expect("started");
    wait_ok(SOON, "the local socket to answer", || users_by_socket(&testbed)).expect("answered");
    assert_direct(&testbed.network.tv);
    assert!(testbed.daemon.ended().is_none(), "{}", testbed.daemon.last_words());
    assert!(health_at(&testbed, address).is_err(), "the address is there already");
    testbed.network.gateway.ip("address add 192.168.77.1/32 dev lo").expect("address");
    let health =
        wait_ok(SOON, "the API at the new address", || health_at(&testbed, address)).expect("served");
    assert_eq!(health["data"]["status"], "ok", "{health}");
}

#[test]
fn port_that_is_taken_is_waited_for_while_enforcement_goes_on() {
    let mut testbed = Testbed::prepare().expect("scene");
    let port: SocketAddr = gateway_tests::daemon::API;
    let taken = testbed.network.gateway.within(|| TcpListener::bind(port)).expect("bound");
    testbed.daemon.spawn().expect("started");
    wait_ok(SOON, "the local socket to answer", || users_by_socket(&testbed)).expect("answered");
    assert_direct(&testbed.network.tv);
    assert!(testbed.daemon.last_words().contains("failed to listen"), "{}", testbed.daemon.last_words());
    assert!(testbed.daemon.ended().is_none(), "{}", testbed.daemon.last_words());
    drop(taken);
    wait_for(SOON, "the API to be served", || {
        testbed.api().get("/health").is_ok_and(|health| health["status"] == "ok")
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
    let observer = testbed.api().get("/observer").expect("observer");
    let state = |name: &str| {
        let rows = observer.as_array().into_iter().flatten();
        rows.filter(|row| row["subsystem"] == name).map(|row| row["state"].clone()).collect::<Vec<_>>()
    };
    let engine = ["api_listener", "reconcile_loop", "tunnel_watcher", "exception_ends", "dead_man_switch"];
    let resolver = ["dns-0", "dns-log", "dns_updates", "dns_slow_path"];
    let events = ["routing_events", "nftables_events", "panics"];
    for task in engine.into_iter().chain(resolver).chain(events) {
        assert_eq!(state(task), [json!("ok")], "{task}: {observer}");
    }
}

#[test]
fn lan_interface_without_ethernet_is_shown_by_health() {
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.network.gateway.ip("tuntap add dev lan-tun mode tun\nlink set lan-tun up").expect("an interface");
    testbed.daemon.configure(&json!({"network": {"lan_iface": ["eth1", "lan-tun"]}})).expect("configured");
    testbed.daemon.spawn().expect("started");
    let health = wait_ok(SOON, "the interface to be reported", || {
        let health = testbed.api().get("/health")?;
        anyhow::ensure!(health["cause"] == "lan_without_ethernet", "{health}");
        Ok(health)
    })
    .expect("reported");
    assert_eq!(health["status"], "degraded", "{health}");
    assert!(health["reason"].as_str().is_some_and(|reason| reason.contains("lan-tun")), "{health}");
    // The other LAN interface is served.
    assert_direct(&testbed.network.tv);
}

#[test]
fn watchdog_is_fed_while_the_reconcile_loop_goes_on() {
    let mut testbed = Testbed::prepare().expect("scene");
    let socket = testbed.daemon.state_directory().with_file_name("notify");
    let manager = UnixDatagram::bind(&socket).expect("socket");
    manager.set_read_timeout(Some(SOON)).expect("time-out");
    testbed.daemon.set_environment("NOTIFY_SOCKET", socket);
    testbed.daemon.set_environment("WATCHDOG_USEC", "20000000".into());
    testbed.daemon.start().expect("started");
    for _ in 0..2 {
        wait_ok(SOON, "the watchdog to be fed", || {
            let mut buffer = [0; 4096];
            let length = manager.recv(&mut buffer)?;
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            anyhow::ensure!(text.contains("WATCHDOG=1"), "{text}");
            Ok(())
        })
        .expect("fed");
    }
}

/// A stopped thread of a running process. Dropping it lets it continue, or lets its process end.
struct StoppedThread(libc::pid_t);

impl StoppedThread {
    fn stop(thread: libc::pid_t) -> io::Result<Self> {
        for request in [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT] {
            // SAFETY: neither request reads or writes memory of this process.
            let done = unsafe { libc::ptrace(request, thread, 0_usize, 0_usize) };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let mut status = 0;
        // SAFETY: the status lives until the call returns.
        match unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) } {
            0.. => Ok(Self(thread)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        // SAFETY: the request reads and writes no memory of this process.
        let detached = unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, 0_usize, 0_usize) };
        if detached < 0 {
            // The thread was killed. Its process ends only after its tracer has seen the end of the thread.
            // SAFETY: without a status nothing is written.
            unsafe { libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL) };
        }
    }
}

/// Returns the threads of the daemon's runtime.
fn runtime_threads(daemon: u32) -> Vec<libc::pid_t> {
    let threads = fs::read_dir(format!("/proc/{daemon}/task")).expect("threads").flatten();
    let is_worker =
        |path: &Path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("tokio-rt"));
    let workers = threads.filter(|thread| is_worker(&thread.path()));
    workers.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect()
}

#[test]
fn daemon_with_a_hung_thread_is_noticed_and_leaks_nothing() {
    const WATCHDOG: Duration = Duration::from_secs(4);
    let mut testbed = Testbed::prepare().expect("scene");
    let socket = testbed.daemon.state_directory().with_file_name("notify");
    let manager = UnixDatagram::bind(&socket).expect("socket");
    testbed.daemon.set_environment("NOTIFY_SOCKET", socket);
    testbed.daemon.set_environment("WATCHDOG_USEC", WATCHDOG.as_micros().to_string().into());
    testbed.daemon.start().expect("started");
    bind_laptop(&testbed);
    let load = Load::start(&testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(testbed.network.exit_a.address(ipv6), SOON).expect("load through exit A");
    }
    let daemon = testbed.daemon.pid().expect("the daemon runs");
    manager.set_read_timeout(Some(WATCHDOG)).expect("time-out");
    // One thread at a time polls the kernel for all others. Any other hung thread blocks its own task only.
    let is_silent = || {
        manager.set_nonblocking(true).expect("drained");
        while manager.recv(&mut [0; 4096]).is_ok() {}
        manager.set_nonblocking(false).expect("drained");
        manager.recv(&mut [0; 4096]).is_err()
    };
    let hung = wait_ok(Duration::from_secs(60), "a thread without which the watchdog is not fed", || {
        for thread in runtime_threads(daemon) {
            let stopped = StoppedThread::stop(thread)?;
            if is_silent() {
                return Ok(stopped);
            }
        }
        anyhow::bail!("the watchdog is fed whichever thread is stopped")
    })
    .expect("the hang is noticed");
    assert!(testbed.daemon.ended().is_none(), "the process itself lives");
    load.run_for(200).expect("load");
    // The service manager ends and restarts the daemon.
    kill(Pid::from_raw(daemon.try_into().expect("a pid")), Signal::SIGKILL).expect("killed");
    drop(hung);
    let ended = wait_for(SOON, "the daemon to end", || testbed.daemon.ended().is_some());
    ended.expect("it ends although a thread was stopped");
    load.run_for(200).expect("load");
    testbed.daemon.start_again().expect("started again");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    load.run_for(200).expect("load");
    load.stop();
    assert_nothing_leaked(&testbed);
}
