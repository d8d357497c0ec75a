//! Makes text fields of map keys and values read as text in `bpftool map dump`.
//!
//! rustc describes `[u8; N]` as an array of the integer `u8`, which bpftool prints as numbers; C's `char[N]` it prints
//! as a string. This pass adds a `char` and arrays of it to the object's BTF, and points the struct members that hold
//! text at them. Layout does not change. The new section stands at the end of the file; nothing else moves.
//! Format: the kernel's Documentation/bpf/btf.rst and the ELF-64 specification.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

/// Members that hold text, by struct and name.
const TEXT_MEMBERS: [(&str, &str); 3] = [("HostKey", "host"), ("HostRoute", "backend"), ("DecisionEvent", "host")];

const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const ENCODING_CHAR: u32 = 4 << 24;

/// Rewrites an ELF object; fails if a text member is not found, so that a renamed field is noticed.
pub fn mark_text(object: &[u8]) -> Result<Vec<u8>> {
    let section = find_section(object, ".BTF")?;
    let start = read_u64(object, section + 24)? as usize;
    let size = read_u64(object, section + 32)? as usize;
    let btf = object.get(start..start + size).context(".BTF lies outside the file")?;
    let rewritten = rewrite(btf)?;

    let mut out = object.to_vec();
    out.resize(out.len().next_multiple_of(8), 0);
    let at = out.len() as u64;
    out[section + 24..section + 32].copy_from_slice(&at.to_le_bytes());
    out[section + 32..section + 40].copy_from_slice(&(rewritten.len() as u64).to_le_bytes());
    out.extend_from_slice(&rewritten);
    Ok(out)
}

/// Offset of a section's header.
fn find_section(object: &[u8], name: &str) -> Result<usize> {
    ensure!(object.starts_with(b"\x7fELF\x02\x01"), "not a little-endian ELF-64 object");
    let table = read_u64(object, 0x28)? as usize;
    let entry = usize::from(read_u16(object, 0x3a)?);
    let count = usize::from(read_u16(object, 0x3c)?);
    let names = table + usize::from(read_u16(object, 0x3e)?) * entry;
    let names = read_u64(object, names + 24)? as usize;
    for header in (0..count).map(|i| table + i * entry) {
        let at = names + read_u32(object, header)? as usize;
        if text_at(object, at) == name {
            return Ok(header);
        }
    }
    bail!("the object has no {name} section: was it built with debug information and --btf?")
}

fn rewrite(btf: &[u8]) -> Result<Vec<u8>> {
    let header = read_u32(btf, 4)? as usize;
    let types_at = header + read_u32(btf, 8)? as usize;
    let types_len = read_u32(btf, 12)? as usize;
    let strings_at = header + read_u32(btf, 16)? as usize;
    let strings_len = read_u32(btf, 20)? as usize;
    let mut types = btf.get(types_at..types_at + types_len).context("BTF types lie outside the section")?.to_vec();
    let mut strings =
        btf.get(strings_at..strings_at + strings_len).context("BTF strings lie outside the section")?.to_vec();

    // Offset of each type's record, type ids count from 1.
    let mut records = vec![0];
    let mut at = 0;
    while at < types.len() {
        records.push(at);
        at += record_len(&types, at)?;
    }

    let char_name = strings.len() as u32;
    strings.extend_from_slice(b"char\0");
    let char_id = records.len() as u32;
    push(&mut types, &[char_name, KIND_INT << 24, 1, ENCODING_CHAR | 8]);
    let mut next_id = char_id + 1;
    let mut arrays: HashMap<u32, u32> = HashMap::new();
    let mut found = Vec::new();

    for record in records.iter().skip(1).copied() {
        let info = read_u32(&types, record + 4)?;
        if info >> 24 & 0x1f != KIND_STRUCT {
            continue;
        }
        let owner = text_at(&strings, read_u32(&types, record)? as usize).to_owned();
        for member in (0..(info & 0xffff) as usize).map(|i| record + 12 + i * 12) {
            let name = text_at(&strings, read_u32(&types, member)? as usize).to_owned();
            if !TEXT_MEMBERS.contains(&(owner.as_str(), name.as_str())) {
                continue;
            }
            let old = *records.get(read_u32(&types, member + 4)? as usize).context("member of unknown type")?;
            ensure!(read_u32(&types, old + 4)? >> 24 & 0x1f == KIND_ARRAY, "{owner}.{name} is no array");
            let (index_type, length) = (read_u32(&types, old + 16)?, read_u32(&types, old + 20)?);
            let id = *arrays.entry(length).or_insert_with(|| {
                push(&mut types, &[0, KIND_ARRAY << 24, 0, char_id, index_type, length]);
                next_id += 1;
                next_id - 1
            });
            types[member + 4..member + 8].copy_from_slice(&id.to_le_bytes());
            found.push((owner.clone(), name));
        }
    }
    for (owner, name) in TEXT_MEMBERS {
        ensure!(found.iter().any(|(o, n)| o == owner && n == name), "no struct member {owner}.{name} in the BTF");
    }

    let mut out = btf.get(..header).context("short BTF header")?.to_vec();
    for (at, value) in [(8, 0), (12, types.len()), (16, types.len()), (20, strings.len())] {
        out[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    }
    out.extend_from_slice(&types);
    out.extend_from_slice(&strings);
    Ok(out)
}

/// Bytes of a type record: 12, and what its kind adds.
fn record_len(types: &[u8], at: usize) -> Result<usize> {
    let info = read_u32(types, at + 4)?;
    let entries = (info & 0xffff) as usize;
    Ok(12
        + match info >> 24 & 0x1f {
            1 | 14 | 17 => 4,        // int, var, decl tag
            3 => 12,                 // array
            4 | 5 => entries * 12,   // struct, union
            6 => entries * 8,        // enum
            13 => entries * 8,       // function prototype
            15 | 19 => entries * 12, // data section, 64-bit enum
            2 | 7..=12 | 16 | 18 => 0,
            kind => bail!("unknown BTF kind {kind}"),
        })
}

fn push(types: &mut Vec<u8>, words: &[u32]) {
    types.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn text_at(bytes: &[u8], at: usize) -> &str {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.iter().position(|b| *b == 0).unwrap_or(0);
    std::str::from_utf8(&rest[..end]).unwrap_or("")
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    bytes.get(at..at + N).and_then(|b| b.try_into().ok()).with_context(|| format!("the object ends before byte {at}"))
}

fn read_u16(bytes: &[u8], at: usize) -> Result<u16> {
    read(bytes, at).map(u16::from_le_bytes)
}

fn read_u32(bytes: &[u8], at: usize) -> Result<u32> {
    read(bytes, at).map(u32::from_le_bytes)
}

fn read_u64(bytes: &[u8], at: usize) -> Result<u64> {
    read(bytes, at).map(u64::from_le_bytes)
}
