//! Comments, names and files.

use serde_json::json;

use super::{operation, text_of};
use crate::{HEADER, Language, SdkFile, generate, write};

#[test]
fn descriptions_cannot_end_their_comments() {
    let evil = "Evil */ alert(1) /* \u{202e}\"\"\" import os \\\u{2028}}; \"\"\"";
    let input = json!({"type": "object", "properties": {"a b": {"description": evil}, "class": {"description": evil}}});
    let mut source = operation(
        "things.make",
        input,
        json!({"description": evil, "properties": {"id": {"description": evil}}}),
    );
    source.summary = evil.to_owned();
    source.description = evil.to_owned();
    source.deprecated = true;
    let typescript = text_of(
        &generate(Language::Typescript, vec![source.clone()]),
        "things.ts",
    );
    let opened = typescript.matches("/**").count();
    assert_eq!(typescript.matches("*/").count(), opened, "{typescript}");
    assert!(!typescript.contains(['\u{202e}', '\u{2028}']));
    assert!(
        typescript.contains("  \"a b\"?: unknown;\n")
            && typescript.contains("  class?: unknown;\n")
    );
    assert!(typescript.contains("@deprecated"));
    let python = text_of(&generate(Language::Python, vec![source]), "things.py");
    let outside = |line: &str| line.contains("import os") && !line.trim_start().starts_with('#');
    let inside_docstring = |line: &str| line.contains("\\\"\\\"\\\" import os \\\\");
    assert!(
        python
            .lines()
            .filter(|line| outside(line))
            .all(inside_docstring),
        "{python}"
    );
    assert!(python.contains("        \"class\": \"NotRequired[object]\",\n"));
}

#[test]
fn names_are_valid_in_each_language() {
    let empty = || json!({"type": "object"});
    let names = [
        "search",
        "search.deep",
        "things.import",
        "things.delete",
        "things.runs.list_all",
        "import.from",
        "core.then",
        "../x.y",
    ];
    let sources = || {
        names
            .iter()
            .map(|name| operation(name, empty(), empty()))
            .collect::<Vec<_>>()
    };
    let typescript = generate(Language::Typescript, sources());
    let python = generate(Language::Python, sources());
    for file in typescript.iter().chain(&python) {
        assert!(
            file.text.lines().next().unwrap().contains(HEADER),
            "{}",
            file.path
        );
        let plain = |c: char| c.is_ascii_alphanumeric() || "_/.".contains(c);
        assert!(
            file.path.chars().all(plain) && !file.path.contains(".."),
            "{}",
            file.path
        );
    }
    let things = text_of(&typescript, "things/index.ts");
    assert!(things.contains("  import(args") && things.contains("  delete(args"));
    assert!(text_of(&typescript, "things/runs.ts").contains("  listAll(args"));
    assert!(text_of(&typescript, "core_.ts").contains("  then2(args"));
    assert!(text_of(&typescript, "index.ts").contains("  readonly search_: "));
    assert!(text_of(&python, "things/__init__.py").contains("async def import_(self"));
    assert!(text_of(&python, "import_.py").contains("async def from_(self"));
    assert!(text_of(&python, "__init__.py").contains("self.search_ = "));
}

#[test]
fn documents_how_to_poll_started_jobs() {
    let mut source = operation("things.make", json!({}), json!({"properties": {"id": {}}}));
    source.follow = Some("Call things.get until it is done.".to_owned());
    let typescript = text_of(
        &generate(Language::Typescript, vec![source.clone()]),
        "things.ts",
    );
    assert!(typescript.contains("   * Call things.get until it is done.\n"));
    assert!(typescript.contains("  isComplete?: boolean;\n"));
    let python = text_of(&generate(Language::Python, vec![source]), "things.py");
    assert!(python.contains("        Call things.get until it is done.\n"));
    assert!(python.contains("    isComplete: NotRequired[bool]\n"));
}

#[test]
fn replaces_an_earlier_package() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("not/yet/there");
    let file = |path: &str| SdkFile {
        path: path.to_owned(),
        text: format!("# {HEADER}.\n"),
    };
    let old = [file("a.py"), file("gone/b.py")];
    write(&out, Language::Python, &old, false).unwrap();
    std::fs::create_dir(out.join("__pycache__")).unwrap();
    std::fs::write(out.join("__pycache__/a.pyc"), "x").unwrap();
    write(&out, Language::Python, &[file("a.py")], false).unwrap();
    assert!(out.join("a.py").exists() && !out.join("gone/b.py").exists());
}

#[test]
fn rejects_a_folder_with_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = SdkFile {
        path: "a.py".to_owned(),
        text: format!("# {HEADER}.\n"),
    };
    let files = [file];
    let out = folder.path();
    std::fs::create_dir(out.join("src")).unwrap();
    std::fs::write(out.join("src/mine.py"), "x = 1\n").unwrap();
    let refused = write(out, Language::Python, &files, false)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("mine.py") && refused.contains("--force"),
        "{refused}"
    );
    assert!(!out.join("a.py").exists());
    write(out, Language::Python, &files, true).unwrap();
    assert!(out.join("a.py").exists() && out.join("src/mine.py").exists());
    // A package in another language is not replaced.
    std::fs::remove_file(out.join("src/mine.py")).unwrap();
    assert!(write(out, Language::Typescript, &files, false).is_err());
    let refused = write(&out.join("a.py"), Language::Python, &files, true).unwrap_err();
    assert!(refused.to_string().contains("not a folder"));
}
