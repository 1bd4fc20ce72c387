"""A scripted agent: run it with any ACP client, or test your own client against it.

echo "Buy milk" > notes.txt
dragoman --agent-command 'python examples/scripted_agent.py' "What is in notes.txt?"
"""

from dragoman.testing import AgentTurn, ScriptedAgent


async def answer(turn: AgentTurn) -> None:
    turn.plan(("Read the notes", "in_progress"), ("Say what they are about", "pending"))
    notes = await turn.read_text_file(f"{turn.cwd}/notes.txt")
    turn.plan(("Read the notes", "completed"), ("Say what they are about", "in_progress"))
    turn.say(f"Your notes begin with: {notes.splitlines()[0]}\n")


agent = ScriptedAgent(answer, name="note-reader")

if __name__ == "__main__":
    agent.serve_stdio()
