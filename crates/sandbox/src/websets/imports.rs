//! Imports: announced, uploaded, processed.

use serde_json::{Value, json};

use super::csv::{self, Problem};
use crate::call::{Call, Outcome, Reply, whole};
use crate::corpus::entity::{self, Kind};
use crate::failure::Failure;
use crate::state::{Account, Order, Paging, Step};
use crate::time::{HOUR, iso};

/// How long processing takes, in milliseconds at time scale 1.
const PROCESSING: u64 = 800;
/// How long an upload URL can be used.
const VALID: u64 = HOUR;
/// Columns that tell records apart, when the request names none.
const IDENTIFIERS: [&str; 6] = ["url", "website", "domain", "linkedin", "name", "company"];

/// One import.
pub(crate) struct Import {
    id: String,
    state: State,
    title: String,
    entity: Value,
    size: u64,
    count: Value,
    /// Column that tells records apart.
    identifier: Option<usize>,
    metadata: Value,
    /// What was uploaded, until it has been processed.
    file: Vec<u8>,
    /// The identifiers of the records.
    records: Vec<String>,
    valid_until: u64,
    created: u64,
    updated: u64,
}

enum State {
    Pending,
    Processing,
    Completed,
    Failed {
        reason: &'static str,
        message: String,
        at: u64,
    },
}

impl Import {
    pub(crate) fn size(&self) -> usize {
        1 + self.records.len()
    }

    pub(super) fn status(&self) -> &'static str {
        match self.state {
            State::Pending => "pending",
            State::Processing => "processing",
            State::Completed => "completed",
            State::Failed { .. } => "failed",
        }
    }

    /// Item properties of its records.
    pub(super) fn properties(&self, seed: u64) -> Vec<Value> {
        let kind = Kind::of(&self.entity);
        self.records
            .iter()
            .map(|record| entity::imported(seed, kind, record))
            .collect()
    }

    pub(super) fn to_json(&self) -> Value {
        let failure = match &self.state {
            State::Failed {
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
            "failedReason": failure.0,
            "failedMessage": failure.1,
            "failedAt": failure.2,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    fn fail(&mut self, reason: &'static str, message: String, at: u64) {
        self.state = State::Failed {
            reason,
            message,
            at,
        };
    }

    /// Reads the file that was uploaded; keeps at most `room` records.
    fn process(&mut self, now: u64, room: usize) {
        let file = std::mem::take(&mut self.file);
        self.updated = now;
        let sheet = match csv::read(&file) {
            Ok(sheet) => sheet,
            Err(Problem::Format(message)) => return self.fail("invalid_format", message, now),
            Err(Problem::Content(message)) => {
                return self.fail("invalid_file_content", message, now);
            }
        };
        let column = self.identifier.unwrap_or_else(|| identifier(&sheet.header));
        if column >= sheet.header.len() {
            let message = format!(
                "There is no column {column}; the file has {}",
                sheet.header.len()
            );
            return self.fail("missing_identifier", message, now);
        }
        let names = sheet
            .records
            .iter()
            .filter_map(|record| record.get(column))
            .map(|name| name.trim());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return self.fail(
                "missing_identifier",
                format!("Column {column} is empty in every record"),
                now,
            );
        }
        self.count = sheet.records.len().into();
        self.records = names.into_iter().take(room).map(str::to_owned).collect();
        self.state = State::Completed;
    }
}

fn identifier(header: &[String]) -> usize {
    let place = |wanted: &&str| {
        header
            .iter()
            .position(|name| name.trim().to_lowercase().contains(*wanted))
    };
    IDENTIFIERS.iter().find_map(place).unwrap_or(0)
}

impl Account {
    /// Takes the file of an import; none when the import has gone.
    pub(crate) fn upload(
        &mut self,
        id: &str,
        body: &[u8],
        lenient: bool,
    ) -> Option<Result<(), Failure>> {
        let now = self.now();
        let import = self.imports.get_mut(id)?;
        if now > import.valid_until {
            return Some(Err(Failure::new(
                403,
                "UPLOAD_EXPIRED",
                "This upload URL has expired",
            )));
        }
        if !matches!(import.state, State::Pending) {
            return Some(Err(Failure::new(
                409,
                "CONFLICT",
                "The file of this import has been uploaded already",
            )));
        }
        if body.len() as u64 != import.size && !lenient {
            let message = format!(
                "The import announced {} bytes, the upload has {}",
                import.size,
                body.len()
            );
            return Some(Err(Failure::invalid(message)));
        }
        import.file = body.to_vec();
        import.state = State::Processing;
        import.updated = now;
        let span = self.span(PROCESSING);
        self.after(span, Step::Import(id.to_owned()));
        Some(Ok(()))
    }

    /// Processing is over.
    pub(crate) fn step_import(&mut self, id: &str) {
        let (now, room) = (self.now(), self.room());
        let Some(import) = self.imports.get_mut(id) else {
            return;
        };
        import.process(now, room);
        let json = import.to_json();
        if import.status() == "completed" {
            self.record("import.completed", json);
        }
        let waiting: Vec<String> = self
            .websets
            .values()
            .filter(|webset| webset.waiting.iter().any(|one| one == id))
            .map(|webset| webset.id.clone())
            .collect();
        for webset in waiting {
            // The webset was there a moment ago, so this cannot fail.
            let _ = self.with_webset(&webset, |account, webset| {
                account.wake(webset, 1);
                Ok(())
            });
        }
    }

    fn import_of(&mut self, call: &Call) -> Result<&mut Import, Failure> {
        let id = call.text("importId");
        self.imports
            .get_mut(id)
            .ok_or_else(|| Failure::not_found("Import", id))
    }
}

/// `POST /websets/v0/imports`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    let id = account.id("import");
    let token = account.id("upload");
    let import = Import {
        state: State::Pending,
        title: call
            .opt_text("title")
            .unwrap_or("Untitled import")
            .to_owned(),
        entity: call.or_null("entity"),
        size: call.get("size").and_then(whole).unwrap_or(0),
        count: call.or_null("count"),
        identifier: call
            .get("csv")
            .and_then(|csv| whole(csv.get("identifier")?))
            .and_then(|at| usize::try_from(at).ok()),
        metadata: call.metadata(),
        file: Vec::new(),
        records: Vec::new(),
        valid_until: account.now() + VALID,
        created: account.now(),
        updated: account.now(),
        id: id.clone(),
    };
    let json = import.to_json();
    account.record("import.created", json.clone());
    account.announce_upload(&token, &id);
    let until = iso(import.valid_until);
    account.imports.insert(&id, import);
    let mut json = json;
    if let Value::Object(fields) = &mut json {
        fields.insert(
            "uploadUrl".into(),
            format!("http://{}/sandbox/uploads/{token}", call.host).into(),
        );
        fields.insert("uploadValidUntil".into(), until.into());
    }
    Reply::created(json)
}

/// `GET /websets/v0/imports/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(account.import_of(call)?.to_json())
}

/// `GET /websets/v0/imports`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 200)?;
    Reply::ok(paging.page(
        account.imports.placed(),
        Order::NewestFirst,
        Import::to_json,
    ))
}

/// `PATCH /websets/v0/imports/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> Outcome {
    let now = account.now();
    let import = account.import_of(call)?;
    if let Some(title) = call.opt_text("title") {
        title.clone_into(&mut import.title);
    }
    if call.get("metadata").is_some() {
        import.metadata = call.metadata();
    }
    import.updated = now;
    Reply::ok(import.to_json())
}

/// `DELETE /websets/v0/imports/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("importId");
    let import = account
        .imports
        .remove(id)
        .ok_or_else(|| Failure::not_found("Import", id))?;
    Reply::ok(import.to_json())
}
