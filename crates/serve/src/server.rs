//! Connections: how many, how slow, and how they end. `serve` accepts connections and bounds them: how many in all and for each address, how slowly a head,
//! a body or an answer may move. IPv6 addresses count by their /64. A stop lets each connection end what it is at.

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
use crate::share::Bound;
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
    let (most, each) = (service.settings.connections, service.settings.connections_per_address);
    let addresses = Arc::new(Addresses::new(most, each));
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
        let place = addresses.take(peer.ip());
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
    let stream = Patient {
        stream,
        patience,
        phase: phase.clone(),
        writing: Waiting::default(),
        reading: Waiting::default(),
        pace: Pace::default(),
    };
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

/// The connections of each address. An address has at most `each`, and at most half of what it holds plus what is free, so that the next one finds room.
#[derive(Debug)]
struct Addresses {
    bound: Bound,
    each: usize,
    held: Mutex<HashMap<IpAddr, usize>>,
}

/// One of them.
struct Place(Arc<Addresses>, IpAddr);

impl Addresses {
    fn new(most: usize, each: usize) -> Self {
        Self { bound: Bound { most: most as u64, share: 50 }, each, held: Mutex::default() }
    }

    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network(address);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = held.values().sum::<usize>() as u64;
        let count = held.entry(address).or_default();
        if *count >= self.each || self.bound.admits(whole, *count as u64, 1).is_err() {
            if *count == 0 {
                held.remove(&address);
            }
            return None;
        }
        *count += 1;
        Some(Place(self.clone(), address))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.1);
            }
        }
    }
}

/// The address that counts: of IPv6 the network, because a machine has all of a /64's addresses.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

/// A connection whose other side must take what it is sent, and send the rest of a head that it began: after a time without progress either fails.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    phase: Arc<Phase>,
    writing: Waiting,
    reading: Waiting,
    pace: Pace,
}

/// Bytes per second that a client sends or reads at least, once it has used up its patience.
pub const SLOWEST: f64 = 16_384.0;

/// How fast an answer is read.
#[derive(Default)]
struct Pace {
    written: u64,
    /// The time for which its reader was waited for.
    waited: Duration,
    since: Option<Instant>,
}

impl Pace {
    /// Counts what was written; returns whether its reader is too slow.
    fn is_slow(&mut self, wrote: Poll<u64>, now: Instant, patience: Duration) -> bool {
        match wrote {
            Poll::Pending => drop(self.since.get_or_insert(now)),
            Poll::Ready(bytes) => {
                self.written += bytes;
                self.waited += self.since.take().map_or(Duration::ZERO, |since| now - since);
            }
        }
        self.waited.as_secs_f64() > patience.as_secs_f64() + self.written as f64 / SLOWEST
    }
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

    /// The outcome of writing bytes, or an error for a reader that takes them too slowly.
    fn sent(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<std::io::Result<usize>>,
    ) -> Poll<std::io::Result<usize>> {
        let bytes = match &outcome {
            Poll::Pending => Poll::Pending,
            Poll::Ready(sent) => Poll::Ready(sent.as_ref().map_or(0, |&bytes| bytes as u64)),
        };
        if self.pace.is_slow(bytes, Instant::now(), self.patience) {
            return Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()));
        }
        self.wrote(context, outcome)
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
            self.pace = Pace::default();
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
        self.sent(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.sent(context, outcome)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_a_least_rate() {
        let (patience, begun) = (Duration::from_secs(10), Instant::now());
        // Seconds until a reader that takes so much each second is given up; it is waited for all the time.
        let given_up = |each: u64| {
            let mut pace = Pace::default();
            (1..=1000_u32).find(|&second| {
                let at = |seconds| begun + Duration::from_secs(seconds);
                pace.is_slow(Poll::Pending, at(u64::from(second) - 1), patience)
                    || pace.is_slow(Poll::Ready(each), at(second.into()), patience)
            })
        };
        assert_eq!([0, 8192, 16_384, 20_000].map(given_up), [Some(11), Some(21), None, None]);
        // What goes out at once is no wait.
        let mut pace = Pace::default();
        assert!((0..1000).all(|second| !pace.is_slow(Poll::Ready(1), begun + Duration::from_secs(second), patience)));
    }

    #[test]
    fn an_address_has_half_of_what_is_free_and_its_own() {
        let addresses = Arc::new(Addresses::new(960, 1024));
        let take = |address: &str| addresses.take(address.parse().unwrap());
        let first: Vec<_> = std::iter::from_fn(|| take("10.0.0.1")).collect();
        assert_eq!(first.len(), 480);
        let second: Vec<_> = std::iter::from_fn(|| take("10.0.0.2")).collect();
        assert_eq!(second.len(), 240);
        drop((first, second));
        // A network of IPv6 is one machine's, and an IPv4 address is one in either form.
        let mixed: Vec<_> = (0..2000).filter_map(|host| take(&format!("2001:db8::{host:x}"))).collect();
        assert_eq!(mixed.len(), 480);
        assert!(take("2001:db8:0:1::1").is_some());
        drop(mixed);
        let plain: Vec<_> = std::iter::from_fn(|| take("10.0.0.1")).collect();
        assert!(take("::ffff:10.0.0.1").is_none());
        drop(plain);
        assert!(addresses.held.lock().unwrap().is_empty());
        let few = Arc::new(Addresses::new(960, 7));
        let own: Vec<_> = std::iter::from_fn(|| few.take("10.0.0.1".parse().unwrap())).collect();
        assert_eq!(own.len(), 7);
    }
}
