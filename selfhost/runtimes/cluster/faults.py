"""What the libraries behind the client raise. Called where something was raised, so nothing is loaded for it."""

from http.client import HTTPException

from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed

Kinds = tuple[type[Exception], ...]


def of_requests() -> Kinds:
    """Of urllib3, of the socket below it, and of certificates and addresses that nobody can read."""
    import urllib3

    return (urllib3.exceptions.HTTPError, HTTPException, OSError, ValueError)


def of_kubeconfig() -> Kinds:
    """Of a kubeconfig whose words are right and whose contents are not: YAML, base64, certificates, a plugin."""
    import kubernetes
    import yaml

    found = (kubernetes.config.ConfigException, yaml.YAMLError)
    return (*found, OSError, ValueError, KeyError, TypeError, AttributeError)


def of_streams() -> Kinds:
    """Of a port-forward: the API's answer, the websocket, the socket."""
    import kubernetes
    import websocket

    found = (kubernetes.client.ApiException, websocket.WebSocketException)
    return (*found, ApiError, NoAnswer, NotServed, *of_requests())
