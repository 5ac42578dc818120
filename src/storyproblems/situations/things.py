"""Counting things: collections, harvests, baking, sharing, people and animals."""

from storyproblems.situation import Ask, Situation

THINGS = (
    Situation(
        "collection",
        words={
            "toy": "sticker|marble|stamp|card|coin|shell",
            "relative": "aunt|uncle|grandmother|sister|brother",
        },
        roles={
            "have": """
                @A has {have:15..60} @toys.
                @A keeps @toys in {boxes:3..8} boxes, with {per:6..15} in each box. // boxes * per
                @A has {red:8..30} red @toys and {blue:6..40 blue @toys than red:red ones}. // red + blue
            """,
            "got": """
                @A gets {got:4..20} more from @A's @relative.
                @A gets {x:3..12} @toys from @B and {y:3..15} from @A's @relative. // x + y
                Then @A buys {packs:2..5} packs of {size:4..10} @toys. // packs * size
            """,
            "lost": """
                @A loses {lost:2..12} of them.
                Later @A [gives|sells] {lost:3..15} @toys to a friend.
                @A gives {each:2..6} @toys to each of {friends:2..5} friends. // each * friends
            """,
        },
        asks=[
            Ask(
                "How many @toys does @A have [now|in the end]?",
                "have + got - lost",
                "things",
                "the @toys",
                "@toy",
            ),
            Ask("How many @toys does @A have [now|altogether]?", "have + got", "things", "the @toys", "@toy"),
            Ask("How many @toys does @A have left?", "have - lost", "things", "the other @toys", "@toy"),
        ],
    ),
    Situation(
        "two-collectors",
        words={"toy": "sticker|marble|stamp|card|coin|shell", "relative": "sister|brother|cousin"},
        roles={
            "first": """
                @A has {first:10..40} @toys.
                @A has {albums:3..6} boxes of @toys with {per:5..12} in each. // albums * per
            """,
            "second": "@B has {second:8..60 @toys than first:@A!}.",
            "third": """
                @B's @relative has {third:6..80 @toys than second:@B}.
                @A!'s @relative has {third:6..80 @toys than first:@A!}.
            """,
        },
        asks=[
            Ask(
                "How many @toys do the three [children|of them] have [together|in all]?",
                "first + second + third",
            ),
            Ask("How many @toys do @A! and @B have together?", "first + second"),
            Ask(
                "The three children share all the @toys equally. How many @toys does each of them get?",
                "(first + second + third) / 3",
            ),
        ],
    ),
    Situation(
        "sharing",
        words={"sweet": "candy|nut|grape|cherry|cookie", "bag": "bag|box|jar"},
        roles={
            "total": """
                @A has {total:40..120/4} @sweets.
                @A has {bags:3..8} @bags of @sweets with {per:8..20} in each. // bags * per
                @A has {big:20..60/2} @sweets in a @bag and gets {more:12..40/2} more from @B. // big + more
            """,
            "eaten": """
                @A eats {eaten:3..12} of them.
                @A and @A's [brother|sister] eat {each:3..8} @sweets each. // each * 2
            """,
            "friends": """
                @A shares the rest equally among {friends:3..8} friends.
                @A gives the others to {friends:3..8} friends, who all get the same.
            """,
        },
        asks=[
            Ask("How many @sweets does each [friend|of the friends] get?", "(total - eaten) / friends"),
        ],
    ),
    Situation(
        "harvest",
        words={"fruit": "apple|pear|plum|orange|lemon"},
        trades="farmer|gardener",
        roles={
            "total": """
                @A has {trees:4..12} @fruit trees. Each tree gives {per:20..60/5} @fruits. // trees * per
                @A picks {baskets:5..15} baskets of @fruits, with {per:12..30} in each basket. \
                  // baskets * per
                On Monday @A picks {x:30..90/5} @fruits. On Tuesday @A picks \
                  {y:30..150 @fruits than x:on Monday}. // x + y
                @A picks {total:80..240/10} @fruits.
            """,
            "bad": """
                {bad:5..30} of the @fruits are [bad|too small].
                {share:5..40/5%total} of the @fruits are [bad|too small]. // total * share / 100
                The birds eat {k:part total} of them. // total / k
            """,
        },
        asks=[
            Ask("How many good @fruits does @A have?", "total - bad", "things", "the good @fruits", "@fruit"),
        ],
    ),
    Situation(
        "baking",
        words={"cake": "cookie|muffin|roll|bun"},
        trades="baker|cook",
        roles={
            "made": """
                @A bakes {trays:3..8} trays of @cakes, with {per:8..20} on each tray. // trays * per
                @A bakes {batches:2..5} times. Each time @A makes {per:12..24} @cakes. // batches * per
                In the morning @A bakes {x:15..40} @cakes. In the afternoon @A \
                  bakes {y:10..60 @cakes than x:in the morning}. // x + y
            """,
            "eaten": """
                @A's family eats {eaten:4..15} of them.
                @A's {n:2..5} children eat {each:2..4} @cakes each. // n * each
                {share:5..40/5%made} of the @cakes are [burned|broken]. // made * share / 100
            """,
        },
        asks=[
            Ask("How many @cakes are left?", "made - eaten", "things", "the @cakes that are left", "@cake"),
        ],
    ),
    Situation(
        "book-shelves",
        words={"book": "book|comic|magazine"},
        trades="teacher",
        roles={
            "start": """
                @A has {shelves:4..9} shelves with {per:15..30} @books on each. // shelves * per
                @A has {old:40..90} old @books and {new:10..120 new @books than old:old ones}. // old + new
            """,
            "lent": """
                @A [lends|gives] {lent:5..25} @books to @A's friends.
                @A lends {n:2..5} @books to each of {people:3..6} people. // n * people
            """,
            "back": """
                Later {back:3..20} @books come back.
                Then @A buys {boxes:2..4} boxes of {size:8..15} @books. // boxes * size
            """,
        },
        asks=[
            Ask(
                "How many @books does @A have [now|then]?",
                "start - lent + back",
                "things",
                "the @books",
                "@book",
            ),
            Ask(
                "How many @books are left [on the shelves|]?",
                "start - lent",
                "things",
                "the other @books",
                "@book",
            ),
        ],
    ),
    Situation(
        "bus",
        words={"ride": "bus|train|boat"},
        roles={
            "start": """
                A @ride starts with {start:15..45} people.
                {adults:8..25} adults and {children:5..40 children than adults:adults} get on a @ride. \
                  // adults + children
            """,
            "off": """
                At the first stop, {off:3..12} people get off.
                At the first stop, {k:part start} of the people get off. // start / k
            """,
            "on": """
                Then {on:4..15} [new|more] people get on.
                Then {pairs:3..6} families of {size:2..4} people get on. // pairs * size
            """,
            "fare": """
                A ticket costs {fare:$2..6}.
                Everyone pays {fare:$2..6} for a ticket.
            """,
        },
        asks=[
            Ask("How many people are on the @ride now?", "start - off + on"),
            Ask("How much do all these people pay together?", "(start + on) * fare"),
            Ask("How many people are on the @ride when it goes on?", "start - off"),
        ],
    ),
    Situation(
        "class",
        words={"group": "team|group|row", "thing": "book|pencil|card|sheet of paper"},
        roles={
            "boys girls": """
                In a class there are {boys:8..18} boys and {girls:6..30 girls than boys:boys}.
                A teacher has {boys:8..18} boys and {girls:6..30 girls than boys:boys} in class.
            """,
            "sick": """
                Today {sick:2..6} children are sick.
                Today {sick:2..6} of the children are at home.
            """,
            "size": "The teacher puts the children who are there in @groups of {size:2..6}.",
            "books": "Each child [gets|needs] {books:2..5} @things.",
        },
        asks=[
            Ask("How many @groups are there?", "(boys + girls - sick) / size"),
            Ask("How many @things does the teacher need for the whole class?", "(boys + girls) * books"),
            Ask("How many children are there today?", "boys + girls - sick"),
        ],
    ),
    Situation(
        "farm-animals",
        words={"big": "cow|horse|goat|sheep", "bird": "hen|duck"},
        trades="farmer",
        roles={
            "bigs birds": """
                @A has {bigs:5..20} @bigs and {birds:6..40 @birds than bigs:@bigs}.
                There are {bigs:5..20} @bigs and {birds:6..40 @birds than bigs:@bigs} on @A's farm.
            """,
            "more": """
                @A buys {more:2..9} more @birds.
                @A buys {cages:2..4} boxes of {size:3..6} @birds. // cages * size
            """,
        },
        asks=[
            Ask("How many legs do all the animals have?", "bigs * 4 + birds * 2"),
            Ask("How many animals does @A have now?", "bigs + birds + more"),
            Ask("How many legs do all these animals have?", "bigs * 4 + (birds + more) * 2"),
        ],
    ),
    Situation(
        "garden-rows",
        words={"flower": "rose|tulip|cabbage|bean|onion"},
        trades="gardener",
        roles={
            "planted": """
                @A plants {rows:4..12} rows of @flowers with {per:6..15} in each row. // rows * per
                @A plants {rows:3..8} long rows of {per:10..18} @flowers and \
                  {short:2..6} short rows of {few:4..9}. // rows * per + short * few
            """,
            "dead": """
                {dead:3..20} of them do not grow.
                {k:part planted} of them do not grow. // planted / k
                After a storm, {share:5..50/5%planted} of them are broken. // planted * share / 100
            """,
        },
        asks=[
            Ask("How many @flowers are left?", "planted - dead", "things", "the other @flowers", "@flower"),
        ],
    ),
    Situation(
        "eggs",
        trades="farmer",
        roles={
            "eggs": """
                @A has {hens:6..20} hens. Each hen lays {per:4..6} eggs a week. // hens * per
                @A's hens lay {day:8..24} eggs a day, {days:4..7} days a week. // day * days
            """,
            "used": """
                Every week @A's family eats {used:6..20} eggs.
                Every week @A uses {home:5..12} eggs at home and gives {gift:3..10} to a neighbor. \
                  // home + gift
            """,
        },
        asks=[
            Ask("How many eggs are left each week?", "eggs - used", "things", "the other eggs", "egg"),
            Ask(
                "@A sells the other eggs in boxes of 12. How many boxes does @A sell each week?",
                "(eggs - used) / 12",
                "things",
                "the boxes",
                "box",
            ),
        ],
    ),
    Situation(
        "party-bags",
        words={"gift": "balloon|whistle|ball", "sweet": "candy|cookie|apple"},
        roles={
            "children": """
                {children:6..15} children come to @A's party.
                @A invites {girls:4..9} girls and {boys:3..18 boys than girls:girls} to a party. \
                  // girls + boys
            """,
            "gifts sweets": """
                Each child gets {gifts:2..4} @gifts and {sweets:2..6} @sweets.
                There is a bag with {gifts:2..4} @gifts and {sweets:2..6} @sweets for every child.
            """,
            "gift sweet": "A @gift costs {gift:$2..5} and a @sweet costs {sweet:$1..2}.",
        },
        asks=[
            Ask("How many things does @A need to fill the bags?", "children * (gifts + sweets)"),
            Ask("How much does @A pay for all this?", "children * (gifts * gift + sweets * sweet)", "bill"),
        ],
    ),
    Situation(
        "parcels",
        words={"parcel": "parcel|letter|newspaper"},
        trades="driver",
        roles={
            "load": """
                @A has {load:90..180/5} @parcels to bring to people.
                @A has {bags:4..9} bags of {per:20..30} @parcels to bring to people. // bags * per
            """,
            "done": """
                Before lunch @A brings {x:20..50} @parcels. After lunch @A brings \
                  {y:15..90 @parcels than x:before lunch}. // x + y
                @A brings {per_hour:8..20} @parcels an hour for {hours:3..7} hours. // per_hour * hours
            """,
            "pay": """
                @A gets {pay:$1..3} for each of them.
                Each @parcel that @A brings is worth {pay:$1..3}.
            """,
        },
        asks=[
            Ask("How many @parcels are left?", "load - done"),
            Ask("How much does @A earn?", "done * pay", "money"),
        ],
    ),
)
