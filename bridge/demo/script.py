"""What the demo's model answers: a script for the prompts of the play, in plain words.

Rule: decided from the conversation alone, like every answer of `bridge.scripted`; a prompt that is
not in the script is told so. The prompts stand here, beside their answers; `bridge.demo.play` says
them.
"""

from bridge.scripted.plan import Call, Plan, Tool, Turn
from bridge.wire import codec

HELLO = "Hello! Who is there?"
COUNT = "Count to five, slowly."
FRENCH = "And then once more in French."
MILLION = "Count to a million."
NOTE = "What does the note about deep thought say?"
SHELL = "Work out 6 times 7 in a shell."
DELETE = "Now delete everything in this directory."

_NUMBERS = ("one", "two", "three", "four", "five")
_FRENCH = ("un", "deux", "trois", "quatre", "cinq")
PAUSE = 0.015


def answer(turns: list[Turn], tools: list[Tool], failed: set[int]) -> Plan:
    """The model's next answer; a `Decide` of `bridge.scripted.model`."""
    place, said = _newest(turns)
    results = [turn.text for turn in turns[place + 1 :] if turn.role == "tool"]
    match said:
        case "Hello! Who is there?":
            return _say("A model made of a few lines of script. These words came through a bridge.")
        case "Count to five, slowly.":
            return _say(", ".join(_NUMBERS) + ".")
        case "And then once more in French.":
            return _say(", ".join(_FRENCH) + ".")
        case "Count to a million.":
            return Plan(text=None, words=tuple(f"{n} " for n in range(1, 5000)), pause=PAUSE)
        case "What does the note about deep thought say?":
            return _tool(tools, "read_note", {"name": "deep thought"}, results, "It says: {}")
        case "Work out 6 times 7 in a shell.":
            command = {"command": "echo $((6 * 7))"}
            return _tool(tools, "bash", command, results, "The shell says {}")
        case "Now delete everything in this directory.":
            return _tool(tools, "bash", {"command": "rm -rf ./*"}, results, "I had to leave it: {}")
        case _:
            return _say(f"There is nothing in my script for {said!r}.")


def _newest(turns: list[Turn]) -> tuple[int, str]:
    for place in range(len(turns) - 1, -1, -1):
        if turns[place].role == "user":
            return place, turns[place].text
    return 0, ""


def _say(text: str) -> Plan:
    """Word by word."""
    words = [f"{word} " for word in text.split(" ")]
    return Plan(text=words.pop().rstrip(), words=tuple(words), pause=PAUSE)


def _tool(
    tools: list[Tool], name: str, arguments: dict[str, str], results: list[str], words: str
) -> Plan:
    """A call of the tool, then `words` with what it returned."""
    if results:
        return _say(words.format(results[-1].strip()))
    tool = next((tool for tool in tools if name in tool.name), None)
    if tool is None:
        return _say(f"I have no tool like {name!r}.")
    return Plan(text=None, calls=(Call(tool, codec.encode(arguments).decode()),))
