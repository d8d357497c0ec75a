//! The program's own machine code on huge pages.
//!
//! The code of a request is spread over hundreds of 4 KiB pages, more than the instruction TLB holds. The code is
//! copied to anonymous memory that is eligible for 2 MiB pages (Documentation/admin-guide/mm/transhuge.rst), which is
//! then moved to the code's address. The linker aligns the code for that (`build.rs`).
//!
//! Costs: the copy is not shared with other processes, uprobes do not see it, and profilers that use file mappings find
//! no symbols.

use std::ffi::c_void;
use std::ops::Range;
use std::{fs, io, ptr, slice};

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect, mremap_fixed, munmap,
};

/// Size of a huge page, in bytes.
const HUGE: usize = 2 << 20;
/// Largest code, in bytes, that is moved: more than this is a debug build, most of which is never executed.
const MOST: usize = 32 << 20;

/// Moves the code to huge pages; returns the number of bytes. 0: the kernel has none, or the code does not fill one.
///
/// # Errors
/// A system call failed; the code is then unchanged. The usual reason is a policy against executable memory (SELinux'
/// `execmem`, systemd's `MemoryDenyWriteExecute`).
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

/// The range of the executable mapping with an address, and the range of the huge pages that replace it: those that it
/// fills, and the last, partly filled one if nothing else is mapped there.
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

/// An anonymous mapping that is unmapped when dropped.
struct Fresh {
    start: *mut c_void,
    len: usize,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, all of it also after its pages were moved, and nothing refers to it.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

fn replace(text: &Range<usize>, whole: &Range<usize>) -> io::Result<()> {
    let len = whole.len();
    let (read_write, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), len + HUGE, read_write, private)? };
    let fresh = Fresh { start, len: len + HUGE };
    let copy = fresh.start.map_addr(|address| address.next_multiple_of(HUGE));
    // SAFETY: within the new mapping, which is longer by one huge page.
    unsafe { madvise(copy, len, Advice::LinuxHugepage)? };
    let code = whole.start..whole.end.min(text.end);
    // SAFETY: this program's code is readable, and nothing writes it. The `len` bytes from `copy` belong to the new
    // mapping, and the code is not longer.
    unsafe {
        let code = slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(code.start), code.len());
        ptr::copy_nonoverlapping(code.as_ptr(), copy.cast(), code.len());
    }
    // SAFETY: as above. Nothing writes to it afterwards.
    unsafe { mprotect(copy, len, MprotectFlags::READ | MprotectFlags::EXEC)? };
    // The copy's range stays mapped, without pages (Linux 5.7): else another thread could map it before `fresh` unmaps it.
    let flags = MremapFlags::MAYMOVE | MremapFlags::DONTUNMAP;
    // SAFETY: the replaced pages have the same bytes, as far as they were mapped, and the kernel replaces them in one
    // step: a thread that executes them meanwhile faults and waits. Nothing else was mapped there (`text`).
    unsafe { mremap_fixed(copy, len, len, flags, ptr::with_exposed_provenance_mut(whole.start))? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// One test at a time replaces the code: `/proc/self/maps` is not read in one step.
    static CODE: Mutex<()> = Mutex::new(());

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

    /// While other threads execute the code that is replaced.
    #[test]
    fn the_code_goes_on_where_it_was() {
        let _code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Also what other threads map where the copy was: they ask for as much.
    #[test]
    fn what_others_map_meanwhile_stays_mapped() {
        let _code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
        let map = || {
            let (read_write, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            // SAFETY: a new mapping at an address of the kernel's choice.
            Fresh { start: unsafe { mmap_anonymous(ptr::null_mut(), HUGE, read_write, private) }.unwrap(), len: HUGE }
        };
        let here = on_huge_pages as fn() -> io::Result<usize> as usize;
        let (code, pages) = text(&fs::read_to_string("/proc/self/maps").unwrap(), here).unwrap();
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let others = [(); 4].map(|()| {
                scope.spawn(|| {
                    let mut count = 0_usize;
                    while !has_ended.load(Ordering::Relaxed) {
                        let mappings: Vec<Fresh> = (0..2).map(|_| map()).collect();
                        count += mappings.len();
                        for Fresh { start, len } in &mappings {
                            // SAFETY: the advice changes nothing; it fails where nothing is mapped.
                            unsafe { madvise(*start, *len, Advice::Normal) }.expect("it is still mapped");
                        }
                    }
                    count
                })
            });
            let replaced = (0..2000).try_for_each(|_| replace(&code, &pages));
            has_ended.store(true, Ordering::Relaxed);
            replaced.unwrap();
            assert!(others.into_iter().all(|other| other.join().unwrap() > 0));
        });
    }
}
