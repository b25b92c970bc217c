"""Parts of libraries that are built on torch, in plain torch: sources that are converted, not code that runs here."""
