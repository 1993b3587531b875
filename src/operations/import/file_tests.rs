#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::os::unix::fs::symlink;

use super::*;

/// A folder `open` with a file, a sibling `opened` whose name begins alike, and a secret beside.
fn house() -> (tempfile::TempDir, Allowed) {
    let house = tempfile::tempdir().unwrap();
    for folder in ["open/inner", "opened"] {
        fs::create_dir_all(house.path().join(folder)).unwrap();
    }
    for (file, text) in [
        ("open/a.csv", "name\nA"),
        ("open/inner/b.csv", "name\nB"),
        ("opened/a.csv", "secret"),
        ("secret.csv", "secret"),
    ] {
        fs::write(house.path().join(file), text).unwrap();
    }
    let allowed = Allowed::Within(vec![house.path().join("open")]);
    (house, allowed)
}

fn read(path: &Path, allowed: &Allowed) -> Result<String, String> {
    content(open(path.to_str().unwrap(), allowed)?)
}

fn content(mut opened: Opened) -> Result<String, String> {
    let mut text = String::new();
    opened.file.read_to_string(&mut text).unwrap();
    assert_eq!(opened.size, text.len() as u64);
    Ok(text)
}

#[test]
fn files_inside_are_opened_by_any_spelling() {
    let (house, allowed) = house();
    let at = |path: &str| house.path().join(path);
    for path in [
        "open/a.csv",
        "open/./inner/../a.csv",
        "opened/../open/a.csv",
    ] {
        assert_eq!(read(&at(path), &allowed).unwrap(), "name\nA", "{path}");
    }
    assert_eq!(read(Path::new("inner/b.csv"), &allowed).unwrap(), "name\nB");
    let address = Url::from_file_path(at("open/a.csv")).unwrap();
    assert_eq!(
        content(open(address.as_str(), &allowed).unwrap()).unwrap(),
        "name\nA"
    );
    let name = format!(" {} ", at("open/a.csv").display());
    assert!(open(&name, &allowed).is_ok());
}

#[test]
fn nothing_outside_is_opened() {
    let (house, allowed) = house();
    let at = |path: &str| house.path().join(path);
    symlink(at("secret.csv"), at("open/link.csv")).unwrap();
    symlink(at("opened"), at("open/door")).unwrap();
    for path in [
        "opened/a.csv",
        "secret.csv",
        "open/../secret.csv",
        "open/link.csv",
        "open/door/a.csv",
        "open/door/../secret.csv",
        // What does not exist outside looks like what does.
        "opened/none.csv",
        "none/none.csv",
        "open/door/none.csv",
        "open/../none.csv",
    ] {
        let refusal = read(&at(path), &allowed).unwrap_err();
        assert!(refusal.starts_with("lies outside"), "{path}: {refusal}");
        assert!(refusal.contains("csvContent"), "{refusal}");
    }
    let refusal = read(Path::new("../secret.csv"), &allowed).unwrap_err();
    assert!(refusal.starts_with("lies outside"), "{refusal}");
}

#[test]
fn links_that_stay_inside_are_followed() {
    let (house, allowed) = house();
    let at = |path: &str| house.path().join(path);
    symlink(at("open/inner/b.csv"), at("open/link.csv")).unwrap();
    assert_eq!(read(&at("open/link.csv"), &allowed).unwrap(), "name\nB");
    // The open folder itself may be reached by a link.
    symlink(at("open"), at("way")).unwrap();
    let allowed = Allowed::Within(vec![at("way")]);
    assert_eq!(read(&at("open/a.csv"), &allowed).unwrap(), "name\nA");
    assert_eq!(read(&at("way/a.csv"), &allowed).unwrap(), "name\nA");
}

#[test]
fn only_regular_files_are_opened() {
    let (house, allowed) = house();
    let at = |path: &str| house.path().join(path);
    let made = std::process::Command::new("mkfifo")
        .arg(at("open/pipe"))
        .status();
    assert!(made.unwrap().success());
    symlink("/dev/null", at("open/null")).unwrap();
    symlink(at("open/none"), at("open/dangling")).unwrap();
    for (path, part) in [
        ("open/pipe", "not a regular file"),
        ("open/inner", "is a folder"),
        ("open/none.csv", "no file that exists"),
        ("open/null", "lies outside"),
        ("open/dangling", "no file that exists"),
        ("open/a.csv/x", "cannot be read"),
    ] {
        let refusal = read(&at(path), &allowed).unwrap_err();
        assert!(refusal.contains(part), "{path}: {refusal}");
    }
    let anywhere = open("/dev/null", &Allowed::Anywhere).unwrap_err();
    assert!(anywhere.contains("not a regular file"), "{anywhere}");
    for (given, part) in [
        ("", "is empty"),
        ("a\0b", "is no path"),
        ("https://example.com/a.csv", "not an address on the web"),
    ] {
        let refusal = open(given, &allowed).unwrap_err();
        assert!(refusal.contains(part), "{given:?}: {refusal}");
    }
}

/// Between the look and the opening, somebody puts something else into the way.
#[test]
fn a_path_that_changes_under_our_hands_opens_nothing_outside() {
    type Swap = fn(&Path);
    let swaps: [(&str, Swap); 4] = [
        ("open/a.csv", |house| {
            fs::remove_file(house.join("open/a.csv")).unwrap();
            symlink(house.join("secret.csv"), house.join("open/a.csv")).unwrap();
        }),
        ("open/inner/b.csv", |house| {
            fs::write(house.join("opened/b.csv"), "secret").unwrap();
            fs::rename(house.join("open/inner"), house.join("open/away")).unwrap();
            symlink(house.join("opened"), house.join("open/inner")).unwrap();
        }),
        ("open/a.csv", |house| {
            fs::remove_file(house.join("open/a.csv")).unwrap();
            fs::create_dir(house.join("open/a.csv")).unwrap();
        }),
        ("open/a.csv", |house| {
            fs::remove_file(house.join("open/a.csv")).unwrap();
            let pipe = house.join("open/a.csv");
            let made = std::process::Command::new("mkfifo").arg(pipe).status();
            assert!(made.unwrap().success());
        }),
    ];
    for (number, (path, swap)) in swaps.into_iter().enumerate() {
        let (house, allowed) = house();
        let path = house.path().join(path);
        let opened = open_with(path.to_str().unwrap(), &allowed, || swap(house.path()));
        assert!(opened.is_err(), "swap {number}");
    }
}

/// Systems that do not tell where an opened file is compare it with what is at its place.
#[test]
fn a_file_is_known_by_its_place() {
    let (house, allowed) = house();
    let at = |path: &str| house.path().join(path);
    let inside = Inside::of(&allowed).unwrap();
    let place = fs::canonicalize(at("open/a.csv")).unwrap();
    let own = File::open(&place).unwrap();
    assert!(inside.holds_same(&own, &place) && inside.holds_opened(&own, &place));
    let other = File::open(at("secret.csv")).unwrap();
    assert!(!inside.holds_same(&other, &place));
    assert!(!inside.holds_opened(&other, &place) || real_path(&other).is_none());
    fs::remove_file(&place).unwrap();
    symlink(at("secret.csv"), &place).unwrap();
    assert!(!inside.holds_same(&other, &place));
}

#[test]
fn folders_that_do_not_exist_are_named() {
    let allowed = Allowed::Within(vec!["/no/such/folder".into()]);
    let refusal = open("a.csv", &allowed).unwrap_err();
    assert!(refusal.contains("/no/such/folder"), "{refusal}");
}
