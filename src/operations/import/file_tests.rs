#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::os::unix::fs::symlink;

use super::*;

/// Creates a folder `open` with files, a sibling `opened` whose name starts alike, and a secret file beside them.
fn workspace() -> (tempfile::TempDir, Allowed) {
    let workspace = tempfile::tempdir().unwrap();
    for folder in ["open/inner", "opened"] {
        fs::create_dir_all(workspace.path().join(folder)).unwrap();
    }
    for (file, text) in [
        ("open/a.csv", "name\nA"),
        ("open/inner/b.csv", "name\nB"),
        ("opened/a.csv", "secret"),
        ("secret.csv", "secret"),
    ] {
        fs::write(workspace.path().join(file), text).unwrap();
    }
    let allowed = Allowed::Within(vec![workspace.path().join("open")]);
    (workspace, allowed)
}

fn read(path: &Path, allowed: &Allowed) -> Result<String, String> {
    content(open(path.to_str().unwrap(), allowed)?)
}

fn content(mut opened: OpenFile) -> Result<String, String> {
    let mut text = String::new();
    opened.file.read_to_string(&mut text).unwrap();
    assert_eq!(opened.size, text.len() as u64);
    Ok(text)
}

#[test]
fn opens_files_inside_by_any_spelling() {
    let (workspace, allowed) = workspace();
    let at = |path: &str| workspace.path().join(path);
    for path in [
        "open/a.csv",
        "open/./inner/../a.csv",
        "opened/../open/a.csv",
    ] {
        assert_eq!(read(&at(path), &allowed).unwrap(), "name\nA", "{path}");
    }
    assert_eq!(read(Path::new("inner/b.csv"), &allowed).unwrap(), "name\nB");
    let url = Url::from_file_path(at("open/a.csv")).unwrap();
    assert_eq!(
        content(open(url.as_str(), &allowed).unwrap()).unwrap(),
        "name\nA"
    );
    let name = format!(" {} ", at("open/a.csv").display());
    assert!(open(&name, &allowed).is_ok());
}

#[test]
fn rejects_files_outside() {
    let (workspace, allowed) = workspace();
    let at = |path: &str| workspace.path().join(path);
    symlink(at("secret.csv"), at("open/link.csv")).unwrap();
    symlink(at("opened"), at("open/door")).unwrap();
    for path in [
        "opened/a.csv",
        "secret.csv",
        "open/../secret.csv",
        "open/link.csv",
        "open/door/a.csv",
        "open/door/../secret.csv",
        // Missing files outside get the same error as existing ones.
        "opened/none.csv",
        "none/none.csv",
        "open/door/none.csv",
        "open/../none.csv",
    ] {
        let error = read(&at(path), &allowed).unwrap_err();
        assert!(error.starts_with("is outside"), "{path}: {error}");
        assert!(error.contains("csvContent"), "{error}");
    }
    let error = read(Path::new("../secret.csv"), &allowed).unwrap_err();
    assert!(error.starts_with("is outside"), "{error}");
}

#[test]
fn follows_links_that_stay_inside() {
    let (workspace, allowed) = workspace();
    let at = |path: &str| workspace.path().join(path);
    symlink(at("open/inner/b.csv"), at("open/link.csv")).unwrap();
    assert_eq!(read(&at("open/link.csv"), &allowed).unwrap(), "name\nB");
    // The allowed folder itself may be a link.
    symlink(at("open"), at("way")).unwrap();
    let allowed = Allowed::Within(vec![at("way")]);
    assert_eq!(read(&at("open/a.csv"), &allowed).unwrap(), "name\nA");
    assert_eq!(read(&at("way/a.csv"), &allowed).unwrap(), "name\nA");
}

#[test]
fn opens_only_regular_files() {
    let (workspace, allowed) = workspace();
    let at = |path: &str| workspace.path().join(path);
    let made = std::process::Command::new("mkfifo")
        .arg(at("open/pipe"))
        .status();
    assert!(made.unwrap().success());
    symlink("/dev/null", at("open/null")).unwrap();
    symlink(at("open/none"), at("open/dangling")).unwrap();
    for (path, part) in [
        ("open/pipe", "not a regular file"),
        ("open/inner", "is a folder"),
        ("open/none.csv", "does not exist"),
        ("open/null", "is outside"),
        ("open/dangling", "does not exist"),
        ("open/a.csv/x", "cannot be read"),
    ] {
        let error = read(&at(path), &allowed).unwrap_err();
        assert!(error.contains(part), "{path}: {error}");
    }
    let anywhere = open("/dev/null", &Allowed::Anywhere).unwrap_err();
    assert!(anywhere.contains("not a regular file"), "{anywhere}");
    for (given, part) in [
        ("", "is empty"),
        ("a\0b", "is not a path"),
        ("https://example.com/a.csv", "not a web URL"),
    ] {
        let error = open(given, &allowed).unwrap_err();
        assert!(error.contains(part), "{given:?}: {error}");
    }
}

/// Replaces parts of the path between checking and opening it.
#[test]
fn rejects_a_path_that_changes_before_it_is_opened() {
    type Swap = fn(&Path);
    let swaps: [(&str, Swap); 4] = [
        ("open/a.csv", |workspace| {
            fs::remove_file(workspace.join("open/a.csv")).unwrap();
            symlink(workspace.join("secret.csv"), workspace.join("open/a.csv")).unwrap();
        }),
        ("open/inner/b.csv", |workspace| {
            fs::write(workspace.join("opened/b.csv"), "secret").unwrap();
            fs::rename(workspace.join("open/inner"), workspace.join("open/away")).unwrap();
            symlink(workspace.join("opened"), workspace.join("open/inner")).unwrap();
        }),
        ("open/a.csv", |workspace| {
            fs::remove_file(workspace.join("open/a.csv")).unwrap();
            fs::create_dir(workspace.join("open/a.csv")).unwrap();
        }),
        ("open/a.csv", |workspace| {
            fs::remove_file(workspace.join("open/a.csv")).unwrap();
            let pipe = workspace.join("open/a.csv");
            let made = std::process::Command::new("mkfifo").arg(pipe).status();
            assert!(made.unwrap().success());
        }),
    ];
    for (number, (path, swap)) in swaps.into_iter().enumerate() {
        let (workspace, allowed) = workspace();
        let path = workspace.path().join(path);
        let opened = open_with_hook(path.to_str().unwrap(), &allowed, || swap(workspace.path()));
        assert!(opened.is_err(), "swap {number}");
    }
}

/// On systems that do not report the path of an open file, the file is compared with the one at its path.
#[test]
fn identifies_an_open_file_by_its_path() {
    let (workspace, allowed) = workspace();
    let at = |path: &str| workspace.path().join(path);
    let scope = FolderScope::new(&allowed).unwrap();
    let path = fs::canonicalize(at("open/a.csv")).unwrap();
    let own = File::open(&path).unwrap();
    assert!(scope.contains_same(&own, &path) && scope.contains_file(&own, &path));
    let other = File::open(at("secret.csv")).unwrap();
    assert!(!scope.contains_same(&other, &path));
    assert!(!scope.contains_file(&other, &path) || real_path(&other).is_none());
    fs::remove_file(&path).unwrap();
    symlink(at("secret.csv"), &path).unwrap();
    assert!(!scope.contains_same(&other, &path));
}

#[test]
fn lists_folders_that_do_not_exist() {
    let allowed = Allowed::Within(vec!["/no/such/folder".into()]);
    let error = open("a.csv", &allowed).unwrap_err();
    assert!(error.contains("/no/such/folder"), "{error}");
}
