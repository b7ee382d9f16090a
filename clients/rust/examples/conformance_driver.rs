//! The driver around this client, as the page checking-clients.md of the specification describes drivers.

use context_sidecar_client::*;
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::{json, value::RawValue, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::Semaphore;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "do")]
    what: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    method: String,
    params: Option<Box<RawValue>>,
    #[serde(default)]
    target: String,
    #[serde(rename = "timeoutMs")]
    timeout_ms: Option<u64>,
    #[serde(default)]
    answers: HashMap<String, Value>,
    #[serde(default)]
    sources: Vec<String>,
}

/// What the runtime gives, once as many requests as `together` says are with it.
struct Given {
    answer: Value,
    asked: AtomicUsize,
    enough: Semaphore,
}

impl Given {
    fn new(answer: Value) -> Self {
        Self { answer, asked: AtomicUsize::new(0), enough: Semaphore::new(0) }
    }

    async fn give<R: DeserializeOwned>(&self) -> Result<R, ResponseError> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        if asked >= self.answer["together"].as_u64().unwrap_or(1) as usize {
            self.enough.close();
        }
        let _ = self.enough.acquire().await; // fails when it is closed, which is what it waits for
        if self.answer["never"] == true {
            std::future::pending::<()>().await;
        }
        if let Some(error) = self.answer["error"].as_str() {
            return Err(ResponseError::new(INTERNAL_ERROR, error));
        }
        serde_json::from_value(self.answer["result"].clone())
            .map_err(|error| ResponseError::new(INTERNAL_ERROR, error.to_string()))
    }
}

struct Runtime {
    answers: HashMap<String, Given>,
    sources: Vec<String>,
}

impl Host for Runtime {
    fn capabilities(&self) -> Vec<HostCapability> {
        self.answers.keys().cloned().map(HostCapability::from).collect()
    }

    fn sources(&self) -> Vec<RegisterMemoryParams> {
        let source = |name: &String| RegisterMemoryParams {
            name: name.clone(),
            injection_points: vec![InjectionPoint::PerMessage],
            token_budget: None,
        };
        self.sources.iter().map(source).collect()
    }

    fn complete(&self, _: CompleteRuntimeParams) -> Answer<'_, CompleteRuntimeResult> {
        Box::pin(self.given("runtime/complete"))
    }

    fn get_context(&self, _: GetContextMemoryParams) -> Answer<'_, GetContextMemoryResult> {
        Box::pin(self.given("memory/getContext"))
    }

    fn notified(&self, method: &str, params: Value) {
        if ["session/changed", "$/progress"].contains(&method) {
            println!("{}", json!({ "heard": method, "params": params }));
        }
    }
}

impl Runtime {
    async fn given<R: DeserializeOwned>(&self, method: &str) -> Result<R, ResponseError> {
        match self.answers.get(method) {
            Some(given) => given.give().await,
            None => Err(ResponseError::new(METHOD_NOT_FOUND, method)),
        }
    }
}

fn opened(line: &mut Line) -> Client {
    let command = std::env::var("CEP_SIDECAR").expect("CEP_SIDECAR names the sidecar");
    let mut options = Options::new("driver");
    options.command = serde_json::from_str(&command).expect("a list of strings");
    let answers = line.answers.drain().map(|(method, answer)| (method, Given::new(answer))).collect();
    Client::with_host(options, Runtime { answers, sources: std::mem::take(&mut line.sources) })
}

async fn typed<R: DeserializeOwned + Serialize>(client: &Client, line: &Line) -> Result<Value, Error> {
    let limit = line.timeout_ms.map_or(Duration::from_secs(180), Duration::from_millis);
    let result: R = client.request_within(limit, &line.method, &line.params).await?;
    Ok(serde_json::to_value(result).expect("results have JSON"))
}

async fn carry_out(client: &Client, line: &Line) -> Result<Value, Error> {
    match (line.what.as_str(), line.method.as_str()) {
        ("open", _) => client.open().await.map(|_| Value::Null),
        ("close", _) => {
            client.close().await;
            Ok(Value::Null)
        }
        ("assemble", _) => {
            let params = serde_json::from_str(line.params.as_ref().expect("params").get()).expect("params fit");
            Ok(serde_json::to_value(client.assemble(params).await?).expect("results have JSON"))
        }
        (_, "context/ingest") => typed::<IngestContextResult>(client, line).await,
        (_, "context/assemble") => typed::<AssembleContextResult>(client, line).await,
        (_, "context/compact") => typed::<CompactContextResult>(client, line).await,
        (_, "context/commitTurn") => typed::<CommitTurnContextResult>(client, line).await,
        (_, "context/preflight") => typed::<PreflightContextResult>(client, line).await,
        (_, "context/explain") => typed::<ExplainContextResult>(client, line).await,
        (_, "session/list") => typed::<ListSessionResult>(client, line).await,
        (_, "session/get") => typed::<GetSessionResult>(client, line).await,
        (_, "session/export") => typed::<ExportSessionResult>(client, line).await,
        (_, "engine/list") => typed::<ListEngineResult>(client, line).await,
        (_, "engine/doctor") => typed::<DoctorEngineResult>(client, line).await,
        (_, "memory/compile") => typed::<CompileMemoryResult>(client, line).await,
        _ => typed::<Value>(client, line).await,
    }
}

fn failure(error: Error) -> Value {
    let message = error.to_string();
    match error {
        Error::Response(error) => {
            json!({ "kind": "answer", "message": message, "code": error.code, "data": error.data })
        }
        Error::ConnectionLost(_) => json!({ "kind": "lost", "message": message }),
        Error::TimedOut => json!({ "kind": "timeout", "message": message }),
        Error::Closed => json!({ "kind": "closed", "message": message }),
        _ => json!({ "kind": "other", "message": message }),
    }
}

#[tokio::main]
async fn main() {
    let features =
        ["cancelling", "timeouts", "deltas", "notifications", "progress", "runtime/complete", "memory/getContext"];
    println!("{}", json!({ "ready": features }));
    let mut client = None;
    let mut tasks = HashMap::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        let mut line: Line = serde_json::from_str(&text).expect("a line of JSON");
        if line.what == "cancel" {
            if let Some(task) = tasks.remove(&line.target) {
                let task: tokio::task::JoinHandle<()> = task;
                task.abort();
                let failure = json!({ "kind": "cancelled", "message": "taken back" });
                println!("{}", json!({ "id": line.target, "failure": failure }));
            }
            continue;
        }
        let client: Client = client.get_or_insert_with(|| opened(&mut line)).clone();
        let id = line.id.clone();
        let task = tokio::spawn(async move {
            match carry_out(&client, &line).await {
                Ok(result) => println!("{}", json!({ "id": line.id, "result": result })),
                Err(error) => println!("{}", json!({ "id": line.id, "failure": failure(error) })),
            }
        });
        tasks.insert(id, task);
    }
    if let Some(client) = client {
        client.close().await;
    }
}
