//! Walker's alias table: drawing by weight with one look-up (M. D. Vose, “A linear algorithm for generating random
//! numbers with a given distribution”, 1991).

/// One column for each weight: the threshold below which a 32-bit random number selects the column itself, of 2³²
/// (`u32::MAX`: it always does), and the column selected otherwise. Deterministic. Columns of weight 0 are never drawn
/// if there is another weight.
pub fn columns(weights: &[u32]) -> Vec<(u32, u32)> {
    let columns = weights.len() as u64;
    // A column holds as much as the mean weight; in these units that is the total, so nothing is rounded on the way.
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let mut rest: Vec<u64> = weights.iter().map(|weight| u64::from(*weight).saturating_mul(columns)).collect();
    let mut table: Vec<(u32, u32)> = (0..).map(|own| (u32::MAX, own)).take(weights.len()).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|i| rest[*i] < total);
    while let (Some(low), Some(high)) = (small.pop(), large.last().copied()) {
        let share = (u128::from(rest[low]) << 32) / u128::from(total);
        table[low] = (u32::try_from(share).unwrap_or(u32::MAX), high as u32);
        rest[high] -= total - rest[low];
        if rest[high] < total {
            large.pop();
            small.push(high);
        }
    }
    table
}

#[cfg(test)]
mod tests;
