//! What standard output is: a terminal with a width, colors and links, or a pipe.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};

use crate::config::variable;

/// The width of a table if there is no terminal.
const DEFAULT_WIDTH: u16 = 100;

/// When colors are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(in super::super) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The properties of standard output and standard error.
#[derive(Debug, Clone)]
pub(in super::super) struct Terminal {
    /// Standard output is a terminal.
    pub(in super::super) is_terminal: bool,
    /// Progress can be shown on standard error.
    pub(in super::super) has_progress: bool,
    /// The width in columns.
    pub(super) width: u16,
    /// Colors and links are used.
    colors: bool,
    /// The program with the flags of this command, for commands that are proposed.
    pub(in super::super) program: String,
}

impl Terminal {
    /// Returns the properties of this process's streams.
    pub(in super::super) fn detect(color: ColorChoice, program: String) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
        // NO_COLOR counts if it is set to anything but an empty text.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colors = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_dumb && !no_color,
        };
        let columns = variable("COLUMNS").and_then(|text| text.trim().parse().ok());
        let size = if is_terminal {
            columns_of_stdout()
        } else {
            None
        };
        let width = size.or(columns).filter(|width| *width > 0);
        Self {
            is_terminal,
            has_progress: std::io::stderr().is_terminal() && !is_dumb,
            width: width.unwrap_or(DEFAULT_WIDTH),
            colors,
            program,
        }
    }

    /// Returns a heading in bold.
    pub(super) fn bold(&self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// Returns secondary text.
    pub(super) fn dim(&self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    /// Returns an address in color.
    pub(super) fn address(&self, text: &str) -> String {
        self.styled(AnsiColor::Cyan.on_default(), text)
    }

    /// Returns text that leads to an address when it is clicked.
    pub(super) fn link(&self, text: &str, url: &str) -> String {
        let is_plain = |c: char| c.is_ascii_graphic();
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if self.colors && is_web && url.chars().all(is_plain) {
            format!("\u{1b}]8;;{url}\u{1b}\\{text}\u{1b}]8;;\u{1b}\\")
        } else {
            text.to_owned()
        }
    }

    fn styled(&self, style: Style, text: &str) -> String {
        if self.colors && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Returns the width of the terminal. A terminal may know its width without its height.
#[cfg(unix)]
fn columns_of_stdout() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn columns_of_stdout() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}
