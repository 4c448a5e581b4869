"""A collection: the exchanges to measure, how ranks time them, and the job that runs them."""
