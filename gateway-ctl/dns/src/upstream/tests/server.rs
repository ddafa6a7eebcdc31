//! A server that does as configured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

use super::super::message::question_of;

/// Action of a server for a query.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Say(Vec<u8>),
    SayAll(Vec<Vec<u8>>),
    After(Duration, Vec<u8>),
    /// From another port than it came to.
    FromElsewhere(Vec<u8>, Vec<u8>),
    Nothing,
    Close,
    SayAndClose(Vec<u8>),
    /// The beginning of an answer, then the end of the connection.
    Half(Vec<u8>),
}

/// Query as received.
#[derive(Clone, Debug)]
pub(super) struct Came {
    pub over_tcp: bool,
    /// Counts from 0.
    pub number: usize,
    pub message: Vec<u8>,
}

impl Came {
    pub(super) fn has_edns(&self) -> bool {
        self.message[11] == 1
    }

    /// Answered with an address.
    pub(super) fn address(&self, last: u8) -> Vec<u8> {
        answer(&self.message, last)
    }

    /// An answer of this code without records.
    pub(super) fn rcode(&self, rcode: u8) -> Vec<u8> {
        let mut message = self.message[..2].to_vec();
        message.extend_from_slice(&[0x81, 0x80 | rcode, 0, 1, 0, 0, 0, 0, 0, 0]);
        message.extend_from_slice(question_of(&self.message).unwrap());
        message
    }

    pub(super) fn truncated(&self) -> Vec<u8> {
        let mut message = self.rcode(0);
        message[2] |= 2;
        message
    }
}

/// Returns `192.0.2.last` for any query.
pub(super) fn answer(asked: &[u8], last: u8) -> Vec<u8> {
    let mut message = asked[..2].to_vec();
    message.extend_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    message.extend_from_slice(question_of(asked).unwrap());
    message.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02");
    message.push(last);
    message
}

type Script = Arc<dyn Fn(&Came) -> Act + Send + Sync>;

/// Over UDP and TCP at one port, until dropped.
pub(super) struct Server {
    pub at: SocketAddr,
    pub came: Arc<Mutex<Vec<Came>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    pub(super) async fn new(script: impl Fn(&Came) -> Act + Send + Sync + 'static) -> Server {
        loop {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            // Another process may have the same TCP port.
            if let Ok(listener) = TcpListener::bind(socket.local_addr().unwrap()).await {
                return Server::on(socket, listener, script);
            }
        }
    }

    /// At an address where one was before.
    pub(super) async fn again(
        at: SocketAddr,
        script: impl Fn(&Came) -> Act + Send + Sync + 'static,
    ) -> Server {
        // Another process may use the port briefly.
        let binding = async {
            loop {
                if let (Ok(socket), Ok(listener)) = (UdpSocket::bind(at).await, TcpListener::bind(at).await) {
                    break (socket, listener);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let (socket, listener) = tokio::time::timeout(super::LONG, binding).await.unwrap();
        Server::on(socket, listener, script)
    }

    fn on(
        socket: UdpSocket,
        listener: TcpListener,
        script: impl Fn(&Came) -> Act + Send + Sync + 'static,
    ) -> Server {
        let (at, came, script) =
            (socket.local_addr().unwrap(), Arc::<Mutex<Vec<Came>>>::default(), Arc::new(script));
        let tasks = vec![
            tokio::spawn(datagrams(socket, came.clone(), script.clone())),
            tokio::spawn(connections(listener, came.clone(), script)),
        ];
        Server { at, came, tasks }
    }

    pub(super) fn count(&self) -> usize {
        self.came.lock().len()
    }

    pub(super) fn over_tcp(&self) -> usize {
        self.came.lock().iter().filter(|came| came.over_tcp).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn note(came: &Mutex<Vec<Came>>, over_tcp: bool, message: &[u8]) -> Came {
    let mut all = came.lock();
    let one = Came { over_tcp, number: all.len(), message: message.to_vec() };
    all.push(one.clone());
    one
}

async fn datagrams(socket: UdpSocket, came: Arc<Mutex<Vec<Came>>>, script: Script) {
    let socket = Arc::new(socket);
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let one = note(&came, false, &buffer[..length]);
        match script(&one) {
            Act::Say(answer) | Act::SayAndClose(answer) | Act::Half(answer) => {
                drop(socket.send_to(&answer, from).await)
            }
            Act::SayAll(answers) => {
                for answer in answers {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
            Act::After(wait, answer) => {
                let socket = socket.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    let _ = socket.send_to(&answer, from).await;
                });
            }
            Act::FromElsewhere(forged, answer) => {
                let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                other.send_to(&forged, from).await.unwrap();
                let _ = socket.send_to(&answer, from).await;
            }
            Act::Nothing | Act::Close => {}
        }
    }
}

async fn connections(listener: TcpListener, came: Arc<Mutex<Vec<Came>>>, script: Script) {
    let mut open = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        open.spawn(serve(stream, came.clone(), script.clone()));
    }
}

/// Queries of one connection.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    came: Arc<Mutex<Vec<Came>>>,
    script: Script,
) {
    while let Ok(length) = stream.read_u16().await {
        let mut message = vec![0; usize::from(length)];
        if stream.read_exact(&mut message).await.is_err() {
            return;
        }
        let one = note(&came, true, &message);
        let answers = match script(&one) {
            Act::Say(answer) | Act::FromElsewhere(_, answer) => vec![answer],
            Act::SayAll(answers) => answers,
            Act::After(wait, answer) => {
                tokio::time::sleep(wait).await;
                vec![answer]
            }
            Act::Nothing => Vec::new(),
            Act::Close => return,
            Act::SayAndClose(answer) => {
                let _ = stream.write_u16(answer.len() as u16).await;
                let _ = stream.write_all(&answer).await;
                let _ = stream.flush().await;
                // What came meanwhile is read, or the answer would be lost with it.
                let _ = stream.shutdown().await;
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                return;
            }
            Act::Half(answer) => {
                let _ = stream.write_u16(answer.len() as u16).await;
                let _ = stream.write_all(&answer[..answer.len() / 2]).await;
                let _ = stream.flush().await;
                return;
            }
        };
        for answer in answers {
            let _ = stream.write_u16(answer.len() as u16).await;
            let _ = stream.write_all(&answer).await;
        }
        let _ = stream.flush().await;
    }
}
