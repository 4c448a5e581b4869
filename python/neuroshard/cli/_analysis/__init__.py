"""What the commands compute: comparisons of plans, statistics, reserves, the check-up."""
