//! The client with the real sidecar, which CONTEXT_SIDECAR names.

use context_sidecar_client::*;
use serde_json::value::RawValue;
use std::process::Command;

fn command() -> Vec<String> {
    let named = std::env::var("CONTEXT_SIDECAR").expect("CONTEXT_SIDECAR names the sidecar");
    named.split_whitespace().map(str::to_owned).collect()
}

fn state(name: &str) -> String {
    let folder = std::env::temp_dir().join(format!("rust-client-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder.to_string_lossy().into_owned()
}

fn client(name: &str) -> Client {
    let mut options = Options::new("rust-test");
    options.command = command();
    options.engine = Some("full".into());
    options.env.insert("CONTEXT_SIDECAR_STATE_DIR".into(), state(name));
    Client::new(options)
}

fn raw(text: &str) -> Message {
    RawValue::from_string(text.into()).unwrap()
}

#[tokio::test]
async fn a_message_comes_back_byte_for_byte() {
    let client = client("bytes");
    let odd = r#"{"content":"1 < 2 & \u00e9", "role":"user","n":1.50}"#;
    let params = IngestContextParams {
        session_id: "s".into(),
        message: raw(odd),
        message_id: None,
        turn_id: None,
        timestamp: None,
        is_heartbeat: None,
        session_key: None,
        agent_id: None,
        work_done_token: None,
    };
    client.context_ingest(&params).await.unwrap();
    for _ in 0..2 {
        // whole, then as edits
        let params = AssembleContextParams { session_id: "s".into(), ..Default::default() };
        let messages = client.assemble(params).await.unwrap().messages.unwrap();
        assert_eq!(messages[0].get(), odd);
    }
    client.close().await;
}

#[tokio::test]
async fn an_error_has_its_code_and_its_data() {
    let client = client("errors");
    let params = GetSessionParams { session_id: "nobody".into(), ..Default::default() };
    let Err(Error::Response(error)) = client.session_get(&params).await else { panic!("it is there") };
    assert_eq!(error.code, SESSION_NOT_FOUND);
    assert!(!error.data_as::<SessionNotFoundData>().unwrap().hint.is_empty());
    client.close().await;
}

#[tokio::test]
async fn another_sidecar_follows_one_that_was_killed() {
    let client = client("killed");
    let params = CommitTurnContextParams {
        session_id: "s".into(),
        advancement_key: "k".into(),
        messages: vec![raw(r#"{"role":"user","content":"hello"}"#)],
        ..Default::default()
    };
    client.context_commit_turn(&params).await.unwrap();
    let pid = client.pid().await.unwrap().to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    let mut answer = client.context_commit_turn(&params).await;
    while matches!(answer, Err(Error::ConnectionLost(_))) {
        // it may die under a request; this one is safe to repeat
        answer = client.context_commit_turn(&params).await;
    }
    assert_eq!(answer.unwrap().status, CommitStatus::Duplicate);
    client.close().await;
}

#[tokio::test]
async fn a_closed_client_refuses() {
    let client = client("closed");
    client.close().await;
    assert!(matches!(client.open().await, Err(Error::Closed)));
}

#[test]
fn the_example_agent_remembers_its_turns() {
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--example", "agent", "--", "What is the plan?", "And then?"])
        .env("CONTEXT_SIDECAR_STATE_DIR", state("agent"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(said.contains(r#"You asked "And then?"; I have seen 3 messages"#), "{said}{run:?}");
}
