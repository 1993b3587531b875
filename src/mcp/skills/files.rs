//! The files of the skills, which are part of the program.

/// A file of a skill.
#[derive(Debug)]
pub(super) struct SkillFile {
    pub(super) skill: &'static str,
    /// The path within the skill, separated by `/`.
    pub(super) path: &'static str,
    pub(super) content: &'static str,
}

macro_rules! file {
    ($skill:literal, $path:literal) => {
        SkillFile {
            skill: $skill,
            path: $path,
            content: include_str!(concat!("../../../skills/", $skill, "/", $path)),
        }
    };
}

/// All files, sorted by skill. A test compares them with the folder.
pub(super) static FILES: &[SkillFile] = &[
    file!("build-a-webset", "SKILL.md"),
    file!("build-a-webset", "references/criteria.md"),
    file!("deep-research", "SKILL.md"),
    file!("export-to-csv", "SKILL.md"),
    file!("monitor-a-topic", "SKILL.md"),
    file!("search-well", "SKILL.md"),
    file!("verify-claims", "SKILL.md"),
];
