"""Getting money: wages, sales, savings, gifts, interest."""

from storyproblems.situation import Ask, Situation

EARNING = (
    Situation(
        "wages",
        words={"job": "cafe|shop|farm|library|garage"},
        roles={
            "rate": """
                @A earns {rate:$9..20} an hour at a @job.
                @A works at a @job for {rate:$9..20} an hour.
            """,
            "hours": """
                This week @A works {hours:12..40} hours.
                @A works {day:4..8} hours a day and {days:3..6} days a week. // day * days
                On Monday @A works {x:4..8} hours. On Tuesday @A works {y:2..9 hours than x:on Monday}. \
                  // x + y
            """,
            "tips": """
                @A also gets {tips:$10..60/5} in tips.
                {n:4..12} people give @him a tip of {tip:$2..5} each. // n * tip
            """,
        },
        asks=[
            Ask("How much does @A earn [in all|altogether]?", "rate * hours + tips", "pay"),
            Ask("How much does @A earn [in this time|for this work]?", "rate * hours", "pay"),
        ],
    ),
    Situation(
        "overtime",
        trades="driver|cook|nurse",
        roles={
            "rate": """
                @A earns {rate:$10..24} an hour.
                @A is paid {rate:$10..24} an hour.
            """,
            "over": """
                An hour at night is paid double. // rate * 2
                For work at night, @A gets {more:$3..8} more an hour. // rate + more
                For an hour at night, @A gets {over:$18..40}. // over > rate
            """,
            "normal night": """
                This week @A works {normal:20..40} hours during the day and {night:2..8} hours at night.
                @A works {normal:20..40} hours in the daytime and another {night:3..9} hours at night.
            """,
        },
        asks=[
            Ask(
                "How much does @A earn [this week|for all these hours]?",
                "rate * normal + over * night",
                "pay",
            ),
        ],
    ),
    Situation(
        "stand",
        words={"drink": "lemonade|juice|tea|cocoa"},
        roles={
            "cups": """
                @A sells {cups:12..40} cups of @drink [at a fair|in the park|at school].
                @A sells {x:8..25} cups of @drink in the morning and {y:8..25} in the afternoon. // x + y
                On Saturday @A sells {x:8..25} cups of @drink. On Sunday @A \
                  sells {y:8..30 cups than x:on Saturday}. // x + y
            """,
            "price": """
                Each cup costs {price:$1..4}.
                The price of one cup is {price:$1..4}.
                People pay {price:$1..4} for a cup.
            """,
            "cost": """
                The sugar and the cups cost @him {cost:$4..15}.
                @A has to pay {a:$3..8} for fruit and {b:$2..6} for the cups. // a + b
            """,
        },
        asks=[
            Ask("How much money does @A [make|take in]?", "cups * price", "pay"),
            Ask("How much money does @A make after paying for everything?", "cups * price - cost", "pay"),
        ],
    ),
    Situation(
        "savings",
        words={"wish": "bike|camera|phone|guitar|tent"},
        roles={
            "start": """
                @A has {start:$10..60/5} in a jar.
                @A starts with {start:$10..60/5}.
            """,
            "week": """
                [Each|Every] week @A saves {week:$4..20} [more|].
                Every week @A gets {pocket:$10..25} and spends {spent:$3..9} of it. // pocket - spent
            """,
            "weeks": """
                @A does this for {weeks:4..12} weeks.
                @A does this for {months:2..6} months of 4 weeks each. // months * 4
            """,
            "goal": """
                @A wants to buy a @wish for {goal:$80..240/5}. // goal < start + week * 30
                A @wish costs {goal:$80..240/5}. // goal < start + week * 30
            """,
        },
        asks=[
            Ask("How much money does @A have [in the end|then]?", "start + week * weeks", "money"),
            Ask("How many weeks does it take until @A can buy it?", "(goal - start) / week"),
        ],
    ),
    Situation(
        "small-jobs",
        roles={
            "car dog": """
                @A gets {car:$4..9} for washing a car and {dog:$2..5} for walking a dog.
                @A gets {car:$5..12} for washing a car. For walking a dog, @A gets {less:$1..4} less. \
                  // dog = car - less
            """,
            "cars": """
                This month @A washes {cars:3..9} cars.
                @A washes {n:2..4} cars a week for {weeks:2..6} weeks. // n * weeks
            """,
            "dogs": """
                @A also walks {dogs:4..15} dogs.
                @A also walks {n2:2..5} dogs on each of {days:3..7} days. // n2 * days
            """,
        },
        asks=[
            Ask("How much money does @A earn?", "cars * car + dogs * dog", "pay"),
        ],
    ),
    Situation(
        "market",
        words={"crop": "apple|carrot|melon|potato|tomato"},
        trades="farmer|gardener",
        roles={
            "crates": """
                @A [brings|takes] {crates:8..20} crates of @crops to the market.
                @A fills {x:4..12} crates with @crops on Friday. On Saturday @A \
                  fills {y:3..15 crates than x:on Friday}. // x + y
                @A has {fields:2..5} fields. Each field gives {per:4..9} crates of @crops. // fields * per
            """,
            "unsold": """
                At the end of the day, {unsold:2..6} crates are left.
                {k:part crates} of the crates are not sold. // crates / k
            """,
            "price": """
                @A sells a crate for {price:$8..20}.
                The price of a crate is {price:$8..20}.
            """,
            "rent": """
                A place at the market costs {rent:$10..40/5}.
                @A pays {rent:$10..40/5} for a place at the market.
            """,
        },
        asks=[
            Ask("How much money does @A make?", "(crates - unsold) * price", "pay"),
            Ask("How much money does @A take home?", "(crates - unsold) * price - rent", "pay"),
            Ask(
                "How much money does @A take home after selling all the crates?",
                "crates * price - rent",
                "pay",
            ),
        ],
    ),
    Situation(
        "currency",
        roles={
            "rate": """
                One dollar is worth {rate:5..20} crowns.
                For one dollar you get {rate:5..20} crowns.
            """,
            "money": """
                @A changes {money:$50..200/10} into crowns.
                @A changes {a:$40..90/10} on Monday and {b:$20..60/10} on Tuesday into crowns. // a + b
            """,
            "spent": """
                @A spends {spent:100..500/10} crowns on food.
                @A stays in a hotel for {nights:2..5} nights at {night:30..150/10} crowns a night. \
                  // nights * night
            """,
        },
        asks=[
            Ask("How many crowns does @A have left?", "money * rate - spent"),
        ],
    ),
    Situation(
        "interest",
        roles={
            "deposit": """
                @A puts {deposit:$200..900/100} in a bank.
                @A puts {a:$200..500/50} in a bank, and @A's grandmother adds {b:$100..300/50}. // a + b
            """,
            "rate": """
                [Every|Each] year the bank pays {rate:2..8%} of this sum [as interest|].
                The bank adds {rate:2..8%} of this sum every year.
            """,
            "years": """
                @A leaves the money there for {years:2..6} years.
                @A waits {years:2..6} years.
            """,
        },
        asks=[
            Ask("How much money does the bank add in this time?", "deposit * rate / 100 * years"),
            Ask("How much money does @A have then?", "deposit + deposit * rate / 100 * years"),
        ],
    ),
    Situation(
        "sales-job",
        words={"thing": "phone|piano|computer|sofa"},
        roles={
            "base": """
                @A sells @things. Each month @A gets {base:$500..1500/100}.
                @A works in a @thing shop and gets {base:$500..1500/100} a month.
            """,
            "sales": """
                This month @A sells @things for {sales:$2000..9000/500}.
                This month @A sells {n:3..9} @things for {each:$200..900/50} each. // n * each
            """,
            "share": """
                @A also gets {share:5..20/5%sales} of all sales.
                On top of that @A gets {share:5..20/5%sales} of the sales.
            """,
        },
        asks=[
            Ask("How much does @A earn this month?", "base + sales * share / 100", "pay"),
        ],
    ),
    Situation(
        "resale",
        words={"thing": "bike|chair|lamp|radio|table"},
        roles={
            "n buy": "@A buys {n:3..12} old @things for {buy:$5..20} each.",
            "repair": """
                @A spends {repair:$10..40/5} on paint and new parts.
                @A pays {part:$2..6} to repair each of them. // n * part
            """,
            "sell": """
                Then @A sells them all for {sell:$20..45} each. // sell > buy
                @A sells each @thing for {k:times} its old price. // buy * k
            """,
        },
        asks=[
            Ask(
                "How much money does @A make [in the end|with this]?", "n * sell - n * buy - repair", "money"
            ),
        ],
    ),
    Situation(
        "raising-money",
        words={"cause": "a new playground|the library|the animal shelter|a school trip"},
        trades="teacher",
        roles={
            "gifts": """
                @A collects money for @cause. {n:12..30} people give {gift:$3..9} each. // n * gift
                To raise money for @cause, @A asks {n:5..15} neighbors and \
                  {m:4..12} friends. Each of them gives {gift:$3..9}. // (n + m) * gift
            """,
            "sale": """
                @A also sells {cakes:15..50} [cakes|cards] for {price:$2..5} each. // cakes * price
                A [shop|bank] gives another {sale:$20..100/10}.
            """,
            "goal": """
                @A needs {goal:$200..600/20} in all.
                The goal is {goal:$200..600/20}.
            """,
        },
        asks=[
            Ask("How much money does @A [collect|raise]?", "gifts + sale"),
            Ask("How much money is still missing?", "goal - gifts - sale"),
        ],
    ),
)
