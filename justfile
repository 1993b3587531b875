# Commands for daily work. `just` lists them; https://just.systems explains the tool.

_default:
    @just --list

# Check that everything compiles, tests included.
check:
    cargo check --workspace --all-targets

# Format the code.
fmt:
    cargo fmt --all

# Run the linter as CI does.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Run the tests whose name contains FILTER, for example `just t budgets`.
t FILTER:
    cargo nextest run --workspace --no-tests=fail {{ FILTER }}

# Run the tests of one package, for example `just tp exa-mcp-store`.
tp PACKAGE:
    cargo nextest run -p {{ PACKAGE }}

# Run all checks of CI (about half an hour); `just test --full` runs the slow ones too.
test *ARGUMENTS:
    ./scripts/test {{ ARGUMENTS }}

# Call an operation of the sandbox, for example `just call search '{"query": "batteries"}'`.
call OPERATION ARGUMENTS="{}":
    cargo run --quiet -- --sandbox call {{ OPERATION }} '{{ ARGUMENTS }}'

# Start an HTTP server on the sandbox at http://127.0.0.1:3000/mcp.
serve:
    cargo run -- --sandbox http

# Regenerate generated/ and codegen-snapshots/ from data-design/.
generate:
    cargo build --features codegen

# Read new specs from upstream and regenerate, for example `just update --from exa-spec.yaml`.
update *ARGUMENTS:
    cargo run -p codegen -- update {{ ARGUMENTS }}

# Check that generated/ and codegen-snapshots/ belong to data-design/.
fresh:
    cargo run -p codegen -- check

# Show what a spec update changes, compared with another checkout, or its `codegen-snapshots/` or `data-design/`.
diff OLD:
    cargo run -p codegen -- diff {{ OLD }} .

# Build the API documentation.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Check the spelling (needs `cargo install typos-cli`).
spell:
    typos

# Build the binary that is published.
dist:
    cargo build --profile dist --locked
