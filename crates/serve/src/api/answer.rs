//! Answers in the forms that a caller accepts. Routes that compute end here. The form comes from `Accept` (`body::accepted`). A large result is written
//! piece by piece as it is read from the disk, so memory does not grow with it. A failure after the head was sent ends the connection early, as nothing
//! else can be said.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use utoipa::ToSchema;

use super::Known;
use crate::body::{JSON, NPY, RAW, SAFETENSORS};
use crate::job::Shape;
use crate::keys::Caller;
use crate::problem::Problem;
use crate::service::{Held, Pieces};

/// A result in JSON.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes")]
pub(super) struct Answer<'a> {
    /// The dtype of the elements, or the field or group that they are elements of.
    #[schema(example = "f32")]
    dtype: &'a str,
    /// Lengths of the axes.
    shape: &'a [usize],
    /// The elements, row-major.
    data: Vec<AnswerNumber>,
    /// The device that computed it.
    device: &'a str,
    /// Duration of the dispatch that it was part of, in milliseconds.
    milliseconds: f64,
    /// Requests that were computed in that dispatch.
    batch: usize,
}

/// A result as bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it describes")]
pub(super) struct Binary(Vec<u8>);

/// An element of a result.
pub(super) struct AnswerNumber;

crate::work::described!(AnswerNumber, "A number. Infinities and NaN are their names, a bool is false or true, a complex number is its two parts, and elements of fields and points are hexadecimal digits after 0x.", {
    "anyOf": [
        { "type": "number" },
        { "type": "string" },
        { "type": "boolean" },
        { "type": "array", "items": { "anyOf": [{ "type": "number" }, { "type": "string" }] }, "minItems": 2, "maxItems": 2 },
    ]
});

/// Bytes of text that are written at once.
const PIECE: usize = 1 << 16;

/// Answers with a result.
///
/// # Errors
/// 406 for what the form cannot hold.
pub(super) fn answer(
    form: &'static str,
    shape: Shape,
    elements: Held,
    devices: &[String],
    milliseconds: f64,
    batch: usize,
) -> Result<Response, Problem> {
    let device = devices.last().map_or("", String::as_str);
    let mut written = Written::new(form, shape, elements, device, milliseconds, batch)?;
    // What is small goes with its length, in one write.
    let body = if written.elements.len() <= PIECE && written.rest.is_none() {
        Body::from(std::iter::from_fn(|| written.next()).collect::<Vec<_>>().concat())
    } else {
        Body::new(written)
    };
    let mut response = ([(header::CONTENT_TYPE, form)], body).into_response();
    if let Ok(value) = HeaderValue::from_str(device) {
        response.headers_mut().insert(HeaderName::from_static("cantus-device"), value);
    }
    response.headers_mut().insert(HeaderName::from_static("cantus-batch"), HeaderValue::from(batch));
    Ok(response)
}

/// An answer that is being written.
struct Written {
    form: &'static str,
    shape: Shape,
    /// The bytes before the elements, until they are written.
    head: Bytes,
    /// Those that are in memory and not written yet.
    elements: Bytes,
    /// Those behind them, on the disk.
    rest: Option<Pieces>,
    /// The bytes behind them.
    tail: Bytes,
    /// Some elements are written.
    begun: bool,
}

impl Written {
    fn new(
        form: &'static str,
        shape: Shape,
        elements: Held,
        device: &str,
        milliseconds: f64,
        batch: usize,
    ) -> Result<Self, Problem> {
        let (head, tail) = match form {
            NPY => (shape.npy()?, Vec::new()),
            SAFETENSORS => (shape.safetensors()?, Vec::new()),
            RAW => (shape.raw(), Vec::new()),
            _ => {
                let Shape { dtype, shape, .. } = &shape;
                let (dtype, device) = (serde_json::json!(dtype), serde_json::json!(device));
                let head = format!("{{\"dtype\":{dtype},\"shape\":{},\"data\":[", serde_json::json!(shape));
                let milliseconds = serde_json::json!(milliseconds);
                let tail = format!("],\"device\":{device},\"milliseconds\":{milliseconds},\"batch\":{batch}}}");
                (head.into_bytes(), tail.into_bytes())
            }
        };
        let Held { first: elements, rest } = elements;
        Ok(Self { form, shape, head: head.into(), elements, rest, tail: tail.into(), begun: false })
    }

    /// The next piece of what is in memory.
    fn next(&mut self) -> Option<Bytes> {
        if !self.head.is_empty() {
            return Some(std::mem::take(&mut self.head));
        }
        if self.elements.is_empty() {
            return Some(std::mem::take(&mut self.tail)).filter(|tail| !tail.is_empty());
        }
        if self.form != JSON {
            return Some(self.elements.split_to(PIECE.min(self.elements.len())));
        }
        let piece = self.elements.split_to(self.shape.within(PIECE).min(self.elements.len()));
        let mut text = if self.begun { vec![b','] } else { Vec::new() };
        // Its dtype was checked when it was computed.
        text.extend(self.shape.json(&piece).unwrap_or_default());
        self.begun = true;
        Some(text.into())
    }
}

impl hyper::body::Body for Written {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.head.is_empty()
            && self.elements.is_empty()
            && let Some(rest) = &mut self.rest
        {
            match ready!(rest.poll(context)) {
                Some(Ok(piece)) => self.elements = piece,
                // The connection ends early: what was sent so far is no result.
                Some(Err(problem)) => return Poll::Ready(Some(Err(std::io::Error::other(problem.detail)))),
                None => self.rest = None,
            }
        }
        Poll::Ready(self.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.head.is_empty() && self.elements.is_empty() && self.left() == 0 && self.tail.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.form == JSON {
            return SizeHint::default();
        }
        SizeHint::with_exact((self.head.len() + self.elements.len()) as u64 + self.left())
    }
}

impl Written {
    /// Bytes of the elements that are on the disk.
    fn left(&self) -> u64 {
        self.rest.as_ref().map_or(0, Pieces::left)
    }
}

pub(super) fn known(response: impl IntoResponse, caller: Arc<Caller>) -> Response {
    let mut response = response.into_response();
    response.extensions_mut().insert(Known(caller));
    response
}

pub(super) fn json(value: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(value).map_err(|_| Problem::internal())?;
    Ok(([(header::CONTENT_TYPE, JSON)], body).into_response())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test takes little")]
mod tests {
    use super::*;

    fn pieces(form: &'static str, dtype: &str, hex: Option<usize>, bytes: Vec<u8>, shape: Vec<usize>) -> Vec<Bytes> {
        let shape = Shape { dtype: dtype.to_owned(), shape, hex };
        let elements = Held { first: bytes.into(), rest: None };
        let mut written = Written::new(form, shape, elements, "a \"device\"", 1.5, 3).unwrap();
        std::iter::from_fn(|| written.next()).collect()
    }

    #[test]
    fn pieces_make_the_whole_and_none_is_large() {
        let numbers: Vec<f64> = (0..40_000).map(|number| f64::from(number) * -1.234_567_890_123_456_7e-200).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let written = pieces(JSON, "f64", None, bytes.clone(), vec![200, 200]);
        assert!(written.len() > 20 && written.iter().all(|piece| piece.len() <= PIECE));
        let expected = serde_json::json!({"dtype": "f64", "shape": [200, 200], "data": numbers, "device": "a \"device\"", "milliseconds": 1.5, "batch": 3});
        assert_eq!(String::from_utf8(written.concat()).unwrap(), expected.to_string());
        for form in [NPY, SAFETENSORS, RAW] {
            let written = pieces(form, "f64", None, bytes.clone(), vec![200, 200]);
            assert!(written.iter().all(|piece| piece.len() <= PIECE) && written.concat().ends_with(&bytes), "{form}");
        }
        let file = pieces(SAFETENSORS, "f64", None, bytes.clone(), vec![200, 200]).concat();
        let read = safetensors::SafeTensors::deserialize(&file).unwrap();
        let tensor = read.tensor("result").unwrap();
        assert_eq!(
            (tensor.shape(), tensor.dtype(), tensor.data() == bytes),
            (&[200, 200][..], safetensors::Dtype::F64, true)
        );
        let file = pieces(NPY, "f64", None, bytes.clone(), vec![200, 200]).concat();
        let array = cantus::tensor::npy::read_from(&file[..], "it").unwrap();
        assert_eq!((array.shape, array.bytes == bytes), (vec![200, 200], true));
        // Points, whose texts are long.
        let written = pieces(JSON, "bls12381-g2", Some(192), vec![7; 192 * 1000], vec![1000]);
        assert!(written.len() > 5 && written.iter().all(|piece| piece.len() <= PIECE));
        let read: serde_json::Value = serde_json::from_slice(&written.concat()).unwrap();
        assert!(read["data"].as_array().unwrap().iter().all(|point| point == &format!("0x{}", "07".repeat(192))));
        // Nothing at all.
        let read: serde_json::Value =
            serde_json::from_slice(&pieces(JSON, "u8", None, Vec::new(), vec![0]).concat()).unwrap();
        assert_eq!(read["data"], serde_json::json!([]));
    }
}
