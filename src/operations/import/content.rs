//! The content of an import: read once to count it, and once more to send it.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fnv::FnvHasher;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::task::spawn_blocking;

use super::csv::{Counter, Survey};
use super::{LARGEST, too_large};
use crate::operations::{Progress, Step};
use exa_mcp_model::lock;

/// How much is read and sent at once.
const PIECE: usize = 128 * 1024;

/// The pause between two steps that are told.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the bytes are.
#[derive(Clone)]
pub(super) enum Content {
    Text(Arc<[u8]>),
    File(Arc<File>),
}

impl Content {
    /// At most so many bytes of the content; none after its end.
    fn piece(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Text(bytes) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX);
                let rest = bytes.get(from..).unwrap_or_default();
                Ok(rest.get(..most).unwrap_or(rest).to_vec())
            }
            Self::File(file) => {
                let mut file: &File = file;
                file.seek(SeekFrom::Start(at))?;
                let mut piece = Vec::with_capacity(most);
                file.take(most as u64).read_to_end(&mut piece)?;
                Ok(piece)
            }
        }
    }
}

/// Reads the content to its end and counts what is in it.
pub(super) async fn survey(content: Content) -> Result<(Content, Survey), String> {
    let read = spawn_blocking(move || {
        let mut counter = Counter::new();
        let mut at = 0;
        loop {
            let piece = content
                .piece(at, PIECE)
                .map_err(|error| format!("cannot be read: {error}"))?;
            if piece.is_empty() {
                return Ok((content, counter.finish()?));
            }
            at += piece.len() as u64;
            // A file may grow while it is read, so its length alone is no bound.
            if at > LARGEST {
                return Err(too_large(at));
            }
            counter.feed(&piece);
        }
    });
    read.await
        .unwrap_or_else(|error| Err(format!("cannot be read: {error}")))
}

/// Content on its way.
pub(super) struct Sending {
    content: Content,
    survey: Survey,
    teller: Arc<Teller>,
    problem: Arc<Mutex<Option<String>>>,
}

impl Sending {
    pub(super) fn new(content: Content, survey: Survey, progress: &Progress) -> Self {
        Self {
            content,
            survey,
            teller: Arc::new(Teller {
                progress: progress.clone(),
                size: survey.size,
                last: Mutex::new(None),
            }),
            problem: Arc::default(),
        }
    }

    /// The content from its beginning; nothing once it has turned out to be another than was counted.
    pub(super) fn open(&self) -> Option<impl Stream<Item = io::Result<Vec<u8>>> + Send + use<>> {
        if self.problem().is_some() {
            return None;
        }
        let state = Some(Flow {
            content: self.content.clone(),
            survey: self.survey,
            teller: self.teller.clone(),
            problem: self.problem.clone(),
            fingerprint: FnvHasher::default(),
            sent: 0,
        });
        Some(unfold(state, |state| async { state?.next().await }))
    }

    /// Why the content could not be sent, if it was its own fault.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// Tells that everything has arrived.
    pub(super) fn tell_end(&self) {
        self.teller.tell(self.survey.size, true);
    }
}

/// One attempt to send the content.
struct Flow {
    content: Content,
    survey: Survey,
    teller: Arc<Teller>,
    problem: Arc<Mutex<Option<String>>>,
    fingerprint: FnvHasher,
    sent: u64,
}

impl Flow {
    /// The next piece. The last one is held back until all of it is known to be what was counted, so
    /// that a file which changed meanwhile never arrives whole.
    async fn next(mut self) -> Option<(io::Result<Vec<u8>>, Option<Self>)> {
        if self.sent == self.survey.size {
            return None;
        }
        let (content, at) = (self.content.clone(), self.sent);
        let read = spawn_blocking(move || {
            let piece = content.piece(at, PIECE)?;
            let end = at + piece.len() as u64;
            let goes_on = !content.piece(end, 1)?.is_empty();
            Ok::<_, io::Error>((piece, goes_on))
        });
        let read = read
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)));
        let (piece, goes_on) = match read {
            Ok(read) => read,
            Err(error) => return self.fail(format!("it cannot be read any more: {error}")),
        };
        self.fingerprint.write(&piece);
        self.sent += piece.len() as u64;
        let complete = self.sent == self.survey.size && !goes_on;
        let same = self.fingerprint.finish() == self.survey.fingerprint;
        let short = self.sent < self.survey.size && !piece.is_empty() && goes_on;
        if !(short || (complete && same)) {
            return self.fail("it was changed while it was being uploaded".to_owned());
        }
        self.teller.tell(self.sent, false);
        Some((Ok(piece), Some(self)))
    }

    fn fail(self, problem: String) -> Option<(io::Result<Vec<u8>>, Option<Self>)> {
        let error = io::Error::other(problem.clone());
        *lock(&self.problem) = Some(problem);
        Some((Err(error), None))
    }
}

/// Tells how many bytes are on their way, ten times a second at most.
struct Teller {
    progress: Progress,
    size: u64,
    last: Mutex<Option<Instant>>,
}

impl Teller {
    fn tell(&self, sent: u64, is_end: bool) {
        let mut last = lock(&self.last);
        if !is_end && last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        let size = self.size;
        self.progress.tell(Step {
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

    async fn collected(sending: &Sending) -> Result<Vec<u8>, String> {
        let mut stream = std::pin::pin!(sending.open().unwrap());
        let mut all = Vec::new();
        while let Some(piece) = stream.next().await {
            all.extend(piece.map_err(|error| error.to_string())?);
        }
        Ok(all)
    }

    fn stored(text: &str) -> (tempfile::NamedTempFile, Content) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let content = Content::File(Arc::new(File::open(file.path()).unwrap()));
        (file, content)
    }

    #[tokio::test]
    async fn text_and_file_are_sent_as_they_are() {
        let text = rows(10_000);
        let (_file, from_file) = stored(&text);
        for content in [Content::Text(text.clone().into_bytes().into()), from_file] {
            let (content, survey) = self::survey(content).await.unwrap();
            assert_eq!((survey.records, survey.size), (10_000, text.len() as u64));
            let sending = Sending::new(content, survey, &Progress::none());
            // An attempt that fails is followed by another, from the beginning.
            for _ in 0..2 {
                assert_eq!(collected(&sending).await.unwrap(), text.as_bytes());
            }
            assert_eq!(sending.problem(), None);
        }
    }

    #[tokio::test]
    async fn a_file_that_changes_never_arrives_whole() {
        let text = rows(10_000);
        let changes: [fn(&std::path::Path, &str); 4] = [
            |path, text| fs::write(path, format!("{text}more,https://m.example\n")).unwrap(),
            |path, text| fs::write(path, text.split_at(text.len() / 2).0).unwrap(),
            |path, text| fs::write(path, text.replacen("Company 0", "Company X", 1)).unwrap(),
            |path, _| fs::write(path, "").unwrap(),
        ];
        for change in changes {
            let (file, content) = stored(&text);
            let (content, survey) = self::survey(content).await.unwrap();
            let sending = Sending::new(content, survey, &Progress::none());
            change(file.path(), &text);
            let error = collected(&sending).await.unwrap_err();
            assert!(error.contains("was changed"), "{error}");
            assert_eq!(sending.problem().as_deref(), Some(error.as_str()));
            assert!(sending.open().is_none(), "it is not tried again");
        }
    }

    #[tokio::test]
    async fn too_much_is_noticed_while_counting() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LARGEST + 1).unwrap();
        let content = Content::File(Arc::new(File::open(file.path()).unwrap()));
        let Err(problem) = self::survey(content).await else {
            panic!("it is too large");
        };
        assert!(problem.contains("50 MB"), "{problem}");
    }

    #[tokio::test]
    async fn bytes_are_told() {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let record = steps.clone();
        let progress = Progress::to(move |step| record.lock().unwrap().push(step));
        let text = Content::Text(rows(10_000).into_bytes().into());
        let (content, survey) = self::survey(text).await.unwrap();
        let sending = Sending::new(content, survey, &progress);
        collected(&sending).await.unwrap();
        sending.tell_end();
        let steps = steps.lock().unwrap();
        let last = steps.last().unwrap();
        assert_eq!(
            (last.done, last.total),
            (survey.size as f64, Some(survey.size as f64))
        );
        assert!(
            steps
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.done <= b.done))
        );
    }
}
