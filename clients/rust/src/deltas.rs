//! Makes whole lists of the edits of `context/assemble`.

use crate::{AssembleContextResult, Error, Message, MessageEdit};
use std::collections::{HashMap, VecDeque};

/// For how many sessions the latest answer is kept.
const REMEMBERED: usize = 64;

/// The latest answer of a session: its id and its list.
pub(crate) type Base = (String, Vec<Message>);

/// The latest answers of one connection; another sidecar knows none of them.
#[derive(Default)]
pub(crate) struct Answers {
    latest: HashMap<String, Base>,
    order: VecDeque<String>,
}

impl Answers {
    pub fn latest(&self, session: &str) -> Option<Base> {
        self.latest.get(session).cloned()
    }

    /// Gives a result its whole list, and remembers it.
    pub fn complete(
        &mut self,
        session: &str,
        base: Option<Base>,
        result: &mut AssembleContextResult,
    ) -> Result<(), Error> {
        if let Some(edits) = result.edits.take() {
            let previous = base.map(|(_, messages)| messages).unwrap_or_default();
            result.messages = Some(applied(&previous, edits)?);
        }
        let messages = result.messages.clone().unwrap_or_default();
        self.order.retain(|name| name != session);
        self.order.push_back(session.to_owned());
        self.latest.insert(session.to_owned(), (result.result_id.clone(), messages));
        if self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.latest.remove(&oldest);
            }
        }
        Ok(())
    }
}

/// A new list. Positions are those of the earlier list, ascending.
fn applied(previous: &[Message], edits: Vec<MessageEdit>) -> Result<Vec<Message>, Error> {
    let mut whole = Vec::with_capacity(previous.len());
    let mut at = 0;
    for edit in edits {
        let (start, end) = (edit.start as usize, (edit.start + edit.delete_count) as usize);
        let kept = previous.get(at..start);
        let (Some(kept), true) = (kept, start <= end && end <= previous.len()) else {
            let count = previous.len();
            return Err(Error::Decoding(format!("an edit of [{start}, {end}) does not fit {count} messages")));
        };
        whole.extend_from_slice(kept);
        whole.extend(edit.messages);
        at = end;
    }
    whole.extend_from_slice(&previous[at..]);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;

    fn said(texts: &[&str]) -> Vec<Message> {
        texts.iter().map(|text| to_raw_value(text).unwrap()).collect()
    }

    fn edit(start: i64, delete_count: i64, texts: &[&str]) -> MessageEdit {
        MessageEdit { start, delete_count, messages: said(texts) }
    }

    #[test]
    fn positions_are_those_of_the_list_before() {
        let edits = vec![edit(0, 1, &["A", "A2"]), edit(2, 1, &[]), edit(4, 0, &["e"])];
        let whole = applied(&said(&["a", "b", "c", "d"]), edits).unwrap();
        let texts: Vec<&str> = whole.iter().map(|message| message.get()).collect();
        assert_eq!(texts, ["\"A\"", "\"A2\"", "\"b\"", "\"d\"", "\"e\""]);
    }

    #[test]
    fn an_edit_behind_the_end_is_refused() {
        assert!(applied(&said(&["a"]), vec![edit(1, 1, &[])]).is_err());
        assert!(applied(&said(&["a", "b"]), vec![edit(1, 0, &[]), edit(0, 1, &[])]).is_err());
    }
}
