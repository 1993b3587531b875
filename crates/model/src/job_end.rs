//! How the job behind a call ended.

/// The end of a long-running job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The end in the words of this server, such as `completed after 5 seconds`.
    pub message: String,
    /// The job failed, and so did the task that stands for it.
    pub is_failure: bool,
}
