//! Use of the kernel's BPF stack by the programs: all active frames share 512 bytes.
//!
//! Computed from the object as the verifier of Linux 6.1 does, the strictest one supported: it rounds each frame up to
//! 32 bytes, later ones to 16. A callback of `bpf_loop` is active like a called function. Unreachable code that the
//! compiler has left counts here but not there, so this is an upper bound.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use aya::EbpfError;
use aya_obj::Object;
use aya_obj::generated::bpf_insn;

/// Size of the BPF stack in bytes (`MAX_BPF_STACK`).
pub const LIMIT: u32 = 512;

/// Bytes to a multiple of which a frame is rounded up.
const ROUNDED: u32 = 32;

// linux/bpf_common.h, linux/bpf.h
const CLASS: u8 = 0x07;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const CALL: u8 = 0x85;
const MOVE: u8 = 0xbf;
const ADD: u8 = 0x07;
const WIDE: u8 = 0x18;
const PSEUDO_CALL: u8 = 1;
const PSEUDO_FUNCTION: u8 = 4;
/// The register that points to the end of a frame.
const FRAME: u8 = 10;

/// Bytes of stack of each program's deepest call chain, by program name.
///
/// # Errors
/// If the object cannot be parsed or linked.
pub fn deepest(object: &[u8]) -> Result<BTreeMap<String, u32>, EbpfError> {
    let mut object = Object::parse(object)?;
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_calls(&sections)?;
    let of = |program: &aya_obj::Program| {
        object.functions.get(&program.function_key()).map_or(0, |function| deepest_of(&function.instructions))
    };
    Ok(object.programs.iter().map(|(name, program)| (name.clone(), of(program))).collect())
}

/// The same for one program's instructions: its functions in sequence, the first of which is its entry point.
fn deepest_of(instructions: &[bpf_insn]) -> u32 {
    let mut begins = BTreeSet::from([0]);
    begins.extend(instructions.iter().enumerate().filter_map(|(at, instruction)| callee(at, instruction)));
    let ends = begins.iter().skip(1).copied().chain([instructions.len()]);
    let functions: BTreeMap<usize, &[bpf_insn]> =
        begins.iter().zip(ends).filter_map(|(begin, end)| Some((*begin, instructions.get(*begin..end)?))).collect();
    chain(0, &functions, &mut BTreeMap::new())
}

/// Bytes of the deepest call chain from the function at `begin` on, its own frame included.
fn chain(begin: usize, functions: &BTreeMap<usize, &[bpf_insn]>, known: &mut BTreeMap<usize, u32>) -> u32 {
    if let Some(bytes) = known.get(&begin) {
        return *bytes;
    }
    // The kernel rejects recursion, which would not terminate here.
    known.insert(begin, 0);
    let Some(function) = functions.get(&begin) else { return 0 };
    let callees = function.iter().enumerate().filter_map(|(at, instruction)| callee(begin + at, instruction));
    let below = callees.map(|callee| chain(callee, functions, known)).max().unwrap_or(0);
    let bytes = frame(function).max(1).next_multiple_of(ROUNDED) + below;
    known.insert(begin, bytes);
    bytes
}

/// The function that an instruction calls, or passes to a helper as a callback.
fn callee(at: usize, instruction: &bpf_insn) -> Option<usize> {
    let calls = instruction.code == CALL && instruction.src_reg() == PSEUDO_CALL
        || instruction.code == WIDE && instruction.src_reg() == PSEUDO_FUNCTION;
    if calls { (at + 1).checked_add_signed(isize::try_from(instruction.imm).ok()?) } else { None }
}

/// Bytes of a function's frame: the lowest offset from the frame pointer that it reads, writes or points to.
fn frame(function: &[bpf_insn]) -> u32 {
    let mut deepest = 0;
    // Bit set of registers that were just set to the frame pointer; a constant added next makes them point into the
    // frame.
    let mut at_end = 0_u16;
    for instruction in function {
        let (to, from) = (instruction.dst_reg(), instruction.src_reg());
        match instruction.code {
            MOVE if from == FRAME => at_end |= 1 << to,
            ADD if at_end & 1 << to != 0 => {
                at_end &= !(1 << to);
                deepest = deepest.min(instruction.imm);
            }
            code if code & CLASS == LDX && from == FRAME => deepest = deepest.min(instruction.off.into()),
            code if matches!(code & CLASS, ST | STX) && to == FRAME => deepest = deepest.min(instruction.off.into()),
            _ => {}
        }
    }
    deepest.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(code: u8, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
        bpf_insn { code, _bitfield_align_1: [], _bitfield_1: bpf_insn::new_bitfield_1(to, from), off, imm }
    }

    const EXIT: u8 = 0x95;
    const STORE: u8 = 0x7b;

    #[test]
    fn the_deepest_chain_counts_each_frame_rounded_up() {
        let exit = || instruction(EXIT, 0, 0, 0, 0);
        let program = [
            // 40 bytes, written.
            instruction(STORE, FRAME, 1, -40, 0),
            instruction(CALL, 0, PSEUDO_CALL, 0, 3),
            instruction(WIDE, 2, PSEUDO_FUNCTION, 0, 5),
            instruction(0, 0, 0, 0, 0),
            exit(),
            // 54 bytes, by a pointer.
            instruction(MOVE, 3, FRAME, 0, 0),
            instruction(ADD, 3, 0, 0, -54),
            exit(),
            // Callback of a helper, without a frame; counts as one byte.
            exit(),
        ];
        assert_eq!(callee(1, &program[1]), Some(5));
        assert_eq!(callee(2, &program[2]), Some(8));
        assert_eq!(frame(&program[..5]), 40);
        assert_eq!(deepest_of(&program), 64 + 64);
        assert_eq!(deepest_of(&program[8..]), 32);
    }
}
