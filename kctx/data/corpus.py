"""A corpus of plain text files, read document by document in any order."""

import glob
import os
import warnings

import numpy as np

from kctx.data.document_index import (
    check_encoding,
    cut_long_documents,
    scan_documents,
)
from kctx.data.sentences import split_sentences as split_into_sentences
from kctx.files import encoding_error

_SAMPLE_DOCUMENTS = 64
_SAMPLE_BYTES = 16384  # of each document of the sample


class Corpus:
    """Documents of text files in which a blank line ends a document.

    One pass over the bytes at construction finds where each document lies (16 bytes of memory for
    each) and checks the encoding; the text itself stays on disk. CRLF, a byte order mark, blank
    lines that hold spaces, and lines of any length are fine.

    Args:
        files: file name or glob, or a list of them. Files are taken in sorted order for each
            glob, each file once.
        encoding: of every file. Default `"utf-8"`.
        split_sentences: `True` splits every line into sentences, `False` takes a line for a
            sentence, `"auto"` (default) splits when the lines of a sample hold 1.5 sentences or
            more on average.
        max_document_bytes: longer documents are cut at line ends. Default 1 MiB.

    Attributes:
        num_documents: number of documents.
        num_bytes: total size of the files in bytes.
        files: list of the file names.
        splits_lines: bool, what `split_sentences` came to.

    Raises:
        FileNotFoundError: no file matches.
        ValueError: a file is not valid in the encoding (file and byte offset are named), or no
            file holds any text.
    """

    def __init__(self, files, encoding="utf-8", split_sentences="auto", max_document_bytes=1 << 20):
        if split_sentences not in ("auto", True, False):
            raise ValueError(
                "`split_sentences` must be True, False or 'auto'. "
                f"Received: split_sentences={split_sentences!r}"
            )
        if max_document_bytes < 1024:
            raise ValueError(
                "`max_document_bytes` must be at least 1024. "
                f"Received: max_document_bytes={max_document_bytes}"
            )
        self.encoding = check_encoding(encoding)
        self.files = matching_files(files)
        starts, lengths, self.file_bytes, self.file_checksums = [], [], [], []
        for path in self.files:
            start, length, size, checksum = scan_documents(path, self.encoding)
            start, length = cut_long_documents(
                path, start, length, max_document_bytes, self.encoding
            )
            starts.append(start)
            lengths.append(length)
            self.file_bytes.append(size)
            self.file_checksums.append(checksum)
        # Documents [first_document[f], first_document[f + 1]) belong to file f.
        self._first_document = np.cumsum([0] + [len(start) for start in starts])
        self._starts = np.concatenate(starts)  # (documents,) byte offset in its file
        self.document_bytes = np.concatenate(lengths)  # (documents,)
        if not self.num_documents:
            raise ValueError(
                f"The corpus is empty: {_name_some(self.files)} hold(s) no text. Expected text "
                "files with a sentence or paragraph a line and a blank line between documents."
            )
        self.splits_lines = False
        sentences_per_line, sentences_per_document = self._sample()
        self.splits_lines = (
            sentences_per_line >= 1.5 if split_sentences == "auto" else bool(split_sentences)
        )
        if self.num_documents > 1 and sentences_per_document < 1.5:
            warnings.warn(
                "Nearly every document of the corpus is a single sentence, so next-sentence pairs "
                "will all be random. A blank line ends a document: are there blank lines between "
                "the sentences?",
                stacklevel=2,
            )

    @property
    def num_documents(self):
        return len(self._starts)

    @property
    def num_bytes(self):
        return sum(self.file_bytes)

    def sentences(self, document):
        """List of the sentences (str, never blank) of a document, given by its number."""
        return self._to_sentences(self._read(document, 0, int(self.document_bytes[document])))

    def sentences_from(self, document, rng, limit=1 << 16):
        """Sentences of a document from a random one on, as the second segment of a pair needs.

        The first sentence is uniform over the document. Documents above `limit` bytes (an eighth
        of it when lines are split) are not read whole: the line after a uniformly drawn byte is
        the first then, and at most `limit` bytes are read.

        Args:
            document: number of the document.
            rng: `random.Random`.
            limit: bytes.

        Returns:
            List of str, empty if the document has no sentence.
        """
        length = int(self.document_bytes[document])
        limit = limit // 8 if self.splits_lines else limit
        if length <= limit:
            sentences = self.sentences(document)
            return sentences[rng.randint(0, len(sentences) - 1) :] if sentences else []
        offset = rng.randint(0, length - 1)
        data = self._read_bytes(document, offset, min(limit, length - offset))
        next_line = data.find(b"\n") + 1
        if not next_line or next_line == len(data):
            # In the last line, or a line longer than the limit: from the document's first line.
            data = self._read_bytes(document, 0, limit)
        else:
            data = data[next_line:]
        return self._to_sentences(self._decode_window(data))

    def fingerprint(self):
        """What must be equal for the documents to be the same: dict of sizes, checksums, options.

        File names are left out, so a corpus may be moved.
        """
        return {
            "corpus_file_bytes": list(self.file_bytes),
            "corpus_file_crc32": list(self.file_checksums),
            "corpus_encoding": self.encoding,
            "corpus_documents": self.num_documents,
            "corpus_splits_lines": self.splits_lines,
        }

    def _read(self, document, offset, size):
        data = self._read_bytes(document, offset, size)
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:  # the file has changed since it was indexed
            file = self._file_of(document)
            position = int(self._starts[document]) + offset + error.start
            raise encoding_error(self.files[file], self.encoding, position) from error

    def _file_of(self, document):
        return int(np.searchsorted(self._first_document, document, side="right")) - 1

    def _read_bytes(self, document, offset, size):
        path = self.files[self._file_of(document)]
        with open(path, "rb", buffering=0) as file:
            file.seek(int(self._starts[document]) + offset)
            data = file.read(size)
        if len(data) < size:
            raise OSError(f"{path} has become shorter since the corpus was indexed.")
        return data

    def _decode_window(self, data):
        # A window may end inside a character or a sentence: drop the part line if there is one.
        last_line = data.rfind(b"\n")
        return data[: last_line if last_line > 0 else len(data)].decode(self.encoding, "ignore")

    def _to_sentences(self, text):
        lines = [line for line in map(str.strip, text.split("\n")) if line]
        if not self.splits_lines:
            return lines
        return [sentence for line in lines for sentence in split_into_sentences(line)]

    def _sample(self):
        """Mean sentences a line and sentences a document over documents spread evenly."""
        count = min(self.num_documents, _SAMPLE_DOCUMENTS)
        sample = np.linspace(0, self.num_documents - 1, count).astype(np.int64)
        lines = sentences = 0
        for document in sample.tolist():
            size = min(int(self.document_bytes[document]), _SAMPLE_BYTES)
            text = self._read_bytes(document, 0, size).decode(self.encoding, "ignore")
            document_lines = self._to_sentences(text)
            lines += len(document_lines)
            sentences += sum(len(split_into_sentences(line)) for line in document_lines)
        return sentences / max(lines, 1), sentences / count


def matching_files(files):
    """The existing files of names and globs, in order, each once; `FileNotFoundError` for none."""
    patterns = [files] if isinstance(files, str | os.PathLike) else list(files)
    found = []
    for pattern in map(os.fspath, patterns):
        # A name that exists is taken as it is, even if it holds characters of a glob.
        matches = (
            [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern, recursive=True))
        )
        matches = [match for match in matches if os.path.isfile(match)]
        if not matches:
            hint = " It is a folder: give a glob such as 'folder/*.txt'." * os.path.isdir(pattern)
            raise FileNotFoundError(f"No file matches {pattern!r}.{hint}")
        found.extend(matches)
    if not found:
        raise FileNotFoundError("No corpus file was given: `files` is empty.")
    return list(dict.fromkeys(found))


def _name_some(files):
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
