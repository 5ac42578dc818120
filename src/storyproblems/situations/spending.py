"""Spending money: shops, tickets, meals, fees, discounts."""

from storyproblems.situation import Ask, Situation

SPENDING = (
    Situation(
        "groceries",
        words={
            "fruit": "apple|pear|plum|lemon|orange|potato|carrot",
            "extra": "loaf of bread|box of tea|jar of honey|bag of rice|bottle of milk",
        },
        roles={
            "fruit": """
                @A [buys|gets] {bags:2..6} bags of @fruits for {price:$2..6} each. // bags * price
                @A needs {kilos:2..6} kilos of @fruits. One kilo costs {price:$2..5}. // kilos * price
                At the market, @A buys {big:2..5} big bags of @fruits for {p:$5..9} each \
                  and {small:2..6} small bags for {q:$2..4} each. // big * p + small * q
                A bag of @fruits costs {price:$2..6}, and @A [buys|takes] {bags:2..6} of them. // bags * price
            """,
            "extra": """
                @A also [buys|takes] a @extra for {extra:$2..8}.
                @A pays {extra:$2..8} for a @extra [too|as well].
                @A also buys {n:2..4} @extras. A @extra costs {each:$2..6}. // n * each
            """,
        },
        asks=[
            Ask("How much does @A [spend|pay] [in total|altogether|in all]?", "fruit + extra", "bill"),
        ],
    ),
    Situation(
        "clothes-sale",
        words={"garment": "shirt|jacket|sweater|coat|dress"},
        roles={
            "price": """
                A @garment [costs|usually costs] {price:$20..80/5}.
                In a shop, @A finds a @garment for {price:$20..90/10}.
                The price of a @garment is {price:$20..80/5}.
            """,
            "off": """
                [Today|This week] all prices are {off:10..50/5%price} lower.
                The shop takes {off:10..50/5%price} off [the price|every price].
            """,
            "n": """
                @A buys {n:2..5} of these @garments.
                @A needs {n:2..5} of them for @A's family.
            """,
        },
        asks=[
            Ask("How much does @A pay [in all|for them]?", "n * (price - price * off / 100)", "fee"),
            Ask("How much money does @A save?", "n * price * off / 100"),
        ],
    ),
    Situation(
        "school-things",
        words={"tool": "pencil|pen|marker|crayon|ruler", "pack": "box|pack|set"},
        roles={
            "money": """
                @A has {money:$20..60/5} to spend [on school things|at a shop].
                @A takes {a:$10..30/5} to a shop. @A's [mother|father] gives @him {b:$5..20/5} more. // a + b
            """,
            "tools": """
                @A buys {n:2..6} @packs of @tools at {p:$2..6} a @pack. // n * p
                A @pack of @tools costs @him {tools:$4..15}.
                @A [buys|needs] {n:3..9} @tools for {p:$1..3} each. // n * p
            """,
            "books": """
                @A also [buys|pays for] a book that costs {books:$4..12}.
                @A also [buys|needs] {m:2..5} notebooks for {q:$2..4} each. // m * q
            """,
        },
        asks=[
            Ask("How much money does @A have left?", "money - tools - books", "money", "the rest"),
        ],
    ),
    Situation(
        "tickets",
        words={"place": "zoo|museum|circus|pool|concert"},
        roles={
            "adult child": """
                A ticket for the @place costs {adult:$8..20} for an adult and {child:$3..9} for a child. \
                  // adult > child
                For the @place, an adult pays {adult:$8..20} and a child pays {less:$2..6} less. \
                  // child = adult - less
                A ticket for the @place costs {adult:$8..20}. Children pay {k:part adult} of that price. \
                  // child = adult / k
            """,
            "adults children": """
                @A buys tickets for {adults:2..5} adults and {children:2..8} children.
                @A buys {adults:2..5} adult tickets and {children:2..9 child \
                  tickets than adults:adult tickets}.
                @A pays for a group of {adults:2..5} adults and {children:4..12} children.
            """,
        },
        asks=[
            Ask(
                "How much do the tickets cost [in all|together]?", "adults * adult + children * child", "bill"
            ),
            Ask(
                "How much more does @A pay for the adults than for the children?",
                "adults * adult - children * child",
            ),
        ],
    ),
    Situation(
        "restaurant",
        roles={
            "food": """
                @A invites {n:2..5} friends to a restaurant. Each friend has a meal for \
                  {meal:$8..18}, and @A has one for {own:$8..20}. // n * meal + own
                @A and @A's friends order {n:2..5} pizzas for {pizza:$8..15} each. // n * pizza
                @A pays for lunch with @A's family. The food costs {food:$30..70}.
            """,
            "drinks": """
                They also order {glasses:3..8} drinks at {drink:$2..4} each. // glasses * drink
                The drinks cost {drinks:$6..20}.
                They have {glasses:3..8} glasses of juice. A glass costs {drink:$2..4}. // glasses * drink
            """,
        },
        asks=[
            Ask("How much [is the bill|do they have to pay]?", "food + drinks", "bill"),
        ],
    ),
    Situation(
        "online-order",
        words={"thing": "lamp|clock|game|puzzle|cup|chair"},
        roles={
            "things": """
                @A orders {n:2..6} @things online for {price:$5..20} each. // n * price
                @A orders a @thing for {first:$10..30}. @A also orders a bag \
                  for {second:$5..40 than first:the @thing}. // first + second
            """,
            "shipping": """
                Shipping costs {shipping:$3..9}.
                Shipping costs {base:$2..5} plus {kilo:$1..3} for each of the {kilos:2..5} kilos. \
                  // base + kilo * kilos
            """,
        },
        asks=[
            Ask("How much does @A pay for the [whole order|order in all]?", "things + shipping", "bill"),
        ],
    ),
    Situation(
        "club-fees",
        words={"club": "gym|swimming club|music school|tennis club|chess club"},
        roles={
            "fee": """
                To join a @club, @A pays {fee:$20..60/5}.
                @A joins a @club, which costs {fee:$20..60/5} once.
            """,
            "month": """
                After that @A pays {month:$10..40/5} [a month|every month].
                Each month there costs {month:$10..40/5}.
            """,
            "months": """
                @A stays for {months:3..12} months.
                @A stays for {years:2..3} years. // years * 12
                @A stays for {years:2..3} years and {more:2..9} months. // years * 12 + more
            """,
        },
        asks=[
            Ask("How much does @A pay [for all of this|in all]?", "fee + month * months", "fee"),
        ],
    ),
    Situation(
        "buying-packs",
        words={"thing": "battery|towel|plate|candle|egg"},
        roles={
            "single": """
                One @thing costs {single:$2..6}.
                A shop sells single @things for {single:$2..6} each.
            """,
            "size pack": """
                A pack of {size:4..12} costs {pack:$8..40}. // pack < size * single; pack > size
                You can also get {size:4..12} of them in a pack for {pack:$8..40}. \
                  // pack < size * single; pack > size
            """,
            "packs": """
                @A needs {packs:2..5} packs.
                @A buys {packs:2..5} packs.
            """,
        },
        asks=[
            Ask("How much does @A save [by buying packs|with the packs]?", "packs * (size * single - pack)"),
            Ask("How much cheaper is one @thing in a pack than a single one?", "single - pack / size"),
        ],
    ),
    Situation(
        "renting",
        words={"ride": "bike|boat|scooter|canoe"},
        roles={
            "fix hour": """
                Renting a @ride costs {fix:$5..15} plus {hour:$3..9} for each hour.
                A shop rents out @rides. It asks for {fix:$5..15} and another {hour:$3..9} an hour.
            """,
            "hours": """
                @A [rents|takes] one for {hours:2..7} hours.
                @A rents one from {start:1..3} o'clock until {end:4..8} o'clock. // end - start
            """,
        },
        asks=[
            Ask("How much does @A [pay|have to pay]?", "fix + hour * hours", "bill"),
        ],
    ),
    Situation(
        "paying-in-parts",
        words={"thing": "sofa|bike|table|computer|guitar"},
        roles={
            "price": """
                @A buys a @thing for {price:$200..900/50}.
                @A buys a @thing for {thing:$200..600/50} and a lamp for {lamp:$20..60/10}. // thing + lamp
            """,
            "now": """
                @A pays {now:$50..200/10} [now|right away].
                @A pays {share:10..50/10%price} of the price now. // price * share / 100
                @A pays {k:part price} of the price right away. // price / k
            """,
            "months": """
                The rest is paid in {months:4..12} equal parts, one a month.
                @A pays the rest over {months:4..12} months, the same each month.
            """,
        },
        asks=[
            Ask("How much does @A pay [each|every] month?", "(price - now) / months"),
        ],
    ),
)
