"""What the sandbox adds to the method: the room for general programs, and a look at its walls."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "rooms": {
        "isolated": Part("partway.sandbox.room:run", "Isolated processes for programs of any kind."),
        "peaks": Part("partway.sandbox.room:peaks", "What programs in these processes held at most."),
    },
    "checkups": {"sandbox": Part("partway.sandbox.walls:examine", "What stands around a program here.")},
}
