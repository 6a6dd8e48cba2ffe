"""Which rows of a table the words of a test set have, whatever their case."""


class WordLookup:
    """Rows of some words.

    Args:
        vectors: `kctx.vectors.Vectors`.
        words: iterable of str, those that will be asked for.
        restrict: int, only the first so many words of the table count. Default: all.
        fold_case: bool, whether "Paris" and "paris" are the same; the first one in the table, the
            more frequent, stands for both.

    Attributes:
        rows: dict of folded word to row.
        variants: dict of row to the rows of its other spellings.
    """

    def __init__(self, vectors, words, restrict=None, fold_case=True):
        self.fold_case = fold_case
        wanted = {self.folded(word) for word in words}
        self.rows, self.variants = {}, {}
        if not fold_case:
            stop = len(vectors) if restrict is None else restrict
            found = {word: vectors.index(word) for word in wanted if word in vectors}
            self.rows = {word: row for word, row in found.items() if row < stop}
            return
        for row, word in enumerate(vectors.words[:restrict]):
            word = word.lower()
            if word in wanted:
                first = self.rows.setdefault(word, row)
                if first != row:
                    self.variants.setdefault(first, []).append(row)

    def folded(self, word):
        """The form of a word that is compared."""
        return word.lower() if self.fold_case else word

    def row(self, word):
        """The row of a word, or None."""
        return self.rows.get(self.folded(word))
