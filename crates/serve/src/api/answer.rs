//! Answers in the forms that a caller accepts.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::Known;
use crate::body::{JSON, NPY, RAW, SAFETENSORS};
use crate::keys::Caller;
use crate::problem::Problem;
use crate::work::array::{Output, Shown};

/// A result in JSON.
#[derive(Serialize, ToSchema)]
pub(super) struct Answer<'a> {
    /// The dtype of the elements, or the field or group that they are elements of.
    #[schema(example = "f32")]
    dtype: &'a str,
    /// Lengths of the axes.
    shape: &'a [usize],
    /// The elements, row-major.
    #[schema(value_type = Vec<AnswerNumber>)]
    data: Shown<'a>,
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

/// The most bytes of a result that is written where other requests wait for it.
const LARGE: usize = 1 << 16;

pub(super) async fn answer(
    form: &'static str,
    output: Output,
    devices: &[String],
    milliseconds: f64,
    batch: usize,
) -> Result<Response, Problem> {
    let device = devices.last().map_or("", String::as_str);
    let body = if output.bytes.len() <= LARGE {
        written(form, &output, device, milliseconds, batch)?
    } else {
        let device = device.to_owned();
        let writing = crate::priority::blocking(move || written(form, &output, &device, milliseconds, batch));
        writing.await.unwrap_or_else(|_| Err(Problem::internal()))?
    };
    let mut response = ([(header::CONTENT_TYPE, form)], body).into_response();
    if let Ok(value) = HeaderValue::from_str(device) {
        response.headers_mut().insert(HeaderName::from_static("cantus-device"), value);
    }
    response.headers_mut().insert(HeaderName::from_static("cantus-batch"), HeaderValue::from(batch));
    Ok(response)
}

fn written(
    form: &'static str,
    output: &Output,
    device: &str,
    milliseconds: f64,
    batch: usize,
) -> Result<Vec<u8>, Problem> {
    Ok(match form {
        NPY => output.npy()?,
        SAFETENSORS => output.safetensors()?,
        RAW => output.raw(),
        _ => {
            let Output { shape, .. } = output;
            let written =
                Answer { dtype: &shape.dtype, shape: &shape.shape, data: Shown(output), device, milliseconds, batch };
            serde_json::to_vec(&written).map_err(|_| Problem::internal())?
        }
    })
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
