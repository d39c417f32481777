//! The flat map: each top-level key as text, by OpenClaw's rules.

use super::yaml::{Pair, plain_text};
use crate::text::trim;

/// All pairs as text. A null that was written out (`~`, `null`) comes last, as its own text, because the peer's line
/// reader puts it there; nothing of ours reads a field from this map.
pub(super) fn map(header: &str, pairs: &[Pair]) -> Vec<(String, String)> {
    let (nulls, values): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(|pair| pair.value.is_null());
    let keep = |pair: &&Pair| !trim(&pair.key).is_empty();
    let values = values.into_iter().filter(keep).map(|pair| (pair, trim(&text(header, pair)).to_owned()));
    let nulls = nulls.into_iter().filter(keep).map(|pair| (pair, trim(&header[pair.source.clone()]).to_owned()));
    values
        .chain(nulls.filter(|(_, text)| !text.is_empty()))
        .map(|(pair, text)| (trim(&pair.key).to_owned(), text))
        .collect()
}

/// One value as text: a structure written on the key's own line keeps its source, any other becomes compact JSON.
pub(super) fn text(header: &str, pair: &Pair) -> String {
    if let Some(text) = plain_text(&pair.value) {
        return text;
    }
    let source = trim(&header[pair.source.clone()]);
    let first = header[pair.source.clone()].lines().next().unwrap_or_default();
    let inline = !trim(first).is_empty() && !source.contains('\n') && source.contains(':');
    if inline { source.to_owned() } else { pair.value.to_string() }
}
