//! A load balancer: each connection goes to the next server that takes it.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A running balancer; it ends with the test's process.
pub(crate) struct Balancer {
    pub(crate) address: String,
}

impl Balancer {
    pub(crate) fn start(servers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (servers, turn) = (Arc::new(servers), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (servers, turn) = (Arc::clone(&servers), Arc::clone(&turn));
                thread::spawn(move || {
                    let first = turn.fetch_add(1, Ordering::Relaxed);
                    let order =
                        (0..servers.len()).map(|step| &servers[(first + step) % servers.len()]);
                    // One that is gone takes no connections.
                    let server = order.map(TcpStream::connect).find_map(Result::ok);
                    if let Some(server) = server {
                        connect(&client, &server);
                    }
                });
            }
        });
        Self { address }
    }
}

/// Carries bytes in both directions until the server has said everything.
fn connect(client: &TcpStream, server: &TcpStream) {
    let (mut from_client, mut to_server) = (client, server.try_clone().expect("a socket"));
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Write);
        });
        let (mut from_server, mut to_client) = (server, client);
        let _ = copy(&mut from_server, &mut to_client);
        let _ = client.shutdown(Shutdown::Both);
    });
}
