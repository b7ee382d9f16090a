"use strict";
/** Finds the program that the package of this platform holds. See index.d.ts. */

const { dirname, join } = require("node:path");

const { version } = require("./package.json");

const PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "linux-x64-musl", "win32-x64"];

class ProgramMissing extends Error {
  name = "ProgramMissing";
}

function program() {
  const platform = `${process.platform}-${process.arch}`;
  // npm installs the one that fits the C library.
  const names = [platform, `${platform}-musl`].filter((each) => PLATFORMS.includes(each)).map((each) => `@context-sidecar/${each}`);
  const name = names.find(isInstalled);
  if (name === undefined) {
    throw new ProgramMissing(
      names.length > 0
        ? `The package ${names.join(" or ")}, which holds the program, is not installed: install its tarball with that of context-sidecar.`
        : `There is no build for ${platform}. Install the Python package instead.`,
    );
  }
  const manifest = require.resolve(`${name}/package.json`);
  const found = require(manifest).version;
  if (found !== version) {
    throw new ProgramMissing(`context-sidecar is ${version}, but ${name} is ${found}: install the same version of both.`);
  }
  return join(dirname(manifest), "context-sidecar", process.platform === "win32" ? "context-sidecar.exe" : "context-sidecar");
}

function isInstalled(name) {
  try {
    return require.resolve(`${name}/package.json`) !== "";
  } catch {
    return false;
  }
}

module.exports = { program, ProgramMissing };
