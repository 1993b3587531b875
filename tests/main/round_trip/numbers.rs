//! Numbers keep their digits in both directions. Parsed values would look equal even if their
//! last digit changed, so these tests compare texts.

use crate::support::{Program, Recorder, Response};

/// Numbers that careless parsers round; scores and coordinates of the API have as many digits.
const NUMBERS: [&str; 10] = [
    "9007199254740993",
    "18446744073709551615",
    "-9223372036854775808",
    "0.005",
    "0.1",
    "1e-7",
    "31.245270191439438",
    "121.48791951161945",
    "0.16259487085320237",
    "100.78399658203125",
];

/// Returns a JSON list of all numbers, with the white space of neither compact nor pretty output.
fn list() -> String {
    format!("[{}]", NUMBERS.join(", "))
}

/// Returns the numbers in a JSON text.
fn numbers(text: &str) -> Vec<&str> {
    let list = &text[text.find('[').expect("a list")..=text.find(']').expect("its end")];
    list.split(['[', ',', ']'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

#[test]
fn response_numbers_are_printed_unchanged() {
    let response = Response::new(200).header("content-type", "application/json");
    let server = Recorder::always(response.body(format!("{{\"scores\": {}}}", list())));
    let output = Program::new(["call", "items.get", r#"{"websetId":"w","itemId":"i"}"#])
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert_eq!(numbers(&output.stdout), NUMBERS);
}

#[test]
fn argument_numbers_are_sent_unchanged() {
    let server = Recorder::always(Response::new(200).body("{}"));
    let arguments = format!("{{\"query\": \"q\", \"unknown\": {}}}", list());
    let output = Program::new(["call", "search", &arguments])
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let body = String::from_utf8(server.only_request().body).expect("UTF-8");
    assert_eq!(numbers(&body), NUMBERS);
}

#[test]
fn declared_field_numbers_are_sent_unchanged() {
    for number in NUMBERS {
        let server = Recorder::always(Response::new(200).body("{}"));
        let arguments =
            format!("{{\"query\": \"q\", \"userLocation\": {{\"latitude\": {number}}}}}");
        let output = Program::call_unchecked(&server, "search", &arguments).run();
        assert_eq!(output.code, Some(0), "{number}: {output:#?}");
        let body = String::from_utf8(server.only_request().body).expect("UTF-8");
        assert!(
            body.contains(&format!("\"latitude\":{number}}}")),
            "{number}: {body}"
        );
    }
}

#[test]
fn query_numbers_are_sent_unchanged() {
    for number in ["9007199254740993", "18446744073709551615", "2.5", "1"] {
        let server = Recorder::always(Response::new(200).body("{}"));
        let output =
            Program::call_unchecked(&server, "websets.list", &format!("{{\"limit\": {number}}}"))
                .run();
        assert_eq!(output.code, Some(0), "{number}: {output:#?}");
        assert_eq!(
            server.only_request().target,
            format!("/websets/v0/websets?limit={number}")
        );
    }
}
