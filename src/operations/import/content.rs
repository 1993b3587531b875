//! The content of an import: read once to count the records, and again to upload it.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fnv::FnvHasher;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::task::spawn_blocking;

use super::csv::{CsvCounter, CsvStats};
use super::{MAX_SIZE, too_large};
use crate::operations::{ProgressReporter, ProgressUpdate};
use exa_mcp_model::lock;

/// The size of a chunk.
const CHUNK: usize = 128 * 1024;

/// The pause between two progress updates.
const PAUSE: Duration = Duration::from_millis(100);

/// The source of the content.
#[derive(Clone)]
pub(super) enum Content {
    Text(Arc<[u8]>),
    File(Arc<File>),
}

impl Content {
    /// Reads at most `length` bytes at `offset`; none after the end.
    fn read_chunk(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Text(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let remaining = bytes.get(start..).unwrap_or_default();
                Ok(remaining.get(..length).unwrap_or(remaining).to_vec())
            }
            Self::File(file) => {
                let mut file: &File = file;
                file.seek(SeekFrom::Start(offset))?;
                let mut chunk = Vec::with_capacity(length);
                file.take(length as u64).read_to_end(&mut chunk)?;
                Ok(chunk)
            }
        }
    }
}

/// Reads the whole content and counts its records.
pub(super) async fn count(content: Content) -> Result<(Content, CsvStats), String> {
    let read = spawn_blocking(move || {
        let mut counter = CsvCounter::new();
        let mut offset = 0;
        loop {
            let chunk = content
                .read_chunk(offset, CHUNK)
                .map_err(|error| format!("cannot be read: {error}"))?;
            if chunk.is_empty() {
                return Ok((content, counter.finish()?));
            }
            offset += chunk.len() as u64;
            // A file may grow while it is read, so checking its length beforehand is not enough.
            if offset > MAX_SIZE {
                return Err(too_large(offset));
            }
            counter.feed(&chunk);
        }
    });
    read.await
        .unwrap_or_else(|error| Err(format!("cannot be read: {error}")))
}

/// The upload of a content, which may take several attempts.
pub(super) struct ContentUpload {
    content: Content,
    stats: CsvStats,
    progress: Arc<UploadProgress>,
    error: Arc<Mutex<Option<String>>>,
}

impl ContentUpload {
    pub(super) fn new(content: Content, stats: CsvStats, reporter: &ProgressReporter) -> Self {
        Self {
            content,
            stats,
            progress: Arc::new(UploadProgress {
                reporter: reporter.clone(),
                size: stats.size,
                last: Mutex::new(None),
            }),
            error: Arc::default(),
        }
    }

    /// Starts an attempt: streams the content from its beginning. Returns `None` once the content has changed since it
    /// was counted.
    pub(super) fn open(&self) -> Option<impl Stream<Item = io::Result<Vec<u8>>> + Send + use<>> {
        if self.error().is_some() {
            return None;
        }
        let state = Some(UploadAttempt {
            content: self.content.clone(),
            stats: self.stats,
            progress: self.progress.clone(),
            error: self.error.clone(),
            fingerprint: FnvHasher::default(),
            sent: 0,
        });
        Some(unfold(state, |state| async { state?.next().await }))
    }

    /// Returns why the content could not be read, if that made the upload fail.
    pub(super) fn error(&self) -> Option<String> {
        lock(&self.error).clone()
    }

    /// Reports that the upload is complete.
    pub(super) fn report_completion(&self) {
        self.progress.report(self.stats.size, true);
    }
}

/// One attempt to upload the content.
struct UploadAttempt {
    content: Content,
    stats: CsvStats,
    progress: Arc<UploadProgress>,
    error: Arc<Mutex<Option<String>>>,
    fingerprint: FnvHasher,
    sent: u64,
}

impl UploadAttempt {
    /// Returns the next chunk. The last one is sent only if the whole content is what was counted, so that a file that
    /// changed meanwhile never arrives completely.
    async fn next(mut self) -> Option<(io::Result<Vec<u8>>, Option<Self>)> {
        if self.sent == self.stats.size {
            return None;
        }
        let (content, offset) = (self.content.clone(), self.sent);
        let read = spawn_blocking(move || {
            let chunk = content.read_chunk(offset, CHUNK)?;
            let end = offset + chunk.len() as u64;
            let has_more = !content.read_chunk(end, 1)?.is_empty();
            Ok::<_, io::Error>((chunk, has_more))
        });
        let read = read
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)));
        let (chunk, has_more) = match read {
            Ok(read) => read,
            Err(error) => return self.fail(format!("it can no longer be read: {error}")),
        };
        self.fingerprint.write(&chunk);
        self.sent += chunk.len() as u64;
        let is_complete = self.sent == self.stats.size && !has_more;
        let is_unchanged = self.fingerprint.finish() == self.stats.fingerprint;
        let is_partial = self.sent < self.stats.size && !chunk.is_empty() && has_more;
        if !(is_partial || (is_complete && is_unchanged)) {
            return self.fail("it was changed while it was being uploaded".to_owned());
        }
        self.progress.report(self.sent, false);
        Some((Ok(chunk), Some(self)))
    }

    fn fail(self, message: String) -> Option<(io::Result<Vec<u8>>, Option<Self>)> {
        let error = io::Error::other(message.clone());
        *lock(&self.error) = Some(message);
        Some((Err(error), None))
    }
}

/// Reports the number of uploaded bytes, at most ten times per second.
struct UploadProgress {
    reporter: ProgressReporter,
    size: u64,
    last: Mutex<Option<Instant>>,
}

impl UploadProgress {
    fn report(&self, sent: u64, is_end: bool) {
        let mut last = lock(&self.last);
        if !is_end && last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        let size = self.size;
        self.reporter.report(ProgressUpdate {
            done: sent as f64,
            total: Some(size as f64),
            message: format!("uploaded {sent} of {size} bytes"),
            is_quoted: false,
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use std::fs;
    use std::io::Write;

    fn rows(count: usize) -> String {
        let row = |number: usize| format!("Company {number},https://c{number}.example\n");
        (0..count).fold("name,url\n".to_owned(), |all, number| all + &row(number))
    }

    async fn collect(upload: &ContentUpload) -> Result<Vec<u8>, String> {
        let mut stream = std::pin::pin!(upload.open().unwrap());
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend(chunk.map_err(|error| error.to_string())?);
        }
        Ok(all)
    }

    fn temporary_file(text: &str) -> (tempfile::NamedTempFile, Content) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let content = Content::File(Arc::new(File::open(file.path()).unwrap()));
        (file, content)
    }

    #[tokio::test]
    async fn uploads_text_and_files_unchanged() {
        let text = rows(10_000);
        let (_file, from_file) = temporary_file(&text);
        for content in [Content::Text(text.clone().into_bytes().into()), from_file] {
            let (content, stats) = count(content).await.unwrap();
            assert_eq!((stats.records, stats.size), (10_000, text.len() as u64));
            let upload = ContentUpload::new(content, stats, &ProgressReporter::disabled());
            // After a failed attempt, the next one starts from the beginning.
            for _ in 0..2 {
                assert_eq!(collect(&upload).await.unwrap(), text.as_bytes());
            }
            assert_eq!(upload.error(), None);
        }
    }

    #[tokio::test]
    async fn does_not_complete_the_upload_of_a_changed_file() {
        let text = rows(10_000);
        let changes: [fn(&std::path::Path, &str); 4] = [
            |path, text| fs::write(path, format!("{text}more,https://m.example\n")).unwrap(),
            |path, text| fs::write(path, text.split_at(text.len() / 2).0).unwrap(),
            |path, text| fs::write(path, text.replacen("Company 0", "Company X", 1)).unwrap(),
            |path, _| fs::write(path, "").unwrap(),
        ];
        for change in changes {
            let (file, content) = temporary_file(&text);
            let (content, stats) = count(content).await.unwrap();
            let upload = ContentUpload::new(content, stats, &ProgressReporter::disabled());
            change(file.path(), &text);
            let error = collect(&upload).await.unwrap_err();
            assert!(error.contains("was changed"), "{error}");
            assert_eq!(upload.error().as_deref(), Some(error.as_str()));
            assert!(upload.open().is_none(), "no further attempt");
        }
    }

    #[tokio::test]
    async fn rejects_files_that_are_too_large() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_SIZE + 1).unwrap();
        let content = Content::File(Arc::new(File::open(file.path()).unwrap()));
        let Err(error) = count(content).await else {
            panic!("it is too large");
        };
        assert!(error.contains("50 MB"), "{error}");
    }

    #[tokio::test]
    async fn reports_uploaded_bytes() {
        let updates = Arc::new(Mutex::new(Vec::new()));
        let record = updates.clone();
        let reporter = ProgressReporter::new(move |update| record.lock().unwrap().push(update));
        let text = Content::Text(rows(10_000).into_bytes().into());
        let (content, stats) = count(text).await.unwrap();
        let upload = ContentUpload::new(content, stats, &reporter);
        collect(&upload).await.unwrap();
        upload.report_completion();
        let updates = updates.lock().unwrap();
        let last = updates.last().unwrap();
        assert_eq!(
            (last.done, last.total),
            (stats.size as f64, Some(stats.size as f64))
        );
        assert!(
            updates
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.done <= b.done))
        );
    }
}
