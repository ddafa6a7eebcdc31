//! Debian's relay from the Alertmanager to IRC, which takes its webhooks, with an IRC server behind it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use gateway_tests::process::Process;
use gateway_tests::wait::{deadline_factor, wait_ok};
use serde_json::json;

use super::SOON;
use super::testbed::Testbed;

/// Serves one client: welcomes it, lets it join, and passes on what it says.
fn serve(stream: TcpStream, said: &Sender<String>) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut nickname = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match verb {
            "NICK" => rest.trim_start_matches(':').clone_into(&mut nickname),
            "USER" => write!(writer, ":irc.example 001 {nickname} :Welcome\r\n")?,
            // A key may follow the channel, also an empty one.
            "JOIN" => {
                let channel = rest.split_whitespace().next().unwrap_or_default().trim_start_matches(':');
                write!(writer, ":{nickname}!gw@irc.example JOIN :{channel}\r\n")?;
            }
            "PING" => write!(writer, ":irc.example PONG irc.example {rest}\r\n")?,
            "PRIVMSG" | "NOTICE" => drop(said.send(rest.to_owned())),
            _ => {}
        }
    }
    Ok(())
}

struct Relay {
    port: u16,
    said: Receiver<String>,
    _folder: tempfile::TempDir,
    _process: Process,
}

impl Relay {
    fn start() -> Relay {
        let irc = TcpListener::bind("127.0.0.1:0").expect("a port");
        let irc_port = irc.local_addr().expect("an address").port();
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for stream in irc.incoming().flatten() {
                let sender = sender.clone();
                // A client that leaves is no error.
                std::thread::spawn(move || drop(serve(stream, &sender)));
            }
        });
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let folder = tempfile::tempdir().expect("a folder");
        let config = json!({"http_host": "127.0.0.1", "http_port": port, "irc_host": "127.0.0.1", "irc_port": irc_port,
            "irc_nickname": "relay", "irc_realname": "relay", "irc_use_ssl": false, "use_privmsg": true,
            "irc_channels": [{"name": "#gateway"}],
            "msg_template": "{{ .Status }} {{ .Labels.alertname }} {{ .Labels.instance }}: {{ .Annotations.summary }}"});
        let file = folder.path().join("relay.yml");
        fs::write(&file, config.to_string()).expect("a file");
        let mut command = Command::new("alertmanager-irc-relay");
        command.arg("--config").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).expect("a relay");
        wait_ok(SOON, "the relay", || Ok(TcpStream::connect(("127.0.0.1", port))?)).expect("it listens");
        Relay { port, said, _folder: folder, _process: process }
    }

    /// Returns the next message to a channel. The relay also talks to the services of its network.
    fn next(&self) -> String {
        loop {
            let said = self.said.recv_timeout(SOON.mul_f64(deadline_factor())).expect("a message on IRC");
            if said.starts_with('#') {
                return said;
            }
        }
    }
}

#[test]
fn relay_says_what_begins_and_what_ends() {
    let relay = Relay::start();
    let testbed = Testbed::new();
    testbed.configure(&format!("http://127.0.0.1:{}/gateway", relay.port), json!({"format": "alertmanager"}));
    testbed.raise("berlin");
    assert_eq!(relay.next(), "#gateway :firing tunnel_down berlin: Tunnel down: berlin");
    testbed.resolve("berlin");
    assert_eq!(relay.next(), "#gateway :resolved tunnel_down berlin: Tunnel down: berlin");
}
