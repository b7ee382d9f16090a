//! What a runtime answers to the sidecar.

use crate::protocol::*;
use crate::ResponseError;
use serde_json::Value;
use std::{future::Future, pin::Pin};

/// What a host's method gives: the result, or an error that the sidecar is told.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ResponseError>> + Send + 'a>>;

fn unknown<'a, T>(method: &str) -> Answer<'a, T> {
    let error = ResponseError::new(METHOD_NOT_FOUND, format!("this host does not answer {method}"));
    Box::pin(async { Err(error) })
}

/// The runtime behind a client. Every method has a default; override those of the requests that `capabilities` names.
///
/// Each request runs in a task of its own and may send requests; its future is dropped when the sidecar takes the
/// request back. Notifications are heard one after the other.
pub trait Host: Send + Sync + 'static {
    /// The requests that this host answers, which the client declares.
    fn capabilities(&self) -> Vec<HostCapability> {
        Vec::new()
    }

    /// Memory sources, with which every sidecar is offered that the client starts.
    fn sources(&self) -> Vec<RegisterMemoryParams> {
        Vec::new()
    }

    /// Answers `runtime/complete` with the text of a model.
    fn complete(&self, _params: CompleteRuntimeParams) -> Answer<'_, CompleteRuntimeResult> {
        unknown("runtime/complete")
    }

    /// Answers `runtime/compact` with what the runtime's own compaction did.
    fn compact(&self, _params: CompactRuntimeParams) -> Answer<'_, CompactRuntimeResult> {
        unknown("runtime/compact")
    }

    /// Answers `runtime/rewriteTranscript` by replacing messages of the runtime's transcript.
    fn rewrite_transcript(
        &self,
        _params: RewriteTranscriptRuntimeParams,
    ) -> Answer<'_, RewriteTranscriptRuntimeResult> {
        unknown("runtime/rewriteTranscript")
    }

    /// Answers `memory/getContext` for the sources.
    fn get_context(&self, _params: GetContextMemoryParams) -> Answer<'_, GetContextMemoryResult> {
        unknown("memory/getContext")
    }

    /// Hears a notification, such as `session/changed`.
    fn notified(&self, _method: &str, _params: Value) {}
}

/// A host that answers nothing.
impl Host for () {}
