//! A round-robin load balancer for TCP connections.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A running load balancer. It runs until the test process exits.
pub(crate) struct Balancer {
    pub(crate) address: String,
}

impl Balancer {
    pub(crate) fn start(servers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (servers, counter) = (Arc::new(servers), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (servers, counter) = (Arc::clone(&servers), Arc::clone(&counter));
                thread::spawn(move || {
                    let first = counter.fetch_add(1, Ordering::Relaxed);
                    let order =
                        (0..servers.len()).map(|step| &servers[(first + step) % servers.len()]);
                    // A server that is down accepts no connections.
                    let server = order.map(TcpStream::connect).find_map(Result::ok);
                    if let Some(server) = server {
                        forward(&client, &server);
                    }
                });
            }
        });
        Self { address }
    }
}

/// Copies bytes in both directions until the server closes the connection.
fn forward(client: &TcpStream, server: &TcpStream) {
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
