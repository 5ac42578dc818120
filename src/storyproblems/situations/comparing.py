"""More, less, together, on average: ages, scores, ratios, recipes, mixtures."""

from storyproblems.situation import Ask, Situation

COMPARING = (
    Situation(
        "ages",
        words={"elder": "mother|father|aunt|uncle|teacher"},
        noise=("@A has {noise:2..5} cats.", "@A lives in a house with {noise:3..9} rooms."),
        roles={
            "first": "@A is {first:7..15} years old.",
            "second": """
                @B is {second:5..18} years old.
                @B is {d:2..8} years older than @A!. // first + d
                @B is {d:2..5} years younger than @A!. // first - d
                @B is twice as old as @A!. // first * 2
            """,
            "third": """
                @B's @elder is {k:times} as old as @B. // second * k; third > 24; third < 66
                @B's @elder is {d3:15..40} years older than @B. // second + d3
                @B's @elder is {d3:15..40} years older than @A!. // first + d3
                @B's @elder is {third:28..60} years old.
            """,
        },
        asks=[
            Ask("How old are the three of them together?", "first + second + third"),
            Ask("How old is @B's @elder?", "third"),
            Ask("How old will @A! and @B be together in {years:3..12} years?", "first + second + years * 2"),
            Ask("How old are @A! and @B together?", "first + second"),
        ],
    ),
    Situation(
        "test-scores",
        words={"test": "test|game|round"},
        roles={
            "x": "In the first @test, @A gets {x:50..95} points.",
            "y": "In the second @test, @A gets {y:40..98 points than x:in the first @test}.",
            "z": """
                In the third @test, @A gets {z:50..98} points.
                In the third @test, @A gets {z:40..98 points than y:in the second @test}.
            """,
            "goal": "@A wants {goal:70..90} points on average in four @tests. // goal * 4 < x + y + z + 101",
        },
        asks=[
            Ask("How many points does @A get on average?", "(x + y + z) / 3"),
            Ask("How many points does @A need in the last @test?", "goal * 4 - x - y - z"),
        ],
    ),
    Situation(
        "paint-mix",
        words={"one other": "blue|yellow|white|red", "unit": "liter|can|bottle"},
        roles={
            "a b parts": """
                @A mixes {a:2..5} parts of @one paint with {b:2..7} parts of @other paint. \
                  // parts = a + b; a != b
                To paint a wall, @A takes {a:2..5} parts of @one paint and {b:2..7} parts of @other paint. \
                  // parts = a + b; a != b
            """,
            "total": "@A needs {total:2..9*parts} @units of paint [in all|for the whole house].",
            "have": "@A has {have:2..6} @units of @one paint at home.",
        },
        asks=[
            Ask("How many @units of @one paint does @A need?", "total / parts * a"),
            Ask("How many @units of @other paint does @A need?", "total / parts * b"),
            Ask("How many @units of @one paint does @A have to buy?", "total / parts * a - have"),
        ],
    ),
    Situation(
        "drink-mix",
        words={"one other": "apple juice|orange juice|lemon juice|water|tea"},
        roles={
            "a": """
                @A has {a:2..8} liters of @one.
                @A has {bottles:2..6} bottles with {per:2..3} liters of @one each. // bottles * per
            """,
            "b": """
                @A mixes it with {b:2..12 liters of @other than a:of @one}.
                @A adds {b:2..9} liters of @other.
            """,
            "glass": """
                A glass holds {glass:200,250,500} milliliters.
                @A fills glasses of {glass:200,250,500} milliliters.
            """,
            "people": "{people:4..12} people drink all of it, and everyone gets the same.",
        },
        asks=[
            Ask("How many glasses can @A fill?", "(a + b) * 1000 / glass"),
            Ask("How many milliliters does each of them get?", "(a + b) * 1000 / people"),
            Ask(
                "How many liters are left after @A and @A's friends drink {drunk:2..6} liters?",
                "a + b - drunk",
            ),
        ],
    ),
    Situation(
        "sports-score",
        roles={
            "threes": "In a basketball game, @A makes {threes:2..8} shots for 3 points each.",
            "twos": """
                @A also makes {twos:3..16 shots for 2 points than threes:shots for 3 points}.
                @A also makes {twos:4..12} shots for 2 points each.
            """,
            "other": """
                @B gets {other:8..30} points.
                @B makes {shots:3..9} shots for 2 points each. // shots * 2
            """,
        },
        asks=[
            Ask("How many points does @A [make|get]?", "threes * 3 + twos * 2"),
            Ask("How many points do @A! and @B make together?", "threes * 3 + twos * 2 + other"),
            Ask("How many points does @A! have more than @B?", "threes * 3 + twos * 2 - other"),
        ],
    ),
    Situation(
        "temperature",
        roles={
            "start": """
                At {clock:5..8} o'clock in the morning it is {start:5..15} degrees.
                In the morning it is {start:5..15} degrees.
                On Monday it is {monday:8..20} degrees. On Tuesday morning \
                  it is {less:2..6} degrees colder. // monday - less
            """,
            "up": """
                Until noon it gets {up:5..15} degrees warmer.
                Each hour it gets {rise:2..4} degrees warmer. This goes on for {hours:3..6} hours. \
                  // rise * hours
            """,
            "down": """
                In the evening it gets {down:3..12} degrees colder.
                Then it gets {fall:2..3} degrees colder every hour for {late:2..5} hours. // fall * late
            """,
        },
        asks=[
            Ask("How many degrees is it then?", "start + up - down"),
            Ask("How many degrees is it in the end?", "start + up - down"),
        ],
    ),
    Situation(
        "recipe",
        words={"meal": "cake|pie|pudding", "food": "flour|sugar|butter"},
        trades="cook|baker",
        roles={
            "people need": """
                A @meal for {people:2..6} people needs {need:100..600/50} grams of @food.
                For {people:2..6} people, a @meal takes {need:100..600/50} grams of @food.
            """,
            "guests": """
                @A makes it for {guests:2..6*people} people.
                @A makes it for {family:2..5} people in the family and {friends:4..15} friends. \
                  // family + friends
            """,
            "have": """
                @A has {have:100..500/50} grams of @food at home.
                @A has {bags:2..3} bags of {per:100..250/50} grams of @food at home. // bags * per
            """,
        },
        asks=[
            Ask("How many grams of @food does @A need?", "need / people * guests"),
            Ask("How many [more grams|grams] of @food does @A have to buy?", "need / people * guests - have"),
        ],
    ),
    Situation(
        "survey",
        words={"place": "school|town|village"},
        roles={
            "all": """
                There are {all:200..800/20} children in a @place.
                A @place has {groups:8..20} classes of {per:20..30} children each. // groups * per
            """,
            "walk": """
                {walk:40..150/5} of the children walk to school.
                {share:10..60/5%all} of the children walk to school. // all * share / 100
                {k:part all} of the children walk to school. // all / k
            """,
            "bus": """
                {bus:30..120/5} children take the bus.
                {bus:30..150 children take the bus than walk:walk}.
            """,
        },
        asks=[
            Ask("All the others go by car. How many children go by car?", "all - walk - bus"),
            Ask("How many children do not walk to school?", "all - walk"),
        ],
    ),
    Situation(
        "weights",
        words={"thing": "can|book|bottle|stone"},
        roles={
            "box": """
                An empty box weighs {empty:2..5} kilos. @A puts {n:6..20} \
                  @things of {each:1..4} kilos in it. // empty + n * each
                @A puts {n:4..10} @things of {each:1.5..3.5/0.5} kilos each \
                  in a box of {empty:2..4} kilos. // empty + n * each
            """,
            "boxes": """
                @A has {boxes:3..9} of these boxes.
                @A loads {boxes:3..9} such boxes on a truck.
            """,
            "limit": "The truck can carry {limit:300..900/50} kilos.",
        },
        asks=[
            Ask("How many kilos do the boxes weigh in all?", "box * boxes"),
            Ask("How many kilos can @A still put on the truck?", "limit - box * boxes"),
        ],
    ),
)
