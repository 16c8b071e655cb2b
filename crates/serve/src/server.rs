//! Connections: how many, how slow, and how they end.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};
use tower::ServiceExt as _;

use crate::api::Peer;
use crate::service::Service;
use crate::tls::Certificate;

/// Serves until the service stops; then lets connections end what they are at.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
) -> Result<(), String> {
    let tls = certificate.as_ref().map(|certificate| certificate.settings().map(|settings| Arc::new(settings).into()));
    let tls: Option<tokio_rustls::TlsAcceptor> = tls.transpose()?;
    let router = crate::api::router(service.clone());
    let room = Arc::new(tokio::sync::Semaphore::new(service.settings.connections));
    let addresses = Arc::new(Addresses::default());
    let mut stop = service.stop.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(_) => {
                // Without descriptors nothing is accepted until some are closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let permit = room.clone().try_acquire_owned().ok();
        let place = addresses.take(peer.ip(), service.settings.connections_per_address);
        let (Some(permit), Some(place)) = (permit, place) else {
            service.metrics.refused.fetch_add(1, Ordering::Relaxed);
            drop(stream);
            continue;
        };
        let (router, tls, service) = (router.clone(), tls.clone(), service.clone());
        tokio::spawn(async move {
            service.metrics.connections.fetch_add(1, Ordering::Relaxed);
            connection(&service, stream, peer.ip(), tls, router).await;
            service.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop((permit, place));
        });
    }
    drop(listener);
    Ok(())
}

async fn connection(
    service: &Arc<Service>,
    stream: TcpStream,
    peer: IpAddr,
    tls: Option<tokio_rustls::TlsAcceptor>,
    router: axum::Router,
) {
    let _ = stream.set_nodelay(true);
    let patience = service.settings.patience;
    let phase = Arc::new(Phase::default());
    let stream =
        Patient { stream, patience, phase: phase.clone(), writing: Waiting::default(), reading: Waiting::default() };
    match tls {
        None => talk(service, stream, &phase, peer, router).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(patience, tls.accept(stream)).await {
                phase.set(Phase::IDLE);
                talk(service, stream, &phase, peer, router).await;
            }
        }
    }
}

/// The phase of a connection.
#[derive(Debug, Default)]
struct Phase(AtomicU8);

impl Phase {
    /// Nothing was sent since the last answer.
    const IDLE: u8 = 0;
    /// A head has begun.
    const HEAD: u8 = 1;
    /// A request is worked on; whoever reads its body waits for it as long as may be.
    const REQUEST: u8 = 2;

    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Relaxed);
    }

    fn is(&self, phase: u8) -> bool {
        self.0.load(Ordering::Relaxed) == phase
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    service: &Arc<Service>,
    stream: S,
    phase: &Arc<Phase>,
    peer: IpAddr,
    router: axum::Router,
) {
    let (begins, ends) = (phase.clone(), phase.clone());
    let router = router.map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
        begins.set(Phase::REQUEST);
        request.extensions_mut().insert(Peer(peer));
        request.map(axum::body::Body::new)
    });
    let router = router.map_response(move |response: axum::response::Response| {
        ends.set(Phase::IDLE);
        response
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(service.settings.idle).max_buf_size(32 << 10).max_headers(64);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let mut stop = service.stop.subscribe();
    let over = tokio::select! {
        _ = connection.as_mut() => true,
        over = async { stop.wait_for(|stop| *stop).await.is_err() } => over,
    };
    if !over {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// The number of connections of each address.
#[derive(Debug, Default)]
struct Addresses(Mutex<HashMap<IpAddr, usize>>);

/// One of them.
struct Place(Arc<Addresses>, IpAddr);

impl Addresses {
    fn take(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Place> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place(self.clone(), address))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.1);
            }
        }
    }
}

/// A connection whose other side must take what it is sent, and send the rest of a head that it began: after a time without progress either fails.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    phase: Arc<Phase>,
    writing: Waiting,
    reading: Waiting,
}

/// Since when nothing goes on.
#[derive(Default)]
struct Waiting(Option<Pin<Box<Sleep>>>);

impl Waiting {
    /// The outcome, or an error once it has been waited for for too long.
    fn bounded<T>(
        &mut self,
        patience: Duration,
        context: &mut Context<'_>,
        outcome: Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        if outcome.is_ready() {
            self.0 = None;
            return outcome;
        }
        let waiting = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(std::io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Patient {
    fn wrote<T>(&mut self, context: &mut Context<'_>, outcome: Poll<std::io::Result<T>>) -> Poll<std::io::Result<T>> {
        self.writing.bounded(self.patience, context, outcome)
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before && self.phase.is(Phase::IDLE) {
            self.phase.set(Phase::HEAD);
        }
        if self.phase.is(Phase::HEAD) {
            let patience = self.patience;
            return self.reading.bounded(patience, context, outcome);
        }
        self.reading.0 = None;
        outcome
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wrote(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.wrote(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wrote(context, outcome)
    }
}
