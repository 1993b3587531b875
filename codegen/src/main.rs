//! Command line of the generator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use codegen::{Error, Result, diff, generate, snapshot_loader};

const USAGE: &str = "\
Usage: cargo run -p codegen -- COMMAND

  generate [ROOT]       write generated/ and codegen-snapshots/ from data-design/
  check [ROOT]          compare them byte for byte and write nothing
  diff OLD_DIR NEW_DIR  print the API changes of a spec update as Markdown; each folder is a
                        repository, its codegen-snapshots/ or its data-design/

ROOT is the repository, by default the current directory.";

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
        ["generate"] => write(Path::new(".")),
        ["generate", root] => write(Path::new(root)),
        ["check"] => check(Path::new(".")),
        ["check", root] => check(Path::new(root)),
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

fn write(root: &Path) -> Result<String> {
    let output = generate(root)?;
    for notice in &output.notices {
        eprintln!("notice: {notice}");
    }
    let changed = output.write(root)?;
    Ok(format!(
        "{} of {} files changed\n",
        changed.len(),
        output.files.len()
    ))
}

fn check(root: &Path) -> Result<String> {
    let output = generate(root)?;
    for notice in &output.notices {
        eprintln!("notice: {notice}");
    }
    output.compare(root)?;
    Ok(format!("{} files are up to date\n", output.files.len()))
}
