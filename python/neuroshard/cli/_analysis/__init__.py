"""What the commands compute: comparisons of plans, reasons, statistics, reserves, the check-up."""
