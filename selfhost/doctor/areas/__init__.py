"""One area a file: what of the machine it looks at, and what it says when all is well."""
