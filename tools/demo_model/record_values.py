"""Values for made-up records: names, texts, numbers, dates, from WordNet and a random generator."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from tools.demo_model.prose import capitalized, definition_sentence, sentence, without_domain
from tools.demo_model.wordnet import Synset

PERSON, PLACE, ARTIFACT, FOOD, ANIMAL, PLANT = 18, 15, 6, 13, 5, 20
"""Numbers of WordNet's lexicographer files."""

STATUS = ("active", "inactive", "pending", "completed", "cancelled", "in progress", "open", "closed", "draft", "done")
LEVELS = ("low", "medium", "high", "critical", "normal", "none")
COLORS = ("red", "green", "blue", "yellow", "black", "white", "orange", "purple", "brown", "gray", "pink", "silver")
CURRENCIES = ("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD")
LANGUAGES = ("en", "de", "fr", "es", "it", "ja", "zh", "English", "German", "French", "Spanish", "Japanese")
UNITS = ("kg", "g", "lb", "cm", "m", "km", "ml", "l", "celsius", "percent", "seconds", "hours", "days")
ROLES = ("admin", "user", "editor", "viewer", "owner", "guest", "manager", "developer", "member")
GENDERS = ("male", "female", "other")
STREETS = ("Street", "Avenue", "Road", "Lane", "Drive")
SIZES = ("small", "medium", "large", "S", "M", "L", "XL")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


class ValueMaker:
    """Draws values; everything follows from the synsets and the random generator."""

    def __init__(self, synsets: list[Synset], rng: Random) -> None:
        self.rng = rng
        nouns = [synset for synset in synsets if synset.part == "noun"]
        people = [synset for synset in nouns if synset.is_instance and synset.topic == PERSON]
        full = [
            word
            for synset in people
            for word in synset.words
            if re.fullmatch(r"[A-Z][a-z]+( [A-Z]\.)? [A-Z][a-z]+", word)
        ]
        self.full_names = full
        self.first_names = [name.split()[0] for name in full]
        self.last_names = [name.split()[-1] for name in full]
        self.occupations = [s for s in nouns if s.topic == PERSON and not s.is_instance and len(s.words[0]) < 24]
        self.people = people
        places = [synset for synset in nouns if synset.is_instance and synset.topic == PLACE]
        self.cities = [s.words[0] for s in places if re.search(r"\b(city|town|port|capital)\b", s.definition)]
        self.countries = [
            s.words[0]
            for s in places
            if re.search(r"\b(republic|monarchy|kingdom|country|nation)\b", s.definition[:80])
        ]
        self.places = places
        self.things = {topic: [s for s in nouns if s.topic == topic and not s.is_instance] for topic in range(3, 29)}
        self.adjectives = [s.words[0] for s in synsets if s.part == "adj" and re.fullmatch("[a-z]{4,9}", s.words[0])]
        self.common = [s.words[0] for s in nouns if re.fullmatch("[a-z]{3,9}", s.words[0]) and len(s.children) > 2]
        self.families = [
            s for s in nouns if len(s.children) > 3 and re.fullmatch("[a-z]{3,12}( [a-z]{3,9})?", s.words[0])
        ]
        self.sentences = [sentence(text) for s in synsets for text in s.examples if len(text) > 20]
        self.described = nouns

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.random() * len(items))]

    def thing(self, *topics: int) -> Synset:
        found: Synset = self.pick(self.things[self.pick(topics)])
        return found

    def full_name(self) -> str:
        if self.rng.random() < 0.5:
            return str(self.pick(self.full_names))
        return f"{self.pick(self.first_names)} {self.pick(self.last_names)}"

    def title(self) -> str:
        word = f"{self.pick(self.adjectives)} {self.pick(self.common)}"
        return word.title() if self.rng.random() < 0.6 else capitalized(word)

    def describe(self, synset: Synset) -> str:
        """One of the ways to describe a synset."""
        plain = without_domain(synset.definition)
        way = self.rng.random()
        if way < 0.3:
            return capitalized(plain)
        if way < 0.6:
            return sentence(plain.split(";")[0])
        if way < 0.9:
            return definition_sentence(synset, self.rng)
        return plain

    def text(self) -> str:
        way = self.rng.random()
        if way < 0.5:
            return str(self.pick(self.sentences))
        if way < 0.7:
            return f"{self.pick(self.sentences)} {self.pick(self.sentences)}"
        return self.describe(self.pick(self.described))

    def word(self) -> str:
        return str(self.pick(self.common))

    def words(self) -> list[str]:
        family = self.pick(self.families)
        names = [child.words[0] for child in family.children]
        return self.rng.sample(names, min(len(names), 1 + int(self.rng.random() * 4)))

    def tags(self) -> list[str]:
        return [self.word() for _ in range(1 + int(self.rng.random() * 4))]

    def number(self, low: int, high: int) -> int:
        return low + int(self.rng.random() * (high - low + 1))

    def price(self) -> float:
        whole = self.number(1, 10 ** self.number(1, 3))
        return whole + float(self.pick((0.99, 0.5, 0.95, 0.49, 0.0, 0.25)))

    def decimal(self, low: int, high: int, digits: int) -> float:
        return round(low + self.rng.random() * (high - low), digits)

    def date(self) -> str:
        return f"{self.number(1950, 2030):04}-{self.number(1, 12):02}-{self.number(1, 28):02}"

    def time(self) -> str:
        return f"{self.number(0, 23):02}:{self.number(0, 59):02}:{self.pick((0, 0, 15, 30, 45)):02}"

    def moment(self) -> str:
        return f"{self.date()}T{self.time()}Z"

    def email(self) -> str:
        name = f"{self.pick(self.first_names)}.{self.pick(self.last_names)}".lower()
        return f"{name}@example.{self.pick(('com', 'org', 'net'))}"

    def link(self) -> str:
        return f"https://{self.pick(('www.', ''))}example.com/{self.word()}/{self.word()}"

    def street(self) -> str:
        return f"{self.number(1, 999)} {self.pick(self.last_names)} {self.pick(STREETS)}"

    def phone(self) -> str:
        return f"+1-555-{self.number(100, 999)}-{self.number(1000, 9999)}"

    def book_number(self) -> str:
        groups = (self.number(0, 9), self.number(1000, 9999), self.number(1000, 9999), self.number(0, 9))
        return "978-" + "-".join(map(str, groups))

    def identifier(self) -> Any:
        way = self.rng.random()
        if way < 0.6:
            return self.number(1, 10 ** self.number(1, 6))
        if way < 0.8:
            return f"{self.word()}-{self.number(1, 999)}"
        return "".join(self.pick("0123456789abcdef") for _ in range(8))

    def flag(self) -> bool:
        return self.rng.random() < 0.55
