//! Chunked bodies, whole and at every split.

use super::*;

/// The verdict on the bytes fed in one piece, checked to be the same for every split into two.
fn scan(bytes: &[u8]) -> Result<Option<usize>, ChunkError> {
    let whole = ChunkScanner::default().scan(bytes);
    for split in 0..=bytes.len() {
        let mut scanner = ChunkScanner::default();
        let halves = match scanner.scan(&bytes[..split]) {
            Ok(None) => scanner.scan(&bytes[split..]).map(|end| end.map(|end| end + split)),
            early => early,
        };
        assert_eq!(halves, whole, "split at {split} of {bytes:?}");
    }
    whole
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
        assert_eq!(scan(bytes), Err(ChunkError), "{bytes:?}");
    }
}

#[test]
fn lines_are_bounded() {
    let extension = [b"1;".as_slice(), &vec![b'a'; MAX_LINE as usize + 1]].concat();
    assert_eq!(ChunkScanner::default().scan(&extension), Err(ChunkError));
    // Trailers count together, or many short ones would be no bound at all.
    for line in [b"a: b\r\n".as_slice(), b"a\r\n"] {
        let trailers = [b"0\r\n".as_slice(), &line.repeat(MAX_LINE as usize + 1)].concat();
        assert_eq!(ChunkScanner::default().scan(&trailers), Err(ChunkError));
    }
}
