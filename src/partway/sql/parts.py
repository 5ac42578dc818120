"""What this folder adds to the method: a language, a command that makes problems, what chance draws."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "languages": {
        "sql": Part(
            "partway.sql.sql:SQLLanguage",
            "SQL queries of a problem's own database; the answer is the rows of the last select.",
        )
    },
    "commands": {
        "data sql": Part(
            "partway.sql.commands:sql", "Make problems of GeoQuery, Spider or BIRD, with their databases."
        )
    },
    "engines": {"chance sql": Part("partway.sql.views:with_values", "References with other values.")},
}
