//! Suggestions for those who have no model to ask, by kind of entity. The most useful come first.

use super::read::{FORMATS, Suggestion};

/// All suggestions.
const TABLE: &str = include_str!("builtin.txt");

/// The kind of thing that a webset collects.
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
    Organisation,
    Other,
}

/// Beginnings of words that tell a kind.
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
        Entity::Organisation,
        "universit, school, nonprofit, non-profit, ngo, \
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
    /// The name of the kind, as Exa or a caller writes it.
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
            Self::Organisation => "organisation",
            Self::Other => "custom",
        }
    }

    /// The kind that a name or a few words mean.
    pub(super) fn named(name: &str) -> Self {
        let plain = name.trim().to_lowercase().replace([' ', '-'], "_");
        let all = WORDS.iter().map(|(entity, _)| *entity);
        let exact = all.into_iter().find(|entity| entity.name() == plain);
        exact.unwrap_or_else(|| Self::guessed(name))
    }

    /// The kind that a description most likely speaks of: the one named first in it.
    pub(super) fn guessed(description: &str) -> Self {
        let text = description.to_lowercase();
        let place = |words: &str| {
            words
                .split(", ")
                .filter_map(|word| begins(&text, word))
                .min()
        };
        let found = WORDS
            .iter()
            .filter_map(|(entity, words)| Some((place(words)?, *entity)));
        let first = found.min_by_key(|(place, _)| *place);
        first.map_or(Self::Other, |(_, entity)| entity)
    }
}

/// Where a word of the text begins like this.
fn begins(text: &str, word: &str) -> Option<usize> {
    let places = text.match_indices(word).map(|(place, _)| place);
    places.into_iter().find(|place| {
        let before = text.get(..*place).and_then(|it| it.chars().next_back());
        before.is_none_or(|letter| !letter.is_alphanumeric())
    })
}

/// The suggestions for a kind.
pub(super) fn of(entity: Entity) -> Vec<Suggestion> {
    let heading = format!("# {}", entity.name());
    let lines = TABLE.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    lines.filter_map(suggestion).collect()
}

/// One line of the table.
fn suggestion(line: &str) -> Option<Suggestion> {
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
    fn every_line_of_the_table_is_read() {
        let is_column = |line: &&str| !line.is_empty() && !line.starts_with(['#', '/']);
        let lines = || TABLE.lines().filter(is_column);
        assert_eq!(lines().filter_map(suggestion).count(), lines().count());
    }

    #[test]
    fn every_suggestion_could_be_created() {
        let all = WORDS.iter().map(|(entity, _)| *entity);
        for entity in all.chain([Entity::Other]) {
            let suggestions = of(entity);
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
    fn kinds_are_known_by_name_and_guessed_from_words() {
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
            ("bridges built before 1900", Entity::Other),
            ("", Entity::Other),
        ];
        for (text, expected) in cases {
            assert_eq!(Entity::named(text), expected, "{text}");
        }
    }
}
