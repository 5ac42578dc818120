"""Lengths, areas and blocks: fences, floors, walls, ropes."""

from storyproblems.situation import Ask, Situation

SHAPES = (
    Situation(
        "fence",
        words={"field": "garden|field|yard|meadow"},
        trades="farmer|gardener",
        roles={
            "long wide": """
                @A has a @field that is {long:12..40} meters long and {wide:6..30} meters wide.
                @A has a @field that is {long:12..40} meters long and {k:part long} as wide. \
                  // wide = long / k
                The length of @A's @field is {long:12..40} meters. Its width is {less:3..9} meters less. \
                  // wide = long - less
                @A's @field is {wide:6..20} meters wide and {k:times} as long. // long = wide * k
            """,
            "gate": """
                There is a gate of {gate:2..4} meters on one side.
                There are {gates:2..3} gates, each {each:2..3} meters wide. // gates * each
            """,
            "price": """
                @A puts a fence all around it, which costs {price:$4..12} a meter.
                @A wants a fence all around it. A meter of fence costs {price:$4..12}.
            """,
        },
        asks=[
            Ask("How many meters of fence does @A need [to go|] all around it?", "2 * (long + wide)"),
            Ask("How many meters of fence does @A need for the rest?", "2 * (long + wide) - gate"),
            Ask("How much does the fence cost?", "2 * (long + wide) * price", "fee"),
        ],
    ),
    Situation(
        "floor",
        words={"cover": "carpet|wood|tiles"},
        roles={
            "area": """
                @A's room is {long:4..9} meters long and {wide:3..7} meters wide. // long * wide
                @A has two rooms. One is {a:4..8} meters by {b:3..5} meters, the \
                  other one is {c:3..6} meters by {d:2..4} meters. // a * b + c * d
                @A's room is {long:4..9} meters long. It is {less:2..3} meters less wide than long. \
                  // long * (long - less)
            """,
            "price": """
                @A covers the whole floor with @cover for {price:$8..30} a square meter.
                @A wants a new floor that costs {price:$8..30} a square meter.
            """,
            "work": """
                A man asks for {work:$50..150/10} to do the work.
                Two people work on it for {hours:3..6} hours. Each of them gets {pay:$10..20} an hour. \
                  // 2 * hours * pay
            """,
        },
        asks=[
            Ask("How much does @A pay for the new floor?", "area * price", "fee"),
            Ask("How much does @A pay for everything?", "area * price + work", "fee"),
        ],
    ),
    Situation(
        "painting-walls",
        trades="painter",
        roles={
            "area": """
                @A paints {walls:3..8} walls. Each wall is {long:4..9} \
                  meters long and {high:2..3} meters high. // walls * long * high
                @A paints a wall of {x:12..40} square meters and another one \
                  that is {more:4..12} square meters bigger. // x + x + more
                @A paints one wall of {x:12..40} square meters and one of {y:12..40} square meters. // x + y
                @A paints a wall of {x:12..40} square meters and {n:2..4} \
                  smaller ones of {y:6..11} square meters each. // x + n * y
            """,
            "gaps": """
                The doors and windows, which are not painted, take up {gaps:4..15} square meters.
                There are {windows:2..6} windows of {size:2..3} square meters, which are not painted. \
                  // windows * size
            """,
            "cover": "One can of paint is enough for {cover:6..15} square meters.",
            "price": "@A buys the paint for {price:$9..25} a can.",
        },
        asks=[
            Ask("How many cans does @A need?", "(area - gaps) / cover"),
            Ask("How much does @A pay for the paint?", "(area - gaps) / cover * price", "fee"),
            Ask("How many square meters does @A paint?", "area - gaps"),
        ],
    ),
    Situation(
        "rope",
        words={"rope": "rope|ribbon|wire|pipe"},
        roles={
            "long": """
                @A has a @rope of {long:20..90} meters.
                @A ties {n:3..6} @ropes of {each:6..15} meters together. // n * each
            """,
            "cut": """
                @A cuts off {pieces:3..8} pieces of {size:2..6} meters. // pieces * size
                @A cuts off a piece of {x:4..12} meters and another one that is {more:2..6} meters longer. \
                  // x + x + more
                @A cuts off a piece of {x:4..12} meters and one that is {k:times} as long. // x + x * k
                @A cuts off {k:part long} of it. // long / k
            """,
            "short": "@A cuts the rest into pieces of {short:2..6} meters.",
        },
        asks=[
            Ask("How many meters are left?", "long - cut"),
            Ask("How many of these pieces does @A get?", "(long - cut) / short"),
        ],
    ),
    Situation(
        "blocks",
        words={"block": "block|brick|cube"},
        roles={
            "have": """
                @A has {have:100..400/10} @blocks.
                @A has {boxes:4..9} boxes of {per:30..60/5} @blocks. // boxes * per
            """,
            "wall": """
                @A builds a wall that is {long:5..12} @blocks long, {high:3..8} \
                  @blocks high and {deep:2..4} @blocks deep. // long * high * deep
                @A builds {towers:3..6} towers of {high:5..12} @blocks and a \
                  bridge of {bridge:8..20} @blocks. // towers * high + bridge
            """,
        },
        asks=[
            Ask("How many @blocks are left?", "have - wall", "things", "the other @blocks", "@block"),
        ],
    ),
    Situation(
        "flower-beds",
        words={"crop": "rose|bean|onion|cabbage"},
        trades="gardener",
        roles={
            "area": """
                @A has a garden of {long:8..20} meters by {wide:5..12} meters. // long * wide
                @A has {n:3..6} gardens. Each is {long:3..8} meters long and {wide:2..3} meters wide. \
                  // n * long * wide
            """,
            "path": """
                A path takes up {path:5..20} square meters of that.
                {k:part area} of this is grass. // area / k
                {share:10..60/5%area} of this is grass. // area * share / 100
            """,
            "per": """
                On the rest, @A plants {per:2..9} @crops for each square meter.
                @A plants @crops on the rest, {per:2..9} on each square meter.
            """,
        },
        asks=[
            Ask("How many @crops does @A plant?", "(area - path) * per", "things", "the @crops", "@crop"),
        ],
    ),
)
