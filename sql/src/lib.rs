//! Which parameters and literals of a statement go straight into offloaded columns
