"""One file per method area: params in, results out."""
