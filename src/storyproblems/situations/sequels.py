"""What may come next: a sequel goes on from the quantity a situation asks for, whatever that was.

Names of quantities here must not occur in any other situation.
"""

from storyproblems.situation import Ask, Situation

SEQUELS = (
    Situation(
        "then-boxes",
        follows="things",
        words={"crate": "box|bag|basket"},
        roles={
            "per_crate": """
                @A puts @it into @crates of {per_crate:3..12|it}.
                @A packs @it, {per_crate:3..12|it} in each @crate.
            """,
        },
        asks=[
            Ask(
                "How many @crates does @A [fill|need]?",
                "it / per_crate",
                "things",
                "the full @crates",
                "@crate",
            ),
        ],
    ),
    Situation(
        "then-sell",
        follows="things",
        roles={
            "price_each": """
                @A sells @it for {price_each:$1..5} each.
                @A sells @it. The price of one @item is {price_each:$1..5}.
            """,
        },
        asks=[
            Ask("How much money does @A [get|make]?", "it * price_each", "money"),
        ],
    ),
    Situation(
        "then-sell-some",
        follows="things",
        roles={
            "kept": """
                @A keeps {kept:3..15} of @it.
                @A keeps {kept_part:part it} of @it. // it / kept_part
            """,
            "price_each2": "@A sells the rest for {price_each2:$1..5} each.",
        },
        asks=[
            Ask("How much money does @A [get|make]?", "(it - kept) * price_each2", "money"),
        ],
    ),
    Situation(
        "then-give-away",
        follows="things",
        roles={
            "away": """
                @A gives {away:3..20} of @it to @B.
                @A gives {away_part:part it} of @it to @B. // it / away_part
                @A gives {away_share:10..60/5%it} of @it to @B. // it * away_share / 100
            """,
        },
        asks=[
            Ask("How many @items does @A! keep?", "it - away", "things", "the @items that are left", "@item"),
        ],
    ),
    Situation(
        "then-share",
        follows="things",
        roles={
            "sharers": """
                @A shares @it equally among {sharers:2..8|it} friends.
                {sharers:2..8|it} friends share @it equally.
            """,
        },
        asks=[
            Ask("How many @items does each of them get?", "it / sharers"),
        ],
    ),
    Situation(
        "then-more",
        follows="things",
        roles={
            "added": """
                The next day @A gets {added:5..40} more @items.
                The next day @A gets {added_times:times} as many @items as @A has now. // it * added_times
            """,
        },
        asks=[
            Ask(
                "How many @items does @A have [then|in all]?", "it + added", "things", "these @items", "@item"
            ),
        ],
    ),
    Situation(
        "then-spend",
        follows="money pay",
        words={"gift": "a book|a game|a cap|lunch|a present"},
        roles={
            "spend": """
                @A spends {spend:$3..30} of @it on @gift. // spend < it
                @A spends {spend_part:part it} of @it on @gift. // it / spend_part
                @A uses {spend_share:10..60/5%it} of @it for @gift. // it * spend_share / 100
            """,
        },
        asks=[
            Ask("How much money does @A have left?", "it - spend", "money", "the rest"),
        ],
    ),
    Situation(
        "then-wish",
        follows="money pay",
        words={"wish": "bike|camera|phone|guitar|tent"},
        roles={
            "wish_price": """
                @A wants to buy a @wish that costs {wish_price:$60..600/10}. // wish_price < it * 4
                A @wish costs {wish_price:$60..600/10}. // wish_price < it * 4
            """,
        },
        asks=[
            Ask("How much more money does @A need to buy [it|the @wish]?", "wish_price - it"),
        ],
    ),
    Situation(
        "then-bank",
        follows="money pay",
        roles={
            "in_bank": """
                @A already has {in_bank:$20..200/5} in the bank.
                @A puts @it in a box with {in_bank:$20..200/5} [in it|from last year].
            """,
        },
        asks=[
            Ask("How much money does @A have [now|altogether]?", "it + in_bank", "money", "all this money"),
        ],
    ),
    Situation(
        "then-share-money",
        follows="money pay",
        roles={
            "partners": """
                @A shares @it equally with {partners:2..5} friends.
                @A and {partners:2..5} friends share @it equally.
            """,
        },
        asks=[
            Ask("How much [money does each of them get|does each of them get]?", "it / (partners + 1)"),
        ],
    ),
    Situation(
        "then-halves",
        follows="pay",
        roles={
            "": "@B helps @him, so they share the money equally.",
        },
        asks=[
            Ask("How much money does each of them get?", "it / 2"),
        ],
    ),
    Situation(
        "then-weeks",
        follows="pay",
        roles={
            "repeat": """
                @A does the same for {repeat:2..6} weeks.
                It is the same every week for {repeat:2..6} weeks.
            """,
        },
        asks=[
            Ask("How much money is that [in all|altogether]?", "it * repeat", "money", "all this money"),
        ],
    ),
    Situation(
        "then-buy",
        follows="money pay",
        words={"small": "book|plant|ball|cup"},
        roles={
            "small_price": """
                @A spends @it on @smalls that cost {small_price:$2..25|it} each. // it < small_price * 30
            """,
        },
        asks=[
            Ask("How many @smalls does @A get?", "it / small_price", "things", "the @smalls", "@small"),
        ],
    ),
    Situation(
        "then-change",
        follows="bill fee",
        roles={
            "paid": """
                @A pays with {paid:$10,20,50,100,200,500}. // paid < it * 3
                @A gives the [seller|man|woman] {paid:$10..400/10}. // paid < it + 40
            """,
        },
        asks=[
            Ask("How much [money|change] does @A get back?", "paid - it"),
        ],
    ),
    Situation(
        "then-coupon",
        follows="bill fee",
        roles={
            "coupon": """
                @A has a coupon for {coupon_share:10..50/5%it} off. // it * coupon_share / 100
                @A has a coupon that is worth {coupon:$2..15}.
            """,
        },
        asks=[
            Ask("How much does @A pay with the coupon?", "it - coupon", "fee"),
        ],
    ),
    Situation(
        "then-tax",
        follows="bill fee",
        roles={
            "tax": """
                A tax of {tax:5..20/5%it} is added to the price.
                On top of that there is a tax of {tax:5..20/5%it}.
            """,
        },
        asks=[
            Ask("How much does @A pay with tax?", "it + it * tax / 100", "fee"),
        ],
    ),
    Situation(
        "then-split",
        follows="bill",
        roles={
            "payers": """
                @A and {payers:2..5} friends share the cost equally.
                @A asks {payers:2..5} friends to share the cost, so that everyone pays the same.
            """,
        },
        asks=[
            Ask("How much does each of them pay?", "it / (payers + 1)"),
        ],
    ),
    Situation(
        "then-purse",
        follows="bill fee",
        roles={
            "purse": """
                @A had {purse:$20..900/10} before. // purse < it * 3
                @A has saved {purse_week:$5..30/5} a week for {purse_weeks:4..12} weeks. \
                  // purse_week * purse_weeks
            """,
        },
        asks=[
            Ask("How much money does @A have left [after paying|then]?", "purse - it", "money", "the rest"),
        ],
    ),
    Situation(
        "then-days-a-week",
        follows="minutes",
        roles={
            "days_a_week": "This is the same for {days_a_week:2..8} weeks.",
        },
        asks=[
            Ask("How many minutes is that in all?", "it * days_a_week"),
            Ask("How many hours is that in all?", "it * days_a_week / 60"),
        ],
    ),
    Situation(
        "then-hours",
        follows="minutes",
        roles={
            "free": "@A has {free:4..14} hours for all this.",
        },
        asks=[
            Ask("How many minutes are left?", "free * 60 - it"),
        ],
    ),
    Situation(
        "then-gallons",
        follows="drive",
        words={"car": "car|van|truck"},
        roles={
            "per_gallon": "@A's @car can go {per_gallon:20..50/5|it} miles with a gallon of gas.",
            "gallon": "A gallon costs {gallon:$3..6}.",
        },
        asks=[
            Ask("How many gallons does @A need?", "it / per_gallon"),
            Ask("How much does @A pay for gas?", "it / per_gallon * gallon", "bill"),
        ],
    ),
    Situation(
        "then-walk-for-money",
        follows="miles",
        roles={
            "per_mile": "For each mile, a shop gives {per_mile:$1..4} to the school.",
        },
        asks=[
            Ask("How much money does the school get?", "it * per_mile"),
        ],
    ),
    Situation(
        "then-same-again",
        follows="miles",
        roles={
            "again": "@A does this {again:2..6} times.",
        },
        asks=[
            Ask("How many miles is that [in all|altogether]?", "it * again", "miles"),
        ],
    ),
)
