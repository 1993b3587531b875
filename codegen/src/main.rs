//! Command line of the generator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use codegen::diff::Impact;
use codegen::{Error, GeneratedOutput, Result, diff, generate, snapshot_loader};

const USAGE: &str = "\
Usage: cargo run -p codegen -- COMMAND

  generate [ROOT]       write generated/ and codegen-snapshots/ from data-design/
  check [ROOT]          compare them byte for byte and write nothing
  diff OLD_DIR NEW_DIR  print the API changes of a spec update as Markdown; each folder is a
                        repository, its codegen-snapshots/ or its data-design/
  update [NAME]         read the sources in data-design/UPSTREAM.toml, or the one called NAME, write
                        the specs and everything generated from them, and print what changed; after
                        an error nothing is written

ROOT is the repository, by default the current directory.

Options of generate and check:
  --strict              fail if an operation or a part of one is not supported; otherwise it is left
                        out with a notice

Options of diff and update:
  --json                print JSON instead of Markdown
  --exit-code           exit with 0 if nothing changed, 10 if existing callers are not affected, 20 if
                        they may be; 1 and 2 are errors

Options of update:
  --from FILE|DIR|URL   read a file, a folder with files of the served names, or another address;
                        a URL that ends in `/` is a folder
  --root ROOT           the repository
  --timeout SECONDS     time limit of each request, by default 60
  --accept-removals     accept a document that looks truncated
  --quote               show upstream's own text where our wording is missing";

/// What a command prints, and its exit status.
struct CommandOutput {
    text: String,
    status: u8,
}

impl From<String> for CommandOutput {
    fn from(text: String) -> Self {
        Self { text, status: 0 }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Generator(#[from] Error),
    #[cfg(feature = "update")]
    #[error(transparent)]
    Update(#[from] codegen::update::UpdateError),
}

impl CommandError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Generator(error) => matches!(error, Error::Usage(_)),
            #[cfg(feature = "update")]
            Self::Update(error) => matches!(error, codegen::update::UpdateError::Usage(_)),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(output) => {
            print!("{}", output.text);
            ExitCode::from(output.status)
        }
        Err(error) if error.is_usage() => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> std::result::Result<CommandOutput, CommandError> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [command @ ("generate" | "check"), options @ ..] => {
            let options = Options::parse(options)?;
            let output = options.output()?;
            if *command == "check" {
                output.compare(options.root)?;
                return Ok(format!("{} files are up to date\n", output.files.len()).into());
            }
            let changed = output.write(options.root)?.len();
            Ok(format!("{changed} of {} files changed\n", output.files.len()).into())
        }
        ["diff", rest @ ..] => compare(rest),
        #[cfg(feature = "update")]
        ["update", rest @ ..] => update(rest),
        ["help" | "--help" | "-h"] => Ok(format!("{USAGE}\n").into()),
        [] => Err(Error::Usage("missing command".to_owned()).into()),
        [first, ..] => {
            let message = format!("unknown command or wrong arguments: `{first}`");
            Err(Error::Usage(message).into())
        }
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

fn compare(arguments: &[&str]) -> std::result::Result<CommandOutput, CommandError> {
    let (flags, folders): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|a| a.starts_with("--"));
    if let Some(unknown) = flags
        .iter()
        .find(|f| !["--json", "--exit-code"].contains(f))
    {
        return Err(Error::Usage(format!("unexpected argument `{unknown}`")).into());
    }
    let [old, new] = folders.as_slice() else {
        return Err(Error::Usage("`diff` needs two folders".to_owned()).into());
    };
    let (old_folder, new_folder) = (PathBuf::from(old), PathBuf::from(new));
    let old = snapshot_loader::load(&old_folder)?;
    let new = snapshot_loader::load(&new_folder)?;
    #[cfg_attr(not(feature = "update"), allow(unused_mut))]
    let mut changes = diff::compare_versions(&old, &new);
    #[cfg(feature = "update")]
    changes.extend(codegen::update::stale_wording(&old_folder, &new_folder)?);
    let text = if flags.contains(&"--json") {
        format!("{:#}\n", diff::to_json(&changes))
    } else {
        diff::report(&changes)
    };
    let worst = changes.iter().map(|change| change.impact).min();
    let status = if flags.contains(&"--exit-code") {
        Impact::exit_code(worst)
    } else {
        0
    };
    Ok(CommandOutput { text, status })
}

#[cfg(feature = "update")]
fn update(arguments: &[&str]) -> std::result::Result<CommandOutput, CommandError> {
    let command = codegen::update::parse_command(arguments)?;
    let report = codegen::update::update(&command.options)?;
    let status = if command.exit_code {
        Impact::exit_code(report.impact())
    } else {
        0
    };
    Ok(CommandOutput {
        text: command.format(&report),
        status,
    })
}
