//! Reads `{"type", "value"}` a line and answers with the value as the types of typify pass it on.

#![allow(dead_code, irrefutable_let_patterns, clippy::all)]

use serde::{de::DeserializeOwned, Serialize};
use serde_json::{json, Value};
use std::io::BufRead;

include!(concat!(env!("OUT_DIR"), "/types.rs"));

fn pass<T: DeserializeOwned + Serialize>(value: Value) -> Result<Value, String> {
    let typed: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

fn main() {
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let name = case["type"].as_str().expect("a name").to_owned();
        match again(&name, case["value"].clone()) {
            Ok(value) => println!("{}", json!({ "value": value })),
            Err(error) => println!("{}", json!({ "error": error })),
        }
    }
}
