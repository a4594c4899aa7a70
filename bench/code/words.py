"""Words for names, comments and texts of generated programs."""

from __future__ import annotations

from random import Random


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


NOUNS = words_of(
    """
    account address archive array batch block board body border bucket buffer bundle button byte cache call cell
    chain channel chapter child chunk city class client clock code color column command comment company config
    content context copy corner count counter country course cursor customer data date deadline delta depth device
    digest direction disk document domain driver edge element endpoint engine entry error event factor field file
    filter flag folder font footer format frame friend garden gauge graph grid group guard handle handler hash
    header height history host image index inode input instance invoice item job journal kernel key label language
    layer layout leaf length level library limit line link list location lock log machine manager map margin
    matrix member memory message method minute mode model module month motor name neighbor network node note
    number object offset option order origin output owner package packet page pair panel parcel parent part party
    patch path pattern payload payment person phase picture pixel player point policy pool port position post
    price priority process product profile project prompt property queue quota range rate ratio reader reason
    record region register release reply report request resource response result review ring river role room root
    route router row rule sample schedule schema scope score screen section segment sensor sequence server service
    session shape shard sheet shelf signal size slot snapshot socket source speed stack stage state station status
    step stock store stream street string summary supplier symbol table tag target task team template term text
    theme thread ticket timer title token total trace track train transfer tree unit update user value vector
    vendor version vertex view visitor volume warehouse weight widget width window word worker writer year zone
    """
)

VERBS = words_of(
    """
    accept add adjust allocate append apply assign attach balance bind build cancel capture check clean clear
    clone close collect combine commit compare compress compute configure connect convert copy count create decode
    delete deliver derive describe detach detect discard dispatch divide drain draw drop emit encode enqueue
    ensure estimate evaluate expand export extend extract fetch fill filter find finish flatten flush fold format
    gather generate grow handle hash hide import increase index init inject insert inspect join launch limit link
    list load locate lock log lookup map mark match measure merge migrate mount move normalize notify open order
    pack parse patch pause peek plan poll pop prepare print process promote prune publish push query read rebuild
    receive recover reduce refresh register reject release reload remove rename render repair replace report
    request reserve reset resize resolve restore resume retry return reverse rewind roll rotate route run sample
    save scale scan schedule search select send serve set shift show shrink shuffle skip sort split start stop
    store stream submit swap sync take test trace track transform trim truncate try unlock unpack update upload
    use validate verify visit wait walk warn watch wrap write yield
    """
)

ADJECTIVES = words_of(
    """
    active actual average best big blank broken busy cached central clean closed cold common compact complete
    current daily dark deep default dirty double early empty exact extra failed fast final first fixed flat free
    fresh full global good hidden high hot idle inner large last late latest lazy left light local lower main max
    mean min minor missing new next nominal old open outer partial pending plain previous primary private public
    quick random raw ready recent relative remote rough safe second shared short signed simple single slow small
    soft sorted spare stable stale static steady strict strong temporary thin tiny top total unique unused upper
    urgent used valid visible warm weak weekly wide young
    """
)

_LINKS = words_of("of the for with from in each before after under between per and into on without at")


class Words:
    """Names and phrases, drawn with one source of chance."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def noun(self) -> str:
        """One noun."""
        return self._random.choice(NOUNS)

    def verb(self) -> str:
        """One verb."""
        return self._random.choice(VERBS)

    def thing(self) -> list[str]:
        """The words of a name for a value."""
        random = self._random
        words = [self.noun()]
        if random.random() < 0.4:
            words.insert(0, random.choice(ADJECTIVES))
        elif random.random() < 0.3:
            words.append(self.noun())
        return words

    def action(self) -> list[str]:
        """The words of a name for a function."""
        return [self.verb(), *self.thing()]

    def phrase(self) -> str:
        """A few words as in a comment or a message, without a sign at the end."""
        random = self._random
        words = [self.verb(), "the", *self.thing()]
        for _ in range(random.randrange(4)):
            words += [random.choice(_LINKS), *self.thing()]
        return " ".join(words)

    def sentence(self) -> str:
        """A phrase with a capital and a full stop."""
        phrase = self.phrase()
        return f"{phrase[0].upper()}{phrase[1:]}."


def snake(words: list[str]) -> str:
    """``like_this``."""
    return "_".join(words)


def camel(words: list[str]) -> str:
    """``likeThis``."""
    return words[0] + "".join(map(str.capitalize, words[1:]))


def pascal(words: list[str]) -> str:
    """``LikeThis``."""
    return "".join(map(str.capitalize, words))


def constant(words: list[str]) -> str:
    """``LIKE_THIS``."""
    return "_".join(words).upper()
