//! Keys: who calls, and what they may do. A key is `cantus_ID_SECRET`; the file holds the argon2 hash of the secret, and 32 bits of a digest of it.
//! Hashing takes tens of milliseconds. So a guess is refused by those bits without it, however many come, and a right key never waits behind guesses;
//! and a key that was verified is known again by a keyed digest of its text, made with a random key that this process alone has.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use axum::http::{HeaderMap, StatusCode, header};
use blake2::digest::{KeyInit, Mac};
use blake2::{Blake2s256, Blake2sMac256, Digest};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::settings::{KeyAction, Scope};

/// Whoever calls.
#[derive(Debug, PartialEq, Eq)]
pub struct Caller {
    /// The key's id.
    pub id: String,
    /// Its scopes.
    pub scopes: Vec<Scope>,
    /// Its own rate, in requests per second.
    pub rate: Option<u32>,
    /// Time of expiry, in seconds since 1970.
    expires: Option<u64>,
}

impl Caller {
    /// The caller of a service without keys.
    pub fn anybody(scopes: Vec<Scope>) -> Self {
        Self { id: "open".to_owned(), scopes, rate: None, expires: None }
    }

    /// The owner of a job of an earlier process; it may do nothing new.
    pub fn named(id: &str) -> Self {
        Self { id: id.to_owned(), scopes: Vec::new(), rate: None, expires: None }
    }

    /// Refuses what the key's scopes do not include.
    pub fn may(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "scope",
            "the key does not permit this",
            format!("it needs a key with the scope \"{scope}\""),
        ))
    }
}

/// The file of keys.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    key: Vec<Record>,
}

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    id: String,
    name: String,
    scopes: Vec<Scope>,
    hash: String,
    /// Eight hexadecimal digits of the secret's digest; keys of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<u32>,
}

/// The keys of a running service.
#[derive(Debug)]
pub struct Keys {
    path: PathBuf,
    digest_key: [u8; 32],
    held: RwLock<Held>,
    /// Hashing takes memory and time: one at a time, whoever asks.
    hashing: tokio::sync::Semaphore,
    /// The number of requests that may wait for that with a key that may be a guess.
    waiting: tokio::sync::Semaphore,
}

/// A file's state, which tells that it has changed: when it was written, how long it is, and which file it is.
type Mark = (SystemTime, u64, u64);

#[derive(Debug, Default)]
struct Held {
    mark: Option<Mark>,
    records: HashMap<String, Record>,
    /// Callers by the digest of the whole key.
    known: HashMap<[u8; 32], Arc<Caller>>,
}

/// The most keys that may be guesses and wait to be verified.
const WAITING: usize = 64;

fn argon() -> Argon2<'static> {
    // OWASP's least parameters: 19 MiB, two passes. The secrets are random and 256 bits long.
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default())
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes)
}

/// Random hexadecimal digits, twice `N`.
pub fn random_hex<const N: usize>() -> Result<String, String> {
    Ok(random::<N>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the check that rejects a guess without hashing: one of four thousand million passes.
fn check(secret: &str) -> String {
    let digest = Blake2s256::digest(secret.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn hash(secret: &str) -> Result<String, String> {
    let salt = SaltString::encode_b64(&random::<16>()?).map_err(|error| error.to_string())?;
    Ok(argon().hash_password(secret.as_bytes(), &salt).map_err(|error| error.to_string())?.to_string())
}

/// Seconds since 1970: the system's clock at the process's start, and a monotonic clock from then on.
pub fn now() -> u64 {
    static START: std::sync::OnceLock<(u64, std::time::Instant)> = std::sync::OnceLock::new();
    let (then, start) = START.get_or_init(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        (since.map_or(0, |since| since.as_secs()), std::time::Instant::now())
    });
    then + start.elapsed().as_secs()
}

impl Keys {
    /// Opens the file; it must hold a key.
    pub fn open(path: &Path) -> Result<Self, String> {
        let keys = Self {
            path: path.to_owned(),
            digest_key: random()?,
            held: RwLock::default(),
            hashing: tokio::sync::Semaphore::new(1),
            waiting: tokio::sync::Semaphore::new(WAITING),
        };
        keys.reload()?;
        if keys.held.read().unwrap_or_else(PoisonError::into_inner).records.is_empty() {
            return Err(format!(
                "{} holds no key (make one: cantus serve keys add --name NAME; or serve without keys, to this machine alone: --open)",
                path.display()
            ));
        }
        Ok(keys)
    }

    /// Reads the file again if it changed. Where it cannot be read the keys stay as they are.
    pub fn reload(&self) -> Result<bool, String> {
        let mark = mark(&self.path);
        let before = self.held.read().unwrap_or_else(PoisonError::into_inner).mark;
        if mark.is_some() && mark == before {
            return Ok(false);
        }
        if mark.is_none() && before.is_some() {
            return Err(format!("{} is missing; the keys stay in force (revoke them one by one)", self.path.display()));
        }
        let records = read(&self.path)?.key.into_iter().map(|record| (record.id.clone(), record));
        let records: HashMap<String, Record> = records.collect();
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // Who is known stays known, unless the key itself changed.
        let mut known = std::mem::take(&mut held.known);
        known.retain(|_, caller| records.get(&caller.id).is_some_and(|now| held.records.get(&caller.id) == Some(now)));
        *held = Held { mark, records, known };
        Ok(true)
    }

    fn digest(&self, text: &str) -> [u8; 32] {
        let Ok(mac) = <Blake2sMac256 as KeyInit>::new_from_slice(&self.digest_key) else { return [0; 32] };
        mac.chain_update(text.as_bytes()).finalize().into_bytes().into()
    }

    /// Returns the caller whose key the request carries, in `Authorization: Bearer …`, if the key was seen before.
    pub fn known(&self, headers: &HeaderMap) -> Result<Result<Arc<Caller>, String>, Problem> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let first = given.next().ok_or_else(|| unauthorized("send the key as Authorization: Bearer cantus_…"))?;
        if given.next().is_some() {
            return Err(Problem::malformed("the request has several headers authorization"));
        }
        let text = first
            .to_str()
            .ok()
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, key)| key.trim())
            .filter(|key| key.len() <= 200)
            .ok_or_else(|| unauthorized("the header Authorization must be: Bearer cantus_…"))?;
        match self.seen(text) {
            Some(caller) => fresh(caller).map(Ok),
            None => Ok(Err(text.to_owned())),
        }
    }

    /// The caller of a key that was verified before.
    fn seen(&self, text: &str) -> Option<Arc<Caller>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).known.get(&self.digest(text)).cloned()
    }

    /// Verifies a key that was not seen before. `attempt` counts a guess, before anything is hashed for it.
    ///
    /// # Errors
    /// 401, what `attempt` says, and 429 where many keys are verified at once.
    pub async fn verify(
        self: &Arc<Self>,
        text: String,
        attempt: impl FnOnce() -> Result<(), Problem>,
    ) -> Result<Arc<Caller>, Problem> {
        let refused = || unauthorized("the key is not valid");
        let mut parts = text.splitn(3, '_');
        let (id, secret) = match (parts.next(), parts.next(), parts.next()) {
            (Some("cantus"), Some(id), Some(secret)) => (id, secret.to_owned()),
            _ => return attempt().and_then(|()| Err(refused())),
        };
        let record = self.held.read().unwrap_or_else(PoisonError::into_inner).records.get(id).cloned();
        let fits = |record: &Record| record.check.as_ref().is_some_and(|known| *known == check(&secret));
        // A key without those bits is as good as a guess until it is hashed.
        let right = record.as_ref().is_some_and(fits);
        if !right {
            attempt()?;
        }
        let record = record.filter(|record| record.check.is_none() || right).ok_or_else(refused)?;
        let busy = |_| Problem::busy("too many keys are being verified", 1);
        // A right key waits for its turn, however many there are: each is hashed once.
        let _place = if right { None } else { Some(self.waiting.try_acquire().map_err(busy)?) };
        let turn = self.hashing.acquire().await.map_err(|_| Problem::internal())?;
        if let Some(caller) = self.seen(&text) {
            return fresh(caller);
        }
        let expected = record.hash.clone();
        let hashed = move || {
            PasswordHash::new(&expected)
                .is_ok_and(|expected| argon().verify_password(secret.as_bytes(), &expected).is_ok())
        };
        let right = tokio::task::spawn_blocking(hashed).await.unwrap_or(false);
        drop(turn);
        if !right {
            return Err(refused());
        }
        let caller = fresh(Arc::new(Caller {
            id: record.id.clone(),
            scopes: record.scopes,
            rate: record.rate,
            expires: record.expires,
        }))?;
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // It may have been revoked meanwhile.
        if held.records.get(&record.id).is_none_or(|now| now.hash != record.hash) {
            return Err(refused());
        }
        held.known.insert(self.digest(&text), caller.clone());
        Ok(caller)
    }
}

fn fresh(caller: Arc<Caller>) -> Result<Arc<Caller>, Problem> {
    match caller.expires {
        Some(expires) if expires <= now() => Err(unauthorized("the key has expired")),
        _ => Ok(caller),
    }
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "key", "a valid key is needed", detail)
}

fn read(path: &Path) -> Result<File, String> {
    match crate::files::read(path) {
        Ok(bytes) => {
            let text = std::str::from_utf8(&bytes).map_err(|_| format!("{} is not text", path.display()))?;
            toml::from_str(text).map_err(|error| format!("{}: {error}", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(File::default()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

#[expect(clippy::disallowed_methods, reason = "on a thread for looking at files, and at the start")]
fn mark(path: &Path) -> Option<Mark> {
    let found = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let which = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let which = 0;
    Some((found.modified().ok()?, found.len(), which))
}

/// Changes the file; who changes it as well waits meanwhile.
#[expect(clippy::disallowed_methods, reason = "for the command alone, which serves nobody")]
fn change<T>(path: &Path, change: impl FnOnce(&mut File) -> Result<T, String>) -> Result<T, String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // A link stays, and the file that it leads to is changed.
    let real = match std::fs::canonicalize(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !path.is_symlink() => path.to_owned(),
        found => found.map_err(failed)?,
    };
    let _lock = cantus::files::exclusive(&real).map_err(failed)?;
    let mut file = read(&real)?;
    let outcome = change(&mut file)?;
    let text = toml::to_string(&file).map_err(|error| error.to_string())?;
    // A new one is its owner's alone, as all files of the service; one that was there keeps its mode.
    let write = |out: &mut std::fs::File| out.write_all(text.as_bytes()).and_then(|()| out.sync_all());
    cantus::files::write_whole(&real, write).map_err(failed)?;
    Ok(outcome)
}

/// The name of a key's owner, as one argument.
///
/// # Errors
/// In words, for what would be more than a part of a line.
pub fn name(text: &str) -> Result<String, String> {
    if (1..=100).contains(&text.chars().count()) && text.trim() == text && !text.chars().any(hidden) {
        return Ok(text.to_owned());
    }
    Err("a name has 1 to 100 visible characters".to_owned())
}

/// Returns whether a line does not show a character as itself: it controls the terminal, ends the line, or turns its direction.
fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text of the file on one line: it may have been written by another program.
fn shown(text: &str) -> String {
    let escaped = |character: char| -> String {
        if hidden(character) { character.escape_unicode().collect() } else { character.into() }
    };
    text.chars().map(escaped).collect()
}

/// Makes, lists or revokes keys; the text to print.
pub fn manage(action: &KeyAction) -> Result<String, String> {
    match action {
        KeyAction::Add { name, scopes, expires, rate, keys } => {
            let (id, secret) = (random_hex::<6>()?, random_hex::<32>()?);
            let record = Record {
                id: id.clone(),
                name: name.clone(),
                scopes: scopes.clone(),
                hash: hash(&secret)?,
                check: Some(check(&secret)),
                expires: expires.map(|days| now() + u64::from(days) * 86_400),
                rate: *rate,
            };
            change(keys, |file| {
                file.key.push(record);
                Ok(())
            })?;
            Ok(format!("cantus_{id}_{secret}\n"))
        }
        KeyAction::List { keys } => Ok(read(keys)?
            .key
            .iter()
            .map(|record| {
                let scopes: Vec<String> = record.scopes.iter().map(Scope::to_string).collect();
                let expires = match record.expires {
                    None => "never expires".to_owned(),
                    Some(at) if at <= now() => "expired".to_owned(),
                    Some(at) => format!("expires in {} days", (at - now()).div_ceil(86_400)),
                };
                format!("{}  {}  {}  {expires}\n", shown(&record.id), scopes.join(","), shown(&record.name))
            })
            .collect()),
        KeyAction::Revoke { id, keys } => {
            change(keys, |file| {
                let before = file.key.len();
                file.key.retain(|record| record.id != *id);
                if file.key.len() == before { Err(format!("there is no key {id}")) } else { Ok(()) }
            })?;
            Ok(format!("{id} is revoked\n"))
        }
    }
}

/// Rate limits: a bucket of tokens for each key or address, and a bound on how many are remembered.
#[derive(Debug, Default)]
pub struct Rates {
    buckets: Mutex<HashMap<String, (f64, std::time::Instant)>>,
}

impl Rates {
    /// The most that are remembered; then those that are full again are forgotten.
    const MOST: usize = 65_536;

    /// Takes a token of a bucket that fills by `rate` per second and holds `burst`; the seconds to wait where the bucket is empty.
    pub fn take(&self, name: &str, rate: f64, burst: f64) -> Result<(), u32> {
        let now = std::time::Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= Self::MOST && !buckets.contains_key(name) {
            buckets.retain(|_, (left, then)| *left + now.duration_since(*then).as_secs_f64() * rate < burst);
            if buckets.len() >= Self::MOST {
                return Err(1);
            }
        }
        if !buckets.contains_key(name) {
            buckets.insert(name.to_owned(), (burst, now));
        }
        let Some((left, then)) = buckets.get_mut(name) else { return Err(1) };
        *left = (*left + now.duration_since(*then).as_secs_f64() * rate).min(burst);
        *then = now;
        if *left < 1.0 {
            return Err(((1.0 - *left) / rate.max(1e-9)).ceil().clamp(1.0, 3600.0) as u32);
        }
        *left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_visible_line() {
        for right in ["a", "Ada Lovelace", "größe-2 (x)", "分析"] {
            assert_eq!(name(right).as_deref(), Ok(right));
            assert_eq!(shown(right), right);
        }
        for wrong in ["", " a", "a\n0000  administration", "\u{1b}[2J", "a\u{202e}b", "\u{9b}2J", &"x".repeat(101)] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(shown("x\n\u{1b}[2J"), "x\\u{a}\\u{1b}[2J");
    }
}
