//! Runs of bytes of one class, for callers outside the kernel: a table and whole words instead of single bytes.

use super::token::is_token;

/// The classes of each byte.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let visible = byte > b' ' as usize && byte < 0x7f;
        classes[byte] = if is_token(byte as u8) { IN_TOKEN } else { 0 }
            | if visible && byte != b'#' as usize { IN_TARGET } else { 0 }
            | if visible { IN_HOST } else { 0 };
        byte += 1;
    }
    classes
};
/// Class of bytes in names and methods.
pub const IN_TOKEN: u8 = 1;
/// Class of bytes in a request target.
pub const IN_TARGET: u8 = 2;
/// Class of bytes in a host that is parsed later.
pub const IN_HOST: u8 = 4;

/// Number of leading bytes of a class.
pub fn run(bytes: &[u8], class: u8) -> usize {
    bytes.iter().take_while(|byte| CLASSES[**byte as usize] & class != 0).count()
}

/// The last eight bytes of a run, as many as fit a word.
pub fn last_eight(bytes: &[u8], run: usize) -> core::slice::Iter<'_, u8> {
    bytes.get(run.saturating_sub(8)..run).unwrap_or_default().iter()
}

/// Number of leading bytes that a field value may contain, except tabs, which are rare.
pub fn plain(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::MAX / 0xff;
    let (words, _) = bytes.as_chunks::<8>();
    let is_plain = |word: &&[u8; 8]| {
        let word = u64::from_ne_bytes(**word);
        // Sets bit 7 of each byte below a space and of each DEL. A borrow from such a byte may set the bit of others.
        let control = word.wrapping_sub(EACH * 0x20) & !word;
        let delete = word ^ (EACH * 0x7f);
        (control | (delete.wrapping_sub(EACH) & !delete)) & (EACH << 7) == 0
    };
    let whole = 8 * words.iter().take_while(is_plain).count();
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|byte| **byte >= b' ' && **byte != 0x7f).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_the_first_byte_of_another_class() {
        for byte in 0..=u8::MAX {
            let text = [b'a', b'a', byte, b'a'];
            let expected = |is_in: bool| if is_in { 4 } else { 2 };
            assert_eq!(run(&text, IN_TOKEN), expected(is_token(byte)), "{byte}");
            assert_eq!(run(&text, IN_TARGET), expected(byte.is_ascii_graphic() && byte != b'#'), "{byte}");
            assert_eq!(run(&text, IN_HOST), expected(byte.is_ascii_graphic()), "{byte}");
        }
    }

    #[test]
    fn plain_text_ends_at_the_first_control_character() {
        for (byte, other) in (0..=u8::MAX).flat_map(|byte| [b' ', b'~', 0x80, 0xff].map(|other| (byte, other))) {
            for place in 0..17 {
                let mut text = [other; 17];
                text[place] = byte;
                let is_plain = byte >= b' ' && byte != 0x7f;
                assert_eq!(plain(&text), if is_plain { 17 } else { place }, "{byte} at {place} among {other}");
            }
        }
    }
}
