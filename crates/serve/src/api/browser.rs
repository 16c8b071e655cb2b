//! Requests from pages in browsers. A page of any site may send requests to this machine, so a request that a browser made for another site is
//! refused unless `--allow-origin` names that site; and an open service, which asks nobody for a key, answers under this machine's own names
//! alone: a foreign name that was made to point here (DNS rebinding) would make a page of that site count as the service's own.

use axum::extract::Request;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, Method, StatusCode, Version};

use crate::problem::Problem;
use crate::settings::Settings;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Refuses what a browser was made to send.
///
/// # Errors
/// 400 without exactly one `Host`, 421 for a foreign one, 403 for a page of another origin.
pub(super) fn check(settings: &Settings, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let host = host(request)?;
    if settings.open && host.is_some_and(|host| !is_own(settings, host)) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "the service is not known by this name",
            "without keys it only answers as localhost, 127.0.0.1 or [::1]",
        ));
    }
    if is_allowed(settings, headers) {
        return Ok(());
    }
    let origin = one(headers, &header::ORIGIN)?;
    // `Origin: null` and schemes without an authority are of no host.
    let own_page = origin.is_none_or(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
    });
    let own_site = match one(headers, &SEC_FETCH_SITE)? {
        // Programs that are no browsers do not send it.
        None | Some("same-origin" | "none") => true,
        // A link that somebody follows shows a page, which no site can read.
        Some(_) => {
            matches!(*request.method(), Method::GET | Method::HEAD)
                && one(headers, &SEC_FETCH_MODE)? == Some("navigate")
                && one(headers, &SEC_FETCH_DEST)? == Some("document")
        }
    };
    if own_page && own_site {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "origin",
        "pages of this origin may not call the service",
        "the operator lists the allowed origins with --allow-origin",
    ))
}

/// Returns whether the request is of an origin that `--allow-origin` names.
pub(super) fn is_allowed(settings: &Settings, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let named = |origin: &[u8]| settings.origins.iter().any(|known| known.as_bytes() == origin);
    origins.next().is_some_and(|origin| named(origin.as_bytes())) && origins.next().is_none()
}

/// The one value of a header that may not be there twice.
///
/// # Errors
/// 400 for several, or for one that is no text.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(Problem::malformed(format!("the request has several headers {name}")));
    }
    let value = value.map(|value| value.to_str());
    value.transpose().map_err(|_| Problem::malformed(format!("the header {name} is not text")))
}

/// The host that is asked, with its port: HTTP/1.0 may name none.
fn host(request: &Request) -> Result<Option<&str>, Problem> {
    let named = one(request.headers(), &header::HOST)?;
    if named.is_none() && request.version() >= Version::HTTP_11 {
        return Err(Problem::malformed("the request has no header host"));
    }
    // RFC 9112, 3.2.2: the host of an absolute address is the one that counts.
    Ok(request.uri().authority().map(axum::http::uri::Authority::as_str).or(named))
}

/// Returns whether the name is one of the machine that the service listens on. The port may be another one: a tunnel's, or a container's.
fn is_own(settings: &Settings, host: &str) -> bool {
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else { return false };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    !host.contains('@')
        && (name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback() || address == settings.listen.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str]) -> Settings {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            settings: Settings,
        }
        let arguments = ["serve"].iter().chain(arguments);
        <Command as clap::Parser>::parse_from(arguments).settings
    }

    fn status(settings: &Settings, method: Method, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri("/v1/jobs");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(axum::body::Body::empty()).unwrap();
        check(settings, &request).map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn an_open_service_answers_under_its_own_names() {
        let open = settings(&["--open"]);
        let hosts = ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:9", "127.8.8.8:80", "[::1]", "[::1]:8080"];
        for host in hosts {
            assert_eq!(status(&open, Method::GET, &[("host", host)]), 200, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "x", "10.0.0.1", "a@localhost", "localhost@evil.example", ""]
        {
            assert_eq!(status(&open, Method::GET, &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&open, Method::GET, &[("host", "localhost"), ("host", "localhost")]), 400);
        assert_eq!(status(&open, Method::GET, &[]), 400);
        // With keys a proxy may give it any name.
        assert_eq!(status(&settings(&[]), Method::GET, &[("host", "cantus.example")]), 200);
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        for kept in [
            settings(&["--open", "--allow-origin", "https://own.example"]),
            settings(&["--allow-origin", "https://own.example"]),
        ] {
            let host = ("host", "localhost:8080");
            let site = |site| ("sec-fetch-site", site);
            for method in [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS] {
                let asked = |more: &[(&str, &str)]| status(&kept, method.clone(), &[&[host], more].concat());
                assert_eq!(asked(&[]), 200);
                assert_eq!(asked(&[("origin", "http://localhost:8080"), site("same-origin")]), 200);
                assert_eq!(asked(&[("origin", "https://own.example"), site("cross-site")]), 200);
                for origin in ["https://evil.example", "null", "http://localhost:9000", "https://own.example.evil", ""]
                {
                    assert_eq!(asked(&[("origin", origin)]), 403, "{origin}");
                    assert_eq!(asked(&[("origin", origin), site("cross-site")]), 403, "{origin}");
                }
                assert_eq!(asked(&[("origin", "https://own.example"), ("origin", "https://own.example")]), 400);
                for other in ["cross-site", "same-site", "anything"] {
                    assert_eq!(asked(&[site(other)]), 403);
                }
                let link = [site("cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
                assert_eq!(asked(&link), if method == Method::GET { 200 } else { 403 });
                let frame = [site("cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
                assert_eq!(asked(&frame), 403);
            }
        }
    }
}
