#!/usr/bin/env node
// Starts the program of the package for this platform, with its own standard streams.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");
const { name, version, optionalDependencies } = require("../package.json");

// musl and glibc have packages of their own.
function usesMusl() {
    if (process.platform !== "linux") return false;
    // Network interfaces are the slow part of the report.
    process.report.excludeNetwork = true;
    return !process.report.getReport().header.glibcVersionRuntime;
}

function folderOf(platform) {
    try {
        return path.dirname(require.resolve(`${platform}/package.json`));
    } catch {
        return undefined;
    }
}

// Usually only one of the two packages for Linux is installed, and asking for the report takes longer than looking.
function findPackage() {
    const gnu = `${name}-${process.platform}-${process.arch}`;
    const musl = `${gnu}-musl`;
    const folders = { [gnu]: folderOf(gnu), [musl]: process.platform === "linux" ? folderOf(musl) : undefined };
    const installed = Object.keys(folders).filter((platform) => folders[platform]);
    const platform = installed.length === 1 ? installed[0] : usesMusl() ? musl : gnu;
    return { platform, folder: folders[platform] };
}

function fail(message) {
    process.stderr.write(`${name}: ${message}\n`);
    process.exit(1);
}

function findProgram() {
    const { platform, folder } = findPackage();
    const supported = Object.keys(optionalDependencies);
    if (!supported.includes(platform)) {
        const platforms = supported.map((supportedName) => supportedName.slice(name.length + 1)).join(", ");
        fail(
            `there is no program for ${platform.slice(name.length + 1)}; available: ${platforms}. ` +
                "Build it from source instead: cargo install --git https://github.com/exa-mcp-server/exa-mcp-server",
        );
    }
    if (!folder) {
        fail(
            `the package ${platform}@${version} is missing. It is an optional dependency: install again without ` +
                "--omit=optional or --no-optional, and on the machine that runs it.",
        );
    }
    return path.join(folder, "bin", process.platform === "win32" ? "exa-mcp-server.exe" : "exa-mcp-server");
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
