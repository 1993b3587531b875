//! Reads a file that Exa has stored, such as the results of a batch.

use super::{OperationError, OperationExecutor};
use exa_mcp_exa_client::{ExaError, root_cause, stored_file};

/// The largest file that is read, in bytes.
const MAX_BYTES: usize = 512 * 1024 * 1024;

impl OperationExecutor {
    /// Returns the text at an address from a response of Exa. No key is sent, and only public hosts are read.
    pub(crate) async fn download(&self, address: &str) -> Result<String, OperationError> {
        self.check_network()?;
        let failed = |message: String| OperationError::Exa(Box::new(ExaError::upload(message)));
        let (client, url) = stored_file(self.http(), address)
            .map_err(|error| failed(format!("The results cannot be read: {}.", error.message)))?;
        let lost = |error: reqwest::Error| {
            failed(format!(
                "The results cannot be read: {}.",
                root_cause(&error)
            ))
        };
        let mut response = client.get(url).send().await.map_err(lost)?;
        if !response.status().is_success() {
            let status = response.status();
            return Err(failed(format!(
                "The results cannot be read: HTTP status {status}."
            )));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(failed(format!("The results exceed {MAX_BYTES} bytes.")));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
