//! Errors as problem JSON (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// One refusal. `type` is always `about:blank`: the status says all a program needs to know, and
/// `detail` tells a person what to do.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: &'static str,
    header: Option<(header::HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn unauthorized() -> Problem {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "send the admin token as \"Authorization: Bearer <token>\"",
        )
        .with(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"toastrack\""),
        )
    }

    pub(crate) fn not_found() -> Problem {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no such path; /api/v1/openapi.json lists them",
        )
    }

    pub(crate) fn method_not_allowed() -> Problem {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "every path of this API is read with GET",
        )
        .with(header::ALLOW, HeaderValue::from_static("GET, HEAD"))
    }

    pub(crate) fn body_not_taken() -> Problem {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "this API takes no request bodies",
        )
        .with(header::CONNECTION, HeaderValue::from_static("close"))
    }

    pub(crate) fn busy() -> Problem {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are being answered; try again",
        )
        .with(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    pub(crate) fn timed_out() -> Problem {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the process did not answer in time",
        )
        .with(header::RETRY_AFTER, HeaderValue::from_static("5"))
    }

    pub(crate) fn internal() -> Problem {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the answer could not be made; the log says why",
        )
    }

    fn new(status: StatusCode, detail: &'static str) -> Problem {
        Problem {
            status,
            detail,
            header: None,
        }
    }

    fn with(mut self, name: header::HeaderName, value: HeaderValue) -> Problem {
        self.header = Some((name, value));
        self
    }
}

#[derive(Serialize)]
struct Body {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'static str,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Body {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: self.detail,
        };
        let mut response = (self.status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some((name, value)) = self.header {
            headers.insert(name, value);
        }
        response
    }
}
