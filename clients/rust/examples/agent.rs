//! An agent in a hundred lines: it assembles before each call of its model, and commits each turn. The model is
//! scripted, so that the example runs anywhere; put a real one in place of `say`.
//!
//! `cargo run --example agent -- "What is the plan?" "And then?"`

use context_sidecar_client::*;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

#[derive(Deserialize, Serialize)]
struct Chat {
    role: String,
    content: String,
}

fn message(role: &str, content: &str) -> Message {
    let chat = Chat { role: role.into(), content: content.into() };
    to_raw_value(&chat).expect("two strings have JSON")
}

/// Answers what it was asked last, and lets the sidecar use it for summaries.
struct Scripted;

impl Scripted {
    fn say(&self, system: &str, messages: &[Chat]) -> String {
        let last = messages.last().map_or("", |chat| &chat.content);
        let (count, instructions) = (messages.len(), system.len());
        format!("You asked {last:?}; I have seen {count} messages and {instructions} bytes of instructions.")
    }
}

impl Host for Scripted {
    fn capabilities(&self) -> Vec<HostCapability> {
        vec![HostCapability::RuntimeComplete]
    }

    fn complete(&self, params: CompleteRuntimeParams) -> Answer<'_, CompleteRuntimeResult> {
        let text = format!("A {} of {} messages.", String::from(params.purpose), params.messages.len());
        Box::pin(async move { Ok(CompleteRuntimeResult { text, model: None, usage: None }) })
    }
}

async fn turn(client: &Client, number: usize, prompt: &str) -> Result<String, Error> {
    let asked = message("user", prompt);
    let seen = client
        .assemble(AssembleContextParams {
            session_id: "example".into(),
            messages: Some(vec![asked.clone()]),
            token_budget: Some(8000),
            ..Default::default()
        })
        .await?;
    let mut messages = Vec::new();
    for raw in seen.messages.unwrap_or_default() {
        messages.push(serde_json::from_str::<Chat>(raw.get()).map_err(|error| Error::Decoding(error.to_string()))?);
    }
    if let (Some(last), Some(memory)) = (messages.last_mut(), seen.user_message_append) {
        last.content.push_str(&memory);
    }
    let system = format!("You are an agent.{}", seen.system_prompt_addition.unwrap_or_default());
    let said = Scripted.say(&system, &messages);
    // The key names the turn: a commit whose answer was lost may be sent again.
    client
        .context_commit_turn(&CommitTurnContextParams {
            session_id: "example".into(),
            advancement_key: format!("turn-{number}"),
            messages: vec![asked, message("assistant", &said)],
            ..Default::default()
        })
        .await?;
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut options = Options::new("rust-example");
    if let Ok(command) = std::env::var("CONTEXT_SIDECAR") {
        options.command = command.split_whitespace().map(str::to_owned).collect();
    }
    let client = Client::with_host(options, Scripted);
    let offer = client.open().await?;
    println!("engine {}, tools {}", offer.engine.id, offer.tools.join(" "));
    for (number, prompt) in std::env::args().skip(1).enumerate() {
        println!("{}", turn(&client, number, &prompt).await?);
    }
    client.close().await;
    Ok(())
}
