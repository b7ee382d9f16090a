//! Lets an agent runtime hand its context management to a context sidecar: a process that stores, assembles and
//! compacts what a model sees, and that speaks the Context Engine Protocol on its standard streams.
//!
//! A [`Client`] starts the sidecar when it is first needed, and starts another one when it has died. Requests may be
//! sent from many tasks. A request whose future is dropped is taken back. Messages are [`serde_json::value::RawValue`]:
//! they travel and come back byte for byte.
//!
//! ```no_run
//! # async fn example(transcript: Vec<context_sidecar_client::Message>) -> Result<(), context_sidecar_client::Error> {
//! use context_sidecar_client::{AssembleContextParams, Client, Options};
//!
//! let client = Client::new(Options::new("my-agent"));
//! let answer = client
//!     .assemble(AssembleContextParams {
//!         session_id: "s1".into(),
//!         messages: Some(transcript),
//!         token_budget: Some(100_000),
//!         ..Default::default()
//!     })
//!     .await?;
//! println!("{} messages for the model", answer.messages.unwrap_or_default().len());
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod client;
mod connection;
mod deltas;
mod enumeration;
mod error;
mod host;
#[rustfmt::skip]
mod protocol;

pub use client::{Client, Log, Options};
pub use error::{Error, ResponseError};
pub use host::{Answer, Host};
pub use protocol::*;
