//! Imports: created, uploaded, processed.

use serde_json::{Value, json};

use super::csv::{self, CsvError};
use super::events;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::entity::{self, EntityKind};
use crate::json::{count, set};
use crate::state::{Account, LinkTarget, Order, Paging, Resource, ScheduledStep};
use crate::time::{HOUR, iso};

/// Duration of the processing, in milliseconds at time scale 1.
const PROCESSING: u64 = 800;
/// Lifetime of an upload URL.
const UPLOAD_URL_LIFETIME: u64 = HOUR;
/// Columns that identify records if the request names none.
const IDENTIFIERS: [&str; 6] = ["url", "website", "domain", "linkedin", "name", "company"];

/// One import.
pub(crate) struct Import {
    id: String,
    state: ImportState,
    title: String,
    entity: Value,
    /// Announced size of the file in bytes.
    file_size: u64,
    count: Value,
    /// Index of the column that identifies records.
    identifier: Option<usize>,
    metadata: Value,
    /// The uploaded file, until it is processed.
    file: Vec<u8>,
    /// The identifiers of the records.
    records: Vec<String>,
    upload_valid_until: u64,
    created: u64,
    updated: u64,
}

enum ImportState {
    Pending,
    Processing,
    Completed,
    Failed {
        reason: &'static str,
        message: String,
        at: u64,
    },
}

/// Reason and message of a failed import.
type ImportFailure = (&'static str, String);

impl Resource for Import {
    const NAME: &'static str = "Import";

    fn size(&self) -> usize {
        1 + self.records.len()
    }
}

impl Import {
    pub(super) fn status(&self) -> &'static str {
        match self.state {
            ImportState::Pending => "pending",
            ImportState::Processing => "processing",
            ImportState::Completed => "completed",
            ImportState::Failed { .. } => "failed",
        }
    }

    /// Returns the item properties of the records.
    pub(super) fn properties(&self, seed: u64) -> Vec<Value> {
        let kind = EntityKind::from_json(&self.entity);
        let records = self.records.iter();
        records
            .map(|record| entity::from_identifier(seed, kind, record))
            .collect()
    }

    pub(super) fn to_json(&self) -> Value {
        let (reason, message, failed_at) = match &self.state {
            ImportState::Failed {
                reason,
                message,
                at,
            } => (Some(*reason), Some(message), Some(iso(*at))),
            _ => (None, None, None),
        };
        json!({
            "id": self.id,
            "object": "import",
            "status": self.status(),
            "format": "csv",
            "entity": self.entity,
            "title": self.title,
            "count": self.count,
            "metadata": self.metadata,
            "failedReason": reason,
            "failedMessage": message,
            "failedAt": failed_at,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    /// Accepts the uploaded file.
    fn receive(&mut self, file: &[u8], lenient: bool, now: u64) -> Result<(), ApiError> {
        if now > self.upload_valid_until {
            let message = "This upload URL has expired";
            return Err(ApiError::new(403, "UPLOAD_EXPIRED", message));
        }
        if !matches!(self.state, ImportState::Pending) {
            let message = "The file of this import has been uploaded already";
            return Err(ApiError::new(409, "CONFLICT", message));
        }
        if file.len() as u64 != self.file_size && !lenient {
            return Err(ApiError::invalid(format!(
                "The import announced {} bytes, the upload has {}",
                self.file_size,
                file.len()
            )));
        }
        self.file = file.to_vec();
        self.state = ImportState::Processing;
        self.updated = now;
        Ok(())
    }

    /// Parses the uploaded file and stores at most `max_records` records.
    fn process(&mut self, now: u64, max_records: usize) {
        self.updated = now;
        let file = std::mem::take(&mut self.file);
        self.state = match self.read_records(&file, max_records) {
            Ok(()) => ImportState::Completed,
            Err((reason, message)) => ImportState::Failed {
                reason,
                message,
                at: now,
            },
        };
    }

    fn read_records(&mut self, file: &[u8], max_records: usize) -> Result<(), ImportFailure> {
        let table = csv::parse(file).map_err(|error| match error {
            CsvError::Format(message) => ("invalid_format", message),
            CsvError::Content(message) => ("invalid_file_content", message),
        })?;
        let columns = table.header.len();
        let column = self
            .identifier
            .unwrap_or_else(|| find_identifier(&table.header));
        if column >= columns {
            let message = format!("There is no column {column}; the file has {columns}");
            return Err(("missing_identifier", message));
        }
        let names: Vec<&str> = table
            .records
            .iter()
            .filter_map(|record| record.get(column))
            .map(|name| name.trim())
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() {
            let message = format!("Column {column} is empty in every record");
            return Err(("missing_identifier", message));
        }
        self.count = table.records.len().into();
        let names = names.into_iter().take(max_records);
        self.records = names.map(str::to_owned).collect();
        Ok(())
    }
}

fn find_identifier(header: &[String]) -> usize {
    let position = |identifier: &&str| {
        header
            .iter()
            .position(|name| name.trim().to_lowercase().contains(*identifier))
    };
    IDENTIFIERS.iter().find_map(position).unwrap_or(0)
}

/// Accepts the file of an import, or returns `None` if the import no longer exists.
pub(crate) fn upload(
    account: &mut Account,
    id: &str,
    file: &[u8],
    lenient: bool,
) -> Option<Result<(), ApiError>> {
    let now = account.now();
    let received = account.imports.get_mut(id)?.receive(file, lenient, now);
    if received.is_ok() {
        account.schedule_after(PROCESSING, ScheduledStep::Import(id.to_owned()));
    }
    Some(received)
}

/// Completes the processing and wakes the websets that wait for the import.
pub(crate) fn finish_processing(account: &mut Account, id: &str) {
    let (now, capacity) = (account.now(), account.remaining_capacity());
    let Some(import) = account.imports.get_mut(id) else {
        return;
    };
    import.process(now, capacity);
    let json = import.to_json();
    if import.status() == "completed" {
        events::record(account, "import.completed", json);
    }
    let waiting = account
        .websets
        .ids_where(|webset| webset.pending_imports.iter().any(|import| import == id));
    for webset in waiting {
        // The webset was found a moment ago, so this cannot fail.
        let _ = account.with_webset(&webset, |account, webset| {
            webset.wake(account, 1);
            Ok(())
        });
    }
}

/// `POST /websets/v0/imports`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let id = account.new_id("import");
    let token = account.new_id("upload");
    let title = call.opt_text("title").unwrap_or("Untitled import");
    let import = Import {
        state: ImportState::Pending,
        title: title.to_owned(),
        entity: call.or_null("entity"),
        file_size: call.get("size").and_then(count).unwrap_or(0),
        count: call.or_null("count"),
        identifier: call
            .get("csv")
            .and_then(|csv| count(csv.get("identifier")?))
            .and_then(|index| usize::try_from(index).ok()),
        metadata: call.metadata(),
        file: Vec::new(),
        records: Vec::new(),
        upload_valid_until: account.now() + UPLOAD_URL_LIFETIME,
        created: account.now(),
        updated: account.now(),
        id: id.clone(),
    };
    let mut json = import.to_json();
    events::record(account, "import.created", json.clone());
    account.register_link(token.clone(), LinkTarget::Upload(id.clone()));
    let url = format!("http://{}/sandbox/uploads/{token}", call.host);
    set(&mut json, "uploadUrl", url);
    set(
        &mut json,
        "uploadValidUntil",
        iso(import.upload_valid_until),
    );
    account.imports.insert(&id, import);
    ApiResponse::created(json)
}

/// `GET /websets/v0/imports/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(account.imports.find(call.text("importId"))?.to_json())
}

/// `GET /websets/v0/imports`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 200)?;
    ApiResponse::ok(paging.page(account.imports.rows(), Order::NewestFirst, Import::to_json))
}

/// `PATCH /websets/v0/imports/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> ApiResult {
    let now = account.now();
    let import = account.imports.find_mut(call.text("importId"))?;
    if let Some(title) = call.opt_text("title") {
        title.clone_into(&mut import.title);
    }
    call.update_metadata(&mut import.metadata);
    import.updated = now;
    ApiResponse::ok(import.to_json())
}

/// `DELETE /websets/v0/imports/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(account.imports.delete(call.text("importId"))?.to_json())
}
