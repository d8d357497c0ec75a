//! Content in chunks and of known length, whole and at every split.

use std::vec;

use super::*;

/// End of the content that begins these bytes, if they contain it.
fn end(mut content: ContentTracker, parts: &[&[u8]]) -> Result<Option<usize>, ContentError> {
    let mut taken = 0;
    for part in parts {
        taken += content.scan(part)?;
    }
    Ok(content.is_over().then_some(taken))
}

/// The result for chunks fed in one piece, checked to be the same for every split into two.
fn scan(bytes: &[u8]) -> Result<Option<usize>, ContentError> {
    let whole = end(ContentTracker::chunked(), &[bytes]);
    for split in 0..=bytes.len() {
        let (first, second) = bytes.split_at(split);
        assert_eq!(end(ContentTracker::chunked(), &[first, second]), whole, "split at {split} of {bytes:?}");
    }
    whole
}

#[test]
fn content_of_known_length_may_be_anything() {
    for length in 0..9 {
        let content = ContentTracker::sized(length as u64);
        assert_eq!((content.is_sized(), content.is_over(), content.free()), (length > 0, length == 0, length as u64));
        for split in 0..=8 {
            let (first, second) = b"5\r\nGET /".split_at(split);
            assert_eq!(end(content, &[first, second]), Ok(Some(length)), "{length} bytes, split at {split}");
        }
    }
    let mut large = ContentTracker::sized(1 << 62);
    assert_eq!(large.scan(b"GET / HTTP/1.1"), Ok(14));
    assert_eq!(large.free(), (1 << 62) - 14);
}

#[test]
fn bodies_end_where_the_grammar_says() {
    let cases: [(&[u8], usize); 6] = [
        (b"0\r\n\r\nGET", 5),
        (b"5\r\nhello\r\n0\r\n\r\n", 15),
        (b"A\r\n0123456789\r\n000\r\n\r\nx", 22),
        (b"1;name=value;flag\r\nx\r\n0\r\n\r\n", 27),
        (b"1\r\nx\r\n0\r\nTrailer: a b\r\nX:\r\n\r\n", 29),
        (b"2\r\n\r\n\r\n0\r\n\r\n", 12),
    ];
    for (bytes, end) in cases {
        assert_eq!(scan(bytes), Ok(Some(end)), "{bytes:?}");
        for prefix in 0..end {
            assert_eq!(scan(&bytes[..prefix]), Ok(None), "{prefix} bytes of {bytes:?}");
        }
    }
}

#[test]
fn what_readers_differ_on_is_refused() {
    let cases: [&[u8]; 16] = [
        b"5\nhello\r\n",
        b"0x5\r\nhello",
        b"\r\nhello",
        b";a\r\nhello",
        b" 5\r\nhello",
        b"5 \r\nhello",
        b"+5\r\n",
        b"-1\r\n",
        b"0000000000000005\r\nhello",
        b"10000000000000000\r\n",
        b"5\r\nhelloX\r\n",
        b"5\r\nhello\n0",
        b"5;a\nb\r\nhello",
        b"5;\0\r\n",
        b"0\r\n\n",
        b"0\r\n folded: x\r\n",
    ];
    for bytes in cases {
        assert_eq!(scan(bytes), Err(ContentError), "{bytes:?}");
    }
}

#[test]
fn lines_are_bounded() {
    let scan_whole = |bytes: &[u8]| ContentTracker::chunked().scan(bytes);
    let extension = [b"1;".as_slice(), &vec![b'a'; MAX_LINE as usize + 1]].concat();
    assert_eq!(scan_whole(&extension), Err(ContentError));
    // Trailers are limited together, or many short ones would be unlimited.
    for line in [b"a: b\r\n".as_slice(), b"a\r\n"] {
        let trailers = [b"0\r\n".as_slice(), &line.repeat(MAX_LINE as usize + 1)].concat();
        assert_eq!(scan_whole(&trailers), Err(ContentError));
    }
}
