//! Built-in suggestions by type of entity, for clients without a model. The most useful come first.

use super::suggestion::{FORMATS, Suggestion};

/// All suggestions, by type of entity.
const TABLE: &str = include_str!("builtin.txt");

/// The type of entity that a webset collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entity {
    Company,
    Person,
    Article,
    ResearchPaper,
    Product,
    Job,
    Event,
    Repository,
    Organization,
    Other,
}

/// Prefixes of words that indicate a type.
const WORDS: &[(Entity, &str)] = &[
    (
        Entity::Job,
        "job, vacanc, opening, hiring post, career page",
    ),
    (
        Entity::ResearchPaper,
        "paper, preprint, arxiv, publication, study, studies",
    ),
    (
        Entity::Article,
        "article, news, blog, post, press release, interview, podcast",
    ),
    (
        Entity::Event,
        "event, conference, meetup, summit, workshop, webinar, hackathon",
    ),
    (
        Entity::Repository,
        "repositor, github, open-source, open source, resources, framework",
    ),
    (
        Entity::Person,
        "people, person, founder, engineer, researcher, ceo, cto, executive, manager, scientist, \
         developer, designer, professor, author, expert, candidate, lawyer, doctor, alumni",
    ),
    (
        Entity::Organization,
        "organization, organisation, universit, school, nonprofit, non-profit, ngo, \
         foundation, charit, hospital, institute",
    ),
    (
        Entity::Company,
        "compan, startup, start-up, firm, business, agenc, vendor, supplier, manufacturer, \
         retailer, investor, venture, fund, lab, studio, brand, saas",
    ),
    (
        Entity::Product,
        "product, tool, app, software, device, platform, service, model",
    ),
];

impl Entity {
    /// Returns the name of the type, as used by Exa and callers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Company => "company",
            Self::Person => "person",
            Self::Article => "article",
            Self::ResearchPaper => "research_paper",
            Self::Product => "product",
            Self::Job => "job",
            Self::Event => "event",
            Self::Repository => "repository",
            Self::Organization => "organization",
            Self::Other => "custom",
        }
    }

    /// Returns the type with a name, or guesses it from a description.
    pub(super) fn from_name(name: &str) -> Self {
        let plain = name.trim().to_lowercase().replace([' ', '-'], "_");
        let all = WORDS.iter().map(|(entity, _)| *entity);
        let exact = all.into_iter().find(|entity| entity.name() == plain);
        exact.unwrap_or_else(|| Self::guess(name))
    }

    /// Guesses the type from a description: the one mentioned first.
    pub(super) fn guess(description: &str) -> Self {
        let text = description.to_lowercase();
        let position = |words: &str| {
            words
                .split(", ")
                .filter_map(|word| find_prefix(&text, word))
                .min()
        };
        let found = WORDS
            .iter()
            .filter_map(|(entity, words)| Some((position(words)?, *entity)));
        let first = found.min_by_key(|(position, _)| *position);
        first.map_or(Self::Other, |(_, entity)| entity)
    }
}

/// Returns the position of a word with this prefix.
fn find_prefix(text: &str, word: &str) -> Option<usize> {
    let positions = text.match_indices(word).map(|(position, _)| position);
    positions.into_iter().find(|position| {
        let before = text.get(..*position).and_then(|it| it.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric())
    })
}

/// Returns the suggestions for a type of entity.
pub(super) fn suggestions_for(entity: Entity) -> Vec<Suggestion> {
    let heading = format!("# {}", entity.name());
    let lines = TABLE.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    lines.filter_map(parse_line).collect()
}

/// Parses a line of the table.
fn parse_line(line: &str) -> Option<Suggestion> {
    let mut parts = line.split(" | ");
    let format = parts.next()?;
    let format = FORMATS.into_iter().find(|known| *known == format)?;
    Some(Suggestion {
        format,
        description: parts.next()?.to_owned(),
        why: parts.next()?.to_owned(),
        options: parts
            .flat_map(|labels| labels.split("; "))
            .map(str::to_owned)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_line_of_the_table() {
        let is_column = |line: &&str| !line.is_empty() && !line.starts_with(['#', '/']);
        let lines = || TABLE.lines().filter(is_column);
        assert_eq!(lines().filter_map(parse_line).count(), lines().count());
    }

    #[test]
    fn every_suggestion_is_valid() {
        let all = WORDS.iter().map(|(entity, _)| *entity);
        for entity in all.chain([Entity::Other]) {
            let suggestions = suggestions_for(entity);
            assert!(suggestions.len() >= 8, "{entity:?}");
            for suggestion in suggestions {
                let text = &suggestion.description;
                let chooses = suggestion.format == "options";
                assert_eq!(suggestion.options.is_empty(), !chooses, "{text}");
                assert!(!suggestion.why.is_empty(), "{text}");
            }
        }
    }

    #[test]
    fn recognizes_types_by_name_or_description() {
        let cases = [
            ("company", Entity::Company),
            ("research paper", Entity::ResearchPaper),
            ("research_paper", Entity::ResearchPaper),
            (
                "AI startups in Berlin with under 50 employees",
                Entity::Company,
            ),
            ("Founders of fintech companies", Entity::Person),
            ("Companies founded by former engineers", Entity::Company),
            ("job postings for nurses", Entity::Job),
            ("papers about solid-state batteries", Entity::ResearchPaper),
            ("news on fusion", Entity::Article),
            ("open-source databases", Entity::Repository),
            ("organization", Entity::Organization),
            ("aid organisations in Kenya", Entity::Organization),
            ("bridges built before 1900", Entity::Other),
            ("", Entity::Other),
        ];
        for (text, expected) in cases {
            assert_eq!(Entity::from_name(text), expected, "{text}");
        }
    }
}
