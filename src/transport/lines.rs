//! Splits a byte stream into lines of bounded length.

use std::mem;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// How much is read from the stream at once. All of it is touched at the start, and few requests are
/// larger.
const READ_SIZE: usize = 4 * 1024;

/// One step of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line without its line feed; the last line of the stream may have had none.
    Text(Vec<u8>),
    /// A line over the limit; it is skipped.
    TooLong,
    /// The stream has ended, or can no longer be read.
    End,
}

/// Reads lines without ever holding more of one than the limit.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    /// The line so far. It lives here because [`Lines::next`] is dropped and called again whenever
    /// the service has something else to do.
    line: Vec<u8>,
    /// The rest of the present line is to be thrown away.
    skipping: bool,
}

/// What a piece of the stream means for the present line.
enum Step {
    More,
    Skipped,
    Whole,
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes.
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_SIZE, reader),
            limit,
            line: Vec::new(),
            skipping: false,
        }
    }

    /// Gives the next line. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Line {
        loop {
            let Ok(available) = self.reader.fill_buf().await else {
                return Line::End;
            };
            if available.is_empty() {
                return self.last();
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            let piece = available.get(..end.unwrap_or(used)).unwrap_or_default();
            let step = take(
                &mut self.line,
                &mut self.skipping,
                self.limit,
                piece,
                end.is_some(),
            );
            self.reader.consume(used);
            match step {
                Step::More | Step::Skipped => {}
                Step::Whole => return Line::Text(mem::take(&mut self.line)),
                Step::TooLong => return Line::TooLong,
            }
        }
    }

    /// What is left when the stream ends: people who pipe a request in often leave the line feed out.
    fn last(&mut self) -> Line {
        match mem::take(&mut self.line) {
            rest if rest.is_empty() => Line::End,
            rest => Line::Text(rest),
        }
    }
}

/// Adds a piece to the line; `ends` says that a line feed follows it.
fn take(line: &mut Vec<u8>, skipping: &mut bool, limit: usize, piece: &[u8], ends: bool) -> Step {
    if *skipping {
        *skipping = !ends;
        return Step::Skipped;
    }
    if line.len().saturating_add(piece.len()) > limit {
        // The memory goes back too: one huge line must not weigh on the process for ever.
        *line = Vec::new();
        *skipping = !ends;
        return Step::TooLong;
    }
    line.extend_from_slice(piece);
    if ends { Step::Whole } else { Step::More }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncWriteExt, time::timeout};

    use super::*;

    async fn all(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, limit);
        let mut seen = Vec::new();
        loop {
            match lines.next().await {
                Line::End => return seen,
                line => seen.push(line),
            }
        }
    }

    fn text(text: &str) -> Line {
        Line::Text(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_at_the_line_feed_or_at_the_end() {
        let seen = all(b"one\n\ntwo\r\nthree", 10).await;
        assert_eq!(seen, [text("one"), text(""), text("two\r"), text("three")]);
    }

    #[tokio::test]
    async fn a_line_at_the_limit_passes_and_one_over_it_is_skipped() {
        let seen = all(b"12345\n123456\n12\n", 5).await;
        assert_eq!(seen, [text("12345"), Line::TooLong, text("12")]);
    }

    #[tokio::test]
    async fn a_long_line_is_skipped_over_many_reads_and_reported_once() {
        let mut input = vec![b'x'; 5 * READ_SIZE];
        input.extend_from_slice(b"\nok\n");
        input.extend(vec![b'y'; 3 * READ_SIZE]);
        let seen = all(&input, 100).await;
        assert_eq!(seen, [Line::TooLong, text("ok"), Line::TooLong]);
    }

    #[tokio::test]
    async fn a_dropped_read_loses_nothing() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut lines = Lines::new(server, 100);
        client.write_all(b"half").await.unwrap();
        let pause = Duration::from_millis(5);
        assert!(timeout(pause, lines.next()).await.is_err());
        client.write_all(b" whole\n").await.unwrap();
        assert_eq!(lines.next().await, text("half whole"));
    }
}
