//! The program's own machine code on huge pages.
//!
//! A request runs through code that lies on hundreds of pages of 4 KiB, more than a processor has addresses of at hand.
//! The code is copied to anonymous memory, of which the kernel makes pages of 2 MiB
//! (Documentation/admin-guide/mm/transhuge.rst), and that is moved to where the code was. The linker aligns it for that
//! (`build.rs`).
//!
//! What it costs: the copy is this process's alone, uprobes do not see it, and profilers that go by files find no names.

use std::ffi::c_void;
use std::ops::Range;
use std::{fs, io, ptr, slice};

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect, mremap_fixed, munmap,
};

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
/// More code than this is a debug build's, most of which is never run.
const MOST: usize = 32 << 20;

/// Puts the code on huge pages; how many bytes. 0: the kernel has none, or there is nothing that would fill one.
///
/// # Errors
/// The system calls': then the code is where it was. A kernel that forbids to make memory executable is the usual
/// reason (SELinux' `execmem`, systemd's `MemoryDenyWriteExecute`).
pub fn on_huge_pages() -> io::Result<usize> {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if enabled.is_empty() || enabled.contains("[never]") {
        return Ok(0);
    }
    let here = on_huge_pages as fn() -> io::Result<usize> as usize;
    match text(&fs::read_to_string("/proc/self/maps")?, here) {
        Some((text, whole)) if text.len() <= MOST && !whole.is_empty() => {
            replace(&text, &whole)?;
            Ok(whole.len())
        }
        _ => Ok(0),
    }
}

/// Of the mapping that an address is in: where it lies, and the huge pages that it fills or, where nothing else is behind
/// it, begins.
fn text(maps: &str, address: usize) -> Option<(Range<usize>, Range<usize>)> {
    let mut mappings = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?, rest))
    });
    let (text, rest) = mappings.find(|(range, _)| range.contains(&address))?;
    if !rest.starts_with("r-xp") || rest.trim_end().ends_with(']') {
        return None;
    }
    let free_until = mappings.next().map_or(text.end, |(next, _)| next.start);
    let filled_up = text.end.next_multiple_of(HUGE);
    let end = if filled_up <= free_until { filled_up } else { text.end / HUGE * HUGE };
    let start = text.start.next_multiple_of(HUGE);
    Some((text, start..end.max(start)))
}

/// Memory that is not used yet.
struct Fresh {
    start: *mut c_void,
    len: usize,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it. What was moved away is no longer of it.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

fn replace(text: &Range<usize>, whole: &Range<usize>) -> io::Result<()> {
    let len = whole.len();
    let (read_write, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, wherever the kernel likes.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), len + HUGE, read_write, private)? };
    let fresh = Fresh { start, len: len + HUGE };
    let copy = fresh.start.map_addr(|address| address.next_multiple_of(HUGE));
    // SAFETY: within the new mapping, which is longer by a huge page.
    unsafe { madvise(copy, len, Advice::LinuxHugepage)? };
    let code = whole.start..whole.end.min(text.end);
    // SAFETY: the code of this program is readable, and nothing writes it; `len` bytes from `copy` on are the new
    // mapping's, and no less than the code has.
    unsafe {
        let code = slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(code.start), code.len());
        ptr::copy_nonoverlapping(code.as_ptr(), copy.cast(), code.len());
    }
    // SAFETY: as above. It is writable no longer.
    unsafe { mprotect(copy, len, MprotectFlags::READ | MprotectFlags::EXEC)? };
    // SAFETY: what is replaced has the same bytes, as far as there were any, and the kernel replaces it in one step: a
    // thread that runs there meanwhile waits for its next page. Nothing else was mapped there (`text`).
    unsafe { mremap_fixed(copy, len, len, MremapFlags::MAYMOVE, ptr::with_exposed_provenance_mut(whole.start))? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d5e0000000-55d5e0200000 r--p 00000000 fe:00 1 /usr/bin/sluice
55d5e0200000-55d5e0f12000 r-xp 00200000 fe:00 1 /usr/bin/sluice
55d5e1000000-55d5e1200000 rw-p 01000000 fe:00 1 /usr/bin/sluice
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]
";

    #[test]
    fn the_huge_pages_of_the_code_are_found() {
        let (whole, pages) = text(MAPS, 0x55d5_e020_1234).unwrap();
        assert_eq!(whole, 0x55d5_e020_0000..0x55d5_e0f1_2000);
        assert_eq!(pages, 0x55d5_e020_0000..0x55d5_e100_0000, "the last one is begun, and free behind the code");
        let crowded = MAPS.replace("55d5e1000000-", "55d5e0f12000-");
        assert_eq!(text(&crowded, 0x55d5_e020_1234).unwrap().1, 0x55d5_e020_0000..0x55d5_e0e0_0000);
        let unaligned =
            MAPS.replace("55d5e0200000 r--p", "55d5e0201000 r--p").replace("55d5e0200000-", "55d5e0201000-");
        assert_eq!(text(&unaligned, 0x55d5_e020_1234).unwrap().1.start, 0x55d5_e040_0000);
    }

    #[test]
    fn what_is_not_code_of_a_file_stays_where_it_is() {
        assert_eq!(text(MAPS, 0x55d5_e000_0000), None, "it cannot be run");
        assert_eq!(text(MAPS, 0x7ffd_0000_0000), None, "it is the kernel's");
        assert_eq!(text(MAPS, 0x1000), None);
        let small = "1000-9000 r-xp 00000000 fe:00 1 /bin/small\n";
        assert!(text(small, 0x1000).unwrap().1.is_empty());
    }

    /// With other threads running through the code that is replaced.
    #[test]
    fn the_code_goes_on_where_it_was() {
        let maps = || fs::read_to_string("/proc/self/maps").unwrap();
        let here = on_huge_pages as fn() -> io::Result<usize> as usize;
        let (code, pages) = text(&maps(), here).unwrap();
        assert!(pages.len() >= HUGE, "the tests' code is smaller than expected");
        let sum = |until: u64| (0..until).map(|n| n.to_string().len()).sum::<usize>();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..4).map(|_| scope.spawn(move || sum(300_000))).collect();
            replace(&code, &pages).unwrap();
            for other in others {
                assert_eq!(other.join().unwrap(), 1_688_890);
            }
        });
        let now = maps();
        let line = now.lines().find(|line| line.starts_with(&format!("{:x}-", pages.start))).unwrap();
        assert!(line.contains("r-xp 00000000 00:00 0"), "{line}");
        assert_eq!(sum(300_000), 1_688_890);
    }
}
