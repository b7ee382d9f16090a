//! One connection to one sidecar process.

use crate::deltas::Answers;
use crate::{Error, Host, Log, Options, ResponseError, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_CANCELLED};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::{json, value::RawValue, Value};
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

const HEADER_LIMIT: usize = 8 << 10;
const BODY_LIMIT: usize = 1 << 30;
const REMEMBERED: usize = 2 << 10;
const LAST_WORDS: Duration = Duration::from_secs(1);
const CLOSE_LIMIT: Duration = Duration::from_secs(4);
const CANCEL_GRACE: Duration = Duration::from_secs(3);

type Outcome = Result<Box<RawValue>, ResponseError>;

#[derive(Deserialize)]
struct Received {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<ResponseError>,
}

/// What requests and tasks share. Nothing is awaited while one of the locks is held.
pub(crate) struct Connection {
    pub answers: Mutex<Answers>,
    pub pid: Option<u32>,
    host: Arc<dyn Host>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
    asked: Mutex<HashMap<String, AbortHandle>>,
    heard: Mutex<Instant>,
    outbox: mpsc::UnboundedSender<Vec<u8>>,
    inbox: mpsc::UnboundedSender<(String, Value)>,
    stop: watch::Sender<bool>,
    lost: watch::Receiver<Option<String>>,
}

/// Takes a request back when its future is dropped before its answer has come.
struct Pending<'a> {
    connection: &'a Connection,
    id: u64,
    done: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.connection.waiting.lock().unwrap().remove(&self.id);
        if !self.done {
            self.connection.notify("$/cancelRequest", &json!({ "id": self.id }));
        }
    }
}

impl Connection {
    pub fn open(options: &Options, host: Arc<dyn Host>) -> Result<Arc<Self>, Error> {
        let mut command = Command::new(&options.command[0]);
        command.args(&options.command[1..]).envs(options.env.clone()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &options.dir {
            command.current_dir(dir);
        }
        let mut child = command
            .spawn()
            .map_err(|error| Error::ConnectionLost(format!("does not start: {}: {error}", options.command[0])))?;
        let (outbox, frames) = mpsc::unbounded_channel();
        let (inbox, mut notifications) = mpsc::unbounded_channel();
        let (told, lost) = watch::channel(None);
        let connection = Arc::new(Self {
            answers: Mutex::default(),
            pid: child.id(),
            host,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            asked: Mutex::default(),
            heard: Mutex::new(Instant::now()),
            outbox,
            inbox,
            stop: watch::channel(false).0,
            lost,
        });
        let stderr = tokio::spawn(drain(child.stderr.take().expect("it is piped"), options.log.clone()));
        tokio::spawn(write(child.stdin.take().expect("it is piped"), frames, connection.lost.clone()));
        let host = connection.host.clone();
        tokio::spawn(async move {
            while let Some((method, params)) = notifications.recv().await {
                host.notified(&method, params);
            }
        });
        tokio::spawn(connection.clone().live(child, stderr, told));
        Ok(connection)
    }

    pub fn is_alive(&self) -> bool {
        self.lost.borrow().is_none()
    }

    /// Sends a request and waits for its answer.
    pub async fn request<P, R>(&self, method: &str, params: &P) -> Result<R, Error>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, mut answer) = oneshot::channel();
        self.waiting.lock().unwrap().insert(id, sender);
        let mut pending = Pending { connection: self, id, done: false };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method }), params)?;
        let mut lost = self.lost.clone();
        let outcome = tokio::select! {
            biased;
            outcome = &mut answer => outcome.ok(),
            _ = lost.wait_for(Option::is_some) => answer.try_recv().ok(), // it may have come with the last words
        };
        pending.done = true;
        match outcome {
            Some(Ok(result)) => serde_json::from_str(result.get())
                .map_err(|error| Error::Decoding(format!("the result of {method}: {error}"))),
            Some(Err(error)) => Err(Error::Response(error)),
            None => Err(Error::ConnectionLost(self.lost.borrow().clone().unwrap_or_default())),
        }
    }

    /// Sends a request that is given up when `limit` is over; a process that stays silent then is killed.
    pub async fn request_within<P, R>(self: &Arc<Self>, limit: Duration, method: &str, params: &P) -> Result<R, Error>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let given_up = Instant::now() + limit;
        if let Ok(answer) = timeout(limit, self.request(method, params)).await {
            return answer;
        }
        let connection = self.clone();
        tokio::spawn(async move {
            sleep(CANCEL_GRACE).await;
            if *connection.heard.lock().unwrap() < given_up {
                connection.kill();
            }
        });
        Err(Error::TimedOut)
    }

    pub fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P) {
        let _ = self.send(&json!({ "jsonrpc": "2.0", "method": method }), params);
    }

    /// Asks the process to leave, and kills it where it does not.
    pub async fn close(&self) {
        let mut lost = self.lost.clone();
        let _ = timeout(CLOSE_LIMIT, async {
            if self.request::<_, Value>("shutdown", &json!({})).await.is_ok() {
                self.notify("exit", &json!({}));
                let _ = lost.wait_for(Option::is_some).await;
            }
        })
        .await;
        self.kill();
        let _ = lost.wait_for(Option::is_some).await;
    }

    pub fn kill(&self) {
        self.stop.send_replace(true);
    }

    /// Sends a message: a head without params, then the params, whose bytes stay as they are.
    fn send<P: Serialize + ?Sized>(&self, head: &Value, params: &P) -> Result<(), Error> {
        let params = serde_json::to_string(params).map_err(|error| Error::Decoding(error.to_string()))?;
        let mut body = head.to_string();
        body.pop();
        body.push_str(&format!(",\"params\":{params}}}"));
        self.frame(body);
        Ok(())
    }

    fn frame(&self, body: String) {
        let _ = self.outbox.send(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes());
    }

    /// Reads until the process ends, then tells everybody who waits.
    async fn live(
        self: Arc<Self>,
        mut child: Child,
        stderr: tokio::task::JoinHandle<Vec<u8>>,
        told: watch::Sender<Option<String>>,
    ) {
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut stopped = self.stop.subscribe();
        let problem = tokio::select! {
            problem = self.read(&mut output) => problem,
            _ = stopped.wait_for(|stop| *stop) => Some("was killed".into()),
        };
        // Most processes that close their output end by themselves.
        if problem.is_some() || timeout(LAST_WORDS, child.wait()).await.is_err() {
            let _ = child.start_kill();
        }
        let mut why = match (problem, child.wait().await) {
            (Some(problem), _) => problem,
            (None, Ok(status)) => format!("ended: {status}"),
            (None, Err(error)) => error.to_string(),
        };
        if let Ok(Ok(words)) = timeout(LAST_WORDS, stderr).await {
            let words = String::from_utf8_lossy(&words);
            if !words.trim().is_empty() {
                why = format!("{why}; it wrote: {}", words.trim());
            }
        }
        told.send_replace(Some(why));
        for (_, task) in self.asked.lock().unwrap().drain() {
            task.abort();
        }
    }

    /// What made reading end, `None` for the end of the output.
    async fn read(self: &Arc<Self>, output: &mut BufReader<impl AsyncRead + Unpin>) -> Option<String> {
        loop {
            match frame(output).await {
                Ok(Some(body)) => match serde_json::from_slice(&body) {
                    Ok(message) => self.take(message),
                    Err(error) => return Some(format!("wrote what is no message: {error}")),
                },
                Ok(None) => return None,
                Err(problem) => return Some(problem),
            }
        }
    }

    fn take(self: &Arc<Self>, message: Received) {
        *self.heard.lock().unwrap() = Instant::now();
        match (message.method, message.id) {
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| self.waiting.lock().unwrap().remove(&id));
                if let Some(sender) = waiting {
                    let null = || RawValue::from_string("null".into()).expect("null is JSON");
                    let _ = sender.send(match message.error {
                        Some(error) => Err(error),
                        None => Ok(message.result.unwrap_or_else(null)),
                    });
                }
            }
            (None, None) => {}
            (Some(method), None) if method == "$/cancelRequest" => {
                let id = message.params.unwrap_or_default()["id"].clone();
                if let Some(task) = self.asked.lock().unwrap().remove(&id.to_string()) {
                    task.abort();
                    let error = ResponseError::new(REQUEST_CANCELLED, "the request was taken back");
                    self.reply(&id, Err(error));
                }
            }
            (Some(method), None) => {
                let _ = self.inbox.send((method, message.params.unwrap_or_default()));
            }
            (Some(method), Some(id)) => self.answer(method, id, message.params.unwrap_or_default()),
        }
    }

    /// Has the runtime answer a request, in a task of its own.
    fn answer(self: &Arc<Self>, method: String, id: Value, params: Value) {
        let connection = self.clone();
        let key = id.to_string();
        let mut asked = self.asked.lock().unwrap(); // the task waits for it, so that it finds itself there
        let task = tokio::spawn(async move {
            let outcome = connection.handled(&method, params).await;
            if connection.asked.lock().unwrap().remove(&id.to_string()).is_some() {
                connection.reply(&id, outcome);
            }
        });
        asked.insert(key, task.abort_handle());
    }

    fn reply(&self, id: &Value, outcome: Result<Value, ResponseError>) {
        self.frame(match outcome {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
        });
    }

    async fn handled(&self, method: &str, params: Value) -> Result<Value, ResponseError> {
        match method {
            "runtime/complete" => given(self.host.complete(parsed(params)?).await),
            "runtime/compact" => given(self.host.compact(parsed(params)?).await),
            "runtime/rewriteTranscript" => given(self.host.rewrite_transcript(parsed(params)?).await),
            "memory/getContext" => given(self.host.get_context(parsed(params)?).await),
            _ => Err(ResponseError::new(METHOD_NOT_FOUND, format!("this host does not answer {method}"))),
        }
    }
}

fn parsed<P: DeserializeOwned>(params: Value) -> Result<P, ResponseError> {
    // By way of text: parts that are passed on as they are cannot be had from a value.
    serde_json::from_str(&params.to_string()).map_err(|error| ResponseError::new(INVALID_PARAMS, error.to_string()))
}

fn given<R: Serialize>(answer: Result<R, ResponseError>) -> Result<Value, ResponseError> {
    let result = answer?;
    serde_json::to_value(result).map_err(|error| ResponseError::new(crate::INTERNAL_ERROR, error.to_string()))
}

async fn write(
    mut input: ChildStdin,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
    mut lost: watch::Receiver<Option<String>>,
) {
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            _ = lost.wait_for(Option::is_some) => return,
        };
        let Some(frame) = frame else { return };
        if input.write_all(&frame).await.is_err() || input.flush().await.is_err() {
            return; // the reader sees the end too
        }
    }
}

/// Passes standard error on, and gives back the end of it.
async fn drain(mut stderr: impl AsyncRead + Unpin, log: Option<Log>) -> Vec<u8> {
    let (mut kept, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count]);
        kept.drain(..kept.len().saturating_sub(REMEMBERED));
        if let Some(log) = &log {
            log(&chunk[..count]);
        }
    }
    kept
}

/// One body. Header names come in any case and order; lines may end with LF alone.
async fn frame(output: &mut BufReader<impl AsyncRead + Unpin>) -> Result<Option<Vec<u8>>, String> {
    let (mut length, mut size) = (None, 0);
    loop {
        let mut line = Vec::new();
        let limit = (HEADER_LIMIT - size) as u64;
        let count = output.take(limit).read_until(b'\n', &mut line).await.map_err(|error| error.to_string())?;
        size += count;
        if count == 0 && size == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err("wrote what is no frame".into());
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            break;
        }
        if let Some((name, value)) = text.split_once(':') {
            if name.trim().eq_ignore_ascii_case("content-length") {
                let known = value.trim().parse().ok().filter(|length| *length <= BODY_LIMIT);
                length = Some(known.ok_or_else(|| format!("wrote the length {value:?}"))?);
            }
        }
    }
    let mut body = vec![0; length.ok_or("wrote a header without a length")?];
    match output.read_exact(&mut body).await {
        Ok(_) => Ok(Some(body)),
        Err(_) => Ok(None),
    }
}
