"""One file for each family of causes; a rule is a marked function."""
