"""Rules over whole Kubernetes objects, one family a file."""
