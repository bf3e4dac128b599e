"""The engine inside `sh -c '…'`: what a container really runs when its command is a small script."""

from dataclasses import replace

from selfhost.shapes.workload import EnvSource, Form, Spot, Workload
from selfhost.visibility.readers.process import is_engine
from selfhost.visibility.readers.script import calls, shell_text
from selfhost.visibility.readers.words import Word


def unwrapped(workload: Workload) -> Workload:
    """With the engine's own words as `argv` and what the script exports in `env`; unchanged when there is no script."""
    words = [Word(text, 1) for text in (*(workload.entrypoint or ()), *workload.argv)]
    script = shell_text(words)
    if script is None or workload.form is Form.PROCESS:
        return workload
    env = {name: Word(value, 0) for name, value in workload.env.items()}
    for word in env.values():
        word.add("", quoted=True)
    try:
        started = [call for call in calls(script.text, env=env) if is_engine(call)]
    except ValueError:
        return workload
    if not started:
        return workload
    call = started[-1]
    spot = workload.spot(f"argv.{len(workload.argv) - 1}") or Spot(line=1)
    known = {name: word.text for name, word in call.env.items() if not word.dynamic}
    sources = {name: source for name, source in workload.env_sources.items() if name not in workload.env}
    sources |= {
        name: source for name, source in workload.env_sources.items() if known.get(name) == workload.env.get(name)
    }
    sources |= {name: EnvSource.REFERENCE for name, word in call.env.items() if word.dynamic}
    at = {key: place for key, place in workload.at.items() if not key.startswith("argv.")}
    at |= {f"env.{name}": spot for name, text in known.items() if workload.env.get(name) != text}
    argv = tuple(word.text for word in call.words)
    return replace(workload, argv=argv, env=known, env_sources=sources, at={**at, "argv": spot}, entrypoint=None)
