"""What the sandbox adds to the method: the room for general programs, and a look at its walls."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "rooms": {"isolated": Part("partway.sandbox.room:run", "Isolated processes for programs of any kind.")},
    "checkups": {"sandbox": Part("partway.sandbox.walls:examine", "What stands around a program here.")},
}
