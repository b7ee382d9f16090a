export * from "./model.js";
export * from "./npm.js";
export * from "./requests.js";
export * from "./sidecar.js";
export * from "./tap.js";
export * from "./waiting.js";
