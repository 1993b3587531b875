// Loaded into every test file: a file that calls `process.exit` fails, whatever its exit code, because its
// remaining tests would be skipped silently.

if (/\.test\.[cm]?js$/.test(process.argv[1] ?? "")) {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    console.error(new Error(`process.exit(${code ?? ""}) in a test file`).stack);
    exit(Number(code) || 1);
  };
}
