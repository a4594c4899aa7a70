"""JSON documents for training: records whose names, descriptions and values come from WordNet.

The shapes are what programs commonly exchange (people, places, products, orders, articles, tasks,
settings), and objects of random properties, where the key is a kind of thing and the value one of
its kind.  White space styles vary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tools.demo_model.prose import capitalized, sentence, without_domain
from tools.demo_model.record_values import (
    ANIMAL,
    ARTIFACT,
    COLORS,
    CURRENCIES,
    FOOD,
    GENDERS,
    LANGUAGES,
    LEVELS,
    MONTHS,
    PLANT,
    ROLES,
    SIZES,
    STATUS,
    UNITS,
    ValueMaker,
)
from tools.demo_model.wordnet import Synset

_STYLES: tuple[tuple[float, dict[str, Any]], ...] = (
    (0.34, {"separators": (", ", ": ")}),
    (0.24, {"separators": (",", ":")}),
    (0.26, {"indent": 2}),
    (0.12, {"indent": 4}),
    (0.04, {"indent": "\t"}),
)


class RecordMaker(ValueMaker):
    """Draws records."""

    def address(self) -> dict[str, Any]:
        return {
            "street": self.street(),
            "city": self.pick(self.cities),
            self.pick(("zip", "postal_code", "postalCode", "zipCode")): f"{self.number(10000, 99999)}",
            "country": self.pick(self.countries),
        }

    def person(self) -> dict[str, Any]:
        name = self.full_name()
        first, last = name.split()[0], name.split()[-1]
        email = f"{first}.{last}@example.com".lower() if self.flag() else self.email()
        job = self.pick(self.occupations)
        known = self.pick(self.people)
        head = (
            [("name", name)]
            if self.flag()
            else self.pick(
                (
                    [("first_name", first), ("last_name", last)],
                    [("firstName", first), ("lastName", last)],
                    [("full_name", name)],
                )
            )
        )
        return dict(
            head
            + self.some(
                ("age", lambda: self.number(1, 99)),
                ("email", lambda: email),
                ("gender", lambda: self.pick(GENDERS)),
                ("phone", self.phone),
                ("address", self.address if self.flag() else lambda: f"{self.street()}, {self.pick(self.cities)}"),
                ("occupation", lambda: job.words[0]),
                ("job", lambda: job.words[0]),
                ("title", lambda: capitalized(job.words[0])),
                (
                    "company",
                    lambda: (
                        f"{self.pick(self.last_names)} {self.pick(('Inc.', 'Ltd.', 'and Sons', 'Company', 'Group'))}"
                    ),
                ),
                ("bio", lambda: sentence(without_domain(known.definition))),
                ("description", lambda: self.describe(self.pick((job, known)))),
                ("city", lambda: self.pick(self.cities)),
                ("country", lambda: self.pick(self.countries)),
                ("nationality", lambda: self.pick(self.countries)),
                ("birth_date", self.date),
                ("born", lambda: self.number(1800, 2010)),
                ("hobbies", self.words),
                ("interests", self.tags),
                ("skills", self.tags),
                ("is_active", self.flag),
                ("married", self.flag),
                ("role", lambda: self.pick(ROLES)),
                ("height", lambda: self.number(140, 205)),
                ("weight", lambda: self.number(40, 120)),
                ("salary", lambda: self.number(20, 200) * 1000),
                (
                    "children",
                    lambda: [
                        {"name": self.pick(self.first_names), "age": self.number(1, 18)}
                        for _ in range(self.number(0, 3))
                    ],
                ),
                ("friends", lambda: [self.full_name() for _ in range(self.number(1, 3))]),
                ("website", self.link),
            )
        )

    def place(self) -> dict[str, Any]:
        synset = self.pick(self.places)
        return dict(
            [
                (self.pick(("name", "name", "city", "place", "location")), synset.words[0]),
                *self.some(
                    ("description", lambda: self.describe(synset)),
                    ("country", lambda: self.pick(self.countries)),
                    ("population", lambda: self.number(1, 10 ** self.number(3, 7))),
                    ("latitude", lambda: self.decimal(-90, 90, 4)),
                    ("longitude", lambda: self.decimal(-180, 180, 4)),
                    ("lat", lambda: self.decimal(-90, 90, 2)),
                    ("lon", lambda: self.decimal(-180, 180, 2)),
                    ("coordinates", lambda: [self.decimal(-90, 90, 2), self.decimal(-180, 180, 2)]),
                    ("area", lambda: self.number(1, 99999)),
                    ("elevation", lambda: self.number(0, 4000)),
                    ("type", lambda: synset.parents[0].words[0] if synset.parents else "place"),
                    ("capital", self.flag),
                    ("founded", lambda: self.number(900, 2000)),
                    ("temperature", lambda: self.decimal(-20, 40, 1)),
                    ("weather", lambda: self.pick(("sunny", "cloudy", "rainy", "windy", "snow", "clear", "fog"))),
                    ("attractions", lambda: [self.title() for _ in range(self.number(1, 3))]),
                ),
            ]
        )

    def product(self) -> dict[str, Any]:
        synset = self.thing(ARTIFACT, ARTIFACT, ARTIFACT, FOOD)
        name = synset.words[0] if self.flag() else f"{self.pick(self.adjectives)} {synset.words[0]}"
        if self.flag():
            name = name.title()
        return dict(
            [
                *self.some(("id", self.identifier), ("sku", self.identifier)),
                (self.pick(("name", "name", "product", "title", "item")), name),
                *self.some(
                    ("description", lambda: self.describe(synset)),
                    ("price", self.price),
                    ("quantity", lambda: self.number(1, 50)),
                    ("currency", lambda: self.pick(CURRENCIES)),
                    ("category", lambda: synset.parents[0].words[0] if synset.parents else "other"),
                    ("in_stock", self.flag),
                    ("inStock", self.flag),
                    ("available", self.flag),
                    ("stock", lambda: self.number(0, 500)),
                    ("color", lambda: self.pick(COLORS)),
                    ("size", lambda: self.pick(SIZES)),
                    ("material", lambda: self.thing(27).words[0]),
                    ("brand", lambda: self.pick(self.last_names)),
                    ("weight", lambda: self.decimal(0, 50, 1)),
                    (
                        "dimensions",
                        lambda: {
                            "width": self.number(1, 200),
                            "height": self.number(1, 200),
                            "depth": self.number(1, 200),
                        },
                    ),
                    ("rating", lambda: self.decimal(1, 5, 1)),
                    (
                        "reviews",
                        lambda: [
                            {
                                "author": self.full_name(),
                                "rating": self.number(1, 5),
                                "comment": self.pick(self.sentences),
                            }
                            for _ in range(self.number(1, 2))
                        ],
                    ),
                    ("discount", lambda: self.number(0, 50)),
                    ("tags", self.tags),
                    ("url", self.link),
                    ("image", lambda: f"https://example.com/images/{self.word()}.jpg"),
                    ("features", lambda: [self.title() for _ in range(self.number(1, 4))]),
                ),
            ]
        )

    def living_thing(self) -> dict[str, Any]:
        synset = self.thing(ANIMAL, ANIMAL, PLANT)
        return dict(
            [
                (self.pick(("name", "species", "animal" if synset.topic == ANIMAL else "plant")), synset.words[0]),
                *self.some(
                    ("scientific_name", lambda: synset.words[-1]),
                    ("description", lambda: self.describe(synset)),
                    ("kind", lambda: synset.parents[0].words[0] if synset.parents else "organism"),
                    ("family", lambda: synset.parents[0].words[0] if synset.parents else "organism"),
                    ("habitat", lambda: self.thing(17).words[0]),
                    ("color", lambda: self.pick(COLORS)),
                    ("legs", lambda: self.pick((0, 2, 4, 4, 6, 8))),
                    ("weight_kg", lambda: self.decimal(0, 300, 1)),
                    ("lifespan", lambda: self.number(1, 80)),
                    ("endangered", self.flag),
                    (
                        "diet",
                        lambda: self.pick(("herbivore", "carnivore", "omnivore", "insects", "fish", "seeds", "grass")),
                    ),
                ),
            ]
        )

    def entry(self) -> dict[str, Any]:
        synset = self.pick(self.described)
        return dict(
            [
                (self.pick(("word", "term", "name", "label", "title")), synset.words[0]),
                *self.some(
                    ("part_of_speech", lambda: synset.part),
                    ("definition", lambda: synset.definition),
                    ("meaning", lambda: synset.definition),
                    ("description", lambda: self.describe(synset)),
                    ("synonyms", lambda: synset.words[1:]),
                    ("examples", lambda: synset.examples),
                    ("example", lambda: synset.examples[0] if synset.examples else self.pick(self.sentences)),
                    ("related", self.words),
                    ("category", lambda: synset.parents[0].words[0] if synset.parents else "thing"),
                    ("language", lambda: self.pick(LANGUAGES)),
                ),
            ]
        )

    def article(self) -> dict[str, Any]:
        return dict(
            [
                *self.some(("id", self.identifier)),
                ("title", self.title() if self.flag() else self.pick(self.sentences).rstrip(".")),
                *self.some(
                    ("author", self.full_name),
                    ("authors", lambda: [self.full_name() for _ in range(self.number(1, 3))]),
                    ("summary", self.text),
                    ("abstract", self.text),
                    ("content", self.text),
                    ("text", self.text),
                    ("body", self.text),
                    ("description", self.text),
                    ("published", self.date),
                    ("date", self.date),
                    ("year", lambda: self.number(1900, 2030)),
                    ("publisher", lambda: f"{self.pick(self.last_names)} Press"),
                    (
                        "genre",
                        lambda: self.pick(("fiction", "history", "poetry", "science", "mystery", "biography", "drama")),
                    ),
                    ("pages", lambda: self.number(20, 900)),
                    ("isbn", self.book_number),
                    ("language", lambda: self.pick(LANGUAGES)),
                    ("keywords", self.tags),
                    ("tags", self.tags),
                    ("views", lambda: self.number(0, 100000)),
                    ("likes", lambda: self.number(0, 5000)),
                    (
                        "comments",
                        lambda: [
                            {"user": self.pick(self.first_names), "text": self.pick(self.sentences)}
                            for _ in range(self.number(1, 2))
                        ],
                    ),
                    ("url", self.link),
                ),
            ]
        )

    def task(self) -> dict[str, Any]:
        verb = self.pick(
            ("Clean", "Write", "Check", "Find", "Review", "Update", "Fix", "Buy", "Plan", "Prepare", "Send")
        )
        return dict(
            [
                *self.some(("id", self.identifier)),
                (
                    self.pick(("title", "task", "name", "subject")),
                    f"{verb} the {self.pick(self.adjectives)} {self.word()}",
                ),
                *self.some(
                    ("description", self.text),
                    ("notes", self.text),
                    ("message", self.text),
                    ("status", lambda: self.pick(STATUS)),
                    ("priority", lambda: self.pick(LEVELS) if self.flag() else self.number(1, 5)),
                    ("due_date", self.date),
                    ("dueDate", self.date),
                    ("created_at", self.moment),
                    ("createdAt", self.moment),
                    ("updated_at", self.moment),
                    ("timestamp", self.moment),
                    ("assignee", self.full_name),
                    ("owner", self.full_name),
                    ("completed", self.flag),
                    ("done", self.flag),
                    ("steps", lambda: [self.pick(self.sentences) for _ in range(self.number(1, 3))]),
                    ("labels", self.tags),
                    ("progress", lambda: self.number(0, 100)),
                    ("hours", lambda: self.decimal(0, 40, 1)),
                    ("error", lambda: None if self.flag() else self.pick(self.sentences)),
                ),
            ]
        )

    def order(self) -> dict[str, Any]:
        items = [
            {
                self.pick(("name", "product", "item")): self.thing(ARTIFACT, FOOD).words[0],
                "quantity": self.number(1, 12),
                "price": self.price(),
            }
            for _ in range(self.number(1, 3))
        ]
        return dict(
            [
                (self.pick(("id", "order_id", "orderId", "order_number")), self.identifier()),
                *self.some(
                    ("customer", self.person if self.flag() else self.full_name),
                    ("date", self.date),
                    ("total", self.price),
                    ("currency", lambda: self.pick(CURRENCIES)),
                    ("status", lambda: self.pick(STATUS)),
                    ("shipping_address", self.address),
                    ("paid", self.flag),
                ),
                (self.pick(("items", "items", "products", "lines")), items),
            ]
        )

    def recipe(self) -> dict[str, Any]:
        synset = self.thing(FOOD)
        return dict(
            [
                (self.pick(("name", "title", "dish", "recipe")), synset.words[0]),
                *self.some(
                    ("description", lambda: self.describe(synset)),
                    ("ingredients", lambda: [self.thing(FOOD).words[0] for _ in range(self.number(2, 5))]),
                    ("servings", lambda: self.number(1, 12)),
                    ("calories", lambda: self.number(20, 900)),
                    ("prep_time", lambda: self.number(5, 90)),
                    ("vegetarian", self.flag),
                    ("cuisine", lambda: self.pick(self.countries)),
                    ("difficulty", lambda: self.pick(("easy", "medium", "hard"))),
                    ("instructions", lambda: [self.pick(self.sentences) for _ in range(self.number(1, 3))]),
                ),
            ]
        )

    def event(self) -> dict[str, Any]:
        return dict(
            [
                (
                    self.pick(("event", "name", "title")),
                    self.title() if self.flag() else capitalized(self.thing(4, 11).words[0]),
                ),
                *self.some(
                    ("description", self.text),
                    ("date", self.date),
                    ("start", self.moment),
                    ("end", self.moment),
                    ("start_date", self.date),
                    ("end_date", self.date),
                    ("time", self.time),
                    ("location", lambda: self.pick(self.cities)),
                    ("venue", self.title),
                    ("organizer", self.full_name),
                    ("attendees", lambda: [self.full_name() for _ in range(self.number(1, 4))]),
                    ("capacity", lambda: self.number(10, 5000)),
                    ("public", self.flag),
                    ("month", lambda: self.pick(MONTHS)),
                    ("duration", lambda: self.number(1, 240)),
                    ("type", lambda: self.thing(4).words[0]),
                ),
            ]
        )

    def settings(self) -> dict[str, Any]:
        return dict(
            self.some(
                ("name", self.word),
                ("version", lambda: f"{self.number(0, 9)}.{self.number(0, 20)}.{self.number(0, 9)}"),
                ("description", self.text),
                ("enabled", self.flag),
                ("debug", self.flag),
                ("host", lambda: f"{self.word()}.example.com"),
                ("port", lambda: self.pick((80, 443, 8080, 3000, 5432, 9000))),
                ("timeout", lambda: self.number(1, 120)),
                ("path", lambda: f"/{self.word()}/{self.word()}"),
                ("file", lambda: f"{self.word()}.{self.pick(('txt', 'json', 'csv', 'png', 'py'))}"),
                ("level", lambda: self.pick(("debug", "info", "warning", "error"))),
                ("theme", lambda: self.pick(("dark", "light"))),
                ("language", lambda: self.pick(LANGUAGES)),
                ("unit", lambda: self.pick(UNITS)),
                ("value", lambda: self.pick((self.number(0, 1000), self.decimal(0, 100, 2), self.word()))),
                ("values", lambda: [self.decimal(0, 100, 1) for _ in range(self.number(1, 5))]),
                ("count", lambda: self.number(0, 1000)),
                ("max", lambda: self.number(1, 1000)),
                ("min", lambda: self.number(0, 10)),
                ("limit", lambda: self.number(1, 100)),
                ("retries", lambda: self.number(0, 10)),
                ("type", self.word),
                ("key", self.word),
                ("user", lambda: self.pick(self.first_names).lower()),
                ("username", lambda: f"{self.pick(self.first_names).lower()}{self.number(1, 99)}"),
                ("id", self.identifier),
                ("options", lambda: {self.word(): self.flag() for _ in range(self.number(1, 3))}),
                ("data", lambda: None if self.rng.random() < 0.3 else self.kinds()),
                ("score", lambda: self.decimal(0, 1, 2)),
                ("confidence", lambda: self.decimal(0, 1, 2)),
                ("label", self.word),
                ("color", lambda: f"#{self.number(0, 0xFFFFFF):06x}"),
                share=0.2,
            )
        )

    def kinds(self) -> dict[str, Any]:
        """Keys that are kinds of things with values of that kind."""
        record: dict[str, Any] = {}
        for _ in range(self.number(1, 5)):
            family = self.pick(self.families)
            key = family.words[0]
            key = key.replace(" ", "_") if self.flag() else key.title().replace(" ", "")
            key = key[0].lower() + key[1:]
            child = self.pick(family.children)
            way = self.rng.random()
            if way < 0.55:
                record[key] = child.words[0]
            elif way < 0.7:
                record[key] = self.rng.sample([c.words[0] for c in family.children], min(3, len(family.children)))
            elif way < 0.85:
                record[key] = self.describe(child)
            elif way < 0.95:
                record[key] = self.number(0, 10 ** self.number(1, 4))
            else:
                record[key] = self.flag()
        return record

    def some(self, *fields: tuple[str, Callable[[], Any]], share: float = 0.28) -> list[tuple[str, Any]]:
        """A random part of the fields, mostly in order."""
        chosen = [(key, make) for key, make in fields if self.rng.random() < share]
        if self.rng.random() < 0.25:
            self.rng.shuffle(chosen)
        return [(key, make()) for key, make in chosen]

    def record(self) -> dict[str, Any]:
        makers = (
            (0.15, self.person),
            (0.07, self.place),
            (0.13, self.product),
            (0.06, self.living_thing),
            (0.12, self.entry),
            (0.10, self.article),
            (0.08, self.task),
            (0.04, self.order),
            (0.05, self.recipe),
            (0.06, self.event),
            (0.07, self.settings),
            (0.07, self.kinds),
        )
        draw = self.rng.random()
        for share, make in makers:
            draw -= share
            if draw < 0:
                return make()
        return self.person()


def documents(synsets: list[Synset], count: int, rng: Random) -> Iterator[str]:
    """``count`` JSON texts."""
    maker = RecordMaker(synsets, rng)
    for _ in range(count):
        value: Any = maker.record()
        draw = rng.random()
        if draw < 0.08:
            value = [value, *(maker.record() for _ in range(maker.number(0, 2)))]
        elif draw < 0.14:
            value = {
                maker.pick(("data", "result", "items", "results", "people", "products", "users")): [
                    value,
                    maker.record(),
                ]
            }
        elif draw < 0.18:
            value = {maker.pick(("person", "item", "product", "user", "place", "response", maker.word())): value}
        style = rng.random()
        for share, options in _STYLES:
            style -= share
            if style < 0:
                yield json.dumps(value, ensure_ascii=False, **options)
                break
        else:
            yield json.dumps(value, ensure_ascii=False)
