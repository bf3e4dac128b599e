"""Why something in a cluster does not run: pure, over API objects as `kubectl get -o json` gives them."""
