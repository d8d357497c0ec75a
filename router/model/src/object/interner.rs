//! String interner: equal namespaces, services, ports and labels of many objects are stored once.

use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of bytes of a shared text: unused texts are dropped by their number, whatever their size.
const MAX_TEXT: usize = 4096;
/// Minimum number of texts before unused ones are dropped.
const MIN_SWEEP: usize = 1024;

/// The interned texts.
#[derive(Debug, Default)]
pub struct Interner {
    known: HashSet<Arc<str>>,
    sweep_at: usize,
}

impl Interner {
    /// Replaces `text` by the interned text of the same content, unless it is longer than 4 KiB.
    pub fn share(&mut self, text: &mut Arc<str>) {
        if text.len() > MAX_TEXT {
            return;
        }
        match self.known.get(&**text) {
            Some(known) => *text = Arc::clone(known),
            None => self.add(text),
        }
    }

    /// The interned text of this content, or a new one; see [`Interner::share`].
    pub fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        if text.len() <= MAX_TEXT {
            self.add(&text);
        }
        text
    }

    fn add(&mut self, text: &Arc<str>) {
        if self.known.len() >= self.sweep_at.max(MIN_SWEEP) {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = self.known.len() * 2;
        }
        self.known.insert(Arc::clone(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_become_one_and_are_forgotten_with_their_last_holder() {
        let mut texts = Interner::default();
        let (mut a, mut b): (Arc<str>, Arc<str>) = ("team".into(), "team".into());
        texts.share(&mut a);
        texts.share(&mut b);
        assert!(Arc::ptr_eq(&a, &b));
        for i in 0..10 * MIN_SWEEP {
            texts.share(&mut i.to_string().into());
        }
        assert!(texts.known.len() <= MIN_SWEEP + 1, "{}", texts.known.len());
        assert!(texts.known.contains("team"));
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let mut texts = Interner::default();
        for (bytes, kept) in [(MAX_TEXT, 1), (MAX_TEXT + 1, 0)] {
            let mut text: Arc<str> = "x".repeat(bytes).into();
            texts.share(&mut text);
            assert_eq!(Arc::strong_count(&text), 1 + kept, "{bytes}");
        }
    }
}
