//! Circles of imports: files that import one another, directly or over others.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::graph::Graph;

/// The circles of all graphs.
pub fn all(graphs: &[Graph]) -> Vec<BTreeSet<String>> {
    graphs.iter().flat_map(|graph| names(graph, graph.circles(|_| true))).collect()
}

/// The circles that are left among these files.
pub fn left(graphs: &[Graph], files: &BTreeSet<String>) -> Vec<BTreeSet<String>> {
    graphs.iter().flat_map(|graph| names(graph, graph.circles(|file| files.contains(file)))).collect()
}

fn names(graph: &Graph, circles: Vec<Vec<usize>>) -> impl Iterator<Item = BTreeSet<String>> {
    circles.into_iter().map(|circle| circle.into_iter().map(|file| graph.files[file].clone()).collect())
}

impl Graph {
    /// Files that can be reached from one by imports among `members`; with it, if it is on a circle.
    fn reached(&self, from: usize, members: &[bool]) -> Vec<bool> {
        let mut reached = vec![false; self.files.len()];
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            for next in self.imports[file].keys().copied().filter(|next| members[*next]) {
                if !std::mem::replace(&mut reached[next], true) {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// Strongly connected components of more than one file, among the files that are `of_interest`.
    pub fn circles(&self, of_interest: impl Fn(&str) -> bool) -> Vec<Vec<usize>> {
        let members: Vec<bool> = self.files.iter().map(|file| of_interest(file)).collect();
        let files = || (0..self.files.len()).filter(|file| members[*file]);
        let reached: HashMap<usize, Vec<bool>> = files().map(|file| (file, self.reached(file, &members))).collect();
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for file in files().filter(|file| reached[file][*file]) {
            match circles.iter_mut().find(|circle| reached[&file][circle[0]] && reached[&circle[0]][file]) {
                Some(circle) => circle.push(file),
                None => circles.push(vec![file]),
            }
        }
        circles
    }

    /// The shortest way over imports, both ends included.
    fn way(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut before = HashMap::from([(from, from)]);
        let mut open = VecDeque::from([from]);
        while let Some(file) = open.pop_front() {
            if file == to {
                let mut way = vec![to];
                while way.last() != Some(&from) {
                    way.extend(way.last().map(|file| before[file]));
                }
                way.reverse();
                return Some(way);
            }
            for next in self.imports[file].keys() {
                before.entry(*next).or_insert_with(|| {
                    open.push_back(*next);
                    file
                });
            }
        }
        None
    }

    /// The shortest closed way within a circle with an import that is not `listed`; without one, the shortest of all.
    pub fn shortest(&self, circle: &[usize], listed: impl Fn(&str, &str) -> bool) -> Vec<usize> {
        let imports = || {
            let of = |from: usize| self.imports[from].keys().map(move |to| (from, *to));
            circle.iter().copied().flat_map(of).filter(|(_, to)| circle.contains(to))
        };
        let new = || imports().filter(|(from, to)| !listed(&self.files[*from], &self.files[*to]));
        let closed = |(from, to)| self.way(to, from).map(|way| [&[from], &way[..]].concat());
        let shortest = new().filter_map(closed).min_by_key(Vec::len);
        shortest.or_else(|| imports().filter_map(closed).min_by_key(Vec::len)).unwrap_or_default()
    }

    /// `a.rs:3 imports b.rs` for each step of a way, in lines.
    pub fn steps(&self, way: &[usize]) -> String {
        let step = |(importer, imported): (&usize, &usize)| {
            let line = self.imports[*importer].get(imported).copied().unwrap_or_default();
            format!("    {}:{line} imports {}", self.files[*importer], self.files[*imported])
        };
        way.iter().zip(&way[1..]).map(step).collect::<Vec<_>>().join("\n")
    }
}
