//! The client that a runtime uses: one sidecar at a time.

use crate::connection::Connection;
use crate::*;
use serde::{de::DeserializeOwned, Serialize};
use serde_json::{json, value::to_raw_value, Value};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::sleep;

const START_LIMIT: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(10);
const STABLE_AFTER: Duration = Duration::from_secs(30);

/// Receives bytes of standard error, as they come.
pub type Log = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// What to start, and for whom.
#[derive(Clone)]
pub struct Options {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// The runtime; its id keeps hosts on one store apart.
    pub host: HostInfo,
    /// The dialect of every message; OpenAI's where it is absent.
    pub message_format: Option<MessageFormat>,
    /// The id of the context engine; where it is absent, the configuration decides.
    pub engine: Option<String>,
    /// Overrides in the shape of the configuration file.
    pub config: Option<Value>,
    /// Added to the environment of the process.
    pub env: HashMap<String, String>,
    /// Working directory of the process.
    pub dir: Option<PathBuf>,
    /// Receives what the sidecar writes to standard error.
    pub log: Option<Log>,
    /// Bounds each request.
    pub timeout: Duration,
}

impl Options {
    /// Starts `context-sidecar serve` for the runtime of this id, with three minutes for each request.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            command: vec!["context-sidecar".into(), "serve".into()],
            host: HostInfo { id: host.into(), version: None },
            message_format: None,
            engine: None,
            config: None,
            env: HashMap::new(),
            dir: None,
            log: None,
            timeout: Duration::from_secs(180),
        }
    }
}

#[derive(Default)]
struct State {
    live: Option<(Arc<Connection>, ContextEngineCapabilities, Instant)>,
    crashes: u32,
    closed: bool,
}

/// Owns one sidecar at a time, which it starts when one is needed. Clones share it.
#[derive(Clone)]
pub struct Client {
    options: Arc<Options>,
    host: Arc<dyn Host>,
    state: Arc<Mutex<State>>,
}

impl Client {
    /// A client for a runtime that answers nothing.
    pub fn new(options: Options) -> Self {
        Self::with_host(options, ())
    }

    /// A client for a runtime that answers what the sidecar asks.
    pub fn with_host(options: Options, host: impl Host) -> Self {
        Self { options: Arc::new(options), host: Arc::new(host), state: Arc::default() }
    }

    /// Starts the sidecar unless it runs, and returns what it offers. Requests do so by themselves.
    ///
    /// Where the sidecar refuses engine, configuration or store, [`Error::Response`] says what to fix.
    pub async fn open(&self) -> Result<ContextEngineCapabilities, Error> {
        Ok(self.connected().await?.1)
    }

    /// Process id of the sidecar, where one runs.
    pub async fn pid(&self) -> Option<u32> {
        let state = self.state.lock().await;
        state.live.as_ref().filter(|(live, ..)| live.is_alive()).and_then(|(live, ..)| live.pid)
    }

    /// Sends any request. It is never sent twice; a future that is dropped takes it back.
    pub async fn request<P, R>(&self, method: &str, params: &P) -> Result<R, Error>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        self.request_within(self.options.timeout, method, params).await
    }

    /// Sends any request with a bound of its own.
    pub async fn request_within<P, R>(&self, limit: Duration, method: &str, params: &P) -> Result<R, Error>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        self.connected().await?.0.request_within(limit, method, params).await
    }

    /// What the model is to see. Only changes travel; the answer has the whole list all the same.
    pub async fn assemble(&self, mut params: AssembleContextParams) -> Result<AssembleContextResult, Error> {
        let (live, _) = self.connected().await?;
        let base = live.answers.lock().unwrap().latest(&params.session_id);
        params.previous_result_id = base.as_ref().map(|(id, _)| id.clone());
        let mut result = live.request_within(self.options.timeout, "context/assemble", &params).await?;
        live.answers.lock().unwrap().complete(&params.session_id, base, &mut result)?;
        Ok(result)
    }

    /// Ends the sidecar, in order where it still answers and by force where it does not. Later requests fail.
    pub async fn close(&self) {
        let mut state = self.state.lock().await;
        state.closed = true;
        if let Some((live, ..)) = state.live.take() {
            live.close().await;
        }
    }

    /// The running connection, or a new one. After a crash it waits a little, longer each time.
    async fn connected(&self) -> Result<(Arc<Connection>, ContextEngineCapabilities), Error> {
        let mut state = self.state.lock().await;
        if state.closed {
            return Err(Error::Closed);
        }
        if let Some((live, offer, _)) = state.live.as_ref().filter(|(live, ..)| live.is_alive()) {
            return Ok((live.clone(), offer.clone()));
        }
        if let Some((.., started)) = state.live.take() {
            state.crashes = if started.elapsed() > STABLE_AFTER { 0 } else { state.crashes + 1 };
        }
        if state.crashes > 1 {
            sleep((FIRST_PAUSE * 2u32.pow((state.crashes - 2).min(10))).min(LAST_PAUSE)).await;
        }
        match self.start().await {
            Ok((live, offer)) => {
                state.live = Some((live.clone(), offer.clone(), Instant::now()));
                Ok((live, offer))
            }
            Err(error) => {
                state.crashes += u32::from(!matches!(error, Error::Response(_)));
                Err(error)
            }
        }
    }

    async fn start(&self) -> Result<(Arc<Connection>, ContextEngineCapabilities), Error> {
        let live = Connection::open(&self.options, self.host.clone())?;
        let greeted = self.greet(&live).await;
        if greeted.is_err() {
            live.kill();
        }
        Ok((live, greeted?))
    }

    async fn greet(&self, live: &Arc<Connection>) -> Result<ContextEngineCapabilities, Error> {
        let answer: InitializeResult = live.request_within(START_LIMIT, "initialize", &self.greeting()?).await?;
        live.notify("initialized", &json!({}));
        for source in self.host.sources() {
            live.request_within::<_, Value>(START_LIMIT, "memory/register", &source).await?;
        }
        Ok(answer.capabilities.experimental.context_engine)
    }

    fn greeting(&self) -> Result<InitializeParams, Error> {
        let options = &self.options;
        let encoded = |value: &Value| to_raw_value(value).map_err(|error| Error::Decoding(error.to_string()));
        let mut capabilities = self.host.capabilities();
        capabilities.push(HostCapability::AssembleDelta);
        Ok(InitializeParams {
            process_id: Some(std::process::id().into()),
            client_info: Some(PeerInfo { name: "context-sidecar-rust".into(), version: None }),
            capabilities: Some(encoded(&json!({}))?),
            initialization_options: Some(InitializationOptions {
                context_engine: Some(ContextEngineOptions {
                    protocol_version: Some(PROTOCOL_VERSION.into()),
                    host: Some(options.host.clone()),
                    host_capabilities: Some(capabilities),
                    message_format: options.message_format.clone(),
                    engine: options.engine.clone(),
                    namespace: None,
                    config: options.config.as_ref().map(encoded).transpose()?,
                }),
            }),
            ..Default::default()
        })
    }
}
