//! TCP connections that a fault can cut; axum handlers have no other access to their connection.

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

/// Cuts a connection. The handlers of its requests receive it as connect info.
#[derive(Clone, Debug, Default)]
pub(super) struct CutHandle(Arc<AtomicBool>);

impl CutHandle {
    /// Makes all further writes fail.
    pub(super) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Accepts connections that can be cut.
pub(super) struct CuttableListener(pub(super) TcpListener);

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = (SocketAddr, CutHandle);

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.0.accept().await {
                Ok((stream, from)) => {
                    let handle = CutHandle::default();
                    let stream = CuttableStream {
                        stream,
                        handle: handle.clone(),
                    };
                    return (stream, (from, handle));
                }
                // Most likely there are no file descriptors left: wait until some are closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok((self.0.local_addr()?, CutHandle::default()))
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for CutHandle {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.remote_addr().1.clone()
    }
}

/// A connection whose writes fail after [`CutHandle::cut`].
pub(super) struct CuttableStream {
    stream: TcpStream,
    handle: CutHandle,
}

impl CuttableStream {
    fn ensure_open(&self) -> io::Result<()> {
        if self.handle.0.load(Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "cut by a sandbox fault",
            ));
        }
        Ok(())
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Err(error) = self.ensure_open() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Err(error) = self.ensure_open() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
