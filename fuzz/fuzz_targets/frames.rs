//! Any bytes as a frame of a client: a request, or a refusal that is fit to be sent back; and any JSON as parameters.

#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess_gateway::params::{
    ANY, ANY_TEXT, BOOL, Kind, Shape, TEXT, TEXTS, choice, integer_within, map, object, optional, required, shape,
};
use prowess_gateway::wire::{self, Malformed};
use serde_json::Value;

const SHAPE: Shape = shape(&[
    required("id", TEXT),
    optional("mode", choice(&["a", "b"])),
    optional("count", integer_within(1, 1000)),
    optional("tags", TEXTS),
    optional("flags", map(&BOOL)),
    optional("inner", object(&[required("text", ANY_TEXT), optional("any", ANY)])),
    optional("maybe", Kind::Either(&[TEXT, Kind::Null])),
]);

fuzz_target!(|text: &str| {
    match wire::parse(text) {
        Ok(request) => {
            assert!(!request.id.is_empty() && !request.method.is_empty());
            if let Err(refusal) = SHAPE.check(&request.method, &request.params) {
                answered(&request.id, refusal);
            }
        }
        Err(Malformed::Refused { id, refusal }) => answered(&id, *refusal),
        Err(malformed @ (Malformed::NotJson | Malformed::TooDeep)) => assert!(!malformed.as_str().is_empty()),
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let complaints = SHAPE.complaints(&value);
        assert!(complaints.len() <= 16 && complaints.iter().all(|complaint| !complaint.is_empty()));
    }
});

/// A refusal can be written, and read by the other side.
fn answered(id: &str, refusal: wire::Refusal) {
    let text = wire::answer(id, &Err(refusal));
    let frame: Value = serde_json::from_str(&text).expect("an answer is JSON");
    assert_eq!((&frame["id"], &frame["ok"]), (&Value::from(id), &Value::from(false)));
}
