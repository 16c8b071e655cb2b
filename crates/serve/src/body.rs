//! Requests by their media types, and answers by what is accepted. A media type decides how a body is read and how an answer is written. JSON is bounded in
//! size, because its tree takes many times the text; large arrays come as bytes (safetensors, raw). `preferred` is RFC 9110's negotiation, weights and
//! specificity included.

use std::path::Path;

use axum::http::{HeaderMap, StatusCode, header};
use cantus::tensor::npy;
use serde::Deserialize;

use crate::problem::Problem;
use crate::work::array::{Array, DTypeName};
use crate::work::{Work, copied};

/// The most JSON: a tree of it takes many times as much memory. What is larger comes as bytes.
pub const MOST_JSON: usize = 8 << 20;

/// The most arrays of a request: an expression has at most as many parts.
pub const MOST_ARRAYS: usize = 1000;

/// `.npy`
pub const NPY: &str = "application/x-npy";
/// Safetensors.
pub const SAFETENSORS: &str = "application/vnd.safetensors";
/// A line of JSON, and bytes.
pub const RAW: &str = "application/octet-stream";
/// Server-sent events.
pub const EVENTS: &str = "text/event-stream";
/// JSON.
pub const JSON: &str = "application/json";

/// The media type of a header, without its parameters.
pub fn essence(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The query of a binary request.
#[derive(Debug, Default, Deserialize)]
struct Query {
    request: Option<String>,
    name: Option<String>,
}

/// The line of JSON before raw bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    request: serde_json::Value,
    arrays: Vec<Given>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    dtype: DTypeName,
    shape: Vec<u32>,
}

/// Reads a request.
///
/// # Errors
/// 400, 413, 415 and 422.
pub fn read(content_type: &str, query: &str, body: &[u8]) -> Result<Work, Problem> {
    let json = |text: &[u8]| {
        if text.len() > MOST_JSON {
            return Err(Problem::too_large(format!(
                "JSON has at most {MOST_JSON} bytes: send arrays as npy or safetensors"
            )));
        }
        Work::from_json(text)
    };
    match essence(content_type).as_str() {
        JSON => json(body),
        NPY => {
            let uri = format!("/?{query}").parse().map_err(|_| Problem::malformed("the query cannot be read"))?;
            let query = axum::extract::Query::<Query>::try_from_uri(&uri);
            let axum::extract::Query(query) = query.map_err(|_| Problem::malformed("the query cannot be read"))?;
            let request = query.request.ok_or_else(|| {
                Problem::malformed("beside an npy body the request is in the query: ?request={\"kind\": …}")
            })?;
            let mut work = json(request.as_bytes())?;
            let name =
                query.name.unwrap_or_else(|| if matches!(work, Work::Expression(_)) { "x" } else { "a" }.to_owned());
            let (name_of_body, length) = (Path::new("the body"), body.len() as u64);
            let array = npy::read_where(body, name_of_body, length, |_| Ok(())).map_err(|error| Problem::of(&error))?;
            work.bind(&name, Array::of_bytes(array.dtype, &array.shape, array.bytes)?)?;
            Ok(work)
        }
        SAFETENSORS => {
            let refused = |error: safetensors::SafeTensorError| {
                Problem::malformed(format!("the body is not safetensors: {error}"))
            };
            // Its header is JSON too, and is parsed below.
            let header = body.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
            if header > MOST_JSON as u64 && header <= body.len() as u64 {
                return Err(Problem::too_large(format!("the header of safetensors has at most {MOST_JSON} bytes")));
            }
            let (header, metadata) = safetensors::SafeTensors::read_metadata(body).map_err(refused)?;
            let request = metadata.metadata().as_ref().and_then(|pairs| pairs.get("request")).ok_or_else(|| {
                Problem::malformed("the metadata of the safetensors has no \"request\" with the request's JSON")
            })?;
            let mut work = json(request.as_bytes())?;
            let data = body.get(8 + header..).unwrap_or_default();
            let tensors = metadata.tensors();
            few(tensors.len())?;
            for (name, info) in tensors {
                let dtype = dtype(info.dtype)
                    .ok_or_else(|| Problem::invalid(format!("tensors of {:?} are not supported", info.dtype)))?;
                let (start, end) = info.data_offsets;
                let own = data.get(start..end).ok_or_else(|| Problem::malformed("the tensors end after the body"))?;
                work.bind(&name, Array::of_bytes(dtype.dtype(), &info.shape, copied(own)?)?)?;
            }
            Ok(work)
        }
        RAW => {
            let end = body.iter().position(|&byte| byte == b'\n');
            let refused = || Problem::malformed("the body is not a line of JSON followed by bytes");
            let (line, mut rest) = body.split_at_checked(end.ok_or_else(refused)? + 1).ok_or_else(refused)?;
            if line.len() > MOST_JSON {
                return Err(Problem::too_large(format!("the line of JSON has at most {MOST_JSON} bytes")));
            }
            let head: Head = serde_json::from_slice(line)
                .map_err(|error| Problem::malformed(format!("the line of JSON: {error}")))?;
            let mut work = json(head.request.to_string().as_bytes())?;
            few(head.arrays.len())?;
            for given in head.arrays {
                let shape: Vec<usize> = given.shape.iter().map(|&side| side as usize).collect();
                let length =
                    shape.iter().try_fold(given.dtype.dtype().bytes(), |product, &side| product.checked_mul(side));
                let short = || Problem::malformed("the bytes end before their arrays do");
                let (own, after) = rest.split_at_checked(length.ok_or_else(short)?).ok_or_else(short)?;
                rest = after;
                work.bind(&given.name, Array::of_bytes(given.dtype.dtype(), &shape, copied(own)?)?)?;
            }
            if !rest.is_empty() {
                return Err(Problem::malformed("there are extra bytes after the last array"));
            }
            Ok(work)
        }
        _ => Err(untaken(format!("name its form as Content-Type: {JSON}, {NPY}, {SAFETENSORS} or {RAW}"))),
    }
}

/// Refuses more arrays than any request has a place for.
fn few(arrays: usize) -> Result<(), Problem> {
    if arrays > MOST_ARRAYS {
        return Err(Problem::invalid(format!("a request has at most {MOST_ARRAYS} arrays")));
    }
    Ok(())
}

/// 415: a body that cannot be read for its form.
pub fn untaken(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", "the body's format is not supported", detail)
}

/// The format's names are the library's in capitals.
fn dtype(theirs: safetensors::Dtype) -> Option<DTypeName> {
    theirs.to_string().to_lowercase().parse().ok().and_then(DTypeName::of)
}

/// Returns the media type of the answer that the caller accepts.
///
/// # Errors
/// 406.
pub fn accepted(headers: &HeaderMap) -> Result<&'static str, Problem> {
    preferred(headers, &[JSON, NPY, SAFETENSORS, RAW]).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            "not-acceptable",
            "the result cannot have this form",
            format!("accept {JSON}, {NPY}, {SAFETENSORS} or {RAW}"),
        )
    })
}

/// The form of those offered that `Accept` weighs most (RFC 9110, 12.5.1), of several alike the one it names first; the first one without `Accept`.
pub fn preferred(headers: &HeaderMap, offered: &[&'static str]) -> Option<&'static str> {
    let ranges: Vec<Range> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|range| !range.trim().is_empty())
        .enumerate()
        .map(|(place, range)| Range::read(place, range))
        .collect();
    if ranges.is_empty() {
        return offered.first().copied();
    }
    let weighed = offered.iter().enumerate().filter_map(|(own, &form)| {
        // The most specific range that takes a form weighs it.
        let range = ranges.iter().filter_map(|range| Some((range.takes(form)?, range))).max_by_key(|(exact, _)| *exact);
        range.map(|(_, range)| (range.weight, std::cmp::Reverse((range.place, own)), form))
    });
    weighed.filter(|(weight, ..)| *weight > 0).max().map(|(.., form)| form)
}

/// One of the ranges of `Accept`.
struct Range {
    place: usize,
    form: String,
    /// The weight in thousandths.
    weight: u32,
}

impl Range {
    fn read(place: usize, text: &str) -> Self {
        let weight = text.split(';').skip(1).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f32>().unwrap_or(0.0))
        });
        let weight = (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0).round() as u32;
        Self { place, form: essence(text), weight }
    }

    /// Returns how exactly it names a form, if it does.
    fn takes(&self, form: &str) -> Option<u8> {
        let kind = form.split_once('/').map_or(form, |(kind, _)| kind);
        match self.form.as_str() {
            named if named == form => Some(2),
            named if named.strip_suffix("/*") == Some(kind) => Some(1),
            "*/*" => Some(0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_weighs_most_is_answered() {
        let form = |accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            accepted(&headers).ok()
        };
        for (accept, expected) in [
            (&[][..], Some(JSON)),
            (&[""], Some(JSON)),
            (&["*/*"], Some(JSON)),
            (&["application/*"], Some(JSON)),
            (&["application/x-npy"], Some(NPY)),
            (&["image/png"], None),
            (&["image/png, application/x-npy"], Some(NPY)),
            (&["application/json;q=0.5, application/x-npy"], Some(NPY)),
            (&["application/json; q=0.5", "application/x-npy; q=0.4"], Some(JSON)),
            (&["application/json;q=0, */*"], Some(NPY)),
            (&["application/json;q=0"], None),
            (&["*/*;q=0.1, application/octet-stream;q=0.2"], Some(RAW)),
            (&["application/octet-stream, application/x-npy"], Some(RAW)),
            (&["application/json, */*"], Some(JSON)),
            (&["APPLICATION/JSON;Q=0.3;v=1"], Some(JSON)),
            (&["application/json;q=nonsense"], None),
        ] {
            assert_eq!(form(accept), expected, "{accept:?}");
        }
    }
}
