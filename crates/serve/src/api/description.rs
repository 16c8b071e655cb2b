//! The description in OpenAPI, and the page of it. `/openapi.json` and `/docs` are made of the same types as the routes read, and tests compare examples
//! with the service. A route that is not listed in `Api` exists and is invisible to clients.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;

use super::answer::AnswerNumber;
use super::{compute, devices, jobs};
use crate::body::JSON;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::work::array::{DTypeName, Number};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cantus",
        description = "A machine's devices as a service: operations on finite fields, curves and tensors, pictures, and kernels of your own. Small requests are answered at once; jobs are queued, kept on disk and survive the end of the service. Problems are answered after RFC 9457.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        compute::compute, jobs::submit, jobs::list, jobs::show, jobs::result, jobs::delete, jobs::events,
        devices::devices, devices::benchmark, devices::monitor, devices::metrics, devices::health, devices::ready
    ),
    components(schemas(Problem, AnswerNumber, Number, DTypeName)),
    tags(
        (name = "compute", description = "What is answered at once."),
        (name = "jobs", description = "What takes longer, or must not be lost."),
        (name = "service", description = "Devices and the service itself."),
    ),
)]
struct Api;

/// The description of the service.
pub fn description() -> serde_json::Value {
    use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
    use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, SecurityRequirement};
    let mut api = Api::openapi();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme("key", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let problem = ResponseBuilder::new()
        .description("A problem")
        .content(MEDIA_TYPE, ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build())
        .build();
    for item in api.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(problem.clone()));
        }
    }
    api.security = Some(vec![SecurityRequirement::new("key", [""; 0])]);
    let mut api = serde_json::to_value(api).unwrap_or_default();
    let events = "/paths/~1v1~1jobs~1{id}~1events/get/responses/200/content/text~1event-stream";
    let measuring = "/paths/~1v1~1benchmark/post/responses/200/content/text~1event-stream";
    let any = serde_json::json!({});
    for (place, value) in
        [("/components/schemas/Node", crate::work::node_schema()), (events, any.clone()), (measuring, any)]
    {
        if let Some(schema) = api.pointer_mut(place) {
            *schema = value;
        }
    }
    for path in ["~1v1~1compute", "~1v1~1jobs"] {
        let place = format!("/paths/{path}/post/requestBody/content/application~1json");
        if let Some(serde_json::Value::Object(content)) = api.pointer_mut(&place) {
            content.insert("examples".to_owned(), examples());
        }
    }
    api
}

/// A request of each kind.
fn examples() -> serde_json::Value {
    let named = |(name, about, value): (&str, &str, serde_json::Value)| {
        (name.to_owned(), serde_json::json!({"summary": about, "value": value}))
    };
    let tensors = [
        (
            "expression",
            "An expression",
            serde_json::json!({"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1, 2, 3]}}, "expression": ["sum", ["mul", "x", 2]]}),
        ),
        (
            "picture",
            "A picture",
            serde_json::json!({"kind": "picture", "picture": "phi_pattern", "width": 8, "height": 4}),
        ),
        (
            "animation",
            "Pictures one after the other",
            serde_json::json!({"kind": "picture", "picture": "field", "width": 8, "height": 4, "frames": 3, "interval": 0.1}),
        ),
    ];
    let of_fields = [
        (
            "addition",
            "Elements of a field",
            serde_json::json!({"kind": "field", "field": "bn254-fr", "function": "add", "a": [1, "2"], "b": ["0x10", 5]}),
        ),
        ("transform", "A transform", serde_json::json!({"kind": "ntt", "field": "babybear", "a": [1, 2, 3, 4]})),
        (
            "extension",
            "Elements of an extension, x⁴ = 11",
            serde_json::json!({"kind": "extension", "extension": "babybear4", "function": "mul", "a": [0, 1, 0, 0], "b": [0, 0, 0, 1]}),
        ),
        (
            "points",
            "The double of a point",
            serde_json::json!({"kind": "curve", "curve": "bn254-g1", "function": "double", "points": [POINT]}),
        ),
        (
            "multiples",
            "A sum of multiples of points",
            serde_json::json!({"kind": "msm", "curve": "bn254-g1", "points": [POINT, POINT], "scalars": [2, 3]}),
        ),
        (
            "encodings",
            "A point in compressed form",
            serde_json::json!({"kind": "curve", "curve": "bn254-g1", "function": "encode", "points": [POINT], "answer": "compressed"}),
        ),
        (
            "digests",
            "Digests",
            serde_json::json!({"kind": "hash", "function": "sha-256", "messages": ["", "0x616263"]}),
        ),
        (
            "tree",
            "The root of a tree of digests",
            serde_json::json!({"kind": "merkle", "function": "keccak-256", "leaves": ["0x61", "0x62", "0x63", "0x64"]}),
        ),
        (
            "poseidon2",
            "Poseidon2",
            serde_json::json!({"kind": "poseidon2", "field": "bn254-fr", "function": "permute", "width": 3, "a": [0, 1, 2]}),
        ),
    ];
    let fields = of_fields.into_iter().filter(|_| cfg!(feature = "zk"));
    fields.chain(tensors).map(named).collect::<serde_json::Map<_, _>>().into()
}

/// BN254's generator.
const POINT: &str = concat!(
    "0x0000000000000000000000000000000000000000000000000000000000000001",
    "0000000000000000000000000000000000000000000000000000000000000002"
);

pub(super) async fn openapi() -> Response {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string());
    ([(header::CONTENT_TYPE, JSON)], text.as_str()).into_response()
}

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the page, for a request that asks for nothing in particular.
pub(super) async fn root() -> Response {
    let headers = [(header::LOCATION, "/docs"), (header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (StatusCode::SEE_OTHER, headers, "the documentation is at /docs\n").into_response()
}

pub(super) async fn docs() -> Response {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let rows = crate::work::functions();
        let rows = rows.iter().map(|(name, about)| format!("<tr><td><code>{name}</code></td><td>{about}</td></tr>"));
        include_str!("../docs/page.html").replace("<!-- functions -->", &rows.collect::<Vec<_>>().join("\n"))
    });
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (headers, text.as_str()).into_response()
}

pub(super) async fn docs_script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("../docs/page.js")).into_response()
}

pub(super) async fn docs_style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../docs/page.css")).into_response()
}
