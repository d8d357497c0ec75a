//! How many tests passed and failed, as the test programs print it.

/// Summary lines of the test programs.
#[derive(Default)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

impl Tally {
    /// Reads `test result: ok. 5 passed; 0 failed; …`; other lines say nothing.
    pub fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let count = |what: &str| {
            let words: Vec<&str> = result.split([' ', ';']).collect();
            let at = words.iter().position(|word| *word == what).and_then(|at| at.checked_sub(1));
            at.and_then(|at| words.get(at)).and_then(|number| number.parse::<u64>().ok()).unwrap_or_default()
        };
        self.passed += count("passed");
        self.failed += count("failed");
    }

    /// Adds another one.
    pub fn join(&mut self, other: &Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// `12 passed, 0 failed`.
    pub fn line(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_programs_are_added_up() {
        let mut total = Tally::default();
        total.add("running 3 tests");
        total.add("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.73s");
        total.add("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        assert_eq!((total.passed, total.failed), (13, 2));
    }
}
