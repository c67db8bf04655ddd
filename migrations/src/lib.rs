//! The schema toastrack: types, casts, operators, functions; install and column changes
