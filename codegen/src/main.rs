//! Command line of the generator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use codegen::{Error, GeneratedOutput, Result, diff, generate, snapshot_loader};

const USAGE: &str = "\
Usage: cargo run -p codegen -- COMMAND

  generate [--strict] [ROOT]  write generated/ and codegen-snapshots/ from data-design/
  check [--strict] [ROOT]     compare them byte for byte and write nothing
  diff OLD_DIR NEW_DIR        print the API changes of a spec update as Markdown; each folder is a
                              repository, its codegen-snapshots/ or its data-design/

ROOT is the repository, by default the current directory. What the generator does not support is left
out with a notice; with --strict it is an error, and nothing is written.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error @ Error::Usage(_)) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [command @ ("generate" | "check"), options @ ..] => {
            let options = Options::parse(options)?;
            let output = options.output()?;
            if *command == "check" {
                output.compare(options.root)?;
                return Ok(format!("{} files are up to date\n", output.files.len()));
            }
            let changed = output.write(options.root)?.len();
            Ok(format!(
                "{changed} of {} files changed\n",
                output.files.len()
            ))
        }
        ["diff", old, new] => {
            let old = snapshot_loader::load(&PathBuf::from(old))?;
            let new = snapshot_loader::load(&PathBuf::from(new))?;
            Ok(diff::report(&diff::compare(&old, &new)))
        }
        ["help" | "--help" | "-h"] => Ok(format!("{USAGE}\n")),
        [] => Err(Error::Usage("missing command".to_owned())),
        [first, ..] => Err(Error::Usage(format!(
            "unknown command or wrong arguments: `{first}`"
        ))),
    }
}

/// The options of `generate` and `check`.
struct Options<'a> {
    root: &'a Path,
    strict: bool,
}

impl<'a> Options<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self> {
        let (flags, roots): (Vec<&str>, Vec<&str>) = arguments
            .iter()
            .partition(|argument| argument.starts_with('-'));
        if let Some(unknown) = flags.iter().find(|flag| **flag != "--strict") {
            return Err(Error::Usage(format!("unknown option: `{unknown}`")));
        }
        let root = match roots.as_slice() {
            [] => ".",
            [root] => root,
            [_, second, ..] => {
                return Err(Error::Usage(format!("unexpected argument: `{second}`")));
            }
        };
        Ok(Self {
            root: Path::new(root),
            strict: !flags.is_empty(),
        })
    }

    /// Generates everything and prints the notices.
    fn output(&self) -> Result<GeneratedOutput> {
        let output = generate(self.root)?;
        for notice in &output.notices {
            eprintln!("notice: {notice}");
        }
        if self.strict {
            output.into_strict()
        } else {
            Ok(output)
        }
    }
}
