//! The arguments of `codegen update`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::UpdateError;
use super::{UpdateOptions, UpdateReport};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A parsed command line.
#[derive(Debug, Clone)]
pub struct Command {
    /// What to update.
    pub options: UpdateOptions,
    /// Prints JSON instead of Markdown.
    json: bool,
    /// Quotes upstream's texts where wording is missing.
    quote: bool,
    /// Reports the impact in the exit status.
    pub exit_code: bool,
}

impl Command {
    /// Returns the report in the requested form.
    #[must_use]
    pub fn format(&self, report: &UpdateReport) -> String {
        if self.json {
            format!("{:#}\n", report.to_json())
        } else {
            report.to_markdown(self.quote)
        }
    }
}

/// Parses the arguments after `update`.
pub fn parse(arguments: &[&str]) -> Result<Command, UpdateError> {
    let mut command = Command {
        options: UpdateOptions {
            root: PathBuf::from("."),
            from: None,
            name: None,
            timeout: TIMEOUT,
            accept_removals: false,
            today: today(),
        },
        json: false,
        quote: false,
        exit_code: false,
    };
    let options = &mut command.options;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let missing = || UpdateError::Usage(format!("`{argument}` needs a value"));
            arguments.next().copied().ok_or_else(missing)
        };
        match *argument {
            "--from" => options.from = Some(value()?.to_owned()),
            "--root" => options.root = PathBuf::from(value()?),
            "--timeout" => options.timeout = parse_seconds(value()?)?,
            "--accept-removals" => options.accept_removals = true,
            "--json" => command.json = true,
            "--quote" => command.quote = true,
            "--exit-code" => command.exit_code = true,
            name if !name.starts_with('-') && options.name.is_none() => {
                options.name = Some(name.to_owned());
            }
            other => {
                return Err(UpdateError::Usage(format!("unexpected argument `{other}`")));
            }
        }
    }
    Ok(command)
}

fn parse_seconds(text: &str) -> Result<Duration, UpdateError> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(UpdateError::Usage(format!(
            "`--timeout` needs a number of seconds up to 3600, found `{text}`"
        ))),
    }
}

/// Returns the day in UTC, as `2026-11-18`.
fn today() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = elapsed.map_or(0, |elapsed| elapsed.as_secs());
    let seconds = i64::try_from(seconds).unwrap_or(0);
    let now = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    now.format("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options_in_any_order() {
        let command = parse(&["team", "--from", "x.yaml", "--timeout", "0.5", "--json"]).unwrap();
        assert_eq!(command.options.name.as_deref(), Some("team"));
        assert_eq!(command.options.from.as_deref(), Some("x.yaml"));
        assert_eq!(command.options.timeout, Duration::from_millis(500));
        assert_eq!(command.options.today.len(), 10);
    }

    #[test]
    fn rejects_unknown_and_incomplete_arguments() {
        for arguments in [
            &["--from"][..],
            &["a", "b"],
            &["--unknown"],
            &["--timeout", "never"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
