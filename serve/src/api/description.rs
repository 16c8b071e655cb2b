//! The description in OpenAPI, and the page of it.

use axum::http::header;
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
        devices::devices, devices::benchmark, devices::metrics, devices::health, devices::ready
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
    for (place, value) in [("/components/schemas/Node", crate::work::node_schema()), (events, serde_json::json!({}))] {
        if let Some(schema) = api.pointer_mut(place) {
            *schema = value;
        }
    }
    api
}

pub(super) async fn openapi() -> Response {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string());
    ([(header::CONTENT_TYPE, JSON)], text.as_str()).into_response()
}

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
