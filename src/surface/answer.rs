//! From a call of an operation to what its caller sees: asked or remembered, cleaned, kept, shown.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cache::{Fresh, Kept, Wish};
use super::options::{self, Options};
use super::outcome::Outcome;
use super::plan::Entry;
use super::shared_cache::SharedCache;
use super::{Call, Catalogue, failed, host, upstream};
use crate::accounts::Identity;
use crate::operations::validation::ValidationError;
use crate::operations::{Called, Caller, Operation, Paged, Refusal, Stopped, is_paged, price};
use crate::render::{self, Answer, Envelope, Level, Rendered, View};

/// Characters of a single text of an answer; more is no text.
const LONGEST_TEXT: usize = 500_000;

/// Entries of a list that is followed to its end.
const MOST_ENTRIES: usize = 1_000;

/// What a tool asks of an operation.
pub(super) struct Asked<'a> {
    /// The operation.
    pub(super) operation: &'static Operation,
    /// Its arguments as they were given.
    pub(super) arguments: Value,
    /// How the answer is to be shown.
    pub(super) options: Options,
    /// The level for callers that name none.
    pub(super) usual: Level,
    /// The level by which the tool chose what to ask Exa for.
    pub(super) asked_for: Option<Level>,
    /// The entry of a host that stands for the operation.
    pub(super) entry: Option<&'a Entry>,
    /// The tool that was called.
    pub(super) tool: &'a str,
    /// Arguments that the tool filled in because the caller did not give them.
    pub(super) filled: Vec<String>,
    /// What was put right so far.
    pub(super) mended: Vec<String>,
}

impl Asked<'_> {
    /// What a tool asks that sends exactly what it is given.
    pub(super) fn plainly(
        operation: &'static Operation,
        arguments: Value,
        options: Options,
        mended: Vec<String>,
    ) -> Self {
        Self {
            operation,
            arguments,
            options,
            usual: Level::Standard,
            asked_for: None,
            entry: None,
            tool: "",
            filled: Vec::new(),
            mended,
        }
    }
}

/// An answer and how it came.
pub(super) struct Answered {
    pub(super) answer: Value,
    pub(super) arguments: Map<String, Value>,
    /// What is said of work that goes on.
    pub(super) work: Map<String, Value>,
    pub(super) warnings: Vec<String>,
    /// How far progress was told.
    pub(super) told: f64,
    /// What the caller is told in place of the answer.
    pub(super) failure: Option<Box<Outcome>>,
}

impl Answered {
    pub(super) fn new(answer: Value, arguments: Map<String, Value>) -> Self {
        Self {
            answer,
            arguments,
            work: Map::new(),
            warnings: Vec::new(),
            told: 0.0,
            failure: None,
        }
    }

    pub(super) fn failed(outcome: Outcome) -> Self {
        Self {
            failure: Some(Box::new(outcome)),
            ..Self::new(Value::Null, Map::new())
        }
    }
}

/// What a call costs again and again that set up something recurring.
fn recurring_cost(operation: &Operation, arguments: &Map<String, Value>) -> Option<String> {
    let recurring = price::estimate(operation, arguments).recurring?;
    let price::Recurring {
        period,
        runs_per_day,
        per_run,
        per_day,
        per_month,
        unpriced,
        ..
    } = recurring;
    let known = format!(
        "it repeats ({period}: up to {runs_per_day} runs a day) until it is deleted or paused"
    );
    Some(match unpriced {
        true if per_run.is_zero() => format!("{known}; the price of a run is not known"),
        true => format!(
            "{known}; a run costs {per_run} and what is not known beside it, at least {per_day} a day and {per_month} a month"
        ),
        false => format!(
            "{known}; a run costs up to {per_run}, which is up to {per_day} a day and {per_month} a month, and is not part \
             of the budget of this token"
        ),
    })
}

impl Catalogue {
    /// Asks an operation, or looks at a kept answer, and shows what it says.
    pub(super) async fn answer(&self, call: &Call, mut asked: Asked<'_>) -> Outcome {
        let operation = asked.operation;
        // Whoever looks at a kept answer asks nothing, so there are no arguments to speak of.
        let asks = !asked.options.looks_back();
        let checked = asked.options.check(&mut asked.mended);
        let seen = checked.and_then(|options| Ok((options.view(asked.usual)?, options)));
        let mut view = match seen {
            Ok((view, options)) => {
                asked.options = options;
                view
            }
            Err(refused) => {
                let arguments = Some(asked.arguments).filter(|_| asks);
                return unfit_options(*refused, operation, arguments);
            }
        };
        if let Some(id) = asked.options.cache_id() {
            let Some(kept) = self.kept(call.owner.identity(), id).await else {
                return Outcome::not_kept(id, self.cache.limits());
            };
            view.extract = kept.extract;
            if asked.options.fresh() {
                let note = "`fresh` was left out: cache_id asks for the kept answer";
                asked.mended.push(note.to_owned());
            }
            return self.show_kept(call, &kept, view, asked, Vec::new());
        }
        let sent_filters = send_filters(&mut asked);
        let checked = match Caller::check(operation, asked.arguments.take()) {
            Ok(checked) => checked,
            Err(refusal) => return failed(operation, &in_own_words(asked.entry, refusal)),
        };
        // A tool with presets may have said the same of its own arguments.
        let new = checked
            .corrections
            .iter()
            .filter(|note| !asked.mended.contains(note));
        let new: Vec<String> = new.cloned().collect();
        asked.mended.extend(new);
        view.extract = extract(&checked.arguments);
        if repeats(operation)
            && !asked.options.fresh()
            && let Some(kept) = self
                .same(call.owner.identity(), operation.name, &checked.arguments)
                .await
        {
            return self.show_kept(call, &kept, view, asked, sent_filters);
        }
        if let Err(outcome) = self.ready(call, operation, &checked.arguments).await {
            return *outcome;
        }
        let mut answered = match self.ask(call, &asked, &sent_filters, checked).await {
            Ok(answered) => answered,
            Err(refusal) => return failed(operation, &refusal),
        };
        if let Some(outcome) = answered.failure.take() {
            return *outcome;
        }
        self.show_new(call, asked, &view, sent_filters, answered)
            .await
    }

    /// Answers that other servers on the same store have kept.
    fn shared(&self) -> Option<SharedCache<'_>> {
        SharedCache::of(&*self.store, self.cache.limits())
    }

    /// A kept answer, here or at another server.
    async fn kept(&self, owner: &Identity, id: &str) -> Option<Kept> {
        match (self.cache.get(owner, id), self.shared()) {
            (None, Some(shared)) => shared.get(owner, id).await,
            (kept, _) => kept,
        }
    }

    /// The kept answer to the same question, here or at another server.
    async fn same(
        &self,
        owner: &Identity,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Kept> {
        match (self.cache.same(owner, operation, arguments), self.shared()) {
            (None, Some(shared)) => shared.same(owner, operation, arguments).await,
            (kept, _) => kept,
        }
    }

    /// Calls Exa once, or as often as a list has pages.
    async fn ask(
        &self,
        call: &Call,
        asked: &Asked<'_>,
        sent_filters: &[String],
        mut checked: crate::operations::validation::Checked,
    ) -> Result<Answered, Refusal> {
        let (operation, options) = (asked.operation, &asked.options);
        if let Some(resumed) = self.resume(call, asked, &checked.arguments).await {
            return resumed;
        }
        if call.task.is_some() && operation.behavior.long_running.is_some() {
            // Looking at work survives a restart; reading its events does not.
            checked.arguments.shift_remove("stream");
        }
        let before = self.seen_before(call, asked, &checked.arguments).await;
        let mut warnings = Vec::new();
        let called = if options.all() && is_paged(operation) {
            let most = options
                .most(sent_filters)
                .unwrap_or(MOST_ENTRIES)
                .min(MOST_ENTRIES);
            let paged = self
                .caller
                .send_all(operation, checked, most, &call.progress)
                .await?;
            warnings.extend(stopped(operation, &paged, most));
            paged.called
        } else {
            if options.all() {
                warnings.push(format!(
                    "`all` changes nothing: `{}` does not answer in pages",
                    operation.name
                ));
            }
            let arguments = call.task.is_some().then(|| checked.arguments.clone());
            let sent = self.caller_of(call);
            match sent.send(operation, checked, &call.progress).await {
                Ok(called) => called,
                Err(refusal) => return self.unanswered(call, asked, arguments, refusal).await,
            }
        };
        warnings.extend(recurring_cost(operation, &called.arguments));
        self.library.heed(call.owner.identity(), operation, &called);
        let Called {
            answer,
            arguments,
            told,
            ..
        } = called;
        let mut answered = Answered {
            warnings,
            told,
            ..Answered::new(cleaned(answer.value), arguments)
        };
        self.follow_new(call, asked, before, &mut answered).await;
        Ok(answered)
    }

    /// The way to Exa for a call, with the folders that its client opened.
    fn caller_of(&self, call: &Call) -> Caller {
        match &call.folders {
            Some(folders) => self.caller.with_folders(folders.and(self.caller.folders())),
            None => self.caller.clone(),
        }
    }

    async fn show_new(
        &self,
        call: &Call,
        asked: Asked<'_>,
        view: &View,
        sent_filters: Vec<String>,
        answered: Answered,
    ) -> Outcome {
        let mut told = match asked.entry {
            Some(entry) => host::tell(entry, &answered.arguments, &answered.answer),
            None => Map::new(),
        };
        for (name, value) in answered.work {
            told.entry(name).or_insert(value);
        }
        let text = serde_json::to_string(&answered.answer).unwrap_or_default();
        let envelope = Envelope::open(answered.answer);
        let fresh = Fresh {
            title: title(asked.operation, &answered.arguments),
            operation: asked.operation.name,
            arguments: &answered.arguments,
            results: envelope.results.len(),
            answer: text,
            asked: asked.asked_for,
            extract: view.extract,
        };
        let kept = self.cache.keep(call.owner.identity(), fresh);
        if let (Some(kept), Some(shared)) = (&kept, self.shared()) {
            shared
                .keep(call.owner.identity(), &answered.arguments, kept)
                .await;
        }
        let cache_id = kept.as_ref().map(|kept| kept.id.as_str());
        let mut warnings = answered.warnings;
        let view = match view.within(envelope.results.len()) {
            Ok(view) => view,
            Err(error) if asked.operation.read_only => {
                return Outcome::not_in_answer(asked.operation.name, &error, cache_id);
            }
            // What a change came to must be seen, whatever part of it was asked for.
            Err(error) => {
                warnings.push(format!("{error}; this is the whole answer"));
                Cow::Owned(view.of_all())
            }
        };
        let shown = Answer {
            operation: asked.operation.name,
            envelope,
            told,
            cache_id,
            repeatable: asked.operation.read_only,
            cached: false,
            asked: asked.asked_for,
            mended: asked.mended,
            warnings,
            sent_filters,
        };
        match render::show(shown, &view) {
            Ok(rendered) => rendered.into(),
            Err(error) => Outcome::refused(asked.operation.name, &options::unfit(&error)),
        }
    }

    /// Shows a kept answer as it was last shown, or anew if that was another way.
    fn show_kept(
        &self,
        call: &Call,
        kept: &Kept,
        view: View,
        asked: Asked<'_>,
        sent_filters: Vec<String>,
    ) -> Outcome {
        let wish = Wish {
            view,
            level: asked.options.level(),
            mended: asked.mended,
            sent_filters,
        };
        if let Some(seen) = self.cache.seen(call.owner.identity(), &kept.id, &wish) {
            return Rendered::clone(&seen).into();
        }
        match render::show(look_at(kept, &wish), &wish.view) {
            Ok(rendered) => {
                let shown = Arc::new(rendered.clone());
                self.cache
                    .show(call.owner.identity(), &kept.id, wish, shown);
                rendered.into()
            }
            Err(error) => Outcome::refused(&kept.operation, &options::unfit(&error)),
        }
    }
}

/// A refusal with the names that the caller of a host's entry knows.
fn in_own_words(entry: Option<&Entry>, refusal: Refusal) -> Refusal {
    match (entry, refusal) {
        (Some(entry), Refusal::Arguments(refused)) => {
            Refusal::Arguments(Box::new(host::in_own_words(entry, *refused)))
        }
        (_, refusal) => refusal,
    }
}

/// Options that do not fit, told together with what is wrong with the arguments, and with a call that is
/// right as a whole.
fn unfit_options(
    mut refused: ValidationError,
    operation: &'static Operation,
    arguments: Option<Value>,
) -> Outcome {
    let Some(arguments) = arguments else {
        return Outcome::refused(operation.name, &refused);
    };
    if let Err(Refusal::Arguments(more)) = Caller::check(operation, arguments) {
        refused.problems.extend(more.problems);
        refused.hints = more.hints;
    }
    let call = operation.example();
    if let (Value::Object(example), Value::Object(mut call)) = (&mut *refused.example, call) {
        call.append(example);
        *example = call;
    }
    Outcome::refused(operation.name, &refused)
}

/// A kept answer; it has no more than Exa was asked for.
fn look_at<'a>(kept: &'a Kept, wish: &Wish) -> Answer<'a> {
    let lacking = kept.asked.filter(|had| Some(*had) < wish.level);
    let warnings = lacking.map(|had| {
        format!(
            "Exa was asked for no more than {} content; for more, call without cache_id and with content_level \"{}\"",
            had.name(),
            wish.view.level.name(),
        )
    });
    Answer {
        mended: wish.mended.clone(),
        warnings: warnings.into_iter().collect(),
        sent_filters: wish.sent_filters.clone(),
        ..kept.opened()
    }
}

/// Operations whose answers cost money and do not change by the minute: asking the same again within
/// the life of an answer gives the kept one. What belongs to the caller is always asked for anew.
fn repeats(operation: &Operation) -> bool {
    operation.read_only && operation.method != "GET"
}

/// An answer without anything hidden in its texts.
pub(super) fn cleaned(mut answer: Value) -> Value {
    exa_mcp_text::sanitize::clean_json(&mut answer, LONGEST_TEXT);
    answer
}

fn send_filters(asked: &mut Asked<'_>) -> Vec<String> {
    match (asked.options.filters(), &mut asked.arguments) {
        (Some(filters), Value::Object(arguments)) => {
            upstream::send(asked.operation, filters, arguments, &asked.filled)
        }
        _ => Vec::new(),
    }
}

/// Characters of text that a request asks for.
fn extract(arguments: &Map<String, Value>) -> Option<usize> {
    let text = arguments
        .get("contents")
        .and_then(|contents| contents.get("text"));
    let text = text.or_else(|| arguments.get("text"));
    let characters = text?.get("maxCharacters")?.as_u64()?;
    usize::try_from(characters).ok()
}

/// What was asked, in a line.
fn title(operation: &Operation, arguments: &Map<String, Value>) -> String {
    let told = arguments.values().find_map(|value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => list.first()?.as_str().map(str::to_owned),
        _ => None,
    });
    let title = match told {
        Some(told) => format!("{}: {told}", operation.name),
        None => operation.name.to_owned(),
    };
    title
        .chars()
        .filter(|letter| !letter.is_control())
        .take(120)
        .collect()
}

/// Why a list was not followed to its end, and where to go on.
fn stopped(operation: &Operation, paged: &Paged, most: usize) -> Option<String> {
    let answer = &paged.called.answer.value;
    let cursor = cleaned(answer.get("nextCursor").cloned().unwrap_or_default());
    let cursor = cursor.as_str().unwrap_or_default();
    let reason = match paged.stopped.as_ref()? {
        Stopped::Enough => format!("{most} results are enough"),
        Stopped::Circle => "Exa gave the same pages again".to_owned(),
        Stopped::Endless => format!("after {} pages there were still more", paged.pages),
        Stopped::Failed(refusal) => {
            let failure = failed(operation, refusal);
            let first = failure.text.lines().next().unwrap_or_default().to_owned();
            format!("page {} failed: {first}", paged.pages + 1)
        }
    };
    Some(format!(
        "not all pages were read, because {reason}; go on with cursor \"{cursor}\""
    ))
}
