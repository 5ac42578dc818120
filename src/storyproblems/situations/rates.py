"""How much in how long: travel, work, reading, water, schedules."""

from storyproblems.situation import Ask, Situation

RATES = (
    Situation(
        "reading",
        words={"text": "book|comic book|long story"},
        roles={
            "pages": """
                A @text has {pages:120..400/10} pages.
                @A reads a @text with {pages:120..400/10} pages.
                A @text has {parts:6..15} parts of {per:15..30} pages each. // parts * per
            """,
            "done": """
                @A reads {rate:10..30} pages a day for {days:3..8} days. // rate * days
                On Monday @A reads {x:15..40} pages. On Tuesday @A reads \
                  {y:10..80 pages than x:on Monday}. // x + y
                @A has read {k:part pages} of it so far. // pages / k
            """,
            "speed": "From now on @A wants to read {speed:8..30} pages a day.",
            "time": "@A has {time:3..9} more days to read the rest.",
        },
        asks=[
            Ask("How many pages are left?", "pages - done"),
            Ask("How many more days does @A need?", "(pages - done) / speed"),
            Ask("How many pages a day does @A have to read?", "(pages - done) / time"),
        ],
    ),
    Situation(
        "road-trip",
        roles={
            "trip": """
                @A starts a trip of {trip:300..900/20} miles.
                @A lives {trip:300..900/20} miles from the sea and wants to go there.
            """,
            "first speed": """
                @A drives for {hours:2..5} hours at {speed:40..80/5} miles an hour. // first = hours * speed
                In the morning @A drives at {speed:40..80/5} miles an hour for {hours:2..5} hours. \
                  // first = hours * speed
            """,
            "second": """
                After lunch @A drives another {second:40..200/10} miles.
                Then @A drives {more:2..4} hours at {slow:30..60/5} miles an hour. // more * slow
                Then @A drives {more:2..4} hours, but {less:5..20/5} miles an hour slower. \
                  // more * (speed - less)
            """,
        },
        asks=[
            Ask("How many miles does @A go [in all|altogether]?", "first + second", "drive"),
            Ask("How many miles are left?", "trip - first - second"),
        ],
    ),
    Situation(
        "water-tank",
        words={"tank": "tank|pool|pond|barrel"},
        roles={
            "start": """
                There are {start:20..150/10} liters of water in a @tank.
                Someone pours {cans:4..12} cans of {per:5..15/5} liters of water into an empty @tank. \
                  // cans * per
            """,
            "size": """
                The @tank holds {size:200..900/50} liters [when it is full|in all].
                There is room for {size:200..900/50} liters in the @tank.
            """,
            "flow": """
                Every minute {flow:5..30/5} liters run into it.
                Every minute {into:20..40/5} liters run in and {out:5..15/5} liters run out. // into - out
                Each of {pipes:2..4} pipes brings {per_pipe:4..12} liters a minute. // pipes * per_pipe
            """,
            "minutes": """
                The water runs for {minutes:5..30/5} minutes.
                Someone turns the water off after {minutes:5..30/5} minutes.
            """,
        },
        asks=[
            Ask("How many minutes does it take until the @tank is full?", "(size - start) / flow"),
            Ask("How many liters are in the @tank [then|in the end]?", "start + flow * minutes"),
            Ask("How many liters are still missing until it is full?", "size - start - flow * minutes"),
        ],
    ),
    Situation(
        "workshop",
        words={"product": "toy|lamp|chair|shoe|bell"},
        roles={
            "made": """
                @A has {machines:2..6} machines that make {rate:10..40/5} @products \
                  an hour each. They run for {hours:4..9} hours. // machines * rate * hours
                @A makes {rate:5..15} @products an hour. Today @A works {hours:4..9} hours. // rate * hours
                @A makes {x:20..60} @products in May. In June @A makes {y:15..90 @products than x:in May}. \
                  // x + y
            """,
            "broken": """
                {broken:3..12} of the @products are broken.
                {share:5..30/5%made} of the @products are broken. // made * share / 100
            """,
        },
        asks=[
            Ask(
                "How many good @products are there?",
                "made - broken",
                "things",
                "the good @products",
                "@product",
            ),
        ],
    ),
    Situation(
        "school-day",
        roles={
            "lessons": """
                On Monday @A has {n:4..7} lessons of {length:40..55/5} minutes each. // n * length
                @A has {long:2..3} lessons of {x:60..90/15} minutes and \
                  {short:2..4} lessons of {y:30..45/5} minutes. // long * x + short * y
            """,
            "breaks": """
                There is also a break of {breaks:20..60/5} minutes.
                There are {m:2..4} breaks of {pause:10..20/5} minutes each. // m * pause
            """,
            "way": """
                The way to school takes @him {way:10..30/5} minutes.
                @A walks {walk:5..15} minutes to the bus and rides {ride:10..25} minutes to school. \
                  // walk + ride
            """,
        },
        asks=[
            Ask("How many minutes is @A at school?", "lessons + breaks", "minutes"),
            Ask(
                "How many minutes does all this take [with the way home|if the way home is as long]?",
                "lessons + breaks + way * 2",
                "minutes",
            ),
        ],
    ),
    Situation(
        "practice",
        words={"art": "plays the piano|plays the drums|dances|swims|draws"},
        roles={
            "first": """
                @A @art {length:20..45/5} minutes a day on {days:4..6} days a week. // length * days
                On Saturday @A @art for {x:20..60/5} minutes. On Sunday @A does it \
                  for {y:15..90 minutes than x:on Saturday}. // x + y
            """,
            "second": """
                @A also reads for {second:30..90/5} minutes a week.
                @A also runs {times:2..4} times a week for {run:15..40/5} minutes. // times * run
            """,
        },
        asks=[
            Ask("How many minutes is that [a week|in all]?", "first + second", "minutes"),
            Ask("How many minutes is that [in all|altogether]?", "first", "minutes"),
        ],
    ),
    Situation(
        "printing",
        words={"paper": "letter|book|song|plan"},
        roles={
            "pages": """
                @A prints {copies:4..15} copies of a @paper with {per:8..40/2} pages. // copies * per
                @A prints a @paper with {x:20..60/2} pages. A second one has \
                  {y:10..90 pages than x:the first one}. // x + y
            """,
            "done": """
                {done:10..40/2} pages are ready.
                {k:part pages} of the pages are ready. // pages / k
            """,
            "speed": """
                The machine prints {speed:6..24/2} pages a minute.
                The machine needs {sec:2..6} seconds for a page. // 60 / sec
            """,
        },
        asks=[
            Ask("How many minutes does it take to print all of them?", "pages / speed"),
            Ask("How many minutes does it take to print the rest?", "(pages - done) / speed"),
        ],
    ),
    Situation(
        "running",
        words={"go": "runs|walks|swims"},
        roles={
            "x": "On Monday @A @go {x:3..12} miles.",
            "y": "On Tuesday @A @go {y:2..20 miles than x:on Monday}.",
            "z": """
                On Friday @A @go {z:2..20 miles than y:on Tuesday}.
                On Friday @A @go {z:2..20 miles than x:on Monday}.
            """,
            "goal": "@A wants to reach {goal:30..60/5} miles this week.",
        },
        asks=[
            Ask("How many miles does @A go [in all|on these days]?", "x + y + z", "miles"),
            Ask("How many more miles does @A have to go?", "goal - x - y - z"),
            Ask("How many miles is that on average for each of the three days?", "(x + y + z) / 3"),
        ],
    ),
    Situation(
        "fuel",
        words={"car": "car|van|truck"},
        roles={
            "far": """
                @A drives {far:150..600/50} kilometers with a @car.
                @A drives to a city and back. The city is {way:100..300/25} kilometers away. // way * 2
                @A drives {x:100..300/50} kilometers on Monday and {y:100..300/50} kilometers on Tuesday. \
                  // x + y
            """,
            "per": """
                The @car needs {per:5..12} liters of gas for 100 kilometers.
                For 100 kilometers, the @car uses {per:5..12} liters of gas.
            """,
            "price": """
                One liter costs {price:$1..3}.
                @A pays {price:$1..3} for a liter.
            """,
        },
        asks=[
            Ask("How many liters does @A need?", "far * per / 100"),
            Ask("How much does the gas cost?", "far * per / 100 * price", "fee"),
        ],
    ),
    Situation(
        "working-together",
        words={"work": "packs|paints|cleans|checks", "thing": "box|bottle|plate|chair"},
        roles={
            "first": "@A @work {first:6..15} @things an hour.",
            "second": "@B @work {second:4..30 @things an hour than first:@A!}.",
            "hours": """
                They work for {hours:3..8} hours.
                They work from {start:7..9} o'clock until {end:11..12} o'clock. // end - start
            """,
            "order": """
                There are {order:60..240/6} @things to do.
                There are {boxes:4..12} rows of {per:8..24} @things to do. // boxes * per
            """,
        },
        asks=[
            Ask("How many @things is that [together|in all]?", "(first + second) * hours"),
            Ask("How many hours do they need together?", "order / (first + second)"),
            Ask("How many @things are left after that?", "order - (first + second) * hours"),
        ],
    ),
    Situation(
        "growing",
        words={"plant": "sunflower|bean plant|young tree"},
        roles={
            "tall": """
                A @plant is {tall:10..40} centimeters tall.
                @A has a @plant that is {tall:10..40} centimeters tall.
            """,
            "grows": """
                Every week it grows {grows:2..8} centimeters.
                It grows {per_month:8..24/4} centimeters in 4 weeks. // per_month / 4
            """,
            "weeks": """
                @A measures it again after {weeks:3..10} weeks.
                @A waits {months:2..4} months of 4 weeks each. // months * 4
            """,
            "other": "Another @plant is {other:60..120/5} centimeters tall.",
        },
        asks=[
            Ask("How tall is it then?", "tall + grows * weeks"),
            Ask(
                "How much taller is the other @plant then, if it does not grow?",
                "other - tall - grows * weeks",
            ),
        ],
    ),
)
