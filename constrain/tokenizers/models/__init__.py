"""From the bytes of a piece to ids: byte-level BPE, BPE over characters, Unigram, WordPiece, WordLevel."""
