"""The beginning of what a model said, in one line, for notes and evidence."""


def excerpt(text: str, *, most: int = 70) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
