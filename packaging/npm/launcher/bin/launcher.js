#!/usr/bin/env node
// Starts the program of the package for this platform, with its own standard streams.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { name, version, repository, optionalDependencies } = require("../package.json");

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
                `Build it from source instead: cargo install --git ${repository.url.replace(/^git\+|\.git$/g, "")}`,
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

// A program for another C library cannot be started, which the system reports as a missing file.
function checkLoader(program) {
    const start = Buffer.alloc(4096);
    const file = fs.openSync(program);
    fs.readSync(file, start);
    fs.closeSync(file);
    const loader = start.toString("latin1").match(/(?:\/[\w.-]+)+\/ld-[\w.-]+/)?.[0];
    if (loader && !fs.existsSync(loader)) {
        fail(
            `the program needs ${loader}, which this system does not have. Install the other package for Linux ` +
                "(npm install --libc=musl or --libc=glibc), or build it from source.",
        );
    }
}

function start(program, args) {
    if (process.platform === "linux") checkLoader(program);
    // Newer versions of Node can become the program instead of waiting for it.
    if (process.execve && process.platform !== "win32") process.execve(program, [name, ...args]);

    const { spawn } = require("node:child_process");
    // The program uses this name in its hints.
    const child = spawn(program, args, { stdio: "inherit", argv0: name });
    // The terminal sends these to both processes; the program decides when to stop.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
        process.on(signal, () => child.kill(signal));
    }
    child.on("error", (error) => fail(`cannot start the program: ${error.message}`));
    child.on("exit", (code, signal) => {
        process.exit(signal ? 128 + require("node:os").constants.signals[signal] : code);
    });
}

const program = findProgram();
try {
    fs.accessSync(program, fs.constants.X_OK);
} catch (error) {
    fail(`cannot start the program: ${error.message}`);
}
start(program, process.argv.slice(2));
