#!/usr/bin/env node
// Starts the program of the package for this platform, with its own standard streams.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");
const { name, version, optionalDependencies } = require("../package.json");

// musl and glibc have packages of their own, and both may be installed.
function usesMusl() {
    if (process.platform !== "linux") return false;
    // Network interfaces are the slow part of the report.
    process.report.excludeNetwork = true;
    return !process.report.getReport().header.glibcVersionRuntime;
}

function platformPackage() {
    const platform = `${name}-${process.platform}-${process.arch}`;
    return usesMusl() ? `${platform}-musl` : platform;
}

function fail(message) {
    process.stderr.write(`${name}: ${message}\n`);
    process.exit(1);
}

function findProgram() {
    const platform = platformPackage();
    const supported = Object.keys(optionalDependencies);
    if (!supported.includes(platform)) {
        const platforms = supported.map((supportedName) => supportedName.slice(name.length + 1)).join(", ");
        fail(
            `there is no program for ${platform.slice(name.length + 1)}; available: ${platforms}. ` +
                "Build it from source instead: cargo install --git https://github.com/exa-mcp-server/exa-mcp-server",
        );
    }
    const file = process.platform === "win32" ? "exa-mcp-server.exe" : "exa-mcp-server";
    try {
        return path.join(path.dirname(require.resolve(`${platform}/package.json`)), "bin", file);
    } catch {
        fail(
            `the package ${platform}@${version} is missing. It is an optional dependency: install again without ` +
                "--omit=optional or --no-optional, and on the machine that runs it.",
        );
    }
}

const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
// The terminal sends these to both processes; the program decides when to stop.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => fail(`cannot start the program: ${error.message}`));
child.on("exit", (code, signal) => {
    process.exit(signal ? 128 + constants.signals[signal] : code);
});
