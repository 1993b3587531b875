//! A TCP connection with a switch to cut it. A handler cannot close its connection; a fault must.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// The switch of one connection, handed to the handlers of its requests.
#[derive(Clone, Debug)]
pub(super) struct Wire(Arc<AtomicBool>);

impl Wire {
    /// From now on nothing is written to the connection any more.
    pub(super) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Accepts connections that can be cut.
pub(super) struct WireListener(pub(super) TcpListener);

impl Listener for WireListener {
    type Io = WireStream;
    type Addr = (SocketAddr, Wire);

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.0.accept().await {
                Ok((stream, from)) => {
                    let wire = Wire(Arc::new(AtomicBool::new(false)));
                    return (
                        WireStream {
                            stream,
                            wire: wire.clone(),
                        },
                        (from, wire),
                    );
                }
                // Out of file handles, most likely: give others time to close theirs.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok((self.0.local_addr()?, Wire(Arc::new(AtomicBool::new(false)))))
    }
}

impl Connected<IncomingStream<'_, WireListener>> for Wire {
    fn connect_info(stream: IncomingStream<'_, WireListener>) -> Self {
        stream.remote_addr().1.clone()
    }
}

/// A connection that ends as soon as its switch is thrown.
pub(super) struct WireStream {
    stream: TcpStream,
    wire: Wire,
}

impl WireStream {
    fn check(&self) -> io::Result<()> {
        if self.wire.0.load(Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "cut by a sandbox fault",
            ));
        }
        Ok(())
    }
}

impl AsyncRead for WireStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for WireStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Err(error) = self.check() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Err(error) = self.check() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
