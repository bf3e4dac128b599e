"""From a chosen context to a client that may ask: certificates, tokens, credential plugins."""

import logging
import shutil
from collections.abc import Mapping
from typing import Any

from selfhost.core.errors import EnvironmentMissing, SelfhostError
from selfhost.runtimes.cluster import faults
from selfhost.runtimes.cluster.kubeconfig import Chosen


class _Words(logging.Handler):
    """What the library says only to a log."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def logged_in(chosen: Chosen, env: Mapping[str, str]) -> Any:
    """Runs the credential plugin that the kubeconfig names, if any. Raises EnvironmentMissing."""
    plugin = chosen.user.get("exec")
    command = str(plugin.get("command") or "") if isinstance(plugin, dict) else ""
    if command and shutil.which(command, path=env.get("PATH")) is None:
        raise _credentials(
            f"the kubeconfig's credential plugin `{command}` is not on PATH",
            f"The context `{chosen.context}` gets its credentials from that program.",
            f"install it, then see whether it works:\nkubectl --context {chosen.context} get namespace",
        )
    import kubernetes
    import urllib3

    heard, root = _Words(), logging.getLogger()
    root.addHandler(heard)
    configuration = kubernetes.client.Configuration()
    try:
        if not chosen.files:
            kubernetes.config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        else:
            kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=chosen.files,
                context=chosen.context,
                client_configuration=configuration,
                persist_config=False,
            )
    except faults.of_kubeconfig() as error:
        raise _unusable(chosen, " ".join(str(error).split())) from None
    finally:
        root.removeHandler(heard)
    if command and not configuration.api_key and not configuration.cert_file:
        raise _credentials(
            f"the credential plugin `{command}` gave nothing to log in with",
            (heard.said or ["It said nothing."])[-1].strip(),
            f"log in with your provider's own tool, then see whether it works:\nkubectl --context {chosen.context} get "
            "namespace",
        )
    if not configuration.verify_ssl:  # the kubeconfig says so; saying it again at every request helps nobody
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return kubernetes.client.ApiClient(configuration)


def _credentials(what: str, why: str, fix: str) -> SelfhostError:
    return EnvironmentMissing(what, why=why, fix=(fix,), id="RT133")


def _unusable(chosen: Chosen, why: str) -> SelfhostError:
    return EnvironmentMissing(
        f"the context `{chosen.context}` of the kubeconfig can't be used",
        why=f"{why[:1].upper()}{why[1:]}.",
        fix=(f"see what kubectl makes of it:\nkubectl --context {chosen.context} get namespace",),
        id="RT131",
    )
