//! Paths, who may read them, and what they answer.
//!
//! Invariants: A1 a handler that shows state takes [`Authorized`] or asks [`Shown`] first.
//!             A2 at most [`MAX_ANSWERS_IN_FLIGHT`] answers are being made at a time.
//! Proof:      tests/http.rs

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::problem::Problem;
use crate::{Source, Token, metrics};

/// The OpenAPI description of this API, as `GET /api/v1/openapi.json` answers it.
pub const OPENAPI_JSON: &str = include_str!("../openapi.json");

/// Longest time a request may take; after that the answer is 503.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Most answers that are made at a time; the next request gets 503 at once (A2).
const MAX_ANSWERS_IN_FLIGHT: usize = 8;

/// One path of the API; all of them are read with GET.
pub struct Route {
    /// Path as it stands in the request.
    pub path: &'static str,
    /// Whether anything is answered without the token.
    pub needs_token: bool,
}

/// Every path; [`OPENAPI_JSON`] describes exactly these.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/healthz",
        needs_token: false,
    },
    Route {
        path: "/readyz",
        needs_token: false,
    },
    Route {
        path: "/metrics",
        needs_token: true,
    },
    Route {
        path: "/api/v1/stats",
        needs_token: true,
    },
    Route {
        path: "/api/v1/openapi.json",
        needs_token: false,
    },
];

/// The routes over one source.
pub(crate) fn router(token: Token, source: Arc<dyn Source>) -> Router {
    let api = Api {
        token,
        source,
        answers: Arc::new(Semaphore::new(MAX_ANSWERS_IN_FLIGHT)),
    };
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .route("/api/v1/stats", get(stats))
        .route("/api/v1/openapi.json", get(openapi))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(from_fn(guard))
        .with_state(api)
}

#[derive(Clone)]
struct Api {
    token: Token,
    source: Arc<dyn Source>,
    answers: Arc<Semaphore>,
}

impl Api {
    /// Asks the source on a blocking thread, so that a slow one holds up nobody else.
    ///
    /// The permit goes along: an answer that was given up on still counts until it ends (A2).
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Source) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.answers)
            .try_acquire_owned()
            .map_err(|_| Problem::busy())?;
        let source = Arc::clone(&self.source);
        let answer = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            question(source.as_ref())
        });
        answer.await.map_err(|error| {
            tracing::error!(%error, "admin answer failed");
            Problem::internal()
        })
    }
}

/// Liveness: the process takes connections and runs its tasks. Says nothing else.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Readiness: 200 or 503. With the token also what was checked; a wrong token is refused.
async fn readyz(State(api): State<Api>, shown: Shown) -> Result<Response, Problem> {
    let with_details = match shown {
        Shown::Nothing => false,
        Shown::Token => true,
        Shown::SomethingElse => return Err(Problem::unauthorized()),
    };
    let readiness = api.ask(|source| source.readiness()).await?;
    let status = match readiness.ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = match with_details {
        true => Json(readiness).into_response(),
        false => Json(ReadyOnly {
            ready: readiness.ready,
        })
        .into_response(),
    };
    Ok((status, body).into_response())
}

/// What a client without the token sees of the readiness.
#[derive(Serialize)]
struct ReadyOnly {
    ready: bool,
}

async fn metrics_text(State(api): State<Api>, _: Authorized) -> Result<Response, Problem> {
    let text = api
        .ask(|source| metrics::encode(&source.stats(), &source.readiness()))
        .await?;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn stats(State(api): State<Api>, _: Authorized) -> Result<Response, Problem> {
    let stats = api.ask(|source| source.stats()).await?;
    Ok(Json(stats).into_response())
}

async fn openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], OPENAPI_JSON).into_response()
}

/// What the request shows in its `Authorization` header.
enum Shown {
    Nothing,
    Token,
    SomethingElse,
}

impl Shown {
    fn of(headers: &HeaderMap, token: &Token) -> Shown {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = values.next() else {
            return Shown::Nothing;
        };
        // Two headers are an attempt to be read differently by two readers.
        if values.next().is_some() {
            return Shown::SomethingElse;
        }
        match bearer(value.as_bytes()) {
            Some(shown) if token.matches(shown) => Shown::Token,
            Some(_) | None => Shown::SomethingElse,
        }
    }
}

/// The token in a header value `Bearer <token>`; the scheme in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return None;
    }
    Some(rest.trim_ascii())
}

impl FromRequestParts<Api> for Shown {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Shown, Self::Rejection> {
        Ok(Shown::of(&parts.headers, &api.token))
    }
}

/// Proof that the request showed the token.
struct Authorized;

impl FromRequestParts<Api> for Authorized {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Authorized, Problem> {
        match Shown::of(&parts.headers, &api.token) {
            Shown::Token => Ok(Authorized),
            Shown::Nothing | Shown::SomethingElse => Err(Problem::unauthorized()),
        }
    }
}

/// Bounds the body and the time of every request, and forbids caching of every answer.
async fn guard(request: Request, next: Next) -> Response {
    if !request.body().is_end_stream() {
        return seal(Problem::body_not_taken().into_response());
    }
    let answer = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    seal(answer.unwrap_or_else(|_| Problem::timed_out().into_response()))
}

fn seal(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}
