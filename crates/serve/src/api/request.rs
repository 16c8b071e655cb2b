//! A request: who makes it, its body, and the work that it asks for. `api` reads every body here, before any work is queued. Bodies count in memory from
//! their first byte, each key's against its share, and a slow sender is ended. Parsing large bodies is work too: it takes the key's turn.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;

use super::Peer;
use super::browser::one;
use crate::body;
use crate::keys::Caller;
use crate::priority::blocking;
use crate::problem::Problem;
use crate::server::{SLOWEST, network};
use crate::service::Service;
use crate::settings::Scope;
use crate::share::{Part, Short};
use crate::turns::Turns;
use crate::work::Work;

/// Returns the caller, if the request may call at all.
pub(super) async fn caller(service: &Service, headers: &HeaderMap, peer: Peer) -> Result<Arc<Caller>, Problem> {
    let caller = match &service.keys {
        None => service.anybody.clone(),
        Some(keys) => match keys.known(headers)? {
            Ok(caller) => caller,
            Err(text) => {
                // An address has few guesses. A right key does not count as a guess, whatever others of its address do.
                let address = format!("tries {}", network(peer.0));
                let wait = |seconds| Problem::busy("too many keys were tried from this address", seconds);
                keys.verify(text, || service.rates.take(&address, 0.2, 10.0).map_err(wait)).await?
            }
        },
    };
    let rate = f64::from(caller.rate.unwrap_or(service.settings.rate).max(1));
    let slow = |seconds| Problem::busy("more requests per second than the key may make", seconds);
    service.rates.take(&format!("key {}", caller.id), rate, rate).map_err(slow)?;
    Ok(caller)
}

/// Reads a body: so large, and not slower than so. It counts as long as its part is held.
async fn whole(service: &Service, headers: &HeaderMap, owner: &Arc<str>, body: Body) -> Result<(Bytes, Part), Problem> {
    let most = service.settings.body;
    let large = || Problem::too_large(format!("a body has at most {most} bytes here"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(large());
    }
    let slow =
        || Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body came too slowly", "send it without pauses");
    let (begun, patience) = (Instant::now(), service.settings.patience);
    let (mut body, mut bytes, mut held) = (body, Vec::new(), Part::new(&service.bodies, owner));
    loop {
        let frame = tokio::time::timeout(patience, body.frame()).await.map_err(|_| slow())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| Problem::malformed("the body ended early"))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() as u64 + data.len() as u64 > most {
            return Err(large());
        }
        // All bodies together take no more memory than the queue may, and each key's a share of it.
        held.grow(data.len() as u64).map_err(|short| {
            let whose = if short == Short::Own { "this key sends" } else { "there are" };
            Problem::busy(format!("{whose} too many bytes at once"), 1)
        })?;
        // By an eighth, not by twice: what it takes is what was counted.
        if bytes.capacity() - bytes.len() < data.len() {
            let more = bytes.try_reserve_exact(data.len().max(bytes.len() / 8));
            more.map_err(|_| Problem::no_memory())?;
        }
        bytes.extend_from_slice(&data);
        let longest = patience.as_secs_f64() + bytes.len() as f64 / SLOWEST;
        if begun.elapsed().as_secs_f64() > longest {
            return Err(slow());
        }
    }
    Ok((bytes.into(), held))
}

/// A request that was read and checked.
pub(super) struct Read {
    pub caller: Arc<Caller>,
    pub work: Work,
    pub content_type: String,
    pub query: String,
    pub bytes: Bytes,
    /// The body's part of the bytes that bodies may take, until the queue has room for it.
    pub held: Part,
    /// Seconds that it took to parse it, which count to the key.
    pub spent: f64,
}

pub(super) async fn read(
    service: &Arc<Service>,
    headers: &HeaderMap,
    peer: Peer,
    query: Option<String>,
    body: Body,
) -> Result<Read, Problem> {
    let caller = caller(service, headers, peer).await?;
    // Without a type it is no JSON: a page of any site may send a body without one, and needs nobody's leave for it.
    let content_type = one(headers, &header::CONTENT_TYPE)?.unwrap_or_default().to_owned();
    if one(headers, &header::CONTENT_ENCODING)?.is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(body::untaken("content codings are not supported: send the body uncompressed"));
    }
    let query = query.unwrap_or_default();
    let owner = Arc::<str>::from(caller.id.as_str());
    let (bytes, held) = whole(service, headers, &owner, body).await?;
    let parse = {
        let (content_type, query, bytes) = (content_type.clone(), query.clone(), bytes.clone());
        move || body::read(&content_type, &query, &bytes)
    };
    let (limits, length) = (service.clone(), bytes.len());
    let checked = move || {
        let mut work = parse()?;
        work.check(&limits.limits)?;
        Ok(work)
    };
    let (work, held, spent) = if length <= INLINE {
        (checked()?, held, 0.0)
    } else {
        let (work, held, spent) = aside(&service.parsing, &owner, held, length, checked).await?;
        (work?, held, spent)
    };
    caller.may(if matches!(work, Work::Kernel(_)) { Scope::Kernels } else { Scope::Operations })?;
    Ok(Read { caller, work, content_type, query, bytes, held, spent })
}

/// The length up to which a body is parsed where other requests wait for it.
const INLINE: usize = 64 << 10;

/// Reads and checks what takes a while in the key's turn, where no other request waits for it, and returns the seconds that it took. The body counts,
/// and the turn is taken, until that ends, also where its client goes away before.
async fn aside<T: Send + 'static>(
    turns: &Arc<Turns>,
    owner: &Arc<str>,
    held: Part,
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, Part, f64), Problem> {
    let turn = turns.take(owner, length).await.ok_or_else(Problem::internal)?;
    let working = blocking(move || {
        let done = work();
        (done, held, turn.seconds())
    });
    working.await.map_err(|_| Problem::internal())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::share::{Bound, Shares};

    #[test]
    fn a_body_counts_until_it_is_parsed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (turns, owner) = (Turns::new(1), Arc::<str>::from("a"));
            let shares = Arc::new(Shares::new(Bound { most: 100, share: 100 }));
            let mut part = Part::new(&shares, &owner);
            part.grow(70).unwrap();
            let (go_on, waits) = std::sync::mpsc::channel::<()>();
            let (begun, begins) = tokio::sync::oneshot::channel();
            let parsing = aside(&turns, &owner, part, 1 << 20, move || {
                let _ = begun.send(());
                waits.recv()
            });
            // Its client goes away in the middle.
            tokio::select! {
                _ = parsing => panic!("it cannot have ended"),
                began = begins => began.unwrap(),
            }
            let other = "b".into();
            let another = turns.take(&other, 1 << 20);
            assert!(tokio::time::timeout(Duration::from_millis(50), another).await.is_err(), "two at once");
            assert_eq!(shares.held(), 70);
            go_on.send(()).unwrap();
            assert!(turns.take(&"b".into(), 1 << 20).await.is_some());
            while shares.held() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // While its caller waits, the part goes on to the caller.
            let mut part = Part::new(&shares, &owner);
            part.grow(30).unwrap();
            let (done, part, seconds) = aside(&turns, &owner, part, 1 << 20, || 7).await.unwrap();
            assert!((done, shares.held()) == (7, 30) && seconds >= 0.0);
            drop(part);
        });
    }
}
