//! Any bytes as the answer of a model, cut anywhere, in each wire format: whole or with a clear error, and never more than
//! was sent.

#![no_main]

use std::mem::{Discriminant, discriminant};

use futures_util::{FutureExt, StreamExt, stream};
use libfuzzer_sys::fuzz_target;
use prowess_agent::model::{About, Api, Draft, ModelError};
use prowess_agent::provider::answer;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (cut, bytes) = input;
    for api in [Api::Anthropic, Api::Chat, Api::Responses] {
        let whole = read(api, std::slice::from_ref(&bytes));
        let pieces: Vec<Vec<u8>> = bytes.chunks(usize::from(cut).max(1)).map(<[u8]>::to_vec).collect();
        assert_eq!(read(api, &pieces), whole, "{api:?}: the cut of the wire changes what was said");
    }
});

/// What the model said, without times and ids of our own; or what kind of thing went wrong.
fn read(api: Api, pieces: &[Vec<u8>]) -> Result<String, Discriminant<ModelError>> {
    let sent: usize = pieces.iter().map(Vec::len).sum();
    let about =
        About { provider: "fuzz".to_owned(), model: "m".to_owned(), api, context_window: 100_000, max_tokens: 1_000 };
    let wire = stream::iter(pieces.to_vec()).map(Ok::<_, ModelError>);
    let mut deltas = std::pin::pin!(answer(api, "fuzz", wire));
    let mut draft = Draft::new(&about);
    loop {
        // Everything has arrived, so nothing has to be waited for.
        match deltas.next().now_or_never() {
            Some(Some(Ok(delta))) => draft.apply(&delta),
            Some(Some(Err(error))) => {
                assert!(!error.to_string().is_empty());
                return Err(discriminant(&error));
            }
            Some(None) => break,
            None => panic!("{api:?} waits for what does not come"),
        }
    }
    assert!(draft.is_done(), "{api:?}: an answer that ends without an error says that it is done");
    let reply = draft.finish();
    let text = reply.message.text();
    assert!(text.len() <= sent, "{api:?}: {} bytes were said in {sent}", text.len());
    let calls: Vec<_> = reply.message.calls().map(|call| (call.name.clone(), call.arguments.clone())).collect();
    Ok(format!("{text:?} {calls:?} {:?} {:?}", reply.message.stop_reason, reply.broken))
}
