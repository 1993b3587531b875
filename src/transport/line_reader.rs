//! Splits a byte stream into lines of bounded length.

use std::mem;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The size of the read buffer. It is fully allocated up front, and few requests are larger.
const READ_SIZE: usize = 4 * 1024;

/// The outcome of one read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A complete line without its line feed, which the last line of the stream may lack.
    Text(Vec<u8>),
    /// A line over the limit, which is skipped.
    TooLong,
    /// The stream ended or failed.
    End,
}

/// Reads lines while buffering at most `limit` bytes.
pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
    /// The line so far. It is stored here because the caller may drop the future of [`LineReader::next`]
    /// and call it again.
    line: Vec<u8>,
    /// Whether the rest of the current line is discarded.
    skipping: bool,
}

/// The effect of a chunk on the current line.
enum ChunkEffect {
    Incomplete,
    Skipped,
    Complete,
    TooLong,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `limit` bytes.
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_SIZE, reader),
            limit,
            line: Vec::new(),
            skipping: false,
        }
    }

    /// Returns the next line. This method is cancel safe.
    pub(super) async fn next(&mut self) -> Line {
        loop {
            let Ok(available) = self.reader.fill_buf().await else {
                return Line::End;
            };
            if available.is_empty() {
                return self.final_line();
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            let chunk = available.get(..end.unwrap_or(used)).unwrap_or_default();
            let effect = append_chunk(
                &mut self.line,
                &mut self.skipping,
                self.limit,
                chunk,
                end.is_some(),
            );
            self.reader.consume(used);
            match effect {
                ChunkEffect::Incomplete | ChunkEffect::Skipped => {}
                ChunkEffect::Complete => return Line::Text(mem::take(&mut self.line)),
                ChunkEffect::TooLong => return Line::TooLong,
            }
        }
    }

    /// Returns the final line. Piped requests often lack the trailing line feed.
    fn final_line(&mut self) -> Line {
        match mem::take(&mut self.line) {
            line if line.is_empty() => Line::End,
            line => Line::Text(line),
        }
    }
}

/// Appends a chunk to the line. `ends` means that a line feed follows.
fn append_chunk(
    line: &mut Vec<u8>,
    skipping: &mut bool,
    limit: usize,
    chunk: &[u8],
    ends: bool,
) -> ChunkEffect {
    if *skipping {
        *skipping = !ends;
        return ChunkEffect::Skipped;
    }
    if line.len().saturating_add(chunk.len()) > limit {
        // Release the memory: one huge line must not occupy it for the lifetime of the process.
        *line = Vec::new();
        *skipping = !ends;
        return ChunkEffect::TooLong;
    }
    line.extend_from_slice(chunk);
    if ends {
        ChunkEffect::Complete
    } else {
        ChunkEffect::Incomplete
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncWriteExt, time::timeout};

    use super::*;

    async fn read_all(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = LineReader::new(input, limit);
        let mut lines_read = Vec::new();
        loop {
            match lines.next().await {
                Line::End => return lines_read,
                line => lines_read.push(line),
            }
        }
    }

    fn text(text: &str) -> Line {
        Line::Text(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn splits_at_line_feeds_and_at_the_end() {
        let lines_read = read_all(b"one\n\ntwo\r\nthree", 10).await;
        assert_eq!(
            lines_read,
            [text("one"), text(""), text("two\r"), text("three")]
        );
    }

    #[tokio::test]
    async fn accepts_lines_at_the_limit_and_skips_longer_ones() {
        let lines_read = read_all(b"12345\n123456\n12\n", 5).await;
        assert_eq!(lines_read, [text("12345"), Line::TooLong, text("12")]);
    }

    #[tokio::test]
    async fn reports_a_long_line_once() {
        let mut input = vec![b'x'; 5 * READ_SIZE];
        input.extend_from_slice(b"\nok\n");
        input.extend(vec![b'y'; 3 * READ_SIZE]);
        let lines_read = read_all(&input, 100).await;
        assert_eq!(lines_read, [Line::TooLong, text("ok"), Line::TooLong]);
    }

    #[tokio::test]
    async fn next_is_cancel_safe() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut lines = LineReader::new(server, 100);
        client.write_all(b"half").await.unwrap();
        let pause = Duration::from_millis(5);
        assert!(timeout(pause, lines.next()).await.is_err());
        client.write_all(b" whole\n").await.unwrap();
        assert_eq!(lines.next().await, text("half whole"));
    }
}
