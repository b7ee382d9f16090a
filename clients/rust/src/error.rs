//! What a request fails with.

use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// An error with which a peer answered.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ResponseError {
    /// One of the codes of this crate, such as [`crate::CONTEXT_OVERFLOW`], or one that is new.
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ResponseError {
    /// An error with a code and a text, for the answers of a host.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The data as the type that belongs to the code, such as [`crate::ContextOverflowData`].
    pub fn data_as<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.data.clone()?).ok()
    }

    /// Whether the same request may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        self.data_as::<crate::ErrorData>().is_some_and(|data| data.retryable)
    }
}

/// What a request fails with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The sidecar answered with an error.
    Response(ResponseError),
    /// The sidecar died, or stopped to speak the protocol. What it acknowledged is stored; send again only what is safe
    /// to repeat, such as [`crate::Client::context_commit_turn`].
    ConnectionLost(String),
    /// No answer came in time, and the request was taken back.
    TimedOut,
    /// The client was closed.
    Closed,
    /// A value does not fit its type.
    Decoding(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(error) => {
                write!(f, "{} ({})", error.message, error.code)?;
                match error.data_as::<crate::ErrorData>() {
                    Some(data) => write!(f, ": {}", data.hint),
                    None => Ok(()),
                }
            }
            Self::ConnectionLost(why) => write!(f, "the sidecar {why}"),
            Self::TimedOut => f.write_str("no answer came in time"),
            Self::Closed => f.write_str("the client is closed"),
            Self::Decoding(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}
