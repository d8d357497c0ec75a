//! Answers of kind `Status`, by which an API server says what is wrong.

use std::fmt;

use http::StatusCode;
use serde_json::{Value, json};

use super::kind::Kind;

/// A failure: its code, and its reason in one word (metav1.StatusReason).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Code of the HTTP answer.
    pub code: StatusCode,
    /// Reason, such as `Conflict`.
    pub reason: String,
    /// Message for people.
    pub message: String,
    /// Seconds after which to try again; also a header field of the answer.
    pub retry_after: Option<u64>,
}

impl Failure {
    /// A failure with the reason that API servers give with its code.
    pub fn new(code: StatusCode, message: impl Into<String>) -> Failure {
        let reason = match code {
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::UNAUTHORIZED => "Unauthorized",
            StatusCode::FORBIDDEN => "Forbidden",
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
            StatusCode::CONFLICT => "Conflict",
            StatusCode::GONE => "Expired",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaType",
            StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
            StatusCode::GATEWAY_TIMEOUT => "Timeout",
            _ => "InternalError",
        };
        Failure { code, reason: reason.to_owned(), message: message.into(), retry_after: None }
    }

    /// There is no object of this name.
    pub fn not_found(kind: &Kind, name: &str) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, format!("{kind} {name:?} not found"))
    }

    /// There is an object of this name already.
    pub fn exists(kind: &Kind, name: &str) -> Failure {
        let failure = Failure::new(StatusCode::CONFLICT, format!("{kind} {name:?} already exists"));
        Failure { reason: "AlreadyExists".to_owned(), ..failure }
    }

    /// The object has another version than the request says.
    pub fn conflict(kind: &Kind, name: &str) -> Failure {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        let message = format!("Operation cannot be fulfilled on {kind} {name:?}: {why}");
        Failure::new(StatusCode::CONFLICT, message)
    }

    /// A version is older than the history.
    pub fn expired(version: u64, oldest: u64) -> Failure {
        Failure::new(StatusCode::GONE, format!("too old resource version: {version} ({oldest})"))
    }

    /// The answer's body.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if let Some(seconds) = self.retry_after {
            body["details"] = json!({"retryAfterSeconds": seconds});
        }
        body
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.code, self.reason, self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_reason_of_its_code() {
        let mut failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "later");
        failure.retry_after = Some(3);
        let body = failure.body();
        assert_eq!((&body["reason"], &body["code"]), (&json!("TooManyRequests"), &json!(429)));
        assert_eq!(body["details"]["retryAfterSeconds"], 3);
        assert_eq!(Failure::expired(7, 10).reason, "Expired");
        assert!(Kind::built_in().all(|kind| Failure::exists(&kind, "a").reason == "AlreadyExists"));
    }
}
