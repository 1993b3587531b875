// Loaded into every test file: one that ends itself fails, whatever its exit code. The tests that were still
// to come would be lost without a word.

if (/\.test\.[cm]?js$/.test(process.argv[1] ?? "")) {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    console.error(new Error(`process.exit(${code ?? ""}) in a test file`).stack);
    exit(Number(code) || 1);
  };
}
