//! Writes the types that typify makes of the schema, and a function that finds one by its name.

use std::{env, fmt::Write, fs, path::Path};
use typify::{TypeSpace, TypeSpaceSettings};

fn main() {
    println!("cargo:rerun-if-env-changed=SCHEMA");
    let schema = env::var("SCHEMA").expect("SCHEMA names the schema");
    println!("cargo:rerun-if-changed={schema}");
    let text = fs::read_to_string(schema).expect("the schema can be read");
    let root = serde_json::from_str(&text).expect("the schema is JSON Schema");
    let mut space = TypeSpace::new(&TypeSpaceSettings::default());
    space.add_root_schema(root).expect("typify takes the schema");

    let document: serde_json::Value = serde_json::from_str(&text).expect("the schema is JSON");
    let mut arms = String::new();
    for name in document["$defs"].as_object().expect("definitions").keys() {
        writeln!(arms, "        {name:?} => pass::<{name}>(value),").expect("a string grows");
    }
    let code = format!(
        "{}\nfn again(name: &str, value: Value) -> Result<Value, String> {{\n    match name {{\n{arms}        _ => Err(\"no such type\".into()),\n    }}\n}}\n",
        space.to_stream()
    );
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("types.rs"), code).expect("the types can be written");
}
